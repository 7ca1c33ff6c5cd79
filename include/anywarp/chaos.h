/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One fault, now: for tests that have a call fail, a connection end, a completion come late. See
 * anywarp_chaos_next(3). The function is there on anywarp alone: elsewhere its address is NULL.
 */
#ifndef ANYWARP_CHAOS_H
#define ANYWARP_CHAOS_H

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Has a fault of "anywarp chaos --list" happen once, when it could happen the next time, or, after
 * @p skip times, the next time then. @p fault NULL makes ready, and forgets what has not happened.
 * @return 0; ENOENT: there is no such fault; EBUSY: a device is open that was not made ready
 */
int anywarp_chaos_next(const char *fault, unsigned skip) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
