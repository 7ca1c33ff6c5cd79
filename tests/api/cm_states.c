/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm_states.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

const char *state_name(enum state state)
{
    static const char *const names[] = {
#define X(name) #name,
        STATES(X)
#undef X
    };
    return names[state];
}

static struct sockaddr *address(uint32_t host, uint16_t port)
{
    static struct sockaddr_in sin;
    sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
    sin.sin_addr.s_addr = htonl(host);
    return (struct sockaddr *)&sin;
}

struct sockaddr *world_address(const struct world *w)
{
    return address(INADDR_LOOPBACK, rdma_get_src_port(w->listener));
}

struct rdma_cm_id *world_event(struct rdma_event_channel *events, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(events, &event), 0);
    assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
    struct rdma_cm_id *id = event->id;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    return id;
}

struct ibv_qp *world_qp(struct world *w)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = w->cq,
        .recv_cq = w->cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(w->pd, &attr);
    assert_non_null(qp);
    assert_int_equal(
        ibv_modify_qp(qp, &init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    return qp;
}

static void idle(struct world *w)
{
    assert_int_equal(rdma_create_id(w->events, &w->id, NULL, RDMA_PS_TCP), 0);
}

static void bound(struct world *w, uint32_t host)
{
    idle(w);
    assert_int_equal(rdma_bind_addr(w->id, address(host, 0)), 0);
}

static void resolving(struct world *w, struct rdma_cm_id **id, struct rdma_event_channel *events)
{
    assert_int_equal(rdma_create_id(events, id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(*id, NULL, world_address(w), 1000), 0);
}

static void routed(struct world *w, struct rdma_cm_id **id, struct rdma_event_channel *events)
{
    resolving(w, id, events);
    world_event(events, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(*id, 1000), 0);
    world_event(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void connecting(struct world *w, struct rdma_cm_id **id, struct rdma_event_channel *events,
                       struct ibv_qp *qp)
{
    struct rdma_conn_param param = {.qp_num = qp->qp_num};
    routed(w, id, events);
    if (rdma_connect(*id, &param))
        fail_msg("rdma_connect: errno %d", errno);
}

/* The id is that of a request to the peer's listener, which goes to the id's channel for it. */
static void requested(struct world *w)
{
    assert_int_equal(rdma_migrate_id(w->listener, w->events), 0);
    connecting(w, &w->peer, w->peer_events, w->peer_qp);
    w->id = world_event(w->events, RDMA_CM_EVENT_CONNECT_REQUEST);
}

static void established(struct world *w)
{
    struct rdma_conn_param param = {.qp_num = w->peer_qp->qp_num};
    connecting(w, &w->id, w->events, w->qp);
    w->peer = world_event(w->peer_events, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(rdma_accept(w->peer, &param), 0);
    world_event(w->events, RDMA_CM_EVENT_ESTABLISHED);
    world_event(w->peer_events, RDMA_CM_EVENT_ESTABLISHED);
}

static void disconnecting(struct world *w)
{
    established(w);
    assert_int_equal(rdma_disconnect(w->id), 0);
}

static void rejected(struct world *w)
{
    connecting(w, &w->id, w->events, w->qp);
    w->peer = world_event(w->peer_events, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(rdma_reject(w->peer, NULL, 0), 0);
    world_event(w->events, RDMA_CM_EVENT_REJECTED);
}

static void *destroy(void *id)
{
    return (void *)(intptr_t)rdma_destroy_id(id);
}

/* Returns when the thread is inside: an option that can be set in every other state tells. */
static void destroying(struct world *w)
{
    uint8_t tos = 0;
    resolving(w, &w->id, w->events);
    assert_int_equal(rdma_get_cm_event(w->events, &w->held), 0);
    assert_int_equal(pthread_create(&w->thread, NULL, destroy, w->id), 0);
    for (int ms = 0; ms < 10000; ms++) {
        if (rdma_set_option(w->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("rdma_destroy_id() does not begin");
}

static void go_to(struct world *w, enum state state)
{
    switch (state) {
    case IDLE:
        idle(w);
        break;
    case ANY:
        bound(w, INADDR_ANY);
        break;
    case BOUND:
        bound(w, INADDR_LOOPBACK);
        break;
    case RESOLVING:
        resolving(w, &w->id, w->events);
        break;
    case RESOLVED:
        resolving(w, &w->id, w->events);
        world_event(w->events, RDMA_CM_EVENT_ADDR_RESOLVED);
        break;
    case ROUTED:
        routed(w, &w->id, w->events);
        break;
    case LISTENING_ANY:
        bound(w, INADDR_ANY);
        assert_int_equal(rdma_listen(w->id, 1), 0);
        break;
    case LISTENING:
        bound(w, INADDR_LOOPBACK);
        assert_int_equal(rdma_listen(w->id, 1), 0);
        break;
    case REQUESTED:
        requested(w);
        break;
    case CONNECTING:
        connecting(w, &w->id, w->events, w->qp);
        break;
    case ESTABLISHED:
        established(w);
        break;
    case DISCONNECTING:
        disconnecting(w);
        break;
    case DISCONNECTED:
        disconnecting(w);
        world_event(w->events, RDMA_CM_EVENT_DISCONNECTED);
        break;
    case REJECTING:
        requested(w);
        assert_int_equal(rdma_reject(w->id, NULL, 0), 0);
        break;
    case REJECTED:
        rejected(w);
        break;
    case DESTROYING:
        destroying(w);
        break;
    case STATE_COUNT:
        fail();
    }
}

void world_open(struct world *w, enum state state)
{
    struct ibv_context **devices = rdma_get_devices(NULL);
    assert_non_null(devices);
    memset(w, 0, sizeof *w);
    w->pd = ibv_alloc_pd(devices[0]);
    w->cq = ibv_create_cq(devices[0], 8, NULL, NULL, 0);
    rdma_free_devices(devices);
    assert_non_null(w->pd);
    assert_non_null(w->cq);
    w->qp = world_qp(w);
    w->peer_qp = world_qp(w);
    w->events = rdma_create_event_channel();
    w->peer_events = rdma_create_event_channel();
    assert_non_null(w->events);
    assert_non_null(w->peer_events);
    assert_int_equal(rdma_create_id(w->peer_events, &w->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(w->listener, address(INADDR_LOOPBACK, 0)), 0);
    assert_int_equal(rdma_listen(w->listener, 1), 0);
    go_to(w, state);
}

void world_close(struct world *w, bool gone)
{
    if (w->held) {
        void *result;
        assert_int_equal(rdma_ack_cm_event(w->held), 0);
        assert_int_equal(pthread_join(w->thread, &result), 0);
        assert_null(result);
    } else if (!gone) {
        rdma_destroy_ep(w->id);
    }
    if (w->peer)
        assert_int_equal(rdma_destroy_id(w->peer), 0);
    assert_int_equal(rdma_destroy_id(w->listener), 0);
    assert_int_equal(ibv_destroy_qp(w->qp), 0);
    assert_int_equal(ibv_destroy_qp(w->peer_qp), 0);
    assert_int_equal(ibv_destroy_cq(w->cq), 0);
    assert_int_equal(ibv_dealloc_pd(w->pd), 0);
    rdma_destroy_event_channel(w->events);
    rdma_destroy_event_channel(w->peer_events);
}
