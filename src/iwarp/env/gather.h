/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_ENV_GATHER_H
#define ANYWARP_ENV_GATHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/**
 * Copies @p len bytes of @p iov, which is memory of the program, behind the first @p skip.
 * @return false if some of it is not there any more (env/guard.h)
 */
bool iw_gather(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n);

#endif
