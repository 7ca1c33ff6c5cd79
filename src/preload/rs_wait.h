/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_PRELOAD_RS_WAIT_H
#define ANYWARP_PRELOAD_RS_WAIT_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/** poll() over numbers of both kinds. */
int pre_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

/** Milliseconds of a timeout, rounded up; -1 for NULL: for ever. */
int pre_ms(const struct timespec *timeout);
uint64_t pre_now_ms(void);
/** What is left of @p timeout_ms that began at @p start; -1 stays. */
int pre_left(uint64_t start, int timeout_ms);

/**
 * Lets signals of @p mask in for a wait. @return false: one was waiting, and has been handled.
 * @param before  what pre_mask_restore() restores; not with a @p mask of NULL
 */
bool pre_mask(const sigset_t *mask, sigset_t *before);
void pre_mask_restore(const sigset_t *mask, const sigset_t *before);

#endif
