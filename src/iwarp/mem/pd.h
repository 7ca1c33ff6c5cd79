/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains, thread domains and parent domains. A thread domain is a program's promise to
 * use what was made under it from one thread at a time; the locks here cost nothing then, so
 * nothing changes.
 */
#ifndef ANYWARP_MEM_PD_H
#define ANYWARP_MEM_PD_H

#include "common/list.h"
#include "common/lock.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

struct iw_td {
    struct ibv_td pub;
    atomic_uint users; /* parent domains: EBUSY for dealloc */
};

static inline struct iw_td *iw_td(struct ibv_td *t)
{
    return container_of(t, struct iw_td, pub);
}

/** A protection domain, or a parent domain: another name for one, with its own users. */
struct iw_pd {
    struct ibv_pd pub;
    struct iw_pd *root; /* itself; of a parent domain, that which it stands for */
    struct iw_td *td;   /* of a parent domain, or NULL */
    atomic_uint users;  /* what was made on it: EBUSY for dealloc */
    /* The rest is used in a root only. */
    struct lock lock;    /* windows; above the QP locks */
    struct list windows; /* struct iw_mw.pd_link */
    struct lock grants;  /* a leaf: changes of what its keys give */
};

static inline struct iw_pd *iw_pd(struct ibv_pd *p)
{
    return container_of(p, struct iw_pd, pub);
}

struct iw_pd *iw_pd_alloc(struct ibv_context *ctx);
/** @return 0 or EBUSY */
int iw_pd_dealloc(struct iw_pd *pd);

/**
 * Another name for @p root, which is no parent domain itself: what is made on it belongs to @p root
 * and counts as a user of the parent domain; the parent domain counts as one of @p root and @p td.
 * @param td  or NULL
 * @return NULL and errno ENOMEM
 */
struct iw_pd *iw_pd_alloc_parent(struct iw_pd *root, struct iw_td *td);

/** What the module does about fork(); see process/atfork.h. */
void iw_pd_fork(enum fork_step step);
void iw_grants_fork(enum fork_step step);

#endif
