/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Without memory: each call, once for every allocation that it makes, with that one failing. It
 * says ENOMEM, nothing is left of it, and what was there before can be used as before.
 */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);

static int left; /* allocations until the one that fails, 0: none does */

static bool fails(void)
{
    if (left == 0 || --left > 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

/* ---- the calls; what they need is there before memory gets short ---- */

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id, *made;

static struct sockaddr *loopback(uint16_t port)
{
    static struct sockaddr_in in;
    in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return (struct sockaddr *)&in;
}

static void expect(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, type);
    assert_int_equal(rdma_ack_cm_event(event), 0);
}

static void resolved(void)
{
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 10), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void routed(void)
{
    resolved();
    assert_int_equal(rdma_resolve_route(id, 10), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void listening(void)
{
    assert_int_equal(rdma_bind_addr(id, loopback(7000)), 0);
    assert_int_equal(rdma_listen(id, 4), 0);
}

static void nothing(void)
{
}

static int create_channel(void)
{
    struct rdma_event_channel *all[8];
    int n = 0;
    while (n < 8 && (all[n] = rdma_create_event_channel())) /* those of before are used again */
        n++;
    int r = n < 8 ? -1 : 0, err = errno;
    while (n > 0)
        rdma_destroy_event_channel(all[--n]);
    errno = err;
    return r;
}

static int create_id(void)
{
    return rdma_create_id(channel, &made, NULL, RDMA_PS_TCP);
}

static int create_sync_id(void)
{
    return rdma_create_id(NULL, &made, NULL, RDMA_PS_TCP);
}

static int bind_addr(void)
{
    return rdma_bind_addr(id, loopback(7001));
}

static int resolve_addr(void)
{
    return rdma_resolve_addr(id, NULL, loopback(7000), 10);
}

static int resolve_route(void)
{
    return rdma_resolve_route(id, 10);
}

static int create_qp(void)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    int r = rdma_create_qp(id, NULL, &attr);
    assert_int_equal(!id->qp, r != 0);
    assert_int_equal(!id->send_cq, r != 0);
    return r;
}

static int connect_(void)
{
    struct rdma_conn_param param = {.qp_num = 5};
    return rdma_connect(id, &param);
}

static int write_event(void)
{
    return rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 1);
}

/* To the transport: a request that is not taken is rejected. */
static int request(void)
{
    int r = mock_request(id, "hello");
    if (r)
        errno = ENOMEM;
    return r;
}

static int addrinfo(void)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *info;
    int r = rdma_getaddrinfo("127.0.0.1", "7000", &hints, &info);
    if (r == 0)
        rdma_freeaddrinfo(info);
    return r;
}

static int create_ep(int flags)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    struct rdma_addrinfo info = {
        .ai_flags = flags,
        .ai_qp_type = IBV_QPT_RC,
        .ai_port_space = RDMA_PS_TCP,
        .ai_src_addr = flags ? loopback(7002) : NULL,
        .ai_dst_addr = flags ? NULL : loopback(7002),
        .ai_connect = "data",
        .ai_connect_len = 4,
    };
    struct rdma_cm_id *ep;
    int r = rdma_create_ep(&ep, &info, NULL, &attr);
    if (r == 0)
        rdma_destroy_ep(ep);
    return r;
}

static int active_ep(void)
{
    return create_ep(0);
}

static int passive_ep(void)
{
    return create_ep(RAI_PASSIVE);
}

static int devices(void)
{
    struct ibv_context **list = rdma_get_devices(NULL);
    rdma_free_devices(list);
    return list ? 0 : -1;
}

static const struct {
    const char *name;
    void (*before)(void);
    int (*call)(void);
} calls[] = {
    {"rdma_create_event_channel", nothing, create_channel},
    {"rdma_create_id", nothing, create_id},
    {"rdma_create_id, synchronous", nothing, create_sync_id},
    {"rdma_bind_addr", nothing, bind_addr},
    {"rdma_resolve_addr", nothing, resolve_addr},
    {"rdma_resolve_route", resolved, resolve_route},
    {"rdma_create_qp", resolved, create_qp},
    {"rdma_connect", routed, connect_},
    {"rdma_write_cm_event", nothing, write_event},
    {"a request", listening, request},
    {"rdma_getaddrinfo", nothing, addrinfo},
    {"rdma_create_ep", nothing, active_ep},
    {"rdma_create_ep, passive", nothing, passive_ep},
    {"rdma_get_devices", nothing, devices},
};

/** @return whether the call got all that it asked for */
static bool with_nth_failing(size_t i, int n)
{
    mock_reset();
    channel = rdma_create_event_channel();
    assert_non_null(channel);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    calls[i].before();
    left = n;
    errno = 0;
    int r = calls[i].call(), err = errno;
    bool enough = left > 0;
    left = 0;
    if (enough ? r != 0 : r >= 0 || err != ENOMEM)
        fail_msg("%s, allocation %d: %d, errno %d", calls[i].name, n, r, err);
    if (!enough && calls[i].call() != 0) /* there is memory again */
        fail_msg("%s after allocation %d had failed: errno %d", calls[i].name, n, errno);
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
    if (made)
        rdma_destroy_id(made);
    made = NULL;
    rdma_destroy_event_channel(channel);
    if ((mock.cms | mock.pds | mock.qps | mock.cqs | mock.channels) || !list_empty(&cma_ids.locks))
        fail_msg("%s, allocation %d: something is left", calls[i].name, n);
    return enough;
}

static void each_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int n = 1;
        while (!with_nth_failing(i, n))
            n++;
        print_message("%s: %d\n", calls[i].name, n - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
