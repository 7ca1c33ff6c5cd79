/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random STags and QP numbers (RFC 5042 section 6.1.1: hard to predict, sparse). random.c has them
 * from OpenSSL, random_kernel.c from the kernel: configure --with-random chooses.
 */
#ifndef ANYWARP_ENV_RANDOM_H
#define ANYWARP_ENV_RANDOM_H

#include "common/lock.h"

#include <stdint.h>

/** @return 0, or -EIO if the generator fails: then no object may be made, and the log says why */
int iw_random32(uint32_t *out);

/** What the module does about fork(); see process/atfork.h. */
void iw_random_fork(enum fork_step step);

#endif
