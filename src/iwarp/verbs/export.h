/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What libibverbs.so.1 exports. A function marked so needs its line in libibverbs.map.
 *
 * How the verbs report errors: functions that return a pointer give NULL and set errno; most that
 * return int give the positive errno itself; a few give -1 and set errno.
 */
#ifndef ANYWARP_VERBS_EXPORT_H
#define ANYWARP_VERBS_EXPORT_H

#include "env/refuse.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <stddef.h>

/* The header turns these calls into inlines; here the exported functions behind them are meant. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/** A value of IW_REFUSED_VALUE. */
#define ONE_PORT "a port_num other than 1"

#define VERBS_EXPORT __attribute__((visibility("default")))

static inline void *null_errno(int error)
{
    errno = error;
    return NULL;
}

static inline int minus_errno(int error)
{
    errno = error;
    return -1;
}

#endif
