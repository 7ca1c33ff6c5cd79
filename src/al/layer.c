/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/layer.h"

#include "al/status.h"

#include <stdlib.h>

static void release(struct al_object *o)
{
    struct al_layer *l = container_of(o, struct al_layer, o);
    if (l->channel) {
        event_thread_forget(&l->source);
        rdma_destroy_event_channel(l->channel);
    }
    pthread_mutex_destroy(&l->lock);
    if (l->left_to_thread)
        event_thread_put();
}

const struct al_kind al_layer_kind = {
    .type = AL_LAYER,
    .invalid = IB_INVALID_AL_HANDLE,
    .release = release,
};

ib_api_status_t ib_open_al(ib_al_handle_t *const ph_al)
{
    if (!ph_al)
        return IB_INVALID_PARAMETER;
    int error = event_thread_get("ibal");
    if (error)
        return al_status(error, IB_ERROR);
    struct al_layer *l = calloc(1, sizeof *l);
    ib_api_status_t status = al_add(l ? &l->o : NULL, &al_layer_kind, NULL, NULL);
    if (status != IB_SUCCESS) {
        event_thread_put();
        return status;
    }
    pthread_mutex_init(&l->lock, NULL);
    *ph_al = l->o.handle;
    al_put(&l->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_close_al(const ib_al_handle_t h_al)
{
    bool thread = event_thread_is_me();
    struct al_layer *l = al_get(&al_layer_kind, h_al);
    if (!l)
        return IB_INVALID_AL_HANDLE;
    bool first = !atomic_exchange(&l->closes, true);
    if (first)
        l->left_to_thread = thread;
    al_put(&l->o);
    if (!first)
        return IB_INVALID_AL_HANDLE;
    ib_api_status_t status = al_destroy(&al_layer_kind, h_al, ib_sync_destroy);
    if (status == IB_SUCCESS && !thread)
        event_thread_put();
    return status;
}
