/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams by rdma_cm: who asks learns the way to who listens; groups; on both kinds of device. */
#include "cm_kit.h"

#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define GRH     40
#define IPV4    10 /* sl of what came by UDP over IPv4 */
#define ALL_QPS 0xffffff

static struct rdma_event_channel *channel;

static int setup(void **unused)
{
    (void)unused;
    channel = rdma_create_event_channel();
    return !channel;
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_event_channel(channel);
    return 0;
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, ps), 0);
    return id;
}

static void add_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {.cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static void resolve(struct rdma_cm_id *id, const struct sockaddr_storage *to)
{
    struct sockaddr_storage dst = *to;
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 1000), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
}

static struct rdma_cm_id *listener(enum rdma_port_space ps, struct sockaddr_storage *addr)
{
    struct rdma_cm_id *id = new_id(ps);
    cm_address(addr, "127.0.0.1", 0);
    assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)addr), 0);
    assert_int_equal(rdma_listen(id, 4), 0);
    memcpy(addr, rdma_get_local_addr(id), sizeof(struct sockaddr_in));
    return id;
}

static struct rdma_cm_id *asker(enum rdma_port_space ps, const struct sockaddr_storage *to)
{
    struct rdma_cm_id *id = new_id(ps);
    resolve(id, to);
    assert_int_equal(rdma_resolve_route(id, 1000), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    add_qp(id);
    return id;
}

static struct rdma_cm_event *next(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e = cm_next(channel);
    assert_int_equal(e->event, type);
    return e;
}

/** Posts a receive; what comes lies behind the header. */
static void receive(struct rdma_cm_id *id, struct ibv_mr *mr)
{
    memset(mr->addr, 0, CM_BYTES);
    assert_int_equal(rdma_post_recv(id, NULL, mr->addr, CM_BYTES, mr), 0);
}

static void send_to(struct rdma_cm_id *id, struct ibv_mr *mr, const char *text, struct ibv_ah *ah,
                    uint32_t qpn)
{
    strcpy(mr->addr, text);
    assert_int_equal(
        rdma_post_ud_send(id, NULL, mr->addr, strlen(text) + 1, mr, IBV_SEND_SIGNALED, ah, qpn), 0);
    assert_int_equal(cm_poll(id->send_cq).status, IBV_WC_SUCCESS);
}

static struct ibv_wc received(struct rdma_cm_id *id, struct ibv_mr *mr, const char *text)
{
    struct ibv_wc wc = cm_poll(id->recv_cq);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, GRH + strlen(text) + 1);
    assert_true(wc.wc_flags & IBV_WC_GRH);
    assert_int_equal(wc.sl, IPV4);
    assert_string_equal((char *)mr->addr + GRH, text);
    return wc;
}

static void there_and_back(enum rdma_port_space ps)
{
    struct sockaddr_storage addr;
    struct rdma_cm_id *l = listener(ps, &addr), *a = asker(ps, &addr);
    struct rdma_conn_param who = {.private_data = "who?", .private_data_len = 4};
    struct rdma_conn_param me = {.private_data = "me", .private_data_len = 2};
    assert_int_equal(rdma_connect(a, &who), 0);
    struct rdma_cm_event *e = next(RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *b = e->id;
    assert_memory_equal(e->param.ud.private_data, "who?", 4);
    rdma_ack_cm_event(e);
    assert_int_equal(b->ps, ps);
    assert_ptr_equal(b->verbs, a->verbs);
    add_qp(b);
    struct ibv_mr *at_a = cm_reg(a), *at_b = cm_reg(b);
    receive(b, at_b);
    assert_int_equal(rdma_accept(b, &me), 0);

    e = next(RDMA_CM_EVENT_ESTABLISHED);
    assert_memory_equal(e->param.ud.private_data, "me", 2);
    assert_int_equal(e->param.ud.qp_num, b->qp->qp_num);
    assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
    struct ibv_ah *ah = ibv_create_ah(a->pd, &e->param.ud.ah_attr);
    assert_non_null(ah);
    uint32_t qpn = e->param.ud.qp_num;
    rdma_ack_cm_event(e);
    send_to(a, at_a, "hello", ah, qpn);
    struct ibv_wc wc = received(b, at_b, "hello");
    assert_int_equal(wc.src_qp, a->qp->qp_num);

    struct ibv_ah *back = ibv_create_ah_from_wc(b->pd, &wc, at_b->addr, 1);
    assert_non_null(back);
    receive(a, at_a);
    send_to(b, at_b, "and you", back, wc.src_qp);
    received(a, at_a, "and you");
    cm_quiet(channel, 0);

    ibv_destroy_ah(back);
    ibv_destroy_ah(ah);
    cm_unreg(at_a);
    cm_unreg(at_b);
    cm_drop(b);
    cm_drop(a);
    rdma_destroy_id(l);
}

static void ids_of_udp(void **unused)
{
    (void)unused;
    there_and_back(RDMA_PS_UDP);
}

static void ids_of_ipoib(void **unused)
{
    (void)unused;
    there_and_back(RDMA_PS_IPOIB);
}

/** The program says no, or nobody listens. */
static void who_rejects(void **unused)
{
    struct sockaddr_storage addr;
    struct rdma_conn_param none = {0};
    (void)unused;
    struct rdma_cm_id *l = listener(RDMA_PS_UDP, &addr), *a = asker(RDMA_PS_UDP, &addr);
    assert_int_equal(rdma_connect(a, &none), 0);
    struct rdma_cm_id *b = cm_request(channel);
    assert_int_equal(rdma_reject(b, "no", 2), 0);
    rdma_destroy_id(b);
    struct rdma_cm_event *e = next(RDMA_CM_EVENT_UNREACHABLE);
    assert_int_equal(e->status, 2);
    assert_memory_equal(e->param.ud.private_data, "no", 2);
    rdma_ack_cm_event(e);
    cm_drop(a);
    rdma_destroy_id(l);
    a = asker(RDMA_PS_UDP, &addr);
    assert_int_equal(rdma_connect(a, &none), 0);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_UNREACHABLE), 1);
    cm_drop(a);
}

/* In a thread of its own, as it waits. */
static void *serve(void *arg)
{
    struct rdma_cm_id *request;
    struct rdma_conn_param none = {0};
    assert_int_equal(rdma_get_request(arg, &request), 0);
    assert_int_equal(request->qp->qp_type, IBV_QPT_UD);
    assert_int_equal(rdma_accept(request, &none), 0);
    return request;
}

static void endpoints(void **unused)
{
    struct rdma_addrinfo passive = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_UDP},
                         active = {.ai_port_space = RDMA_PS_UDP}, *res;
    struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}};
    struct rdma_conn_param none = {0};
    struct rdma_cm_id *l, *a;
    char port[8];
    pthread_t thread;
    void *b;
    (void)unused;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "0", &passive, &res), 0);
    assert_int_equal(rdma_create_ep(&l, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_listen(l, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, serve, l), 0);
    snprintf(port, sizeof(port), "%u", ntohs(rdma_get_src_port(l)));
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", port, &active, &res), 0);
    assert_int_equal(rdma_create_ep(&a, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_connect(a, &none), 0);
    assert_int_equal(a->event->event, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(pthread_join(thread, &b), 0);
    assert_int_equal(a->event->param.ud.qp_num, ((struct rdma_cm_id *)b)->qp->qp_num);
    rdma_destroy_ep(b);
    rdma_destroy_ep(a);
    rdma_destroy_ep(l);
}

/** Each of two that have joined hears what one sends, and who has left does not. */
static void groups(void **unused)
{
    struct sockaddr_storage group;
    struct rdma_cm_id *ids[2];
    struct ibv_mr *mr[2], *out;
    (void)unused;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux loses the interface of a group of IPv4 */
    cm_address(&group, "239.255.77.7", 0);
    struct ibv_ah_attr way;
    for (int i = 0; i < 2; i++) {
        ids[i] = new_id(RDMA_PS_UDP);
        struct sockaddr_storage local;
        cm_address(&local, "127.0.0.1", 0);
        assert_int_equal(rdma_bind_addr(ids[i], (struct sockaddr *)&local), 0);
        add_qp(ids[i]);
        mr[i] = cm_reg(ids[i]);
        receive(ids[i], mr[i]);
        assert_int_equal(rdma_join_multicast(ids[i], (struct sockaddr *)&group, mr[i]), 0);
        struct rdma_cm_event *e = next(RDMA_CM_EVENT_MULTICAST_JOIN);
        assert_int_equal(e->param.ud.qp_num, ALL_QPS);
        assert_ptr_equal(e->param.ud.private_data, mr[i]);
        way = e->param.ud.ah_attr;
        rdma_ack_cm_event(e);
    }
    struct ibv_ah *ah = ibv_create_ah(ids[0]->pd, &way);
    assert_non_null(ah);
    out = cm_reg(ids[0]);
    send_to(ids[0], out, "all of you", ah, ALL_QPS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(received(ids[i], mr[i], "all of you").src_qp, ids[0]->qp->qp_num);

    assert_int_equal(rdma_leave_multicast(ids[1], (struct sockaddr *)&group), 0);
    receive(ids[0], mr[0]);
    receive(ids[1], mr[1]);
    send_to(ids[0], out, "those who stayed", ah, ALL_QPS);
    received(ids[0], mr[0], "those who stayed");
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(ids[1]->recv_cq, 1, &wc), 0);
    assert_int_equal(rdma_leave_multicast(ids[0], (struct sockaddr *)&group), 0);
    ibv_destroy_ah(ah);
    cm_unreg(out);
    for (int i = 0; i < 2; i++) {
        cm_unreg(mr[i]);
        cm_drop(ids[i]);
    }
}

/** A child of fork() has none of it, and may end it. */
static void a_child(void **unused)
{
    struct sockaddr_storage addr;
    struct rdma_conn_param none = {0};
    int status;
    (void)unused;
    struct rdma_cm_id *l = listener(RDMA_PS_UDP, &addr), *a = asker(RDMA_PS_UDP, &addr);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(rdma_destroy_id(l));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rdma_connect(a, &none), 0); /* the parent goes on */
    struct rdma_cm_id *b = cm_request(channel);
    rdma_destroy_id(b);
    assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_UNREACHABLE), 2);
    cm_drop(a);
    rdma_destroy_id(l);
}

static int all(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(ids_of_udp), TEST(ids_of_ipoib), TEST(who_rejects),
        TEST(endpoints),  TEST(groups),       TEST(a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    static const char *const devices[] = {"anywarp0=iwarp:", "anyroce0=roce:"};
    int failed = 0;
    for (int i = 0; i < 2; i++) { /* read once a process */
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            setenv("ANYWARP_DEVICES", devices[i], 1);
            exit(all() != 0);
        }
        waitpid(pid, &status, 0);
        failed |= status;
    }
    return failed != 0;
}
