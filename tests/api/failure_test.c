/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that do not come about, each with the line of the log that says where they ended. */
#include "cm_kit.h"
#include "logfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE 1200

/** Connects to @p addr, which fails with @p type and @p status, and looks at the line. */
static void expect_failure(const struct sockaddr_storage *addr, enum rdma_cm_event_type type,
                           int status, const char *reason)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_conn_param param = {0};
    char pattern[LINE];
    log_clear();
    struct rdma_cm_id *id = cm_prepare(channel, addr);
    assert_int_equal(rdma_connect(id, &param), 0);
    assert_int_equal(cm_expect(channel, type), status);
    snprintf(pattern, sizeof(pattern), "anywarp: rdma_connect: QP 0x%06x, 127.0.0.1:%u: %s\n",
             id->qp->qp_num, ntohs(((const struct sockaddr_in *)addr)->sin_port), reason);
    if (!log_has(pattern))
        fail_msg("the log does not say: %s", pattern);
    cm_drop(id);
    rdma_destroy_event_channel(channel);
}

static void nobody_listens(void **state)
{
    struct sockaddr_storage addr;
    (void)state;
    int fd = cm_listen_plain(&addr, 4);
    close(fd);
    expect_failure(&addr, RDMA_CM_EVENT_REJECTED, -ECONNREFUSED,
                   "nobody listens there: TCP refused it");
}

static void nobody_answers(void **state)
{
    struct sockaddr_storage addr;
    (void)state;
    int fd = cm_listen_plain(&addr, 4);
    expect_failure(&addr, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT,
                   "TCP is connected, but nobody answered the MPA Request in 500 ms");
    close(fd);
}

/* ---- a server of another protocol: it answers whatever comes, or hangs up ---- */

struct other {
    int listening;
    const char *answer; /* NULL: hangs up, each of the two times that revisions are tried */
};

static void *serve(void *arg)
{
    const struct other *o = arg;
    char request[512];
    for (int i = 0; i < (o->answer ? 1 : 2); i++) {
        int fd = accept(o->listening, NULL, NULL);
        if (fd < 0)
            return "accept";
        if (recv(fd, request, sizeof(request), 0) <= 0)
            return "recv";
        if (o->answer && send(fd, o->answer, strlen(o->answer), 0) < 0)
            return "send";
        if (o->answer)
            while (recv(fd, request, sizeof(request), 0) > 0)
                ;
        close(fd);
    }
    return NULL;
}

static void against(const char *answer, enum rdma_cm_event_type type, int status,
                    const char *reason)
{
    struct sockaddr_storage addr;
    struct other o = {.listening = cm_listen_plain(&addr, 4), .answer = answer};
    pthread_t t;
    void *trouble;
    assert_int_equal(pthread_create(&t, NULL, serve, &o), 0);
    expect_failure(&addr, type, status, reason);
    assert_int_equal(pthread_join(t, &trouble), 0);
    assert_null(trouble);
    close(o.listening);
}

static void another_protocol(void **state)
{
    (void)state;
    against("HTTP/1.1 400 Bad Request\r\n\r\n", RDMA_CM_EVENT_CONNECT_ERROR, -EPROTO,
            "it does not speak iWARP: *, \"HTTP/1.1 400 Bad\"");
}

static void hangs_up(void **state)
{
    (void)state;
    against(NULL, RDMA_CM_EVENT_REJECTED, -ECONNRESET,
            "it closed the connection before it answered");
}

static void is_rejected(void **state)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    char pattern[LINE];
    (void)state;
    cm_open(&s, NULL);
    log_clear();
    struct rdma_cm_id *a = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(a, &param), 0);
    struct rdma_cm_id *b = cm_request(s.b);
    assert_int_equal(rdma_reject(b, "no", 3), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    snprintf(pattern, sizeof(pattern),
             "anywarp: rdma_connect: QP 0x%06x, 127.0.0.1:*: its program rejected it, with 3 bytes "
             "of private data\n",
             a->qp->qp_num);
    assert_true(log_has(pattern));
    rdma_destroy_id(b);
    cm_drop(a);
    cm_close(&s);
}

/** The first request waits for the program, the second finds no room. */
static void backlog_is_full(void **state)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    char pattern[LINE];
    (void)state;
    cm_open(&s, NULL);
    assert_int_equal(rdma_destroy_id(s.listener), 0);
    assert_int_equal(rdma_create_id(s.b, &s.listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(s.listener, (struct sockaddr *)&s.addr), 0);
    assert_int_equal(rdma_listen(s.listener, 1), 0);
    log_clear();
    struct rdma_cm_id *first = cm_prepare(s.a, &s.addr);
    struct rdma_cm_id *second = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(first, &param), 0);
    struct rdma_cm_event *asked = cm_next(s.b); /* it is in, and not answered */
    assert_int_equal(asked->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(rdma_connect(second, &param), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    snprintf(
        pattern, sizeof(pattern),
        "anywarp: rdma_connect: QP 0x%06x, 127.0.0.1:*: its backlog is full: its program takes "
        "no requests\n",
        second->qp->qp_num);
    assert_true(log_has(pattern));
    struct rdma_cm_id *b = asked->id;
    assert_int_equal(rdma_ack_cm_event(asked), 0);
    assert_int_equal(rdma_reject(b, NULL, 0), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    rdma_destroy_id(b);
    cm_drop(first);
    cm_drop(second);
    cm_close(&s);
}

static int set_up(void **state)
{
    return log_setup(state) || setenv("ANYWARP_CONNECT_MS", "500", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_listens),   cmocka_unit_test(nobody_answers),
        cmocka_unit_test(another_protocol), cmocka_unit_test(hangs_up),
        cmocka_unit_test(is_rejected),      cmocka_unit_test(backlog_is_full),
    };
    return cmocka_run_group_tests(tests, set_up, log_teardown);
}
