/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronous ids: calls that return with their event, and ids that change to them and back. */
#include "cm_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT "spoken by the server"

/* ---- a synchronous listener, served by a thread ---- */

enum answer { ACCEPT, REJECT, DROP, NONE };

struct server {
    struct rdma_cm_id *listener, *id;
    struct sockaddr_storage addr;
    enum answer answer;
    pthread_t thread;
};

static struct rdma_cm_id *sync_id(void)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_non_null(id->channel);
    assert_null(id->event);
    return id;
}

static void listen_on(struct rdma_cm_id *id, struct sockaddr_storage *addr)
{
    cm_address(addr, "127.0.0.1", 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)addr), 0);
    assert_int_equal(rdma_listen(id, 8), 0);
    cm_address(addr, "127.0.0.1", rdma_get_src_port(id));
}

static void *serve(void *arg)
{
    struct server *s = arg;
    struct rdma_conn_param param = {.private_data = TEXT, .private_data_len = sizeof(TEXT)};
    assert_int_equal(rdma_get_request(s->listener, &s->id), 0);
    assert_int_equal(s->id->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(s->id->event->listen_id, s->listener);
    switch (s->answer) {
    case ACCEPT:
        cm_add_qp(s->id);
        assert_int_equal(rdma_accept(s->id, &param), 0);
        assert_int_equal(s->id->event->event, RDMA_CM_EVENT_ESTABLISHED);
        break;
    case REJECT:
        assert_int_equal(rdma_reject(s->id, TEXT, sizeof(TEXT)), 0);
        break;
    case DROP:
        assert_int_equal(rdma_destroy_id(s->id), 0);
        break;
    case NONE:
        break;
    }
    return NULL;
}

static void server_start(struct server *s, enum answer answer)
{
    s->answer = answer;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_open(struct server *s, enum answer answer)
{
    s->listener = sync_id();
    listen_on(s->listener, &s->addr);
    server_start(s, answer);
}

static void resolve(struct rdma_cm_id *id, struct sockaddr_storage *addr)
{
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)addr, 2000), 0);
    assert_non_null(id->verbs);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
    cm_add_qp(id);
}

/* Both ends, connected. */
static struct rdma_cm_id *connected(struct server *s)
{
    server_open(s, ACCEPT);
    struct rdma_cm_id *id = sync_id();
    resolve(id, &s->addr);
    assert_int_equal(rdma_connect(id, NULL), 0);
    pthread_join(s->thread, NULL);
    return id;
}

static void check_text(const struct rdma_cm_event *event)
{
    assert_int_equal(event->param.conn.private_data_len, sizeof(TEXT));
    assert_string_equal(event->param.conn.private_data, TEXT);
}

/* ---- the calls ---- */

static void a_connection_from_begin_to_end(void **state)
{
    struct server s;
    (void)state;
    struct rdma_cm_id *a = connected(&s);
    assert_int_equal(a->event->event, RDMA_CM_EVENT_ESTABLISHED);
    check_text(a->event);
    assert_ptr_not_equal(s.id->channel, s.listener->channel);

    /* Whoever is second finds the event of the first one's call. */
    assert_int_equal(rdma_disconnect(a), 0);
    assert_int_equal(a->event->event, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(rdma_disconnect(s.id), 0);
    assert_int_equal(s.id->event->event, RDMA_CM_EVENT_DISCONNECTED);
    /* There is none left to wait for. */
    assert_int_equal(rdma_disconnect(a), 0);
    assert_int_equal(rdma_disconnect(s.id), 0);
    cm_drop(a);
    cm_drop(s.id);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
}

static void failures_are_errno_and_stay_readable(void **state)
{
    struct server s;
    (void)state;
    for (enum answer answer = REJECT; answer <= DROP; answer++) {
        server_open(&s, answer);
        struct rdma_cm_id *a = sync_id();
        resolve(a, &s.addr);
        assert_int_equal(rdma_connect(a, NULL), -1);
        assert_int_equal(errno, ECONNREFUSED);
        assert_int_equal(a->event->event, RDMA_CM_EVENT_REJECTED);
        assert_int_equal(a->event->status, -ECONNREFUSED);
        if (answer == REJECT)
            check_text(a->event);
        pthread_join(s.thread, NULL);
        assert_int_equal(rdma_disconnect(a), 0); /* does not wait */
        cm_drop(a);
        if (answer == REJECT)
            assert_int_equal(rdma_destroy_id(s.id), 0);
        assert_int_equal(rdma_destroy_id(s.listener), 0);
    }

    struct rdma_cm_id *a = sync_id(); /* nobody listens any more */
    resolve(a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), -1);
    assert_int_equal(errno, ECONNREFUSED);
    cm_drop(a);
}

static void a_peer_that_goes_away(void **state)
{
    struct server s;
    (void)state;
    struct rdma_cm_id *a = connected(&s);
    cm_drop(s.id);
    struct rdma_cm_event *event = cm_next(a->channel);
    assert_int_equal(event->event, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(a->event->event, RDMA_CM_EVENT_ESTABLISHED); /* still held */
    assert_int_equal(rdma_disconnect(a), 0);
    cm_drop(a);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
}

static void a_descriptor_that_does_not_block(void **state)
{
    struct server s;
    (void)state;
    s.listener = sync_id();
    listen_on(s.listener, &s.addr);
    struct rdma_cm_id *a = sync_id();
    resolve(a, &s.addr);
    assert_int_equal(fcntl(a->channel->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rdma_connect(a, NULL), -1);
    assert_int_equal(errno, EAGAIN);
    assert_null(a->event);
    server_start(&s, ACCEPT);
    assert_int_equal(cm_expect(a->channel, RDMA_CM_EVENT_ESTABLISHED), 0);
    pthread_join(s.thread, NULL);
    cm_drop(a);
    cm_drop(s.id);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
}

/* ---- rdma_get_request() ---- */

static void requests_are_for_synchronous_ids(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *id;
    (void)state;
    cm_open(&s, NULL);
    assert_int_equal(rdma_get_request(s.listener, &id), -1);
    assert_int_equal(errno, EINVAL);
    cm_close(&s);

    struct rdma_cm_id *listener = sync_id();
    struct sockaddr_storage addr;
    listen_on(listener, &addr);
    assert_int_equal(fcntl(listener->channel->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rdma_get_request(listener, &id), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

static void a_listener_goes_before_its_requests(void **state)
{
    struct server s;
    (void)state;
    server_open(&s, NONE);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *a = cm_prepare(channel, &s.addr);
    struct rdma_conn_param param = {.private_data = TEXT, .private_data_len = sizeof(TEXT)};
    assert_int_equal(rdma_connect(a, &param), 0);
    pthread_join(s.thread, NULL);
    assert_int_equal(rdma_destroy_id(s.listener), 0); /* returns, though the id holds the event */
    check_text(s.id->event);
    cm_add_qp(s.id);
    assert_int_equal(rdma_accept(s.id, NULL), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_drop(s.id);
    cm_drop(a);
    rdma_destroy_event_channel(channel);
}

/* ---- rdma_migrate_id() ---- */

static void pending_events_go_to_a_private_channel(void **state)
{
    (void)state;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id, *other;
    struct sockaddr_storage addr;
    cm_address(&addr, "127.0.0.1", htons(7));
    assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 2000), 0);
    assert_int_equal(rdma_resolve_addr(other, NULL, (struct sockaddr *)&addr, 2000), 0);
    assert_int_equal(rdma_migrate_id(id, NULL), 0);
    assert_ptr_not_equal(id->channel, channel);
    assert_null(id->event);

    /* The other id's event stayed; this one's is the answer to the next call, whatever it is. */
    struct rdma_cm_event *event = cm_next(channel);
    assert_ptr_equal(event->id, other);
    assert_int_equal(rdma_ack_cm_event(event), 0);
    cm_quiet(channel, 0);
    assert_int_equal(rdma_resolve_route(id, 2000), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_non_null(id->verbs);

    assert_int_equal(rdma_migrate_id(id, NULL), -1); /* it is synchronous already */
    assert_int_equal(errno, EINVAL);

    /* And back, with ROUTE_RESOLVED still waiting; the event held is given up. */
    assert_int_equal(rdma_migrate_id(id, channel), 0);
    assert_ptr_equal(id->channel, channel);
    assert_null(id->event);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    cm_quiet(channel, 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    assert_int_equal(rdma_destroy_id(other), 0);
    rdma_destroy_event_channel(channel);
}

static void connections_migrate(void **state)
{
    struct server s;
    (void)state;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *a = connected(&s);
    int private_fd = a->channel->fd;
    assert_int_equal(rdma_migrate_id(a, channel), 0);
    assert_null(a->event);
    assert_int_equal(fcntl(private_fd, F_GETFD), -1);
    assert_int_equal(rdma_disconnect(s.id), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(rdma_disconnect(a), 0); /* asynchronous now: no event is waited for */
    cm_quiet(channel, 20);
    cm_drop(a);
    cm_drop(s.id);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
    rdma_destroy_event_channel(channel);
}

/* Requests that came before go with their listener, and their ids are of its new kind. */
static void listeners_migrate_with_requests(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *b;
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr), *c = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct pollfd p = {.fd = s.b->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(rdma_migrate_id(s.listener, NULL), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(rdma_get_request(s.listener, &b), 0);
    assert_ptr_not_equal(b->channel, s.listener->channel);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_drop(b);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);

    assert_int_equal(rdma_connect(c, NULL), 0);
    p.fd = s.listener->channel->fd;
    assert_int_equal(poll(&p, 1, 10000), 1);
    assert_int_equal(rdma_migrate_id(s.listener, s.b), 0);
    b = cm_request(s.b);
    assert_ptr_equal(b->channel, s.b);
    assert_int_equal(rdma_destroy_id(b), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(a);
    cm_drop(c);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_from_begin_to_end),
        cmocka_unit_test(failures_are_errno_and_stay_readable),
        cmocka_unit_test(a_peer_that_goes_away),
        cmocka_unit_test(a_descriptor_that_does_not_block),
        cmocka_unit_test(requests_are_for_synchronous_ids),
        cmocka_unit_test(a_listener_goes_before_its_requests),
        cmocka_unit_test(pending_events_go_to_a_private_channel),
        cmocka_unit_test(connections_migrate),
        cmocka_unit_test(listeners_migrate_with_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
