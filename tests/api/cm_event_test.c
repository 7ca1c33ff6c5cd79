/* SPDX-License-Identifier: BSD-2-Clause */
/* What each event of a connection says, to both sides, and how often it comes. */
#include "cm_kit.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define QUIET_MS 150
#define AT_ONCE  100

static void fill(uint8_t *p, int len, uint8_t seed)
{
    for (int i = 0; i < len; i++)
        p[i] = (uint8_t)(seed + i);
}

static void check_data(const struct rdma_cm_event *ev, const uint8_t *data, int len)
{
    assert_int_equal(ev->param.conn.private_data_len, len);
    if (len)
        assert_memory_equal(ev->param.conn.private_data, data, (size_t)len);
}

/* ---- private data ---- */

static const int lengths[] = {0, 1, 4, 63, 250, 251};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

static void private_data_goes_both_ways(void **state)
{
    struct cm_sides s;
    uint8_t there[256], back[256];
    (void)state;
    cm_open(&s, NULL);
    for (int i = 0; i < LENGTHS; i++) {
        int len = lengths[i], answer = lengths[LENGTHS - 1 - i];
        struct rdma_conn_param param = {.private_data = there, .private_data_len = (uint8_t)len};
        struct rdma_conn_param reply = {.private_data = back, .private_data_len = (uint8_t)answer};
        fill(there, len, 7);
        fill(back, answer, 99);
        struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
        assert_int_equal(rdma_connect(a, &param), 0);

        struct rdma_cm_event *ev = cm_next(s.b);
        assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        assert_ptr_equal(ev->listen_id, s.listener);
        assert_ptr_equal(ev->id->context, s.listener->context);
        assert_int_equal(ev->status, 0);
        check_data(ev, there, len);
        struct rdma_cm_id *b = ev->id;
        rdma_ack_cm_event(ev);
        cm_add_qp(b);
        assert_int_equal(rdma_accept(b, &reply), 0);

        ev = cm_next(s.a);
        assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
        assert_ptr_equal(ev->id, a);
        assert_null(ev->listen_id);
        check_data(ev, back, answer);
        rdma_ack_cm_event(ev);
        ev = cm_next(s.b);
        assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
        check_data(ev, NULL, 0);
        rdma_ack_cm_event(ev);
        cm_drop(a);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        cm_drop(b);
    }
    cm_close(&s);
}

static void a_reject_carries_private_data(void **state)
{
    struct cm_sides s;
    uint8_t why[256];
    (void)state;
    cm_open(&s, NULL);
    for (int i = 0; i < LENGTHS; i++) {
        fill(why, lengths[i], 3);
        struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
        assert_int_equal(rdma_connect(a, NULL), 0);
        struct rdma_cm_id *b = cm_request(s.b);
        assert_int_equal(rdma_reject(b, why, (uint8_t)lengths[i]), 0);
        assert_int_equal(rdma_destroy_id(b), 0);
        struct rdma_cm_event *ev = cm_next(s.a);
        assert_int_equal(ev->event, RDMA_CM_EVENT_REJECTED);
        assert_int_equal(ev->status, -ECONNREFUSED);
        check_data(ev, why, lengths[i]);
        rdma_ack_cm_event(ev);
        cm_quiet(s.a, 20);
        cm_drop(a);
    }
    cm_quiet(s.b, QUIET_MS);
    cm_close(&s);
}

static void too_much_private_data_is_refused(void **state)
{
    struct cm_sides s;
    uint8_t data[256] = {0};
    struct rdma_conn_param param = {.private_data = data, .private_data_len = 252};
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, &param), -1);
    assert_int_equal(errno, EINVAL);
    param.private_data_len = 251;
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    param.private_data_len = 252;
    assert_int_equal(rdma_accept(b, &param), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_reject(b, data, 252), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_reject(b, data, 251), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

/* ---- depths ---- */

static void depths_are_told_from_the_receivers_view(void **state)
{
    static const struct {
        uint8_t a_init, a_resp, b_init, b_resp; /* what each side asks for */
        uint8_t seen_init, seen_resp;           /* in the request */
        uint8_t est_a_init, est_a_resp, est_b_init, est_b_resp;
    } rows[] = {
        {1, 2, 2, 1, 2, 1, 1, 2, 2, 1},
        {4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
        {3, 7, 7, 3, 7, 3, 3, 7, 7, 3},
        {8, 8, 2, 8, 8, 8, 8, 8, 2, 8},
        {128, 128, 128, 128, 128, 128, 128, 128, 128, 128},
        {255, 255, 255, 255, 128, 128, 128, 128, 128, 128},
        {5, 6, 255, 255, 6, 5, 5, 6, 6, 5},
    };
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rdma_conn_param pa = {.initiator_depth = rows[i].a_init,
                                     .responder_resources = rows[i].a_resp};
        struct rdma_conn_param pb = {.initiator_depth = rows[i].b_init,
                                     .responder_resources = rows[i].b_resp};
        struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
        assert_int_equal(rdma_connect(a, &pa), 0);
        struct rdma_cm_event *ev = cm_next(s.b);
        assert_int_equal(ev->param.conn.initiator_depth, rows[i].seen_init);
        assert_int_equal(ev->param.conn.responder_resources, rows[i].seen_resp);
        struct rdma_cm_id *b = ev->id;
        rdma_ack_cm_event(ev);
        cm_add_qp(b);
        assert_int_equal(rdma_accept(b, &pb), 0);
        ev = cm_next(s.a);
        assert_int_equal(ev->param.conn.initiator_depth, rows[i].est_a_init);
        assert_int_equal(ev->param.conn.responder_resources, rows[i].est_a_resp);
        rdma_ack_cm_event(ev);
        ev = cm_next(s.b);
        assert_int_equal(ev->param.conn.initiator_depth, rows[i].est_b_init);
        assert_int_equal(ev->param.conn.responder_resources, rows[i].est_b_resp);
        rdma_ack_cm_event(ev);
        cm_drop(a);
        cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED);
        cm_drop(b);
    }
    cm_close(&s);
}

static void depths_over_the_devices_are_refused(void **state)
{
    struct cm_sides s;
    struct rdma_conn_param over[] = {{.initiator_depth = 129}, {.responder_resources = 129}};
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rdma_connect(a, &over[i]), -1);
        assert_int_equal(errno, EINVAL);
    }
    cm_drop(a);
    cm_quiet(s.b, 20);
    cm_close(&s);
}

/* ---- the end ---- */

static void to_error(struct rdma_cm_id *id)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(ibv_modify_qp(id->qp, &attr, IBV_QP_STATE), 0);
}

static void disconnect(struct rdma_cm_id *id)
{
    assert_int_equal(rdma_disconnect(id), 0);
}

static void nothing(struct rdma_cm_id *id)
{
    (void)id;
}

static void disconnected_comes_once_on_both_sides(void **state)
{
    static const struct {
        void (*a)(struct rdma_cm_id *);
        void (*b)(struct rdma_cm_id *);
    } ways[] = {
        {disconnect, nothing},      {nothing, disconnect},      {disconnect, disconnect},
        {to_error, nothing},        {nothing, to_error},        {to_error, to_error},
        {rdma_destroy_qp, nothing}, {nothing, rdma_destroy_qp}, {rdma_destroy_qp, disconnect},
    };
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        struct rdma_cm_id *a, *b;
        cm_connect(&s, &a, &b);
        ways[i].a(a);
        ways[i].b(b);
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        disconnect(a); /* once more: no error, no event */
        disconnect(b);
        cm_quiet(s.a, 20);
        cm_quiet(s.b, 20);
        cm_drop(a);
        cm_drop(b);
    }
    cm_quiet(s.a, QUIET_MS);
    cm_quiet(s.b, QUIET_MS);
    cm_close(&s);
}

struct leaver {
    struct rdma_cm_id *id;
    pthread_barrier_t *start;
};

static void *leave(void *arg)
{
    struct leaver *l = arg;
    pthread_barrier_wait(l->start);
    return (void *)(intptr_t)rdma_disconnect(l->id);
}

static void both_sides_disconnect_at_once(void **state)
{
    struct cm_sides s;
    pthread_barrier_t start;
    (void)state;
    pthread_barrier_init(&start, NULL, 2);
    cm_open(&s, NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        struct leaver a = {.start = &start}, b = {.start = &start};
        pthread_t thread;
        void *result;
        cm_connect(&s, &a.id, &b.id);
        assert_int_equal(pthread_create(&thread, NULL, leave, &a), 0);
        assert_null(leave(&b));
        pthread_join(thread, &result);
        assert_null(result);
        assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
        assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
        cm_drop(a.id);
        cm_drop(b.id);
    }
    cm_quiet(s.a, QUIET_MS);
    cm_quiet(s.b, 0);
    cm_close(&s);
    pthread_barrier_destroy(&start);
}

static void the_peer_hears_of_a_destroyed_id(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    cm_drop(b);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_drop(a);
    cm_quiet(s.b, QUIET_MS);
    cm_close(&s);
}

static void connect_and_wait(const struct sockaddr_storage *to)
{
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_cm_id *a = cm_prepare(events, to);
    if (!rdma_connect(a, NULL))
        for (;;)
            pause();
    _exit(1);
}

static void the_peer_hears_of_a_killed_process(void **state)
{
    struct cm_sides s;
    int status;
    (void)state;
    /* The child is made before this process has anything that it could share. */
    int port[2];
    assert_int_equal(pipe(port), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sockaddr_storage to;
        alarm(30);
        if (read(port[0], &to, sizeof(to)) != sizeof(to))
            _exit(1);
        connect_and_wait(&to);
    }
    cm_open(&s, NULL);
    assert_int_equal(write(port[1], &s.addr, sizeof(s.addr)), sizeof(s.addr));
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_quiet(s.b, QUIET_MS);
    cm_drop(b);
    cm_close(&s);
    close(port[0]);
    close(port[1]);
}

/* ---- events and the life of ids ---- */

static void queued_events_vanish_with_their_id(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);

    /* An outcome that nobody took. */
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    cm_add_qp(b);
    assert_int_equal(rdma_accept(b, NULL), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    cm_drop(a);
    cm_quiet(s.a, 20);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_drop(b);

    /* A request that nobody took. */
    a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, NULL), 0);
    struct rdma_cm_id *listener = s.listener;
    s.listener = NULL;
    usleep(50000);
    assert_int_equal(rdma_destroy_id(listener), 0);
    cm_quiet(s.b, 20);
    assert_true(cm_expect(s.a, RDMA_CM_EVENT_REJECTED) < 0);
    cm_drop(a);
    cm_close(&s);
}

struct waiter {
    struct rdma_cm_id *id;
    struct rdma_event_channel *to; /* NULL: destroy, else migrate */
    atomic_bool done;
};

static void *wait_for_ack(void *arg)
{
    struct waiter *w = arg;
    int r = w->to ? rdma_migrate_id(w->id, w->to) : rdma_destroy_id(w->id);
    w->done = true;
    return (void *)(intptr_t)r;
}

static void a_retrieved_event_blocks_destroy_and_migrate(void **state)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_event_channel *other = rdma_create_event_channel();
    struct sockaddr_storage to;
    struct waiter w = {.to = other};
    (void)state;
    cm_address(&to, "127.0.0.1", htons(9));
    assert_int_equal(rdma_create_id(channel, &w.id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(w.id, NULL, (struct sockaddr *)&to, 1000), 0);
    for (int i = 0; i < 2; i++) {
        pthread_t t;
        void *result;
        struct rdma_cm_event *ev = cm_next(i ? other : channel);
        if (i)
            w.to = NULL;
        w.done = false;
        assert_int_equal(pthread_create(&t, NULL, wait_for_ack, &w), 0);
        usleep(50000);
        assert_false(w.done);
        rdma_ack_cm_event(ev);
        pthread_join(t, &result);
        assert_int_equal((intptr_t)result, 0);
        if (!i)
            assert_int_equal(rdma_resolve_route(w.id, 1000), 0);
    }
    rdma_destroy_event_channel(channel);
    rdma_destroy_event_channel(other);
}

static void a_pending_event_moves_with_its_id(void **state)
{
    struct rdma_event_channel *from = rdma_create_event_channel();
    struct rdma_event_channel *to = rdma_create_event_channel();
    struct sockaddr_storage dst;
    struct rdma_cm_id *id;
    (void)state;
    cm_address(&dst, "127.0.0.1", htons(9));
    assert_int_equal(rdma_create_id(from, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 1000), 0);
    assert_int_equal(rdma_migrate_id(id, to), 0);
    assert_ptr_equal(id->channel, to);
    cm_quiet(from, 20);
    assert_int_equal(cm_expect(to, RDMA_CM_EVENT_ADDR_RESOLVED), 0);

    /* To its own channel and back: calls wait for their event, and leave it in id->event. */
    assert_int_equal(rdma_migrate_id(id, NULL), 0);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    assert_non_null(id->event);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(rdma_migrate_id(id, to), 0);
    assert_null(id->event);
    cm_add_qp(id);
    assert_int_equal(rdma_connect(id, NULL), 0);
    assert_int_equal(cm_expect(to, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(id);
    rdma_destroy_event_channel(from);
    rdma_destroy_event_channel(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_peer_hears_of_a_killed_process),
        cmocka_unit_test(private_data_goes_both_ways),
        cmocka_unit_test(a_reject_carries_private_data),
        cmocka_unit_test(too_much_private_data_is_refused),
        cmocka_unit_test(depths_are_told_from_the_receivers_view),
        cmocka_unit_test(depths_over_the_devices_are_refused),
        cmocka_unit_test(disconnected_comes_once_on_both_sides),
        cmocka_unit_test(both_sides_disconnect_at_once),
        cmocka_unit_test(the_peer_hears_of_a_destroyed_id),
        cmocka_unit_test(queued_events_vanish_with_their_id),
        cmocka_unit_test(a_retrieved_event_blocks_destroy_and_migrate),
        cmocka_unit_test(a_pending_event_moves_with_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
