/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/cm_port.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <string.h>

static struct rdma_event_channel *channel;

static int result(int ret)
{
    return ret == 0 ? 0 : errno ? errno : EIO;
}

struct ibv_context **cm_port_devices(void)
{
    int n;
    return rdma_get_devices(&n);
}

void cm_port_devices_free(struct ibv_context **list)
{
    if (list)
        rdma_free_devices(list);
}

int cm_port_open(void)
{
    if (!channel)
        channel = rdma_create_event_channel();
    if (!channel)
        return -errno;
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    return channel->fd;
}

int cm_port_next(struct cm_port_event *e)
{
    struct rdma_cm_event *v;
    if (rdma_get_cm_event(channel, &v) != 0)
        return errno;
    bool asks = v->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    *e = (struct cm_port_event){
        .event = (int)v->event,
        .status = v->status,
        .owner = asks ? v->listen_id->context : v->id->context,
        .new_port = asks ? v->id : NULL,
        .param = {.private_data = v->param.conn.private_data,
                  .private_data_len = v->param.conn.private_data_len,
                  .responder_resources = v->param.conn.responder_resources,
                  .initiator_depth = v->param.conn.initiator_depth,
                  .flow_control = v->param.conn.flow_control,
                  .retry_count = v->param.conn.retry_count,
                  .rnr_retry_count = v->param.conn.rnr_retry_count,
                  .srq = v->param.conn.srq,
                  .qp_num = v->param.conn.qp_num},
        .verb = v,
    };
    return 0;
}

void cm_port_ack(struct cm_port_event *e)
{
    rdma_ack_cm_event(e->verb);
}

int cm_port_create(void **port, void *owner, int ps)
{
    struct rdma_cm_id *id;
    int e = result(rdma_create_id(channel, &id, owner, (enum rdma_port_space)ps));
    if (e == 0)
        *port = id;
    return e;
}

void cm_port_own(void *port, void *owner)
{
    ((struct rdma_cm_id *)port)->context = owner;
}

void cm_port_destroy(void *port)
{
    rdma_destroy_id(port);
}

int cm_port_bind(void *port, struct sockaddr *addr)
{
    return result(rdma_bind_addr(port, addr));
}

int cm_port_resolve_addr(void *port, struct sockaddr *src, struct sockaddr *dst, int timeout_ms)
{
    return result(rdma_resolve_addr(port, src, dst, timeout_ms));
}

int cm_port_resolve_route(void *port, int timeout_ms)
{
    return result(rdma_resolve_route(port, timeout_ms));
}

int cm_port_listen(void *port, int backlog)
{
    return result(rdma_listen(port, backlog));
}

static struct rdma_conn_param to_verb(const struct cm_port_param *p)
{
    return (struct rdma_conn_param){
        .private_data = p->private_data,
        .private_data_len = p->private_data_len,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .flow_control = p->flow_control,
        .retry_count = p->retry_count,
        .rnr_retry_count = p->rnr_retry_count,
        .srq = p->srq,
        .qp_num = p->qp_num,
    };
}

int cm_port_connect(void *port, const struct cm_port_param *param)
{
    struct rdma_conn_param v = to_verb(param);
    return result(rdma_connect(port, &v));
}

int cm_port_accept(void *port, const struct cm_port_param *param)
{
    struct rdma_conn_param v = to_verb(param);
    return result(rdma_accept(port, &v));
}

int cm_port_reject(void *port, const void *private_data, uint8_t length)
{
    return result(rdma_reject(port, private_data, length));
}

int cm_port_disconnect(void *port)
{
    return result(rdma_disconnect(port));
}

int cm_port_notify(void *port, enum ibv_event_type event)
{
    return result(rdma_notify(port, event));
}

int cm_port_set(void *port, enum cm_port_option option, int value)
{
    static const int names[] = {
        [CM_PORT_TOS] = RDMA_OPTION_ID_TOS,
        [CM_PORT_REUSEADDR] = RDMA_OPTION_ID_REUSEADDR,
        [CM_PORT_AFONLY] = RDMA_OPTION_ID_AFONLY,
    };
    uint8_t tos = (uint8_t)value;
    bool is_tos = option == CM_PORT_TOS;
    return result(rdma_set_option(port, RDMA_OPTION_ID, names[option],
                                  is_tos ? (void *)&tos : (void *)&value,
                                  is_tos ? sizeof tos : sizeof value));
}

struct ibv_qp *cm_port_create_qp(void *port, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct rdma_cm_id *id = port;
    return rdma_create_qp(id, pd, attr) == 0 ? id->qp : NULL;
}

void cm_port_destroy_qp(void *port)
{
    rdma_destroy_qp(port);
}

int cm_port_init_qp_attr(void *port, struct ibv_qp_attr *attr, int *mask)
{
    return result(rdma_init_qp_attr(port, attr, mask));
}

struct ibv_context *cm_port_verbs(void *port)
{
    return ((struct rdma_cm_id *)port)->verbs;
}

uint8_t cm_port_number(void *port)
{
    return ((struct rdma_cm_id *)port)->port_num;
}

/* The room that an id has is for an address of any family. */
void cm_port_addresses(void *port, struct sockaddr_storage *src, struct sockaddr_storage *dst)
{
    struct rdma_cm_id *id = port;
    memcpy(src, &id->route.addr.src_storage, sizeof *src);
    memcpy(dst, &id->route.addr.dst_storage, sizeof *dst);
}

const char *cm_port_event_text(int event)
{
    return rdma_event_str((enum rdma_cm_event_type)event);
}
