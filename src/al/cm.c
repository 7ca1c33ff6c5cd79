/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/cm.h"

#include "al/connection.h"
#include "al/listen.h"

#include <errno.h>
#include <string.h>

static void copy(const struct rdma_cm_event *from, struct al_cm_event *to)
{
    const struct rdma_conn_param *conn = &from->param.conn;
    *to = (struct al_cm_event){
        .type = from->event,
        .id = from->id,
        .initiator_depth = conn->initiator_depth,
        .responder_resources = conn->responder_resources,
        .private_len = conn->private_data ? conn->private_data_len : 0,
    };
    if (to->private_len)
        memcpy(to->private_data, conn->private_data, to->private_len);
}

/* It is acknowledged before anybody is told, who then may destroy the id. */
static void ready(struct event_source *source)
{
    const struct al_layer *l = container_of(source, struct al_layer, source);
    struct rdma_cm_event *got;
    if (rdma_get_cm_event(l->channel, &got) != 0)
        return;
    struct al_cm_event event;
    copy(got, &event);
    void *handle = got->listen_id ? got->listen_id->context : got->id->context;
    rdma_ack_cm_event(got);
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
        al_listen_event(handle, &event);
    else
        al_connection_event(handle, &event);
}

static int open_channel_locked(struct al_layer *l)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    if (!channel)
        return errno;
    l->source = (struct event_source){.fd = channel->fd, .ready = ready};
    l->channel = channel;
    int error = event_thread_watch(&l->source);
    if (error) {
        l->channel = NULL;
        rdma_destroy_event_channel(channel);
    }
    return error;
}

struct rdma_cm_id *al_cm_create_id(struct al_layer *l, void *handle)
{
    struct rdma_cm_id *id = NULL;
    pthread_mutex_lock(&l->lock);
    int error = l->channel ? 0 : open_channel_locked(l);
    pthread_mutex_unlock(&l->lock);
    if (error)
        errno = error;
    else if (rdma_create_id(l->channel, &id, handle, RDMA_PS_TCP) != 0)
        id = NULL;
    return id;
}
