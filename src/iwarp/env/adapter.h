/* SPDX-License-Identifier: BSD-2-Clause */
/* What adapters are limited to, for ANYWARP_LIKE: numbers of their drivers, each with its source.
 */
#ifndef ANYWARP_ENV_ADAPTER_H
#define ANYWARP_ENV_ADAPTER_H

#include <stddef.h>
#include <stdint.h>

enum iw_limit {
    IW_LIMIT_RC, /* connected QPs */
    IW_LIMIT_QP_WR,
    IW_LIMIT_RECV_WR, /* where a receive queue may be longer than a send queue */
    IW_LIMIT_SEND_SGE,
    IW_LIMIT_RECV_SGE,
    IW_LIMIT_READ_SGE,
    IW_LIMIT_INLINE,
    IW_LIMIT_CQE,
    IW_LIMIT_SRQ,
    IW_LIMIT_SRQ_WR,
    IW_LIMIT_SRQ_SGE,
    IW_LIMIT_MW,
    IW_LIMIT_IRD, /* reads and atomics that a QP serves */
    IW_LIMIT_ORD, /* and may have outstanding */
    IW_LIMIT_ATOMICS,
    IW_LIMIT_SEND_IMM,
    IW_LIMIT_WRITE_IMM,
    IW_LIMIT_MCAST, /* multicast groups */
    IW_LIMITS
};

struct iw_adapter_limit {
    uint32_t value;     /* of an operation: 0, it has none */
    const char *source; /* NULL: unknown, ours is in force */
};

struct iw_adapter {
    const char *name, *what;
    struct iw_adapter_limit limit[IW_LIMITS];
};

/** The table of all @p n adapters. */
const struct iw_adapter *iw_adapters(size_t *n);

/** @return NULL if there is none of this name */
const struct iw_adapter *iw_adapter_find(const char *name);

/** What a limit is called in the attributes, as in "max_send_sge". */
const char *iw_limit_name(enum iw_limit limit);

#endif
