/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses: what ids bind to, resolve, connect from and to; who does not answer. */
#include "cm_kit.h"
#include "cm_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- who reaches whom, and what addresses they have ---- */

static const struct reach {
    const char *listen;
    bool afonly;
    const char *src, *dst;
    const char *active, *passive; /* local addresses of the two ends; NULL: refused */
    const char *seen;             /* the active one as the passive end sees it; NULL: the same */
} reaches[] = {
    {"127.0.0.1", false, NULL, "127.0.0.1", "127.0.0.1", "127.0.0.1", NULL},
    {"127.0.0.1", false, "127.0.0.7", "127.0.0.1", "127.0.0.7", "127.0.0.1", NULL},
    {"127.0.0.1", false, NULL, "0.0.0.0", "127.0.0.1", "127.0.0.1", NULL},
    {"127.0.0.1", false, NULL, "10.77.0.1", NULL, NULL, NULL},
    {"::1", false, NULL, "::1", "::1", "::1", NULL},
    {"::1", false, NULL, "::", "::1", "::1", NULL},
    {"10.77.0.1", false, NULL, "10.77.0.1", "10.77.0.1", "10.77.0.1", NULL},
    {"10.77.0.1", false, "10.77.1.1", "10.77.0.1", "10.77.1.1", "10.77.0.1", NULL},
    {"10.77.0.1", false, "0.0.0.0", "10.77.0.1", "10.77.0.1", "10.77.0.1", NULL},
    {"10.77.0.1", false, NULL, "10.77.1.1", NULL, NULL, NULL},
    {"fd77:0::1", false, "fd77:1::1", "fd77:0::1", "fd77:1::1", "fd77:0::1", NULL},
    {"0.0.0.0", false, NULL, "10.77.1.1", "10.77.1.1", "10.77.1.1", NULL},
    {"0.0.0.0", false, NULL, "127.0.0.1", "127.0.0.1", "127.0.0.1", NULL},
    {"0.0.0.0", false, NULL, "::1", NULL, NULL, NULL},
    {"::", false, NULL, "fd77:1::1", "fd77:1::1", "fd77:1::1", NULL},
    {"::", false, NULL, "10.77.1.1", "10.77.1.1", "10.77.1.1", NULL},
    {"::", true, NULL, "fd77:1::1", "fd77:1::1", "fd77:1::1", NULL},
    {"::", true, NULL, "10.77.1.1", NULL, NULL, NULL},
    {"fe80::70%v0", false, NULL, "fe80::70%v0", "fe80::70%v0", "fe80::70%v0", NULL},
    {"::", false, "fe80::71%v1", "fe80::71%v1", "fe80::71%v1", "fe80::71%v1", NULL},
    {"::", false, NULL, "fe80::70%v1", "fe80::71%v1", "fe80::70%v0", "fe80::71%v0"},
    {"::ffff:10.77.0.1", false, NULL, "10.77.0.1", "10.77.0.1", "10.77.0.1", NULL},
    {"10.77.0.1", false, NULL, "::ffff:10.77.0.1", "::ffff:10.77.0.1", "10.77.0.1", "10.77.0.1"},
    {"10.77.0.1", false, "::ffff:10.77.1.1", "::ffff:10.77.0.1", "::ffff:10.77.1.1", "10.77.0.1",
     "10.77.1.1"},
};

static void both_ends_have_their_addresses(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(reaches); i++) {
        const struct reach *r = &reaches[i];
        struct rdma_cm_id *listener = cm_net_listener(r->listen, r->afonly);
        uint16_t port = rdma_get_src_port(listener);
        struct rdma_cm_id *a = cm_net_begin(r->src, r->dst, port);
        assert_int_equal(rdma_get_dst_port(a), port);
        if (r->active) {
            struct rdma_cm_id *b = cm_net_finish();
            struct sockaddr_storage active = cm_net_address(r->active, rdma_get_src_port(a));
            struct sockaddr_storage passive = cm_net_address(r->passive, port);
            cm_net_same(rdma_get_local_addr(a), (struct sockaddr *)&active);
            cm_net_same(rdma_get_local_addr(b), (struct sockaddr *)&passive);
            if (r->seen)
                active = cm_net_address(r->seen, rdma_get_src_port(a));
            cm_net_same(rdma_get_peer_addr(b), (struct sockaddr *)&active);
            assert_int_equal(rdma_get_dst_port(b), rdma_get_src_port(a));
            assert_ptr_equal(a->verbs, b->verbs);
            cm_net_send(a, b);
            cm_drop(b);
        } else {
            struct rdma_cm_event *event = cm_next(cm_net_channel);
            if (event->event != RDMA_CM_EVENT_REJECTED && event->event != RDMA_CM_EVENT_UNREACHABLE)
                fail_msg("row %zu: %s", i, rdma_event_str(event->event));
            assert_int_equal(rdma_ack_cm_event(event), 0);
        }
        cm_drop(a);
        assert_int_equal(rdma_destroy_id(listener), 0);
    }
}

/* The option is allowed after the bind, and counts for the listener. */
static void afonly_after_the_bind(void **state)
{
    (void)state;
    for (int on = 0; on < 2; on++) {
        struct rdma_cm_id *id = cm_net_id();
        assert_int_equal(cm_net_set(id, RDMA_OPTION_ID_AFONLY, !on), 0);
        assert_int_equal(cm_net_bind(id, "::", 0), 0);
        uint16_t port = rdma_get_src_port(id);
        assert_int_equal(cm_net_set(id, RDMA_OPTION_ID_AFONLY, on), 0);
        assert_int_equal(cm_net_listen(id), 0);
        assert_int_equal(rdma_get_src_port(id), port);
        struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.1", port), *b;
        if (on) {
            assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
            cm_drop(a);
            a = cm_net_begin(NULL, "fd77:0::1", port);
        }
        b = cm_net_finish();
        cm_drop(a);
        cm_drop(b);
        assert_int_equal(rdma_destroy_id(id), 0);
    }
}

/* ---- errors of addresses ---- */

static void what_cannot_be_bound(void **state)
{
    static const struct {
        const char *addr;
        int err;
    } rows[] = {
        {"10.9.9.9", EADDRNOTAVAIL},    {"2001:db8::1", EADDRNOTAVAIL},     {"fe80::70", EINVAL},
        {"fe80::70%v1", EADDRNOTAVAIL}, {"::ffff:10.9.9.9", EADDRNOTAVAIL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdma_cm_id *id = cm_net_id();
        int err = cm_net_bind(id, rows[i].addr, 0);
        if (err != rows[i].err)
            fail_msg("%s: %s", rows[i].addr, strerror(err));
        assert_null(id->verbs);
        /* The id can be bound to something else. */
        assert_int_equal(cm_net_bind(id, "10.77.0.1", 0), 0);
        assert_non_null(id->verbs);
        assert_int_equal(rdma_destroy_id(id), 0);
    }
}

static void what_cannot_be_resolved(void **state)
{
    static const struct {
        const char *src, *dst;
        int err, status; /* of the call; of the event */
    } rows[] = {
        {NULL, "10.99.0.1", 0, -ENETUNREACH},         {NULL, "2001:db8::1", 0, -ENETUNREACH},
        {NULL, "10.98.0.1", 0, -EHOSTUNREACH},        {NULL, "fe80::99", EINVAL, 0},
        {"10.77.0.1", "fd77::1", EINVAL, 0},          {"fd77:0::1", "10.77.0.1", EINVAL, 0},
        {"10.9.9.9", "10.77.0.1", EADDRNOTAVAIL, 0},  {"fe80::70", "fe80::99", EINVAL, 0},
        {"::1", "::ffff:10.77.0.1", 0, -ENETUNREACH},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdma_cm_id *id = cm_net_id();
        int err = cm_net_resolve(id, rows[i].src, rows[i].dst, htons(7));
        if (err != rows[i].err)
            fail_msg("%s: %s", rows[i].dst, strerror(err));
        if (!err) {
            int status = cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_ERROR);
            if (status != rows[i].status)
                fail_msg("%s: status %s", rows[i].dst, strerror(-status));
            assert_null(id->verbs);
            assert_int_equal(rdma_resolve_route(id, 100), -1);
            assert_int_equal(errno, EINVAL);
        }
        assert_int_equal(rdma_destroy_id(id), 0);
    }
}

static void a_second_resolution_may_succeed(void **state)
{
    (void)state;
    struct rdma_cm_id *listener = cm_net_listener("10.77.0.1", false), *id = cm_net_id();
    assert_int_equal(cm_net_resolve(id, NULL, "10.99.0.1", htons(7)), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_ERROR), -ENETUNREACH);
    uint16_t port = rdma_get_src_port(listener);
    assert_int_equal(cm_net_resolve(id, NULL, "10.77.0.1", port), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    cm_add_qp(id);
    assert_int_equal(rdma_connect(id, NULL), 0);
    struct rdma_cm_id *b = cm_net_finish();
    cm_drop(id);
    cm_drop(b);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

/* Its neighbours look for it, in vain; resolution did not. */
static void a_host_that_is_not_there(void **state)
{
    (void)state;
    struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.99", htons(7));
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_UNREACHABLE), -EHOSTUNREACH);
    assert_int_equal(rdma_disconnect(a), 0);
    cm_quiet(cm_net_channel, 20);
    cm_drop(a);
}

static int run_addresses(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_have_their_addresses),
        cmocka_unit_test(afonly_after_the_bind),
        cmocka_unit_test(what_cannot_be_bound),
        cmocka_unit_test(what_cannot_be_resolved),
        cmocka_unit_test(a_second_resolution_may_succeed),
        cmocka_unit_test(a_host_that_is_not_there),
    };
    return cmocka_run_group_tests_name("addresses", tests, cm_net_open, cm_net_close);
}

/* ---- nobody answers ---- */

static void tcp_gets_no_answer(void **state)
{
    (void)state;
    struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.98", htons(7));
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_UNREACHABLE), -ETIMEDOUT);
    cm_quiet(cm_net_channel, 20);
    cm_drop(a);

    /* Nor is one waited for that nobody wants any more. */
    a = cm_net_begin(NULL, "10.77.0.98", htons(7));
    cm_drop(a);
    cm_quiet(cm_net_channel, 600);
}

/* A TCP server that never says a word. */
static void the_request_gets_no_answer(void **state)
{
    struct sockaddr_storage addr = cm_net_address("10.77.0.1", 0);
    socklen_t len = sizeof(addr);
    (void)state;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    struct rdma_cm_id *a = cm_net_begin(NULL, "10.77.0.1", ((struct sockaddr_in *)&addr)->sin_port);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_UNREACHABLE), -ETIMEDOUT);
    cm_drop(a);
    close(fd);
}

static void a_synchronous_id_returns(void **state)
{
    struct rdma_cm_id *id;
    (void)state;
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(cm_net_resolve(id, NULL, "10.77.0.98", htons(7)), 0);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    cm_add_qp(id);
    assert_int_equal(rdma_connect(id, NULL), -1);
    assert_int_equal(errno, ETIMEDOUT);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_UNREACHABLE);
    cm_drop(id);
}

static int run_time_out(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_gets_no_answer),
        cmocka_unit_test(the_request_gets_no_answer),
        cmocka_unit_test(a_synchronous_id_returns),
    };
    return cmocka_run_group_tests_name("no answer", tests, cm_net_open, cm_net_close);
}

int main(int argc, char **argv)
{
    static const struct cm_net_mode modes[] = {
        {"addresses", NULL, NULL, run_addresses},
        {"time-out", "ANYWARP_CONNECT_MS", "300", run_time_out},
    };
    return cm_net_main(argc, argv, modes, COUNT(modes));
}
