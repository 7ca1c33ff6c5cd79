/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What beginners do: fifteen mistakes, and for each the line of the log at level 2, or of "anywarp
 * stat", that names the cause, within two seconds.
 */
#include "cm_kit.h"
#include "logfile.h"
#include "pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define LIMIT_MS  2000
#define TRIES     500
#define TRY_MS    20
#define LINE      1200
#define BIG       2000
#define DROPPED   3 /* attempts that TCP may queue at a listener with a backlog of 0, and one */
#define CONNECTMS "8000"

/* ---- the line ---- */

static struct timespec since;
static int took_ms; /* from the mistake to its line */

static void made_it(void)
{
    clock_gettime(CLOCK_MONOTONIC, &since);
}

static void stop_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    took_ms = (int)((now.tv_sec - since.tv_sec) * 1000 + (now.tv_nsec - since.tv_nsec) / 1000000);
}

static void expect(bool (*has)(const char *pattern), const char *pattern)
{
    int tries = 0;
    while (!has(pattern) && ++tries < TRIES)
        poll(NULL, 0, TRY_MS);
    if (tries == TRIES)
        fail_msg("nothing says: %s", pattern);
    stop_clock();
}

/* ---- with a connection ---- */

static void no_receive(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    made_it();
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 100, 0, 0), 0);
    expect(log_has,
           "anywarp: ibv_post_recv: no receive is posted, and a message of the peer waits *");
    pair_close(&p, 1);
}

static void receive_too_small(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 50);
    made_it();
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 51, 0, 0), 0);
    expect(log_has, "anywarp: QP *: receive, *: untagged message longer than its receive buffer: "
                    "Send of 51 bytes, receive of 50; *");
    pair_close(&p, 0);
}

/** Writes 8 bytes to where side b lies, with another key. */
static void write_with(struct pair *p, uint32_t rkey, const char *there, const char *here)
{
    struct ibv_mr mr = {.rkey = rkey};
    struct side wrong = {.buf = p->b.buf, .mr = &mr};
    made_it();
    assert_int_equal(side_post(&p->a, &wrong, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0), 0);
    expect(log_has, there);
    if (here)
        expect(log_has, here);
}

static void wrong_key(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    write_with(&p, p.b.mr->rkey ^ 0x10100,
               "anywarp: QP *: tagged message to an invalid STag: RDMA Write of 8 bytes at *, key "
               "0x*: no such key; *",
               NULL);
    pair_close(&p, 0);
}

static void wrong_rights(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    write_with(&p, mr->rkey,
               "anywarp: QP *: tagged message to an STag without remote write access: RDMA Write "
               "of 8 bytes at *: registered *, remote read; *",
               "anywarp: QP *: peer sent a Terminate message: *; it has no such key, or that gives "
               "no remote write: its log tells; *");
    assert_int_equal(ibv_dereg_mr(mr), 0);
    pair_close(&p, 0);
}

static void not_registered(void)
{
    struct pair p;
    uint8_t bytes[8] = {0};
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_sge sge = {(uintptr_t)bytes, sizeof(bytes), 0};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1}, *bad;
    made_it();
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    expect(log_has, "anywarp: QP *: Send, *: entry 1 of 1, local source of 8 bytes at *, key "
                    "0x00000000: no such key; *");
    pair_close(&p, 0);
}

static void deregistered_too_early(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mr *mr =
        ibv_reg_mr(p.b.pd, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    uint32_t rkey = mr->rkey;
    assert_int_equal(ibv_dereg_mr(mr), 0);
    write_with(&p, rkey,
               "anywarp: QP *: tagged message to an invalid STag: *: no such key any more: it was "
               "deregistered lately; *",
               NULL);
    pair_close(&p, 0);
}

static void too_many_requests(void)
{
    struct pair p;
    int r = 0;
    pair_open(&p, &(struct pair_conf){.send_wr = 4});
    made_it();
    for (int i = 0; i < BIG && !r; i++)
        r = side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 8, 0, 0);
    assert_int_equal(r, ENOMEM);
    expect(log_has, "anywarp: ibv_post_send: the send queue is full: 4 posted, * of them completed "
                    "and not polled\n");
    pair_close(&p, 1);
}

static void wrong_queue(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_cq *polled = ibv_create_cq(p.b.id->verbs, 7, NULL, NULL, 0);
    struct ibv_wc wc;
    side_recv(&p.b, 1, 0, 50);
    made_it();
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 50, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    for (int i = 0; i < BIG; i++)
        assert_int_equal(ibv_poll_cq(polled, 1, &wc), 0);
    expect(stat_has, "  cq * depth 1 completions 1\n");
    assert_int_equal(ibv_destroy_cq(polled), 0);
    pair_close(&p, 1);
}

static void inline_too_large(void)
{
    struct pair p;
    char pattern[LINE];
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    pair_open(&p, &(struct pair_conf){.inline_data = 64});
    assert_int_equal(ibv_query_qp(p.a.id->qp, &attr, IBV_QP_CAP, &init), 0);
    made_it();
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, BIG, 0, IBV_SEND_INLINE), EINVAL);
    snprintf(pattern, sizeof(pattern),
             "anywarp: ibv_post_send: %d inline bytes, the QP has %u (max_inline_data)\n", BIG,
             init.cap.max_inline_data);
    expect(log_has, pattern);
    pair_close(&p, 1);
}

/* ---- on the way to one ---- */

static void *destroy(void *id)
{
    assert_int_equal(rdma_destroy_id(id), 0);
    return NULL;
}

static void no_acknowledgement(void)
{
    struct cm_sides s;
    struct rdma_cm_id *id;
    pthread_t t;
    cm_open(&s, NULL);
    assert_int_equal(rdma_create_id(s.a, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s.addr, 1000), 0);
    struct rdma_cm_event *event = cm_next(s.a);
    made_it();
    assert_int_equal(pthread_create(&t, NULL, destroy, id), 0);
    expect(log_has, "anywarp: rdma_destroy_id*: waits for acknowledgements of 1 events "
                    "(rdma_ack_cm_event)\n");
    assert_int_equal(rdma_ack_cm_event(event), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    cm_close(&s);
}

/** Connects to @p addr, which leads to the line, and gives up. */
static void connect_to(const struct sockaddr_storage *addr, const char *pattern)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_conn_param param = {0};
    struct rdma_cm_id *id = cm_prepare(channel, addr);
    made_it();
    assert_int_equal(rdma_connect(id, &param), 0);
    expect(log_has, pattern);
    cm_drop(id);
    rdma_destroy_event_channel(channel);
}

/* Something else listens there, and waits for its client's first word. */
static void wrong_port(void)
{
    struct sockaddr_storage addr;
    int fd = cm_listen_plain(&addr, 4);
    connect_to(&addr, "anywarp: rdma_connect: QP *, 127.0.0.1:*: TCP is connected, but nobody has "
                      "answered the MPA Request for a second: *\n");
    close(fd);
}

static void no_server(void)
{
    struct sockaddr_storage addr;
    close(cm_listen_plain(&addr, 4));
    connect_to(&addr, "anywarp: rdma_connect: QP *, 127.0.0.1:*: nobody listens there: TCP refused "
                      "it\n");
}

/* Nothing answers TCP: to who asks, a listener whose queue is full is an address without a host. */
static void no_host(void)
{
    struct sockaddr_storage addr;
    int fd = cm_listen_plain(&addr, 0), queued[DROPPED];
    for (size_t i = 0; i < COUNT(queued); i++) {
        queued[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(queued[i], (struct sockaddr *)&addr, sizeof(struct sockaddr_in));
    }
    connect_to(&addr, "anywarp: rdma_connect: QP *, 127.0.0.1:*: nobody has answered TCP for a "
                      "second: is there a host with this address?\n");
    for (size_t i = 0; i < COUNT(queued); i++)
        close(queued[i]);
    close(fd);
}

static void port_of_another(void)
{
    struct cm_sides s;
    struct sockaddr_storage addr;
    struct rdma_cm_id *id;
    int fd = cm_listen_plain(&addr, 4);
    cm_open(&s, NULL);
    assert_int_equal(rdma_create_id(s.b, &id, NULL, RDMA_PS_TCP), 0);
    made_it();
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&addr), -1);
    assert_int_equal(errno, EADDRINUSE);
    expect(log_has, "anywarp: rdma_bind_addr: port * is in use: ids share the ports of an address "
                    "with TCP and UDP\n");
    assert_int_equal(rdma_destroy_id(id), 0);
    close(fd);
    cm_close(&s);
}

static void no_queue_pair(void)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    cm_open(&s, NULL);
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    made_it();
    assert_int_equal(rdma_accept(b, &param), -1);
    assert_int_equal(errno, EINVAL);
    expect(log_has, "anywarp: rdma_accept: the id has no queue pair: rdma_create_qp() first\n");
    assert_int_equal(rdma_reject(b, NULL, 0), 0);
    cm_expect(s.a, RDMA_CM_EVENT_REJECTED);
    rdma_destroy_id(b);
    cm_drop(a);
    cm_close(&s);
}

static const struct {
    const char *name;
    void (*make)(void);
} mistakes[] = {
    {"no receives", no_receive},
    {"too small a buffer", receive_too_small},
    {"wrong key", wrong_key},
    {"wrong rights", wrong_rights},
    {"unregistered", not_registered},
    {"deregistered too early", deregistered_too_early},
    {"no ack", no_acknowledgement},
    {"wrong port", wrong_port},
    {"no server", no_server},
    {"an address without a host", no_host},
    {"two programs on one port", port_of_another},
    {"no rdma_create_qp", no_queue_pair},
    {"too many WRs", too_many_requests},
    {"wrong CQ", wrong_queue},
    {"inline too large", inline_too_large},
};

/** Once more if it took too long: the machine may have been busy. */
static void each_names_its_cause(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        for (int tries = 0; tries < 2; tries++) {
            log_clear();
            mistakes[i].make();
            if (took_ms <= LIMIT_MS)
                break;
        }
        print_message("  %-25s %4d ms\n", mistakes[i].name, took_ms);
        assert_true(took_ms <= LIMIT_MS);
    }
}

static int set_up(void **state)
{
    return log_setup(state) || setenv("ANYWARP_CONNECT_MS", CONNECTMS, 1) || !getenv("ANYWARP");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_names_its_cause)};
    return cmocka_run_group_tests(tests, set_up, log_teardown);
}
