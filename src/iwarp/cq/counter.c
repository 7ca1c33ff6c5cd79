/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/counter.h"

#include "device/context.h"
#include "env/limits.h"
#include "env/refuse.h"

#include <errno.h>
#include <stdlib.h>

#define KINDS (sizeof(((struct iw_counters *)0)->of) / sizeof(((struct iw_counters *)0)->of[0]))

static atomic_uint count;

struct iw_counter *iw_counter_create(struct ibv_context *ctx,
                                     const struct ibv_comp_cntr_init_attr *attr)
{
    if (attr->comp_mask || attr->flags ||
        (attr->type != IBV_COMP_CNTR_TYPE_WRS && attr->type != IBV_COMP_CNTR_TYPE_BYTES)) {
        errno = iw_refuse("ibv_create_comp_cntr", VALUE, "this comp_mask, type or flags");
        return NULL;
    }
    struct iw_counter *c = NULL;
    if (atomic_fetch_add(&count, 1) < IW_MAX_COUNTER)
        c = calloc(1, sizeof(*c));
    if (!c) {
        atomic_fetch_sub(&count, 1);
        errno = ENOMEM;
        return NULL;
    }
    c->pub.context = ctx;
    c->bytes = attr->type == IBV_COMP_CNTR_TYPE_BYTES;
    atomic_fetch_add(&iw_context(ctx)->users, 1);
    return c;
}

int iw_counter_destroy(struct iw_counter *c)
{
    unsigned users = atomic_load(&c->users);
    if (users)
        return iw_refuse("ibv_destroy_comp_cntr", IN_USE, users, "queues");
    iw_context_put(iw_context(c->pub.context));
    free(c);
    atomic_fetch_sub(&count, 1);
    return 0;
}

int iw_counter_attach(_Atomic(struct iw_counters *) *of, struct iw_counter *c, uint32_t ops)
{
    /* One thread changes it at a time. */
    struct iw_counters *set = atomic_load_explicit(of, memory_order_relaxed);
    for (size_t i = 0; set && i < KINDS; i++)
        if ((ops & 1u << i) && atomic_load_explicit(&set->of[i], memory_order_relaxed))
            return EBUSY;
    if (!set && !(set = calloc(1, sizeof(*set))))
        return ENOMEM;
    for (size_t i = 0; i < KINDS; i++)
        if (ops & 1u << i) {
            atomic_fetch_add(&c->users, 1);
            atomic_store_explicit(&set->of[i], c, memory_order_release);
        }
    atomic_store_explicit(of, set, memory_order_release);
    return 0;
}

void iw_counters_end(struct iw_counters *set)
{
    for (size_t i = 0; set && i < KINDS; i++) {
        struct iw_counter *c = atomic_load_explicit(&set->of[i], memory_order_relaxed);
        if (c)
            atomic_fetch_sub(&c->users, 1);
    }
    free(set);
}

void iw_counters_add(struct iw_counters *set, enum ibv_qp_attach_comp_cntr_op op, bool failed,
                     uint64_t bytes)
{
    struct iw_counter *c =
        atomic_load_explicit(&set->of[__builtin_ctz((unsigned)op)], memory_order_acquire);
    if (!c)
        return;
    /* The program that reads the value goes on to what the operation did. */
    if (failed)
        atomic_fetch_add_explicit(&c->failed, 1, memory_order_release);
    else
        atomic_fetch_add_explicit(&c->done, c->bytes ? bytes : 1, memory_order_release);
}
