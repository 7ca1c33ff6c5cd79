/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids for datagrams: questions, answers, multicast groups, over a transport that only remembers. */
#include "real_verbs.h"
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static int setup(void **unused)
{
    (void)unused;
    mock_reset();
    channel = rdma_create_event_channel();
    return rdma_create_id(channel, &id, NULL, RDMA_PS_UDP);
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return mock.cms | mock.pds | mock.qps | mock.cqs | mock.channels | mock.srqs;
}

static void expect_error(int result, int err)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, err);
}

static struct sockaddr *address(const char *text)
{
    static struct sockaddr_storage storage[4];
    static unsigned next;
    struct sockaddr_storage *at = &storage[next++ % 4];
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(7000)};
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(7000)};
    memset(at, 0, sizeof *at);
    if (inet_pton(AF_INET, text, &sin.sin_addr) == 1) {
        memcpy(at, &sin, sizeof sin);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &sin6.sin6_addr), 1);
        memcpy(at, &sin6, sizeof sin6);
    }
    return (struct sockaddr *)at;
}

static struct rdma_cm_event *event(enum rdma_cm_event_type type, int status)
{
    struct rdma_cm_event *e;
    assert_int_equal(rdma_get_cm_event(channel, &e), 0);
    assert_int_equal(e->event, type);
    assert_int_equal(e->status, status);
    return e;
}

static void expect(enum rdma_cm_event_type type, int status)
{
    rdma_ack_cm_event(event(type, status));
}

static bool quiet(void)
{
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

static void resolve(struct rdma_cm_id *i)
{
    assert_int_equal(rdma_resolve_addr(i, NULL, address("127.0.0.1"), 10), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED, 0);
}

static void resolve_route(void)
{
    resolve(id);
    assert_int_equal(rdma_resolve_route(id, 10), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static int create_qp(struct rdma_cm_id *i)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    return rdma_create_qp(i, NULL, &attr);
}

/* ---- queue pairs ---- */

static void a_queue_pair_is_ready_at_once(void **unused)
{
    (void)unused;
    resolve(id);
    assert_int_equal(create_qp(id), 0);
    assert_int_equal(id->qp->state, IBV_QPS_RTS);
    assert_int_equal(mock.qkey, RDMA_UDP_QKEY);
}

static void a_queue_pair_of_another_type(void **unused)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    (void)unused;
    resolve(id);
    expect_error(rdma_create_qp(id, NULL, &attr), EINVAL);
    mock.fail = ENOMEM;
    expect_error(create_qp(id), ENOMEM);
}

static void attributes(void **unused)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    (void)unused;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL); /* no device */
    resolve(id);
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    assert_int_equal(attr.qkey, RDMA_UDP_QKEY);
    assert_int_equal(attr.port_num, 1);
    attr.qp_state = (enum ibv_qp_state)9;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
}

/* ---- who asks ---- */

static struct rdma_conn_param param(const char *data)
{
    return (struct rdma_conn_param){.private_data = data,
                                    .private_data_len = (uint8_t)strlen(data)};
}

static void an_answer(void **unused)
{
    struct rdma_conn_param p = param("who?");
    const struct iw_cm_event answer = {
        .type = IW_CM_ESTABLISHED, .peer_qpn = 0x1234, .qkey = RDMA_UDP_QKEY};
    const uint8_t loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    (void)unused;
    resolve_route();
    assert_int_equal(create_qp(id), 0);
    assert_int_equal(rdma_connect(id, &p), 0);
    assert_int_equal(mock_sidr(id)->ps, RDMA_PS_UDP);
    assert_memory_equal(mock_sidr(id)->private_data, "who?", 4);
    assert_int_equal(addr_port((struct sockaddr *)&mock_sidr(id)->dst), 7000);
    mock_answer(id, &answer, "me");
    struct rdma_cm_event *e = event(RDMA_CM_EVENT_ESTABLISHED, 0);
    assert_int_equal(e->param.ud.qp_num, 0x1234);
    assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
    assert_int_equal(e->param.ud.private_data_len, 2);
    assert_memory_equal(e->param.ud.private_data, "me", 2);
    assert_int_equal(e->param.ud.ah_attr.is_global, 1);
    assert_int_equal(e->param.ud.ah_attr.port_num, 1);
    assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, loopback, 16);
    rdma_ack_cm_event(e);

    expect_error(rdma_connect(id, &p), EINVAL);
    assert_int_equal(rdma_disconnect(id), 0); /* the queue pair fails, and nobody is told */
    assert_int_equal(id->qp->state, IBV_QPS_ERR);
    assert_true(quiet());
}

/** A queue pair cannot have two keys. */
static void an_answer_with_another_key(void **unused)
{
    struct rdma_conn_param p = {0};
    const struct iw_cm_event answer = {.type = IW_CM_ESTABLISHED, .peer_qpn = 2, .qkey = 5};
    (void)unused;
    resolve_route();
    assert_int_equal(create_qp(id), 0);
    assert_int_equal(rdma_connect(id, &p), 0);
    mock_answer(id, &answer, NULL);
    expect(RDMA_CM_EVENT_ADDR_ERROR, -EINVAL);
}

static void an_answer_without_a_queue_pair(void **unused)
{
    struct rdma_conn_param p = {0};
    const struct iw_cm_event answer = {.type = IW_CM_ESTABLISHED, .peer_qpn = 2, .qkey = 5};
    uint8_t tos = 0x28;
    (void)unused;
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
    resolve_route();
    assert_int_equal(rdma_connect(id, &p), 0);
    assert_int_equal(mock_sidr(id)->tos, 0x28);
    mock_answer(id, &answer, NULL);
    struct rdma_cm_event *e = event(RDMA_CM_EVENT_ESTABLISHED, 0);
    assert_int_equal(e->param.ud.ah_attr.grh.traffic_class, 0x28);
    rdma_ack_cm_event(e);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(attr.qkey, 5); /* the peer's */
}

static void no_answer(void **unused)
{
    struct rdma_conn_param p = {0};
    (void)unused;
    resolve_route();
    assert_int_equal(rdma_connect(id, &p), 0);
    mock_answer(id, &(struct iw_cm_event){.type = IW_CM_UNREACHABLE, .status = SIDR_REJECT}, "no");
    struct rdma_cm_event *e = event(RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECT);
    assert_memory_equal(e->param.ud.private_data, "no", 2);
    rdma_ack_cm_event(e);
}

static void what_cannot_be_asked(void **unused)
{
    static const uint8_t data[SIDR_REQUEST_DATA + 1];
    struct rdma_conn_param p = {.private_data = data, .private_data_len = sizeof data};
    (void)unused;
    resolve_route();
    expect_error(rdma_connect(id, &p), EINVAL);
    p.private_data_len = 1;
    p.private_data = NULL;
    expect_error(rdma_connect(id, &p), EINVAL);
    p.private_data_len = 0;
    mock.fail = EACCES;
    expect_error(rdma_connect(id, &p), EACCES);
    assert_int_equal(rdma_connect(id, &p), 0); /* nothing had begun */
}

/* The device's event was not taken. */
static void asked_without_a_device(void **unused)
{
    struct rdma_conn_param p = {0};
    (void)unused;
    assert_int_equal(rdma_resolve_addr(id, NULL, address("127.0.0.1"), 10), 0);
    assert_int_equal(rdma_resolve_route(id, 10), 0);
    expect_error(rdma_connect(id, &p), EINVAL);
}

static void data_of_an_endpoint_go_first(void **unused)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_UDP}, *res;
    struct rdma_conn_param p = param("cd");
    struct rdma_cm_id *ep;
    (void)unused;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7000", &hints, &res), 0);
    res->ai_connect = strdup("ab");
    res->ai_connect_len = 2;
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    assert_int_equal(rdma_create_ep(&ep, res, NULL, &attr), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(ep->qp->qp_type, IBV_QPT_UD);
    assert_int_equal(ep->qp->state, IBV_QPS_RTS);
    assert_int_equal(rdma_migrate_id(ep, channel), 0); /* so that nobody is waited for */
    assert_int_equal(rdma_connect(ep, &p), 0);
    assert_memory_equal(mock_sidr(ep)->private_data, "abcd", 4);
    rdma_destroy_ep(ep);
}

/* ---- who answers ---- */

static struct rdma_cm_id *question(void)
{
    assert_int_equal(rdma_listen(id, 1), 0);
    assert_true(mock_sidr(id)->listens);
    assert_int_equal(mock_question(id, "who?"), 0);
    assert_int_equal(mock_question(id, NULL), -1); /* the queue is full */
    struct rdma_cm_event *e = event(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
    struct rdma_cm_id *child = e->id;
    assert_ptr_equal(e->listen_id, id);
    assert_int_equal(e->param.ud.private_data_len, 4);
    assert_memory_equal(e->param.ud.private_data, "who?", 4);
    assert_int_equal(child->qp_type, IBV_QPT_UD);
    assert_int_equal(child->ps, RDMA_PS_UDP);
    assert_non_null(child->verbs);
    assert_int_equal(rdma_get_dst_port(child), htons(40001));
    rdma_ack_cm_event(e);
    return child;
}

static void accepting(void **unused)
{
    struct rdma_conn_param p = param("me");
    (void)unused;
    struct rdma_cm_id *child = question();
    expect_error(rdma_accept(child, &p), EINVAL); /* which queue pair? */
    assert_int_equal(create_qp(child), 0);
    assert_int_equal(child->qp->state, IBV_QPS_RTS);
    assert_int_equal(rdma_accept(child, &p), 0);
    assert_true(mock_sidr(child)->accepted);
    assert_int_equal(mock_sidr(child)->param.qpn, 77);
    assert_int_equal(mock_sidr(child)->param.qkey, RDMA_UDP_QKEY);
    assert_memory_equal(mock_sidr(child)->private_data, "me", 2);
    assert_true(quiet()); /* nobody is told of an answer that was sent */
    expect_error(rdma_accept(child, &p), EINVAL);
    rdma_destroy_qp(child);
    rdma_destroy_id(child);
}

static void accepting_with_a_number(void **unused)
{
    struct rdma_conn_param p = {.qp_num = 99};
    (void)unused;
    struct rdma_cm_id *child = question();
    static const uint8_t data[SIDR_REPLY_DATA + 1];
    struct rdma_conn_param too_long = {.private_data = data, .private_data_len = sizeof data};
    expect_error(rdma_accept(child, &too_long), EINVAL);
    assert_int_equal(rdma_accept(child, &p), 0);
    assert_int_equal(mock_sidr(child)->param.qpn, 99);
    rdma_destroy_id(child);
}

static void rejecting(void **unused)
{
    static const uint8_t data[SIDR_REPLY_DATA + 1];
    (void)unused;
    struct rdma_cm_id *child = question();
    expect_error(rdma_reject(child, data, sizeof data), EINVAL);
    assert_int_equal(rdma_reject(child, "no", 2), 0);
    assert_true(mock_sidr(child)->rejected);
    assert_memory_equal(mock_sidr(child)->private_data, "no", 2);
    rdma_destroy_id(child);
}

static void waiting_for_nobody(void **unused)
{
    struct rdma_conn_param p = {.qp_num = 99};
    (void)unused;
    struct rdma_cm_id *child = question();
    assert_int_equal(rdma_migrate_id(child, NULL), 0); /* synchronous */
    assert_int_equal(rdma_accept(child, &p), 0);
    rdma_destroy_id(child);
}

static void ports(void **unused)
{
    struct rdma_cm_id *tcp, *other;
    (void)unused;
    assert_int_equal(rdma_create_id(channel, &tcp, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_IPOIB), 0);
    assert_int_equal(rdma_bind_addr(id, address("127.0.0.1")), 0);
    assert_int_equal(rdma_bind_addr(tcp, address("127.0.0.1")), 0); /* that is TCP's */
    expect_error(rdma_bind_addr(other, address("127.0.0.1")), EADDRINUSE);
    rdma_destroy_id(other);
    rdma_destroy_id(tcp);
}

static void addresses_of_ipv6(void **unused)
{
    int on = 1;
    (void)unused;
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
    assert_int_equal(rdma_bind_addr(id, address("::")), 0);
    assert_true(mock_sidr(id)->afonly);
    on = 0;
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
    assert_false(mock_sidr(id)->afonly);
}

/* ---- multicast ---- */

static struct sockaddr *ib_address(const uint8_t gid[16])
{
    static struct sockaddr_storage at;
    memset(&at, 0, sizeof at);
    at.ss_family = AF_IB;
    memcpy((char *)&at + 8, gid, 16);
    return (struct sockaddr *)&at;
}

static void joining(void **unused)
{
    static const uint8_t mgid[16] = {0xff, 0x0e, [10] = 0xff, 0xff, 239, 0, 0, 1};
    const struct {
        struct sockaddr *addr;
        uint8_t gid[16];
    } groups[] = {
        {address("239.1.2.3"), {[10] = 0xff, 0xff, 239, 1, 2, 3}},
        {address("ff0e::5"), {0xff, 0x0e, [15] = 5}},
        {ib_address(mgid), {0xff, 0x0e, [10] = 0xff, 0xff, 239, 0, 0, 1}},
    };
    int here;
    (void)unused;
    resolve(id);
    assert_int_equal(create_qp(id), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rdma_join_multicast(id, groups[i].addr, &here), 0);
        assert_int_equal(mock.attached, i); /* not before the program knows */
        struct rdma_cm_event *e = event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
        assert_int_equal(mock.attached, i + 1);
        assert_ptr_equal(e->id, id);
        assert_ptr_equal(e->param.ud.private_data, &here);
        assert_int_equal(e->param.ud.qp_num, 0xffffff);
        assert_int_equal(e->param.ud.qkey, RDMA_UDP_QKEY);
        assert_memory_equal(e->param.ud.ah_attr.grh.dgid.raw, groups[i].gid, 16);
        assert_int_equal(e->param.ud.ah_attr.is_global, 1);
        rdma_ack_cm_event(e);
    }
    assert_int_equal(rdma_leave_multicast(id, groups[1].addr), 0);
    assert_int_equal(mock.attached, 2);
    expect_error(rdma_leave_multicast(id, groups[1].addr), EADDRNOTAVAIL);
    mock.fail = EIO;
    expect_error(rdma_leave_multicast(id, groups[0].addr), EIO);
}

static void joining_fails(void **unused)
{
    struct sockaddr *group = address("239.1.2.3");
    (void)unused;
    resolve(id);
    assert_int_equal(create_qp(id), 0);
    assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
    mock.fail = ENOMEM;
    expect(RDMA_CM_EVENT_MULTICAST_ERROR, -ENOMEM);
    assert_int_equal(rdma_leave_multicast(id, group), 0);
    assert_int_equal(mock.attached, 0);
}

/** Who only sends does not hear; who has no queue pair attaches one by itself. */
static void joining_without_hearing(void **unused)
{
    struct sockaddr *group = address("239.1.2.3");
    struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
                                                        RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
                                           .addr = group,
                                           .join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER};
    (void)unused;
    resolve(id);
    assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
    expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    assert_int_equal(create_qp(id), 0);
    assert_int_equal(rdma_leave_multicast(id, group), 0);
    assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
    expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    assert_int_equal(rdma_leave_multicast(id, group), 0);
    assert_int_equal(mock.attached, 0);
    attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
    assert_int_equal(rdma_join_multicast_ex(id, &attr, NULL), 0);
    expect(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    assert_int_equal(mock.attached, 1);
}

/** Nobody hears of a join that is over. */
static void leaving_before_the_event(void **unused)
{
    struct sockaddr *group = address("239.1.2.3"), *other = address("239.1.2.4");
    (void)unused;
    resolve(id);
    assert_int_equal(rdma_join_multicast(id, group, NULL), 0);
    assert_int_equal(rdma_join_multicast(id, other, &channel), 0);
    assert_int_equal(rdma_leave_multicast(id, group), 0);
    struct rdma_cm_event *e = event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
    assert_ptr_equal(e->param.ud.private_data, &channel);
    rdma_ack_cm_event(e);
    assert_true(quiet());
}

static void what_cannot_be_joined(void **unused)
{
    struct sockaddr *group = address("239.1.2.3");
    struct sockaddr none = {.sa_family = AF_UNIX};
    struct rdma_cm_id *tcp;
    (void)unused;
    expect_error(rdma_join_multicast(id, group, NULL), EINVAL); /* in state IDLE */
    assert_int_equal(rdma_bind_addr(id, address("0.0.0.0")), 0);
    expect_error(rdma_join_multicast(id, group, NULL), EINVAL); /* no device */
    resolve(id);
    expect_error(rdma_join_multicast(id, NULL, NULL), EINVAL);
    expect_error(rdma_join_multicast(id, &none, NULL), EINVAL);
    expect_error(rdma_join_multicast(id, address("192.0.2.1"), NULL), EINVAL);
    expect_error(rdma_join_multicast(id, address("2001:db8::1"), NULL), EINVAL);
    expect_error(rdma_leave_multicast(id, address("192.0.2.1")), EADDRNOTAVAIL);
    expect_error(rdma_leave_multicast(id, NULL), EINVAL);
    assert_int_equal(rdma_create_id(channel, &tcp, NULL, RDMA_PS_TCP), 0);
    resolve(tcp);
    expect_error(rdma_join_multicast(tcp, group, NULL), EINVAL);
    rdma_destroy_id(tcp);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_queue_pair_is_ready_at_once),
        TEST(a_queue_pair_of_another_type),
        TEST(attributes),
        TEST(an_answer),
        TEST(an_answer_with_another_key),
        TEST(an_answer_without_a_queue_pair),
        TEST(no_answer),
        TEST(what_cannot_be_asked),
        TEST(asked_without_a_device),
        TEST(data_of_an_endpoint_go_first),
        TEST(accepting),
        TEST(accepting_with_a_number),
        TEST(rejecting),
        TEST(waiting_for_nobody),
        TEST(ports),
        TEST(addresses_of_ipv6),
        TEST(joining),
        TEST(joining_fails),
        TEST(joining_without_hearing),
        TEST(leaving_before_the_event),
        TEST(what_cannot_be_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
