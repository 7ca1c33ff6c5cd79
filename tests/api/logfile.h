/* SPDX-License-Identifier: BSD-2-Clause */
/* What the log says of a QP's end, and the asynchronous events that go with it. */
#ifndef ANYWARP_TESTS_LOGFILE_H
#define ANYWARP_TESTS_LOGFILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/** Group set-up and tear-down: the log goes to a file of its own, at level warning. */
int log_setup(void **state);
int log_teardown(void **state);

/**
 * Fails the test unless the log has exactly one line of this QP, which begins with its number, and
 * that matches the fnmatch() pattern @p pattern behind the number; NULL: no line at all.
 */
void log_expect(uint32_t qp_num, const char *pattern);
/** Whether a whole line of the log matches the fnmatch() pattern. */
bool log_has(const char *pattern);
/** Likewise of what "anywarp stat" says of this process, by the command in ANYWARP. */
bool stat_has(const char *pattern);
/** Empties the log, and forgets events of QPs that are gone. */
void log_clear(void);

/** The set of asynchronous events (1 << type) that are queued for @p qp; those of others are kept.
 */
unsigned async_events(struct ibv_qp *qp);

#endif
