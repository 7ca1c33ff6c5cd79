/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Buffers of the data path: staging for received bytes, batches for those to send. A connection
 * holds one only while it has bytes in it. Each thread keeps one free buffer of a kind for itself,
 * so that the common get and put touch no lock; the rest lie in a bounded process pool.
 */
#ifndef ANYWARP_ENV_POOL_H
#define ANYWARP_ENV_POOL_H

#include "common/lock.h"

#include <stddef.h>

enum iw_pool_kind { IW_POOL_STAGING, IW_POOL_BATCH };

#define IW_STAGING_BYTES (160 * 1024) /* at least two FPDUs of the largest size */

/**
 * Makes sure of one buffer of each kind that is lent while there is no memory for more: QPs that
 * have work take turns then, and none waits for memory that never comes.
 * @return 0 or ENOMEM
 */
int iw_pool_reserve(void);

/**
 * @return a buffer of the kind's size, contents undefined; NULL if there is no memory, and the
 *         reserve is lent
 */
void *iw_pool_get(enum iw_pool_kind kind);
void iw_pool_put(enum iw_pool_kind kind, void *buf);

/** What the module does about fork(); see process/atfork.h. */
void iw_pool_fork(enum fork_step step);

#endif
