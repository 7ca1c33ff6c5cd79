/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random calls on 32 ids by four threads while a fifth takes the events: whatever comes of a call,
 * nothing crashes, hangs, or is left over. The seed is printed; ANYWARP_TEST_SEED sets another.
 */
#include "entries.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define IDS       32
#define THREADS   4
#define SECONDS   2
#define WAIT_MS   20000
#define SETTLE_MS 300
#define BYTES     256

/** An id may be used by several threads at once, but by none while it is made or destroyed. */
struct place {
    pthread_rwlock_t lock;
    struct rdma_cm_id *id;
};

static struct {
    struct place places[IDS];
    struct rdma_event_channel *events;
    struct rdma_cm_id *listener;
    struct sockaddr_in addr;
    uint8_t buf[BYTES];
    atomic_bool over;
    atomic_uint calls, established, disconnected;
} storm;

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* ---- calls ---- */

static void make(struct place *p)
{
    struct rdma_cm_id *id;
    pthread_rwlock_wrlock(&p->lock);
    if (!p->id && rdma_create_id(storm.events, &id, p, RDMA_PS_TCP) == 0)
        p->id = id;
    pthread_rwlock_unlock(&p->lock);
}

static void destroy_id(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void destroy(struct place *p)
{
    pthread_rwlock_wrlock(&p->lock);
    if (p->id)
        destroy_id(p->id);
    p->id = NULL;
    pthread_rwlock_unlock(&p->lock);
}

static void add_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
    if (!id->qp)
        rdma_create_qp(id, NULL, &attr); /* refused without a device */
}

static void resolve(struct rdma_cm_id *id)
{
    struct sockaddr_in to = storm.addr;
    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000);
}

static void route(struct rdma_cm_id *id)
{
    rdma_resolve_route(id, 1000);
}

static void join(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    if (id->qp)
        rdma_connect(id, &param);
}

static void accept_it(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    if (id->qp)
        rdma_accept(id, &param);
}

static void reject(struct rdma_cm_id *id)
{
    rdma_reject(id, "no", 2);
}

static void disconnect(struct rdma_cm_id *id)
{
    rdma_disconnect(id);
}

static void post(struct rdma_cm_id *id)
{
    struct ibv_sge sge = {.addr = (uintptr_t)storm.buf, .length = 0};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 0, .opcode = IBV_WR_SEND}, *bad;
    if (id->qp)
        ibv_post_send(id->qp, &wr, &bad);
}

/** By one thread at a time, as the manual page wants it of the QP of an id. */
static void with_qp(struct place *p, void (*call)(struct rdma_cm_id *))
{
    pthread_rwlock_wrlock(&p->lock);
    if (p->id)
        call(p->id);
    pthread_rwlock_unlock(&p->lock);
}

static void with_id(struct place *p, void (*call)(struct rdma_cm_id *))
{
    pthread_rwlock_rdlock(&p->lock);
    if (p->id)
        call(p->id);
    pthread_rwlock_unlock(&p->lock);
}

static void one_call(struct place *p, unsigned r)
{
    static void (*const calls[])(struct rdma_cm_id *) = {
        resolve, resolve, route, route, join, join, accept_it, accept_it, reject, disconnect, post,
    };
    unsigned n = sizeof(calls) / sizeof(calls[0]);
    r %= n + 6;
    if (r < n)
        with_id(p, calls[r]);
    else if (r < n + 2)
        make(p);
    else if (r == n + 2)
        destroy(p);
    else if (r == n + 3)
        with_qp(p, rdma_destroy_qp);
    else
        with_qp(p, add_qp);
}

static void *caller(void *arg)
{
    unsigned state = (unsigned)(uintptr_t)arg;
    while (!storm.over) {
        unsigned r = next_random(&state);
        one_call(&storm.places[r % IDS], next_random(&state));
        storm.calls++;
    }
    return NULL;
}

/* ---- events ---- */

/** A new connection takes a place that is free, or is let go. */
static void place_request(struct rdma_cm_id *id)
{
    for (int i = 0; i < IDS; i++) {
        struct place *p = &storm.places[i];
        if (pthread_rwlock_trywrlock(&p->lock))
            continue;
        bool mine = !p->id;
        if (mine)
            p->id = id;
        pthread_rwlock_unlock(&p->lock);
        if (mine)
            return;
    }
    destroy_id(id);
}

static void take_event(void)
{
    struct rdma_cm_event *ev;
    if (rdma_get_cm_event(storm.events, &ev))
        return;
    enum rdma_cm_event_type type = ev->event;
    struct rdma_cm_id *id = ev->id;
    storm.established += type == RDMA_CM_EVENT_ESTABLISHED;
    storm.disconnected += type == RDMA_CM_EVENT_DISCONNECTED;
    rdma_ack_cm_event(ev);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
        place_request(id);
}

static void *taker(void *arg)
{
    struct pollfd p = {.fd = storm.events->fd, .events = POLLIN};
    (void)arg;
    while (!storm.over)
        if (poll(&p, 1, 10) == 1)
            take_event();
    return NULL;
}

/* ---- */

static void open_storm(void)
{
    storm.addr =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    storm.events = rdma_create_event_channel();
    assert_non_null(storm.events);
    assert_int_equal(rdma_create_id(storm.events, &storm.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(storm.listener, (struct sockaddr *)&storm.addr), 0);
    assert_int_equal(rdma_listen(storm.listener, 0), 0);
    storm.addr.sin_port = rdma_get_src_port(storm.listener);
    for (int i = 0; i < IDS; i++)
        pthread_rwlock_init(&storm.places[i].lock, NULL);
}

static void close_storm(void)
{
    for (int i = 0; i < IDS; i++) {
        destroy(&storm.places[i]);
        pthread_rwlock_destroy(&storm.places[i].lock);
    }
    assert_int_equal(rdma_destroy_id(storm.listener), 0);
    rdma_destroy_event_channel(storm.events);
}

/** One connection: what it leaves open stays from first use on. */
static void connect_once(void)
{
    pthread_t events;
    open_storm();
    pthread_create(&events, NULL, taker, NULL);
    make(&storm.places[0]); /* the passive side finds the next one free */
    for (int ms = 0; !storm.established && ms < WAIT_MS; ms++) {
        for (int i = 0; i < 2; i++) {
            with_id(&storm.places[i], resolve);
            with_id(&storm.places[i], route);
            with_qp(&storm.places[i], add_qp);
            with_id(&storm.places[i], i ? accept_it : join);
        }
        usleep(1000);
    }
    assert_true(storm.established > 0);
    storm.over = true;
    pthread_join(events, NULL);
    close_storm();
    storm.over = false;
}

/** Sockets close on their own when they have drained. @return when no more do */
static int settled_descriptors(void)
{
    int n = descriptors();
    for (int ms = 0; ms < SETTLE_MS; ms += 10) {
        usleep(10000);
        if (descriptors() != n)
            ms = 0;
        n = descriptors();
    }
    return n;
}

static void expect_descriptors(int n)
{
    for (int ms = 0; descriptors() > n && ms < WAIT_MS; ms += 10)
        usleep(10000);
    assert_int_equal(descriptors(), n);
}

static void a_storm_of_calls(void **state)
{
    pthread_t callers[THREADS], events;
    const char *set = getenv("ANYWARP_TEST_SEED");
    unsigned seed = set ? (unsigned)strtoul(set, NULL, 0) : 20260217;
    (void)state;
    print_message("seed %u\n", seed);
    connect_once();
    int fds = settled_descriptors(), threads = entries("/proc/self/task");
    open_storm();
    pthread_create(&events, NULL, taker, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&callers[i], NULL, caller, (void *)(uintptr_t)(seed + i));
    sleep(SECONDS);
    storm.over = true;
    for (int i = 0; i < THREADS; i++)
        pthread_join(callers[i], NULL);
    pthread_join(events, NULL);
    close_storm();
    print_message("%u calls, %u times ESTABLISHED, %u times DISCONNECTED\n", storm.calls,
                  storm.established, storm.disconnected);
    assert_true(storm.established > 0);
    expect_descriptors(fds);
    assert_int_equal(entries("/proc/self/task"), threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storm_of_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
