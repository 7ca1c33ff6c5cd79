/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that are asked for at once reach a server of the same host in the order in which they
 * were asked for: programs pair them by it. Nothing promises that, so a few may be late. And
 * ESTABLISHED comes before DISCONNECTED, however soon the peer leaves.
 */
#include "cm_kit.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <rdma/rdma_verbs.h>

#define IDS      8
#define ROUNDS   500
#define LATE_MAX 10
#define SHORT    300

struct server {
    struct rdma_event_channel *events;
    int late;          /* rounds that are out of order */
    atomic_int served; /* peers that have left */
    bool failed;       /* then it has ended */
};

/** Takes the request that is next. @return its number, or negative */
static int take(struct rdma_event_channel *events)
{
    struct rdma_cm_event *ev;
    if (rdma_get_cm_event(events, &ev))
        return -1;
    struct rdma_cm_id *id = ev->id;
    bool request = ev->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    int number = request ? *(const uint8_t *)ev->param.conn.private_data : -1;
    if (rdma_ack_cm_event(ev) || (request && (rdma_reject(id, NULL, 0) || rdma_destroy_id(id))))
        return -1;
    return number;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (int r = 0; r < ROUNDS && !s->failed; r++) {
        bool crossed = false;
        for (int i = 0; i < IDS && !s->failed; i++) {
            int number = take(s->events);
            s->failed = number < 0;
            crossed |= number != i;
        }
        s->late += crossed;
    }
    return NULL;
}

static void ask(struct cm_sides *s)
{
    struct rdma_cm_id *id[IDS];
    for (int i = 0; i < IDS; i++)
        id[i] = cm_prepare(s->a, &s->addr);
    for (uint8_t i = 0; i < IDS; i++) {
        struct rdma_conn_param p = {.private_data = &i, .private_data_len = sizeof(i)};
        assert_int_equal(rdma_connect(id[i], &p), 0);
    }
    for (int i = 0; i < IDS; i++)
        cm_expect(s->a, RDMA_CM_EVENT_REJECTED);
    for (int i = 0; i < IDS; i++)
        cm_drop(id[i]);
}

static void in_order(void **state)
{
    struct cm_sides s;
    pthread_t thread;
    (void)state;
    cm_open(&s, NULL);
    struct server server = {.events = s.b};
    assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
    for (int i = 0; i < ROUNDS; i++)
        ask(&s);
    assert_int_equal(pthread_join(thread, NULL), 0);
    cm_close(&s);
    assert_false(server.failed);
    print_message("%d of %d rounds are out of order\n", server.late, ROUNDS);
    assert_in_range(server.late, 0, LATE_MAX);
}

/* ---- a peer that says a word and leaves ---- */

static enum rdma_cm_event_type next(struct rdma_event_channel *events, struct rdma_cm_id **id)
{
    struct rdma_cm_event *ev;
    if (rdma_get_cm_event(events, &ev))
        return RDMA_CM_EVENT_ADDR_ERROR;
    enum rdma_cm_event_type type = ev->event;
    *id = ev->id;
    rdma_ack_cm_event(ev);
    return type;
}

static void *serve_short(void *arg)
{
    struct server *s = arg;
    for (int i = 0; i < SHORT && !s->failed; i++) {
        struct rdma_cm_id *id, *same;
        s->failed = next(s->events, &id) != RDMA_CM_EVENT_CONNECT_REQUEST;
        if (s->failed)
            break;
        cm_add_qp(id);
        struct ibv_mr *mr = cm_reg(id);
        rdma_post_recv(id, NULL, mr->addr, CM_BYTES, mr);
        rdma_accept(id, NULL);
        s->failed = next(s->events, &same) != RDMA_CM_EVENT_ESTABLISHED ||
                    next(s->events, &same) != RDMA_CM_EVENT_DISCONNECTED;
        cm_unreg(mr);
        cm_drop(id);
        atomic_fetch_add(&s->served, 1);
    }
    atomic_store(&s->served, SHORT);
    return NULL;
}

static void established_first(void **state)
{
    struct cm_sides s;
    pthread_t thread;
    (void)state;
    cm_open(&s, NULL);
    struct server server = {.events = s.b};
    assert_int_equal(pthread_create(&thread, NULL, serve_short, &server), 0);
    for (int i = 0; i < SHORT && atomic_load(&server.served) < SHORT; i++) {
        struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
        struct ibv_mr *mr = cm_reg(id);
        assert_int_equal(rdma_connect(id, NULL), 0);
        cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED);
        assert_int_equal(rdma_post_send(id, NULL, mr->addr, 16, mr, 0), 0);
        assert_int_equal(rdma_disconnect(id), 0);
        cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED);
        cm_unreg(mr);
        cm_drop(id);
        while (atomic_load(&server.served) <= i) /* another request might come first */
            sched_yield();
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    cm_close(&s);
    assert_false(server.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_order),
                                       cmocka_unit_test(established_first)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
