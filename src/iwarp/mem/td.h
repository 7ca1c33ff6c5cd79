/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread domains and parent domains. A thread domain is a program's promise to use what was made
 * under it from one thread at a time; the locks here cost nothing then, so nothing changes.
 */
#ifndef ANYWARP_MEM_TD_H
#define ANYWARP_MEM_TD_H

#include "mem/region.h"

struct iw_td {
    struct ibv_td pub;
    atomic_uint users; /* parent domains: EBUSY for dealloc */
};

static inline struct iw_td *iw_td(struct ibv_td *t)
{
    return container_of(t, struct iw_td, pub);
}

/**
 * Another name for @p root, which is no parent domain itself: what is made on it belongs to @p root
 * and counts as a user of the parent domain; the parent domain counts as one of @p root and @p td.
 * @param td  or NULL
 * @return NULL and errno ENOMEM
 */
struct iw_pd *iw_pd_alloc_parent(struct iw_pd *root, struct iw_td *td);

#endif
