/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_PRELOAD_RS_WAIT_H
#define ANYWARP_PRELOAD_RS_WAIT_H

#include "preload/rs_numbers.h"

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

/** SO_RCVTIMEO or SO_SNDTIMEO: for all waits of one call together. */
struct pre_limit {
    const struct pre_socket *s;
    short events; /* that it waits for */
    int ms;
    uint64_t start; /* of the first wait; 0: there was none */
};

/** Waits for a call that did not wait. @return whether to try it again; else errno, EAGAIN or
 * EINTR, as of TCP, where a limit has signals end the call also if their handlers have SA_RESTART
 */
bool pre_limit_wait(struct pre_limit *limit);

/**
 * Lets signals of @p mask in for a wait. @return false: one was waiting, and has been handled.
 * @param before  what pre_mask_restore() restores; not with a @p mask of NULL
 */
bool pre_mask(const sigset_t *mask, sigset_t *before);
void pre_mask_restore(const sigset_t *mask, const sigset_t *before);

#endif
