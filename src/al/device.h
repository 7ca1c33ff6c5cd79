/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Adapters as librdmacm opens them, so that its connections can have queue pairs of theirs: one
 * context for all who open the adapter, and one reader of its asynchronous events.
 */
#ifndef ANYWARP_AL_DEVICE_H
#define ANYWARP_AL_DEVICE_H

#include "common/list.h"
#include "compat/events.h"

#include <iba/ib_al.h>
#include <infiniband/verbs.h>

struct al_device {
    struct ibv_context *verbs;
    struct event_source source;
    void (*event)(struct al_device *, const struct ibv_async_event *);
    unsigned users;
    struct list link;
};

/**
 * @param event gets what happens, on the thread of callbacks, before it is acknowledged
 * @return IB_SUCCESS, IB_INVALID_GUID, IB_INSUFFICIENT_MEMORY, IB_INSUFFICIENT_RESOURCES
 */
ib_api_status_t al_device_get(ib_net64_t guid,
                              void (*event)(struct al_device *, const struct ibv_async_event *),
                              struct al_device **device);
void al_device_put(struct al_device *d);

/** @return the context of an adapter, which stays open; NULL: there is none */
struct ibv_context *al_device_find(ib_net64_t guid);

/**
 * @param room of @p guids
 * @return how many adapters there are that differ by their GUIDs
 */
size_t al_device_guids(ib_net64_t *guids, size_t room);

#endif
