/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names that AIX has for headers, and both rules for errors: this is compiled once as it is and
 * once with RDMA_AIX_ERRORS.
 */
#include <rdma/rdma_cm.h>
#include <rdma/verbs.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef RDMA_AIX_ERRORS
enum { aix = 1 };
#else
enum { aix = 0 };
#endif

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static int setup(void **unused)
{
    (void)unused;
    channel = rdma_create_event_channel();
    return channel ? rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_qp(id);
    int r = rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return r;
}

static void check(int line, int result, int want)
{
    int err = want == -1 ? 0 : -want; /* of a negative result other than -1 */
    if (result != want || (err && errno != err))
        fail_msg("line %d: %d, errno %d; wanted %d", line, result, errno, want);
}

/* AIX lists these, but for the names without a function; others are -1 and errno there as well. */
static int result_of(int error)
{
    static const int listed[] = {EINVAL, EPROTONOSUPPORT, ENOMEM, ENODATA, ENODEV, ENOSYS};
    for (size_t i = 0; i < sizeof listed / sizeof listed[0]; i++)
        if (aix && error == listed[i])
            return -error;
    return -1;
}

/* A call that fails on both systems: -1 and errno, or a negative errno. */
#define FAILS(error, call)                                                                         \
    do {                                                                                           \
        errno = 0;                                                                                 \
        check(__LINE__, call, result_of(error));                                                   \
        assert_int_equal(errno, error);                                                            \
    } while (0)

/* A call without its handle: the same on both. */
#define NO_HANDLE(call) check(__LINE__, call, -EINVAL)

/* A call that only AIX finds wrong: not made on Linux, where it may do something. */
#define ONLY_AIX(error, call)                                                                      \
    do {                                                                                           \
        if (aix)                                                                                   \
            FAILS(error, call);                                                                    \
    } while (0)

static struct sockaddr *loopback(uint16_t port)
{
    static struct sockaddr_in sin;
    sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return (struct sockaddr *)&sin;
}

static void await(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void resolve(void)
{
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(9), 100), 0);
    await(RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    await(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
    };
}

static void null_handles(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {.qp_num = 1};
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_event *event;
    NO_HANDLE(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP));
    NO_HANDLE(rdma_destroy_id(NULL));
    NO_HANDLE(rdma_migrate_id(NULL, channel));
    NO_HANDLE(rdma_bind_addr(NULL, loopback(0)));
    NO_HANDLE(rdma_resolve_addr(NULL, NULL, loopback(9), 1));
    NO_HANDLE(rdma_resolve_route(NULL, 1));
    NO_HANDLE(rdma_create_qp(NULL, NULL, &attr));
    NO_HANDLE(rdma_connect(NULL, &conn));
    NO_HANDLE(rdma_listen(NULL, 1));
    NO_HANDLE(rdma_accept(NULL, &conn));
    NO_HANDLE(rdma_reject(NULL, NULL, 0));
    NO_HANDLE(rdma_disconnect(NULL));
    NO_HANDLE(rdma_get_cm_event(NULL, &event));
    FAILS(EINVAL, rdma_get_cm_event(channel, NULL));
    FAILS(EINVAL, rdma_ack_cm_event(NULL));
    assert_int_equal(rdma_get_src_port(NULL), 0);
    assert_int_equal(rdma_get_dst_port(NULL), 0);
    if (aix) {
        assert_null(rdma_get_local_addr(NULL));
        assert_null(rdma_get_peer_addr(NULL));
    }
    assert_ptr_equal(rdma_get_local_addr(id), &id->route.addr.src_addr);
    assert_ptr_equal(rdma_get_peer_addr(id), &id->route.addr.dst_addr);
    assert_string_equal(rdma_event_str((enum rdma_cm_event_type)99), "UNKNOWN EVENT");
}

static void failures_are_errors_of_the_dialect(void **unused)
{
    (void)unused;
    struct sockaddr unix_address = {.sa_family = AF_UNIX};
    struct rdma_conn_param conn = {.qp_num = 1};
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_event *event;
    struct sockaddr_in nobody = {.sin_family = AF_INET};
    nobody.sin_addr.s_addr = htonl(0xc0000201); /* 192.0.2.1 */
    FAILS(EADDRNOTAVAIL, rdma_bind_addr(id, (struct sockaddr *)&nobody));
    FAILS(EINVAL, rdma_bind_addr(id, &unix_address));
    FAILS(EINVAL, rdma_resolve_addr(id, NULL, &unix_address, 1));
    FAILS(EINVAL, rdma_resolve_route(id, 1));
    FAILS(EINVAL, rdma_connect(id, &conn));
    FAILS(EINVAL, rdma_accept(id, &conn));
    FAILS(EINVAL, rdma_reject(id, NULL, 0));
    FAILS(EINVAL, rdma_disconnect(id));
    FAILS(EINVAL, rdma_create_qp(id, NULL, &attr));
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    FAILS(EAGAIN, rdma_get_cm_event(channel, &event));
    assert_int_equal(rdma_listen(id, 1), 0);
    FAILS(EINVAL, rdma_listen(id, 1));
}

static void one_port_space(void **unused)
{
    (void)unused;
    struct rdma_cm_id *udp;
    ONLY_AIX(EPROTONOSUPPORT, rdma_create_id(channel, &udp, NULL, RDMA_PS_UDP));
    ONLY_AIX(EINVAL, rdma_create_id(NULL, &udp, NULL, RDMA_PS_TCP));
    if (!aix) {
        FAILS(EINVAL, rdma_create_id(channel, &udp, NULL, (enum rdma_port_space)0));
        assert_int_equal(rdma_create_id(channel, &udp, NULL, RDMA_PS_UDP), 0);
        assert_int_equal(rdma_destroy_id(udp), 0);
    }
}

static void what_only_linux_takes(void **unused)
{
    (void)unused;
    struct rdma_conn_param most = {.initiator_depth = RDMA_MAX_INIT_DEPTH};
    struct ibv_qp_init_attr attr = qp_attr();
    resolve();
    ONLY_AIX(EINVAL, rdma_migrate_id(id, NULL));
    ONLY_AIX(EINVAL, rdma_create_qp(id, NULL, &attr));
    ONLY_AIX(EINVAL, rdma_disconnect(id));
    assert_int_equal(rdma_create_qp(id, id->pd, &attr), 0);
    ONLY_AIX(EINVAL, rdma_connect(id, NULL));
    ONLY_AIX(EINVAL, rdma_connect(id, &most));
    most = (struct rdma_conn_param){.responder_resources = RDMA_MAX_RESP_RES};
    ONLY_AIX(EINVAL, rdma_connect(id, &most));
    ONLY_AIX(EINVAL, rdma_accept(id, &most));
    id->ps = RDMA_PS_UDP;
    most.responder_resources = 1;
    ONLY_AIX(EPROTONOSUPPORT, rdma_connect(id, &most));
    ONLY_AIX(EPROTONOSUPPORT, rdma_accept(id, &most));
    id->ps = RDMA_PS_TCP;
    if (!aix) /* the port has no listener, which an event will tell */
        assert_int_equal(rdma_connect(id, NULL), 0);
}

static void accept_wants_a_queue_pair(void **unused)
{
    (void)unused;
    struct rdma_conn_param conn = {.qp_num = 1, .responder_resources = 1};
    resolve();
    FAILS(EINVAL, rdma_accept(id, &conn));
    FAILS(EINVAL, rdma_accept(id, NULL));
}

static void names_without_a_function(void **unused)
{
    (void)unused;
    uint8_t tos = 0x20;
    if (!aix) {
        assert_int_equal(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1), 0);
        FAILS(EINVAL, rdma_notify(id, IBV_EVENT_COMM_EST));
        FAILS(EINVAL, rdma_join_multicast(id, loopback(0), NULL));
        FAILS(EADDRNOTAVAIL, rdma_leave_multicast(id, loopback(0)));
        return;
    }
    FAILS(ENOSYS, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
    FAILS(ENOSYS, rdma_notify(id, IBV_EVENT_COMM_EST));
    FAILS(ENOSYS, rdma_join_multicast(id, loopback(0), NULL));
    FAILS(ENOSYS, rdma_leave_multicast(id, loopback(0)));
}

static void inline_verbs(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_sge sge = {.length = 0};
    struct ibv_recv_wr receive[2] = {{.next = &receive[1], .sg_list = &sge}, {.num_sge = 0}};
    struct ibv_recv_wr *bad_receive = NULL;
    struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &sge}, *bad_send = NULL;
    struct ibv_wc wc;
    resolve();
    assert_int_equal(rdma_create_qp(id, id->pd, &attr), 0);
    assert_int_equal(ibv_poll_cq(id->send_cq, 1, &wc), 0);
    assert_int_equal(ibv_req_notify_cq(id->send_cq, 0), 0);
    if (!aix) {
        assert_int_equal(ibv_post_recv(id->qp, receive, &bad_receive), 0);
        return;
    }
    assert_int_equal(ibv_poll_cq(NULL, 1, &wc), -EINVAL);
    assert_int_equal(ibv_req_notify_cq(NULL, 0), EINVAL);
    assert_int_equal(ibv_post_recv(NULL, receive, &bad_receive), EINVAL);
    assert_ptr_equal(bad_receive, &receive[0]);
    assert_int_equal(ibv_post_recv(id->qp, NULL, &bad_receive), EINVAL);
    /* A list up to the one that is wrong. */
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ibv_post_recv(id->qp, receive, &bad_receive), EINVAL);
        assert_ptr_equal(bad_receive, &receive[1]);
    }
    receive[0].next = NULL;
    assert_int_equal(ibv_post_recv(id->qp, receive, &bad_receive), ENOMEM); /* four are there */

    assert_int_equal(ibv_post_send(NULL, &send, &bad_send), EINVAL);
    assert_ptr_equal(bad_send, &send);
    assert_int_equal(ibv_post_send(id->qp, NULL, &bad_send), EINVAL);
    send.sg_list = NULL;
    assert_int_equal(ibv_post_send(id->qp, &send, &bad_send), EINVAL);
    send.sg_list = &sge;
    static const enum ibv_wr_opcode others[] = {
        IBV_WR_RDMA_WRITE_WITH_IMM,  IBV_WR_SEND_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_LOCAL_INV,     IBV_WR_BIND_MW,
        IBV_WR_SEND_WITH_INV,
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        send.opcode = others[i];
        bad_send = NULL;
        assert_int_equal(ibv_post_send(id->qp, &send, &bad_send), ENOTSUP);
        assert_ptr_equal(bad_send, &send);
    }
}

static void objects_without_a_context(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
    struct ibv_port_attr port;
    resolve();
    assert_int_equal(rdma_create_qp(id, id->pd, &attr), 0);
    assert_int_equal(ibv_query_port(id->verbs, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    if (aix) {
        assert_int_equal(ibv_query_port(NULL, 1, &port), EINVAL);
        assert_int_equal(ibv_query_port(id->verbs, 1, NULL), EINVAL);
        struct ibv_context *context = id->qp->context;
        id->qp->context = NULL;
        assert_int_equal(ibv_modify_qp(id->qp, &to_error, IBV_QP_STATE), EINVAL);
        struct rdma_conn_param conn = {.responder_resources = 1};
        FAILS(EINVAL, rdma_accept(id, &conn));
        id->qp->context = context;
        assert_int_equal(ibv_modify_qp(NULL, &to_error, IBV_QP_STATE), EINVAL);
        assert_int_equal(ibv_modify_qp(id->qp, NULL, IBV_QP_STATE), EINVAL);
        assert_int_equal(id->qp->state, IBV_QPS_INIT);
    }
    assert_int_equal(ibv_modify_qp(id->qp, &to_error, IBV_QP_STATE), 0);
    assert_int_equal(id->qp->state, IBV_QPS_ERR);
}

static void verbs_without_a_function(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_qp_attr now = {.qp_state = IBV_QPS_RTS};
    union ibv_gid group = {.raw = {0xff, 0x0e}};
    resolve();
    assert_int_equal(rdma_create_qp(id, id->pd, &attr), 0);
    int cqe = id->send_cq->cqe;
    assert_int_equal(ibv_resize_cq(id->send_cq, cqe + 100), aix ? ENOSYS : 0);
    assert_int_equal(id->send_cq->cqe >= cqe + 100, !aix);
    assert_int_equal(ibv_query_qp(id->qp, &now, IBV_QP_STATE, &attr), aix ? ENOSYS : 0);
    assert_int_equal(now.qp_state == IBV_QPS_RTS, aix);
    assert_int_equal(ibv_attach_mcast(id->qp, &group, 0), aix ? ENOSYS : EINVAL);
    assert_int_equal(ibv_detach_mcast(id->qp, &group, 0), aix ? ENOSYS : EINVAL);
    assert_int_equal(ibv_fork_init(), aix ? ENOSYS : 0);
}

static void values_without_a_name(void **unused)
{
    (void)unused;
    const char *unknown = aix ? "<<unknown>>" : "unknown";
    assert_string_equal(ibv_node_type_str((enum ibv_node_type)99), unknown);
    assert_string_equal(ibv_node_type_str(IBV_NODE_UNKNOWN), unknown);
    assert_string_equal(ibv_node_type_str(IBV_NODE_RNIC), "iWARP NIC");
    assert_string_equal(ibv_port_state_str((enum ibv_port_state)99), unknown);
    assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
    assert_string_equal(ibv_event_type_str((enum ibv_event_type)99), unknown);
    assert_string_equal(ibv_event_type_str(IBV_EVENT_CQ_ERR), "CQ error");
}

/* A descriptor that the program has closed: the calls do nothing, and work again with it. */
static void closed_channel(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_conn_param conn = {.responder_resources = 1};
    struct rdma_cm_event *event;
    struct rdma_cm_id *other;
    if (!aix)
        return;
    resolve();
    assert_int_equal(rdma_create_qp(id, id->pd, &attr), 0);
    int kept = fcntl(channel->fd, F_DUPFD_CLOEXEC, channel->fd + 1);
    assert_true(kept >= 0);
    close(channel->fd);
    FAILS(ENODATA, rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
    FAILS(ENODATA, rdma_migrate_id(id, channel));
    FAILS(ENODATA, rdma_bind_addr(id, loopback(0)));
    FAILS(ENODATA, rdma_resolve_addr(id, NULL, loopback(9), 1));
    FAILS(ENODATA, rdma_resolve_route(id, 1));
    FAILS(ENODATA, rdma_connect(id, &conn));
    FAILS(ENODATA, rdma_listen(id, 1));
    FAILS(ENODATA, rdma_accept(id, &conn));
    FAILS(ENODATA, rdma_reject(id, NULL, 0));
    FAILS(ENODATA, rdma_disconnect(id));
    FAILS(ENODATA, rdma_get_cm_event(channel, &event));
    FAILS(ENODATA, rdma_destroy_id(id));
    assert_int_equal(dup2(kept, channel->fd), channel->fd);
    close(kept);
    assert_int_equal(rdma_connect(id, &conn), 0);
    await(RDMA_CM_EVENT_REJECTED); /* nobody listens there */
}

/* Also through pointers to functions. */
static void the_dialect_is_in_the_address(void **unused)
{
    (void)unused;
    int (*listen_on)(struct rdma_cm_id *, int) = rdma_listen;
    assert_int_equal(listen_on(id, 1), 0);
    FAILS(EINVAL, listen_on(id, 1));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(null_handles),
        TEST(failures_are_errors_of_the_dialect),
        TEST(one_port_space),
        TEST(what_only_linux_takes),
        TEST(accept_wants_a_queue_pair),
        TEST(names_without_a_function),
        TEST(inline_verbs),
        TEST(objects_without_a_context),
        TEST(verbs_without_a_function),
        TEST(values_without_a_name),
        TEST(closed_channel),
        TEST(the_dialect_is_in_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
