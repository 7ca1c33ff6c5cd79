/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/listen.h"

#include "al/address.h"
#include "al/connection.h"
#include "al/device.h"
#include "al/status.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 128 };

struct al_listener {
    struct al_object o; /* the parent is a struct al_layer */
    struct rdma_cm_id *id;
    ib_cm_listen_t how;
    uint8_t compare[IB_REQ_PDATA_SIZE];
};

static void release(struct al_object *o)
{
    const struct al_listener *l = container_of(o, struct al_listener, o);
    if (l->id)
        rdma_destroy_id(l->id);
}

static const struct al_kind kind = {
    .type = AL_LISTEN,
    .invalid = IB_INVALID_HANDLE,
    .release = release,
};

/* ---- Requests ---- */

static bool is_wanted(const struct al_listener *l, const struct al_cm_event *event)
{
    return memcmp(event->private_data + l->how.compare_offset, l->compare, l->how.compare_length) ==
           0;
}

static void describe(const struct al_listener *l, const struct al_cm_event *event,
                     ib_cm_req_rec_t *rec)
{
    *rec = (ib_cm_req_rec_t){
        .context = l->o.context,
        .h_cm_listen = l->o.handle,
        .p_req_pdata = event->private_data,
        .qp_type = IB_QPT_RELIABLE_CONN,
        .resp_res = event->responder_resources,
        .flow_ctrl = TRUE,
        .sidr_context = l->how.sidr_context,
    };
    al_gid_of(rdma_get_local_addr(event->id), &rec->primary_path.sgid);
    al_gid_of(rdma_get_peer_addr(event->id), &rec->primary_path.dgid);
}

void al_listen_event(const void *handle, const struct al_cm_event *event)
{
    struct al_listener *l = al_get(&kind, handle);
    ib_cm_req_rec_t rec;
    if (l && is_wanted(l, event)) {
        struct al_layer *layer = container_of(l->o.parent, struct al_layer, o);
        describe(l, event, &rec);
        if (al_connection_requested(layer, event, &rec.h_cm_req)) {
            l->how.pfn_cm_req_cb(&rec);
            al_put(&l->o);
            return;
        }
    }
    rdma_reject(event->id, NULL, 0);
    rdma_destroy_id(event->id);
    if (l)
        al_put(&l->o);
}

/* ---- listen ---- */

static ib_api_status_t check(const ib_cm_listen_t *how, const ib_listen_handle_t *handle)
{
    if (!how || !handle || !how->pfn_cm_req_cb || !al_port_of(how->svc_id))
        return IB_INVALID_PARAMETER;
    if (how->qp_type != IB_QPT_RELIABLE_CONN)
        return IB_UNSUPPORTED;
    if ((how->compare_length && !how->p_compare_buffer) ||
        how->compare_offset + how->compare_length > IB_REQ_PDATA_SIZE)
        return IB_INVALID_SETTING;
    if ((how->ca_guid != IB_ALL_CAS && !al_device_find(how->ca_guid)) ||
        (how->port_guid != IB_ALL_PORTS && !al_device_find(how->port_guid)))
        return IB_INVALID_GUID;
    return IB_SUCCESS;
}

/* At all addresses, those of IPv4 included. */
static int start(struct al_listener *l, struct al_layer *layer)
{
    struct sockaddr_in6 six = {
        .sin6_family = AF_INET6,
        .sin6_port = htons(al_port_of(l->how.svc_id)),
        .sin6_addr = in6addr_any,
    };
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};
    l->id = al_cm_create_id(layer, l->o.handle);
    if (!l->id)
        return errno;
    int r = rdma_bind_addr(l->id, (struct sockaddr *)&six);
    if (r != 0 && (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL))
        r = rdma_bind_addr(l->id, (struct sockaddr *)&four);
    return r != 0 || rdma_listen(l->id, BACKLOG) != 0 ? errno : 0;
}

static ib_api_status_t listen_in(struct al_layer *layer, const ib_cm_listen_t *how,
                                 const void *context, ib_listen_handle_t *handle)
{
    ib_api_status_t status = check(how, handle);
    if (status != IB_SUCCESS)
        return status;
    struct al_listener *l = calloc(1, sizeof *l);
    if (l) {
        l->how = *how;
        if (how->compare_length)
            memcpy(l->compare, how->p_compare_buffer, how->compare_length);
    }
    status = al_add(l ? &l->o : NULL, &kind, &layer->o, context);
    if (status != IB_SUCCESS)
        return status;
    void *mine = l->o.handle;
    int error = start(l, layer);
    if (error) {
        al_fail(&l->o);
        return al_status(error, IB_INVALID_SETTING);
    }
    *handle = mine;
    al_put(&l->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_cm_listen(const ib_al_handle_t h_al, const ib_cm_listen_t *const p_cm_listen,
                             const void *const listen_context,
                             ib_listen_handle_t *const ph_cm_listen)
{
    struct al_layer *layer = al_get(&al_layer_kind, h_al);
    if (!layer)
        return IB_INVALID_AL_HANDLE;
    ib_api_status_t status = listen_in(layer, p_cm_listen, listen_context, ph_cm_listen);
    al_put(&layer->o);
    return status;
}

ib_api_status_t ib_cm_cancel(const ib_listen_handle_t h_cm_listen,
                             const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&kind, h_cm_listen, pfn_destroy_cb);
}
