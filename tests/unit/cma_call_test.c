/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls one by one: arguments, errno, what reaches the transport. */
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
    return rdma_create_id(channel, &id, NULL, RDMA_PS_TCP);
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return mock.cms | mock.pds | mock.qps | mock.cqs | mock.channels | mock.srqs;
}

static void expect_error(int result, int err)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, err);
}

static struct sockaddr *address(const char *text, uint16_t port)
{
    static struct sockaddr_storage storage[4];
    static unsigned next;
    struct sockaddr_storage *at = &storage[next++ % 4];
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    if (inet_pton(AF_INET, text, &sin.sin_addr) == 1) {
        memcpy(at, &sin, sizeof sin);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &sin6.sin6_addr), 1);
        memcpy(at, &sin6, sizeof sin6);
    }
    return (struct sockaddr *)at;
}

/* The next event's type, acknowledged; its status must be this. */
static enum rdma_cm_event_type next_event(int status)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    enum rdma_cm_event_type type = event->event;
    assert_int_equal(event->status, status);
    rdma_ack_cm_event(event);
    return type;
}

static void resolve(void)
{
    assert_int_equal(rdma_resolve_addr(id, NULL, address("127.0.0.1", 7000), 10), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 10), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = 10, .max_recv_wr = 20}};
}

static void creation(void **unused)
{
    (void)unused;
    struct rdma_cm_id *other;
    int here;
    expect_error(rdma_create_id(channel, &other, NULL, (enum rdma_port_space)0x999), EINVAL);
    mock.fail = ENOMEM;
    expect_error(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), ENOMEM);
    assert_int_equal(rdma_create_id(channel, &other, &here, RDMA_PS_UDP), 0);
    assert_ptr_equal(other->context, &here);
    assert_int_equal(other->qp_type, IBV_QPT_UD);
    assert_int_equal(id->qp_type, IBV_QPT_RC);
    assert_null(id->verbs);
    rdma_destroy_id(other);
}

/* ---- addresses ---- */

static void bind_specific(void **unused)
{
    (void)unused;
    assert_int_equal(rdma_bind_addr(id, address("127.0.0.1", 0)), 0);
    assert_non_null(id->verbs);
    assert_non_null(id->pd);
    assert_int_not_equal(rdma_get_src_port(id), 0);
    assert_int_equal(rdma_get_local_addr(id)->sa_family, AF_INET);
    expect_error(rdma_bind_addr(id, address("127.0.0.1", 0)), EINVAL);
}

static void bind_wildcard(void **unused)
{
    (void)unused;
    assert_int_equal(rdma_bind_addr(id, address("::", 7001)), 0);
    assert_null(id->verbs);
    assert_int_equal(rdma_get_src_port(id), htons(7001));
}

static void bind_errors(void **unused)
{
    (void)unused;
    struct sockaddr unknown = {.sa_family = AF_UNIX}, ib = {.sa_family = AF_IB};
    expect_error(rdma_bind_addr(id, NULL), EINVAL);
    expect_error(rdma_bind_addr(id, &unknown), EINVAL);
    expect_error(rdma_bind_addr(id, &ib), EAFNOSUPPORT);
    expect_error(rdma_bind_addr(id, address("fe80::1", 1)), EINVAL);
    mock.fail = EACCES;
    expect_error(rdma_bind_addr(id, address("0.0.0.0", 80)), EACCES);
    /* With a specific address the PD comes first. */
    mock.fail = ENOMEM;
    expect_error(rdma_bind_addr(id, address("127.0.0.1", 80)), ENOMEM);
    assert_null(id->verbs);
    assert_int_equal(rdma_bind_addr(id, address("127.0.0.1", 80)), 0);
}

static void ports_conflict(void **unused)
{
    (void)unused;
    static const struct {
        const char *first, *second;
        int reuse, afonly; /* both ids */
        bool conflict;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1", 0, 0, true},
        {"127.0.0.1", "127.0.0.2", 0, 0, false},
        {"0.0.0.0", "127.0.0.1", 0, 0, true},
        {"127.0.0.1", "0.0.0.0", 0, 0, true},
        {"127.0.0.1", "127.0.0.1", 1, 0, false},
        {"0.0.0.0", "::", 0, 0, true},
        {"0.0.0.0", "::", 0, 1, false},
        {"::1", "127.0.0.1", 0, 0, false},
        {"::", "::1", 0, 1, true},
        {"::1", "0.0.0.0", 0, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdma_cm_id *two[2];
        for (int n = 0; n < 2; n++) {
            int reuse = cases[i].reuse, afonly = cases[i].afonly;
            assert_int_equal(rdma_create_id(channel, &two[n], NULL, RDMA_PS_TCP), 0);
            rdma_set_option(two[n], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof reuse);
            rdma_set_option(two[n], RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &afonly, sizeof afonly);
        }
        assert_int_equal(rdma_bind_addr(two[0], address(cases[i].first, 7100)), 0);
        int r = rdma_bind_addr(two[1], address(cases[i].second, 7100));
        if ((r != 0) != cases[i].conflict)
            fail_msg("%s and %s", cases[i].first, cases[i].second);
        if (r != 0)
            assert_int_equal(errno, EADDRINUSE);
        rdma_destroy_id(two[0]);
        if (r != 0)
            assert_int_equal(rdma_bind_addr(two[1], address(cases[i].second, 7100)), 0);
        rdma_destroy_id(two[1]);
    }
}

static void a_shared_port_is_not_for_listening(void **unused)
{
    (void)unused;
    struct rdma_cm_id *other;
    int on = 1;
    assert_int_equal(rdma_create_id(channel, &other, NULL, RDMA_PS_TCP), 0);
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
    rdma_set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on);
    assert_int_equal(rdma_bind_addr(id, address("0.0.0.0", 7200)), 0);
    assert_int_equal(rdma_bind_addr(other, address("0.0.0.0", 7200)), 0);
    expect_error(rdma_listen(id, 1), EADDRINUSE);
    rdma_destroy_id(other);
    assert_int_equal(rdma_listen(id, 1), 0);
}

static void resolve_binds_the_source(void **unused)
{
    (void)unused;
    static const struct {
        const char *dst, *source;
    } cases[] = {{"127.0.0.1", "127.0.0.1"}, {"0.0.0.0", "127.0.0.1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdma_cm_id *mine;
        char text[INET_ADDRSTRLEN];
        assert_int_equal(rdma_create_id(channel, &mine, NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_resolve_addr(mine, NULL, address(cases[i].dst, 7000), 10), 0);
        assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
        struct sockaddr_in *local = &mine->route.addr.src_sin;
        inet_ntop(AF_INET, &local->sin_addr, text, sizeof text);
        assert_string_equal(text, cases[i].source);
        assert_memory_equal(local, &mock_cm(mine)->local, sizeof *local);
        inet_ntop(AF_INET, &mine->route.addr.dst_sin.sin_addr, text, sizeof text);
        assert_string_equal(text, "127.0.0.1");
        rdma_destroy_id(mine);
    }
}

static void resolve_keeps_what_is_bound(void **unused)
{
    (void)unused;
    assert_int_equal(rdma_bind_addr(id, address("0.0.0.0", 7300)), 0);
    assert_int_equal(rdma_resolve_addr(id, address("127.0.0.9", 9), address("127.0.0.1", 7000), 10),
                     0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_get_src_port(id), htons(7300));
    assert_int_equal(id->route.addr.src_sin.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
}

static void resolve_takes_fields_of_the_id(void **unused)
{
    (void)unused;
    memcpy(&id->route.addr.src_storage, address("127.0.0.1", 7400), sizeof(struct sockaddr_in));
    memcpy(&id->route.addr.dst_storage, address("127.0.0.1", 7000), sizeof(struct sockaddr_in));
    assert_int_equal(rdma_resolve_addr(id, rdma_get_local_addr(id), rdma_get_peer_addr(id), 10), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_get_src_port(id), htons(7400));
    assert_int_equal(rdma_get_dst_port(id), htons(7000));
}

static void resolve_errors(void **unused)
{
    (void)unused;
    struct sockaddr unknown = {.sa_family = AF_UNIX};
    struct sockaddr *dst = address("127.0.0.1", 7000);
    expect_error(rdma_resolve_addr(id, NULL, NULL, 10), EINVAL);
    expect_error(rdma_resolve_addr(id, NULL, &unknown, 10), EINVAL);
    expect_error(rdma_resolve_addr(id, &unknown, dst, 10), EINVAL);
    expect_error(rdma_resolve_addr(id, address("::1", 0), dst, 10), EINVAL);
    expect_error(rdma_resolve_addr(id, NULL, address("fe80::1", 0), 10), EINVAL);
    expect_error(rdma_resolve_route(id, 10), EINVAL);
    mock.fail = EADDRINUSE;
    expect_error(rdma_resolve_addr(id, NULL, dst, 10), EADDRINUSE);

    /* A source that is not ours: an event; the id is bound then, and may try again. */
    assert_int_equal(rdma_resolve_addr(id, address("192.0.2.1", 0), dst, 10), 0);
    assert_int_equal(next_event(-EADDRNOTAVAIL), RDMA_CM_EVENT_ADDR_ERROR);
    assert_null(id->verbs);
    assert_int_equal(rdma_resolve_addr(id, NULL, dst, 10), 0);
    assert_int_equal(next_event(-EADDRNOTAVAIL), RDMA_CM_EVENT_ADDR_ERROR);
}

static void route_needs_time(void **unused)
{
    (void)unused;
    assert_int_equal(rdma_resolve_addr(id, NULL, address("127.0.0.1", 7000), 0), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
    expect_error(rdma_resolve_route(id, 0), EINVAL);
    assert_int_equal(rdma_resolve_route(id, -1), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_null(id->route.path_rec);
    assert_int_equal(id->route.num_paths, 0);
}

/* ---- options ---- */

static void options(void **unused)
{
    (void)unused;
    uint8_t byte = 0x20;
    int on = 1, off = 0;
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, 99, &on, sizeof on), ENOSYS);
    expect_error(rdma_set_option(id, 7, 0, &on, sizeof on), ENOSYS);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &on, sizeof on), EINVAL);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
    assert_int_equal(mock_cm(id)->tos, 0x20);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &byte, 1), EINVAL);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &byte, 1), EINVAL);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on), 0);
    assert_int_equal(rdma_bind_addr(id, address("::", 7500)), 0);
    assert_true(mock_cm(id)->afonly);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, sizeof off),
                 EINVAL);
    assert_int_equal(rdma_listen(id, -1), 0);
    assert_int_equal(mock_cm(id)->backlog, 1024);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof on),
                 EINVAL);
    expect_error(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on),
                 EINVAL);
    expect_error(rdma_listen(id, 1), EINVAL);
    expect_error(rdma_disconnect(id), EINVAL);
}

static void a_path_is_a_route(void **unused)
{
    (void)unused;
    struct ibv_path_data path[2] = {
        {.flags = IBV_PATH_FLAG_GMP},
        {.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL},
    };
    assert_int_equal(rdma_resolve_addr(id, NULL, address("127.0.0.1", 7000), 10), 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ADDR_RESOLVED);
    expect_error(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, 0), EINVAL);
    expect_error(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, 71), EINVAL);
    expect_error(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, 72), EINVAL);
    assert_int_equal(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof path),
                     0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ROUTE_RESOLVED);
    expect_error(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, sizeof path),
                 EINVAL);
}

/* ---- queue pairs ---- */

static void a_qp_with_all_made_for_it(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    expect_error(rdma_create_qp(id, NULL, &attr), EINVAL);
    resolve();
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_non_null(id->qp);
    assert_int_equal(id->qp->state, IBV_QPS_INIT);
    assert_ptr_equal(id->qp->pd, id->pd);
    assert_int_equal(attr.cap.max_inline_data, 512);
    assert_ptr_equal(attr.send_cq, id->send_cq);
    assert_ptr_equal(attr.recv_cq, id->recv_cq);
    assert_int_equal(id->send_cq->cqe, 10);
    assert_int_equal(id->recv_cq->cqe, 20);
    assert_ptr_equal(id->send_cq->cq_context, id);
    assert_ptr_equal(id->send_cq->channel, id->send_cq_channel);
    assert_ptr_not_equal(id->send_cq_channel, id->recv_cq_channel);
    expect_error(rdma_create_qp(id, NULL, &attr), EINVAL);
    rdma_destroy_qp(id);
    assert_null(id->qp);
    assert_null(id->send_cq);
    assert_null(id->recv_cq_channel);
    assert_int_equal(mock.cqs + mock.channels + mock.qps, 0);
    rdma_destroy_qp(id);
}

static void a_qp_that_fails_leaves_nothing(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    resolve();
    attr.qp_type = IBV_QPT_XRC_SEND;
    expect_error(rdma_create_qp(id, NULL, &attr), EOPNOTSUPP);
    assert_null(attr.send_cq);
    assert_null(id->qp);
    assert_null(id->send_cq);
    assert_int_equal(mock.cqs + mock.channels, 0);
    attr.qp_type = IBV_QPT_RC;
    mock.fail = EMFILE;
    expect_error(rdma_create_qp(id, NULL, &attr), EMFILE);
    assert_int_equal(mock.cqs + mock.channels, 0);
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
}

static void a_qp_with_things_of_the_program(void **unused)
{
    (void)unused;
    struct ibv_context foreign = {.num_comp_vectors = 1};
    struct ibv_pd foreign_pd = {.context = &foreign}, *pd;
    struct ibv_cq cq;
    struct ibv_qp_init_attr attr = qp_attr();
    attr.send_cq = attr.recv_cq = &cq;
    resolve();
    expect_error(rdma_create_qp(id, &foreign_pd, &attr), EINVAL);
    pd = ibv_alloc_pd(id->verbs);
    assert_int_equal(rdma_create_qp(id, pd, &attr), 0);
    assert_ptr_equal(id->pd, pd);
    assert_null(id->send_cq);
    assert_int_equal(mock.cqs, 0);
    rdma_destroy_qp(id);
    ibv_dealloc_pd(pd);
}

static void one_cq_in_both_places(void **unused)
{
    (void)unused;
    resolve();
    struct ibv_qp_init_attr attr = qp_attr();
    id->send_cq_channel = id->recv_cq_channel = ibv_create_comp_channel(id->verbs);
    id->send_cq = id->recv_cq = ibv_create_cq(id->verbs, 30, id, id->send_cq_channel, 0);
    attr.send_cq = attr.recv_cq = id->send_cq;
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    rdma_destroy_qp(id);
    assert_int_equal(mock.cqs + mock.channels, 0);
}

static void a_shared_receive_queue(void **unused)
{
    (void)unused;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8}};
    struct ibv_srq_init_attr_ex typeless = {.comp_mask = 0};
    struct ibv_qp_init_attr qp = qp_attr();
    expect_error(rdma_create_srq(id, NULL, &attr), EINVAL);
    resolve();
    expect_error(rdma_create_srq_ex(id, &typeless), EINVAL);
    typeless.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
    typeless.srq_type = IBV_SRQT_XRC;
    expect_error(rdma_create_srq_ex(id, &typeless), EOPNOTSUPP);
    assert_int_equal(rdma_create_srq(id, NULL, &attr), 0);
    assert_int_equal(attr.attr.max_wr, 16);
    assert_ptr_equal(id->srq->pd, id->pd);
    assert_int_equal(rdma_create_qp(id, NULL, &qp), 0);
    assert_ptr_equal(id->qp->srq, id->srq);
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
    assert_null(id->srq);
}

static void attributes_for_a_state(void **unused)
{
    (void)unused;
    const int full = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
    const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct rdma_conn_param conn = {.qp_num = 1};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
    int mask;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
    resolve();
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .rq_psn = 5};
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(mask, full);
    assert_int_equal(attr.qp_access_flags, 0);
    assert_int_equal(attr.rq_psn, 0);
    assert_int_equal(attr.port_num, 1);
    attr.qp_state = IBV_QPS_UNKNOWN;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL);

    assert_int_equal(rdma_connect(id, &conn), 0);
    static const enum ibv_qp_state with_access[] = {IBV_QPS_INIT, IBV_QPS_RTR};
    for (int i = 0; i < 2; i++) {
        attr.qp_state = with_access[i];
        assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
        assert_int_equal(mask, full);
        assert_int_equal(attr.qp_state, with_access[i]);
        assert_int_equal(attr.qp_access_flags, remote);
    }
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), 0);
    assert_int_equal(mask, IBV_QP_PORT);
    attr.qp_state = IBV_QPS_SQD;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
    assert_int_equal(rdma_disconnect(id), 0);
    attr.qp_state = IBV_QPS_INIT;
    expect_error(rdma_init_qp_attr(id, &attr, &mask), EINVAL);
}

/* ---- connections ---- */

static void what_connect_tells_the_transport(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {
        .private_data = "data",
        .private_data_len = 4,
        .initiator_depth = 7,
        .responder_resources = RDMA_MAX_RESP_RES,
        .qp_num = 1234,
    };
    expect_error(rdma_connect(id, &conn), EINVAL);
    resolve();
    expect_error(rdma_connect(id, NULL), EINVAL);
    conn.initiator_depth = 129;
    expect_error(rdma_connect(id, &conn), EINVAL);
    conn.initiator_depth = 7;
    mock.fail = ENETUNREACH;
    expect_error(rdma_connect(id, &conn), ENETUNREACH);
    mock_event(id, IW_CM_DISCONNECTED, 0);
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);

    assert_int_equal(rdma_connect(id, &conn), 0);
    const struct iw_cm *cm = mock_cm(id);
    assert_null(cm->param.qp);
    assert_int_equal(cm->param.qp_num, 1234);
    assert_ptr_equal(cm->param.ctx, id->verbs);
    assert_int_equal(cm->param.initiator_depth, 7);
    assert_int_equal(cm->param.responder_resources, 128);
    assert_int_equal(cm->param.private_data_len, 4);
    assert_memory_equal(cm->private_data, "data", 4);
    assert_memory_equal(&cm->dst, &id->route.addr.dst_storage, sizeof(struct sockaddr_in));
    expect_error(rdma_connect(id, &conn), EINVAL);
}

static void connect_with_defaults(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    mock.max_depth = 300;
    resolve();
    assert_int_equal(rdma_create_qp(id, NULL, &attr), 0);
    assert_int_equal(rdma_connect(id, NULL), 0);
    assert_ptr_equal(mock_cm(id)->param.qp, id->qp);
    assert_int_equal(mock_cm(id)->param.initiator_depth, 255);
    assert_int_equal(mock_cm(id)->param.responder_resources, 255);
}

static void disconnecting(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {.qp_num = 1};
    expect_error(rdma_disconnect(id), EINVAL);
    expect_error(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
    resolve();
    expect_error(rdma_disconnect(id), EINVAL);
    assert_int_equal(rdma_connect(id, &conn), 0);
    assert_int_equal(rdma_notify(id, IBV_EVENT_COMM_EST), 0);
    mock_event(id, IW_CM_ESTABLISHED, 0);
    expect_error(rdma_establish(id), EINVAL);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_establish(id), 0);
    id->qp = (struct ibv_qp *)&conn; /* it is not looked into */
    expect_error(rdma_establish(id), EINVAL);
    id->qp = NULL;
    assert_int_equal(rdma_disconnect(id), 0);
    expect_error(rdma_establish(id), EINVAL);
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(mock_cm(id)->disconnects, 2);
    mock_event(id, IW_CM_DISCONNECTED, 0);
    assert_int_equal(next_event(0), RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(mock_cm(id)->disconnects, 2);
}

static void answering(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {.qp_num = 1};
    struct rdma_cm_event *first, *second;
    expect_error(rdma_accept(id, &conn), EINVAL);
    assert_int_equal(rdma_listen(id, 0), 0);
    expect_error(rdma_accept(id, &conn), EINVAL);
    mock_request(id, NULL);
    mock_request(id, NULL);
    assert_int_equal(rdma_get_cm_event(channel, &first), 0);
    assert_int_equal(rdma_get_cm_event(channel, &second), 0);

    assert_int_equal(rdma_disconnect(first->id), 0);
    assert_int_equal(mock_cm(first->id)->disconnects, 0);
    assert_int_equal(rdma_reject(first->id, "no", 2), 0);
    assert_true(mock_cm(first->id)->rejected);
    assert_memory_equal(mock_cm(first->id)->private_data, "no", 2);
    expect_error(rdma_accept(first->id, &conn), EINVAL);
    expect_error(rdma_reject_ece(first->id, NULL, 0), EINVAL);

    expect_error(rdma_accept(second->id, NULL), EINVAL);
    conn.responder_resources = 200;
    expect_error(rdma_accept(second->id, &conn), EINVAL);
    conn.responder_resources = 2;
    mock.fail = ECONNRESET;
    expect_error(rdma_accept(second->id, &conn), ECONNRESET);
    mock_event(second->id, IW_CM_DISCONNECTED, 0);
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(rdma_accept(second->id, &conn), 0);
    assert_int_equal(mock_cm(second->id)->param.responder_resources, 2);

    rdma_destroy_id(first->id);
    rdma_destroy_id(second->id);
    rdma_ack_cm_event(first);
    rdma_ack_cm_event(second);
}

/* ---- the rest ---- */

static void ece(void **unused)
{
    (void)unused;
    struct ibv_ece options = {.vendor_id = 0};
    expect_error(rdma_set_local_ece(id, &options), EINVAL);
    options = (struct ibv_ece){.vendor_id = 1, .comp_mask = 1};
    expect_error(rdma_set_local_ece(id, &options), EINVAL);
    options.comp_mask = 0;
    assert_int_equal(rdma_set_local_ece(id, &options), 0);
    assert_int_equal(rdma_get_remote_ece(id, &options), 0);
    assert_int_equal(options.vendor_id, 0);
    expect_error(rdma_get_remote_ece(id, NULL), EINVAL);
}

static void arguments_of_multicast(void **unused)
{
    (void)unused;
    struct rdma_cm_id *ud;
    struct sockaddr *group = address("224.0.0.5", 0);
    struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS,
                                           .addr = group};
    expect_error(rdma_join_multicast(id, NULL, NULL), EINVAL);
    expect_error(rdma_join_multicast(id, group, NULL), EINVAL);
    assert_int_equal(rdma_create_id(channel, &ud, NULL, RDMA_PS_UDP), 0);
    expect_error(rdma_join_multicast(ud, group, NULL), EINVAL); /* no device yet */
    expect_error(rdma_join_multicast_ex(ud, &attr, NULL), EINVAL);
    attr.comp_mask |= 1 << 5;
    expect_error(rdma_join_multicast_ex(ud, &attr, NULL), ENOTSUP);
    attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
    expect_error(rdma_join_multicast_ex(ud, &attr, NULL), ENOTSUP);
    expect_error(rdma_leave_multicast(ud, group), EADDRNOTAVAIL);
    rdma_destroy_id(ud);
}

static void devices(void **unused)
{
    (void)unused;
    int n;
    struct ibv_context **list = rdma_get_devices(&n);
    assert_int_equal(n, 1);
    assert_null(list[1]);
    resolve();
    assert_ptr_equal(list[0], id->verbs);
    rdma_free_devices(list);
}

static void names_are_those_of_rdma_core(void **unused)
{
    (void)unused;
    void *real = real_rdmacm_open();
    if (!real)
        skip();
    const char *(*theirs)(enum rdma_cm_event_type) =
        (const char *(*)(enum rdma_cm_event_type))dlsym(real, "rdma_event_str");
    assert_non_null(theirs);
    for (int i = -3; i < 300; i++) {
        const char *name = theirs((enum rdma_cm_event_type)i);
        /* An older release knows fewer. */
        if (i < RDMA_CM_EVENT_ADDRINFO_RESOLVED || i > RDMA_CM_EVENT_INTERNAL ||
            strcmp(name, "UNKNOWN EVENT"))
            assert_string_equal(rdma_event_str((enum rdma_cm_event_type)i), name);
    }
    dlclose(real);
}

static void names(void **unused)
{
    (void)unused;
    static const struct {
        enum rdma_cm_event_type event;
        int value;
        const char *name;
    } events[] = {
        {RDMA_CM_EVENT_ADDR_RESOLVED, 0, "RDMA_CM_EVENT_ADDR_RESOLVED"},
        {RDMA_CM_EVENT_ADDR_ERROR, 1, "RDMA_CM_EVENT_ADDR_ERROR"},
        {RDMA_CM_EVENT_ROUTE_RESOLVED, 2, "RDMA_CM_EVENT_ROUTE_RESOLVED"},
        {RDMA_CM_EVENT_ROUTE_ERROR, 3, "RDMA_CM_EVENT_ROUTE_ERROR"},
        {RDMA_CM_EVENT_CONNECT_REQUEST, 4, "RDMA_CM_EVENT_CONNECT_REQUEST"},
        {RDMA_CM_EVENT_CONNECT_RESPONSE, 5, "RDMA_CM_EVENT_CONNECT_RESPONSE"},
        {RDMA_CM_EVENT_CONNECT_ERROR, 6, "RDMA_CM_EVENT_CONNECT_ERROR"},
        {RDMA_CM_EVENT_UNREACHABLE, 7, "RDMA_CM_EVENT_UNREACHABLE"},
        {RDMA_CM_EVENT_REJECTED, 8, "RDMA_CM_EVENT_REJECTED"},
        {RDMA_CM_EVENT_ESTABLISHED, 9, "RDMA_CM_EVENT_ESTABLISHED"},
        {RDMA_CM_EVENT_DISCONNECTED, 10, "RDMA_CM_EVENT_DISCONNECTED"},
        {RDMA_CM_EVENT_DEVICE_REMOVAL, 11, "RDMA_CM_EVENT_DEVICE_REMOVAL"},
        {RDMA_CM_EVENT_MULTICAST_JOIN, 12, "RDMA_CM_EVENT_MULTICAST_JOIN"},
        {RDMA_CM_EVENT_MULTICAST_ERROR, 13, "RDMA_CM_EVENT_MULTICAST_ERROR"},
        {RDMA_CM_EVENT_ADDR_CHANGE, 14, "RDMA_CM_EVENT_ADDR_CHANGE"},
        {RDMA_CM_EVENT_TIMEWAIT_EXIT, 15, "RDMA_CM_EVENT_TIMEWAIT_EXIT"},
        {RDMA_CM_EVENT_ADDRINFO_RESOLVED, 16, "RDMA_CM_EVENT_ADDRINFO_RESOLVED"},
        {RDMA_CM_EVENT_ADDRINFO_ERROR, 17, "RDMA_CM_EVENT_ADDRINFO_ERROR"},
        {RDMA_CM_EVENT_USER, 18, "RDMA_CM_EVENT_USER"},
        {RDMA_CM_EVENT_INTERNAL, 19, "RDMA_CM_EVENT_INTERNAL"},
    };
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        assert_int_equal(events[i].event, events[i].value);
        assert_string_equal(rdma_event_str(events[i].event), events[i].name);
    }
    assert_string_equal(rdma_event_str((enum rdma_cm_event_type)20), "UNKNOWN EVENT");
    assert_string_equal(rdma_event_str((enum rdma_cm_event_type) - 1), "UNKNOWN EVENT");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(creation),
        TEST(bind_specific),
        TEST(bind_wildcard),
        TEST(bind_errors),
        TEST(ports_conflict),
        TEST(a_shared_port_is_not_for_listening),
        TEST(resolve_binds_the_source),
        TEST(resolve_keeps_what_is_bound),
        TEST(resolve_takes_fields_of_the_id),
        TEST(resolve_errors),
        TEST(route_needs_time),
        TEST(options),
        TEST(a_path_is_a_route),
        TEST(a_qp_with_all_made_for_it),
        TEST(a_qp_that_fails_leaves_nothing),
        TEST(a_qp_with_things_of_the_program),
        TEST(one_cq_in_both_places),
        TEST(a_shared_receive_queue),
        TEST(attributes_for_a_state),
        TEST(what_connect_tells_the_transport),
        TEST(connect_with_defaults),
        TEST(disconnecting),
        TEST(answering),
        TEST(ece),
        TEST(arguments_of_multicast),
        TEST(devices),
        TEST(names),
        TEST(names_are_those_of_rdma_core),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
