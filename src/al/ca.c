/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/ca.h"

#include "al/cq.h"
#include "al/event.h"
#include "al/layer.h"
#include "al/query.h"
#include "al/status.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    struct al_ca *ca = container_of(o, struct al_ca, o);
    if (ca->channel) {
        event_thread_forget(&ca->source);
        ibv_destroy_comp_channel(ca->channel);
    }
    al_device_put(ca->device);
}

const struct al_kind al_ca_kind = {
    .type = AL_CA,
    .invalid = IB_INVALID_CA_HANDLE,
    .release = release,
};

static void ready(struct event_source *source)
{
    const struct al_ca *ca = container_of(source, struct al_ca, source);
    struct ibv_cq *cq;
    void *handle;
    if (ibv_get_cq_event(ca->channel, &cq, &handle) != 0)
        return;
    ibv_ack_cq_events(cq, 1);
    al_cq_completed(handle);
}

static ib_api_status_t bring_up(struct al_ca *ca)
{
    ca->channel = ibv_create_comp_channel(ca->device->verbs);
    if (!ca->channel)
        return al_status(errno, IB_ERROR);
    ca->source = (struct event_source){.fd = ca->channel->fd, .ready = ready};
    return al_status(event_thread_watch(&ca->source), IB_ERROR);
}

static ib_api_status_t open_device(struct al_object *layer, struct al_device *device,
                                   ib_pfn_event_cb_t event_cb, const void *context,
                                   ib_ca_handle_t *handle)
{
    struct al_ca *ca = calloc(1, sizeof *ca);
    if (ca)
        *ca = (struct al_ca){.device = device, .event_cb = event_cb};
    ib_api_status_t status = al_add(ca ? &ca->o : NULL, &al_ca_kind, layer, context);
    if (status != IB_SUCCESS) {
        al_device_put(device);
        return status;
    }
    status = bring_up(ca);
    if (status != IB_SUCCESS) {
        al_fail(&ca->o);
        return status;
    }
    *handle = ca->o.handle;
    al_put(&ca->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_open_ca(const ib_al_handle_t h_al, const ib_net64_t ca_guid,
                           const ib_pfn_event_cb_t pfn_ca_event_cb, const void *const ca_context,
                           ib_ca_handle_t *const ph_ca)
{
    struct al_object *layer = al_get(&al_layer_kind, h_al);
    if (!layer)
        return IB_INVALID_AL_HANDLE;
    struct al_device *device;
    ib_api_status_t status =
        ph_ca ? al_device_get(ca_guid, al_event, &device) : IB_INVALID_PARAMETER;
    if (status == IB_SUCCESS)
        status = open_device(layer, device, pfn_ca_event_cb, ca_context, ph_ca);
    al_put(layer);
    return status;
}

ib_api_status_t ib_close_ca(const ib_ca_handle_t h_ca, const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&al_ca_kind, h_ca, pfn_destroy_cb);
}

ib_api_status_t ib_get_ca_guids(ib_al_handle_t h_al, ib_net64_t *const p_guid_array,
                                size_t *const p_guid_cnt)
{
    if (!al_is(&al_layer_kind, h_al))
        return IB_INVALID_AL_HANDLE;
    if (!p_guid_cnt)
        return IB_INVALID_PARAMETER;
    size_t room = p_guid_array ? *p_guid_cnt : 0;
    *p_guid_cnt = al_device_guids(p_guid_array, room);
    return p_guid_array && room >= *p_guid_cnt ? IB_SUCCESS : IB_INSUFFICIENT_MEMORY;
}

ib_api_status_t ib_query_ca(const ib_ca_handle_t h_ca, ib_ca_attr_t *const p_ca_attr,
                            uint32_t *const p_size)
{
    struct al_ca *ca = al_get(&al_ca_kind, h_ca);
    if (!ca)
        return IB_INVALID_CA_HANDLE;
    ib_api_status_t status =
        p_size ? al_query(ca->device->verbs, p_ca_attr, p_size) : IB_INVALID_PARAMETER;
    al_put(&ca->o);
    return status;
}

ib_api_status_t ib_query_ca_by_guid(const ib_al_handle_t h_al, const ib_net64_t ca_guid,
                                    ib_ca_attr_t *const p_ca_attr, uint32_t *const p_size)
{
    if (!al_is(&al_layer_kind, h_al))
        return IB_INVALID_AL_HANDLE;
    struct ibv_context *verbs = al_device_find(ca_guid);
    return !verbs   ? IB_INVALID_GUID
           : p_size ? al_query(verbs, p_ca_attr, p_size)
                    : IB_INVALID_PARAMETER;
}
