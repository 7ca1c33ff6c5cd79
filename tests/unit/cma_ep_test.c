/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronous ids, endpoints, and rdma_getaddrinfo(). */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int setup(void **unused)
{
    (void)unused;
    mock_reset();
    return 0;
}

static int teardown(void **unused)
{
    (void)unused;
    return mock.cms | mock.pds | mock.qps | mock.cqs | mock.channels | mock.srqs;
}

static void expect_error(int result, int err)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, err);
}

static struct rdma_addrinfo *info(int flags, const char *node, const char *service)
{
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *res;
    assert_int_equal(rdma_getaddrinfo(node, service, &hints, &res), 0);
    return res;
}

static struct rdma_cm_id *active(struct ibv_qp_init_attr *attr)
{
    struct rdma_addrinfo *res = info(RAI_NUMERICHOST, "127.0.0.1", "7000");
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_ep(&id, res, NULL, attr), 0);
    rdma_freeaddrinfo(res);
    return id;
}

static struct rdma_cm_id *passive(struct ibv_qp_init_attr *attr)
{
    struct rdma_addrinfo *res = info(RAI_PASSIVE, NULL, "7000");
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_ep(&id, res, NULL, attr), 0);
    rdma_freeaddrinfo(res);
    assert_int_equal(rdma_listen(id, 0), 0);
    return id;
}

static struct ibv_qp_init_attr qp_attr(void)
{
    /* The type comes from the address information. */
    return (struct ibv_qp_init_attr){.qp_type = IBV_QPT_UD,
                                     .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
}

/* What the transport says once the operation has begun. */
struct answer {
    struct rdma_cm_id *id;
    enum iw_cm_event_type type;
    int status;
};

static void *say(void *arg)
{
    const struct answer *a = arg;
    usleep(20000);
    mock_event(a->id, a->type, a->status);
    return NULL;
}

static pthread_t later(struct answer *answer)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, say, answer), 0);
    return thread;
}

static void calls_return_with_their_event(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_id *id = active(&attr);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(attr.qp_type, IBV_QPT_RC);
    assert_non_null(id->qp);

    struct answer up = {id, IW_CM_ESTABLISHED, 0}, down = {id, IW_CM_DISCONNECTED, 0};
    pthread_t thread = later(&up);
    assert_int_equal(rdma_connect(id, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ESTABLISHED);

    thread = later(&down);
    assert_int_equal(rdma_disconnect(id), 0);
    pthread_join(thread, NULL);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_DISCONNECTED);
    /* No further event can come: nothing to wait for. */
    assert_int_equal(rdma_disconnect(id), 0);
    rdma_destroy_ep(id);
}

static void failures_become_errno(void **unused)
{
    (void)unused;
    static const struct {
        enum iw_cm_event_type type;
        int status, err;
    } cases[] = {
        {IW_CM_REJECTED, -ECONNRESET, ECONNREFUSED},
        {IW_CM_UNREACHABLE, -ETIMEDOUT, ETIMEDOUT},
        {IW_CM_CONNECT_ERROR, -EPROTO, EPROTO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ibv_qp_init_attr attr = qp_attr();
        struct rdma_cm_id *id = active(&attr);
        struct answer no = {id, cases[i].type, cases[i].status};
        pthread_t thread = later(&no);
        expect_error(rdma_connect(id, NULL), cases[i].err);
        pthread_join(thread, NULL);
        assert_int_equal(id->event->status, cases[i].status);
        rdma_destroy_ep(id);
    }
}

static void without_blocking(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_id *id = active(&attr);
    struct rdma_cm_event *event;
    fcntl(id->channel->fd, F_SETFL, O_NONBLOCK);
    expect_error(rdma_connect(id, NULL), EAGAIN);
    assert_null(id->event);
    mock_event(id, IW_CM_ESTABLISHED, 0);
    assert_int_equal(rdma_get_cm_event(id->channel, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_ESTABLISHED);
    rdma_ack_cm_event(event);
    rdma_destroy_ep(id);
}

static void connect_data_goes_first(void **unused)
{
    (void)unused;
    struct rdma_addrinfo *res = info(RAI_NUMERICHOST, "127.0.0.1", "7000");
    struct rdma_conn_param conn = {.private_data = "body", .private_data_len = 4, .qp_num = 1};
    struct rdma_cm_id *id;
    res->ai_connect = strdup("head");
    res->ai_connect_len = 4;
    assert_int_equal(rdma_create_ep(&id, res, NULL, NULL), 0);
    rdma_freeaddrinfo(res);
    assert_null(id->qp);
    fcntl(id->channel->fd, F_SETFL, O_NONBLOCK);
    conn.private_data_len = 252;
    expect_error(rdma_connect(id, &conn), EINVAL);
    conn.private_data_len = 4;
    expect_error(rdma_connect(id, &conn), EAGAIN);
    assert_int_equal(mock_cm(id)->param.private_data_len, 8);
    assert_memory_equal(mock_cm(id)->private_data, "headbody", 8);
    rdma_destroy_ep(id);
}

static void requests_get_a_qp(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_id *listener = passive(&attr), *id;
    mock_request(listener, "hello");
    assert_int_equal(rdma_get_request(listener, &id), 0);
    assert_memory_equal(id->event->param.conn.private_data, "hello", 5);
    assert_ptr_not_equal(id->channel, listener->channel);
    assert_non_null(id->qp);
    assert_int_equal(id->qp->state, IBV_QPS_INIT);

    struct answer up = {id, IW_CM_ESTABLISHED, 0};
    fcntl(id->channel->fd, F_SETFL, O_NONBLOCK);
    expect_error(rdma_accept(id, NULL), EAGAIN);
    fcntl(id->channel->fd, F_SETFL, 0);
    say(&up);
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
}

static void a_request_whose_qp_fails(void **unused)
{
    (void)unused;
    struct ibv_qp_init_attr attr = qp_attr();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 0;
    struct rdma_cm_id *listener = passive(&attr), *first, *id;
    mock_request(listener, NULL);
    assert_int_equal(rdma_get_request(listener, &first), 0);
    mock_request(listener, NULL);
    mock.fail = ENOMEM;
    expect_error(rdma_get_request(listener, &id), ENOMEM);
    assert_int_equal(mock.cms, 2);
    rdma_destroy_ep(first);
    rdma_destroy_ep(listener);
}

static void requests_are_for_synchronous_listeners(void **unused)
{
    (void)unused;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *listener, *id;
    assert_int_equal(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP), 0);
    expect_error(rdma_get_request(listener, &id), EINVAL);
    rdma_destroy_id(listener);
    rdma_destroy_event_channel(channel);
}

static void endpoints_that_fail_leave_nothing(void **unused)
{
    (void)unused;
    struct rdma_addrinfo *res = info(RAI_NUMERICHOST, "127.0.0.1", "7000");
    struct rdma_cm_id *id;
    res->ai_port_space = 0;
    expect_error(rdma_create_ep(&id, res, NULL, NULL), EINVAL);
    res->ai_port_space = RDMA_PS_TCP;
    struct sockaddr *dst = res->ai_dst_addr;
    res->ai_dst_addr = NULL;
    expect_error(rdma_create_ep(&id, res, NULL, NULL), EINVAL);
    res->ai_dst_addr = dst;
    struct ibv_qp_init_attr attr = qp_attr();
    res->ai_qp_type = IBV_QPT_XRC_SEND;
    expect_error(rdma_create_ep(&id, res, NULL, &attr), EOPNOTSUPP);
    rdma_freeaddrinfo(res);
}

/* ---- rdma_getaddrinfo() ---- */

static void an_active_address(void **unused)
{
    (void)unused;
    struct rdma_addrinfo *res;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", "7000", NULL, &res), 0);
    assert_int_equal(res->ai_flags, 0);
    assert_int_equal(res->ai_family, AF_INET);
    assert_int_equal(res->ai_qp_type, IBV_QPT_RC);
    assert_int_equal(res->ai_port_space, RDMA_PS_TCP);
    assert_int_equal(res->ai_dst_len, sizeof(struct sockaddr_in));
    assert_int_equal(((struct sockaddr_in *)res->ai_dst_addr)->sin_port, htons(7000));
    assert_null(res->ai_src_addr);
    assert_null(res->ai_next);
    rdma_freeaddrinfo(res);
}

static void a_passive_address(void **unused)
{
    (void)unused;
    struct rdma_addrinfo hints = {
        .ai_flags = RAI_PASSIVE | RAI_NOROUTE, .ai_family = AF_INET6, .ai_qp_type = IBV_QPT_UD};
    struct rdma_addrinfo *res;
    assert_int_equal(rdma_getaddrinfo(NULL, "7000", &hints, &res), 0);
    assert_int_equal(res->ai_flags, RAI_PASSIVE);
    assert_int_equal(res->ai_family, AF_INET6);
    assert_int_equal(res->ai_qp_type, IBV_QPT_UD);
    assert_int_equal(res->ai_port_space, RDMA_PS_UDP);
    assert_int_equal(res->ai_src_len, sizeof(struct sockaddr_in6));
    assert_null(res->ai_dst_addr);
    rdma_freeaddrinfo(res);
}

static void hints_alone(void **unused)
{
    (void)unused;
    struct sockaddr_in src = {.sin_family = AF_INET, .sin_port = 1};
    struct sockaddr_in dst = {.sin_family = AF_INET, .sin_port = 2};
    struct rdma_addrinfo hints = {
        .ai_flags = RAI_NOROUTE,
        .ai_port_space = RDMA_PS_IB,
        .ai_src_addr = (struct sockaddr *)&src,
        .ai_src_len = sizeof src,
        .ai_dst_addr = (struct sockaddr *)&dst,
        .ai_dst_len = sizeof dst,
    };
    struct rdma_addrinfo *res;
    assert_int_equal(rdma_getaddrinfo(NULL, NULL, &hints, &res), 0);
    assert_int_equal(res->ai_flags, RAI_NOROUTE);
    assert_int_equal(res->ai_port_space, RDMA_PS_IB);
    assert_memory_equal(res->ai_src_addr, &src, sizeof src);
    assert_memory_equal(res->ai_dst_addr, &dst, sizeof dst);
    assert_ptr_not_equal(res->ai_dst_addr, &dst);
    rdma_freeaddrinfo(res);
}

static void no_answer(void **unused)
{
    (void)unused;
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *res;
    expect_error(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
    assert_int_equal(rdma_getaddrinfo("no.number", "1", &hints, &res), EAI_NONAME);
    mock.device = false;
    expect_error(rdma_getaddrinfo("127.0.0.1", "1", &hints, &res), ENODEV);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(calls_return_with_their_event),
        TEST(failures_become_errno),
        TEST(without_blocking),
        TEST(connect_data_goes_first),
        TEST(requests_get_a_qp),
        TEST(a_request_whose_qp_fails),
        TEST(requests_are_for_synchronous_listeners),
        TEST(endpoints_that_fail_leave_nothing),
        TEST(an_active_address),
        TEST(a_passive_address),
        TEST(hints_alone),
        TEST(no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
