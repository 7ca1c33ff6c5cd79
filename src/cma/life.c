/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids and their events as memory: what begins without a transport, and ends with all it has. */
#include "cma.h"

#include <stdlib.h>

struct lock_class cma_ids = LOCK_CLASS(cma_ids, LOCK_CMA_ID);

struct cma_id *cma_id_alloc(enum cma_state state, enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct cma_id *id = calloc(1, sizeof *id);
    if (!id)
        return NULL;
    id->pub.ps = ps;
    id->pub.qp_type = qp_type;
    id->state = state;
    id->afonly = -1;
    id->initiator_depth = id->responder_resources = UINT8_MAX;
    lock_init_in(&id->lock, &cma_ids);
    list_init(&id->link);
    list_init(&id->spare);
    list_init(&id->port);
    list_init(&id->host.link);
    list_init(&id->groups);
    iw_cm_life_begin(id, "rdma_cm_id");
    return id;
}

void cma_id_free(struct cma_id *id)
{
    struct list *l;
    cma_transport_close(id);
    cma_port_release(id);
    cma_host_unwatch(id);
    cma_event_unreserve(id);
    cma_device_put(id);
    while ((l = list_pop(&id->groups)))
        free(container_of(l, struct cma_group, link));
    free(id->request_qp);
    free(id->connect_data);
    lock_fini(&id->lock);
    iw_cm_life_end(id);
}

void cma_events_discard(struct list *gone)
{
    struct list *l;
    while ((l = list_pop(gone))) {
        struct cma_event *event = container_of(l, struct cma_event, link);
        if (event->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST)
            cma_id_free(cma_id(event->pub.id));
        free(event);
    }
}
