/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_OBSERVE_SENT_H
#define ANYWARP_OBSERVE_SENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/**
 * Shows what a stream has just taken of @p iov, @p n pieces: @p len bytes, piece by piece. They are
 * in the program's memory, which may be gone by now; under a guard (env/guard.h), whose rules
 * @p see follows.
 * @return false if that memory is gone, and @p see has not seen all
 */
bool iw_sent_show(const struct iovec *iov, unsigned n, size_t len,
                  void (*see)(void *arg, const uint8_t *p, size_t len), void *arg);

#endif
