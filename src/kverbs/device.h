/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices: those that librdmacm has open, so that its ids and our objects are of one context, and
 * those that it does not know. They stay until the program ends.
 */
#ifndef KVERBS_DEVICE_H
#define KVERBS_DEVICE_H

#include <infiniband/verbs.h>
#include <pthread.h>

#include "compat/events.h"

#include <rdma/ib_verbs.h>

struct kv_qp;
struct kv_mapping;

struct kv_device {
    struct ib_device ib;
    struct ibv_context *verbs;
    struct event_source async;
    struct kv_device *next;

    pthread_mutex_t qps_lock;
    struct kv_qp *qps[256]; /* by the last byte of the number */

    pthread_rwlock_t dma_lock;    /* of dma.c, and of what is registered of it */
    struct kv_mapping **mappings; /* by address */
    size_t mapped, room;
    u64 longest;
};

static inline struct kv_device *kv_device(const struct ib_device *d)
{
    return container_of(d, struct kv_device, ib);
}

/** The first device, on first use; NULL: none. */
struct kv_device *kv_devices(void);

/** Of a context of librdmacm; NULL: not known. */
struct ib_device *kv_device_of(const struct ibv_context *verbs);

#endif
