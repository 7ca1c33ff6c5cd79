/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/async.h"

#include "cq/cq.h"
#include "env/eventfd.h"
#include "qp/qp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct iw_context ctx;
    struct iw_qp qp[2];
    struct iw_cq cq;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    lock_init(&f->ctx.lock, LOCK_CONTEXT);
    list_init(&f->ctx.async);
    f->ctx.vctx.context.async_fd = iw_eventfd_create();
    *state = f;
    return f->ctx.vctx.context.async_fd < 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_true(list_empty(&f->ctx.async));
    iw_eventfd_close(f->ctx.vctx.context.async_fd);
    lock_fini(&f->ctx.lock);
    free(f);
    return 0;
}

static bool readable(struct fixture *f)
{
    struct pollfd p = {.fd = f->ctx.vctx.context.async_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void raise_qp(struct fixture *f, int i, enum ibv_event_type type)
{
    struct ibv_async_event e = {.element.qp = &f->qp[i].pub, .event_type = type};
    iw_async_raise(&f->ctx, &e, &f->qp[i].async_events_read);
}

static void raise_cq(struct fixture *f)
{
    struct ibv_async_event e = {.element.cq = &f->cq.pub, .event_type = IBV_EVENT_CQ_ERR};
    iw_async_raise(&f->ctx, &e, &f->cq.async_events_read);
}

static void expect(struct fixture *f, enum ibv_event_type type, const void *element)
{
    struct ibv_async_event e;
    assert_true(readable(f));
    assert_int_equal(iw_async_get(&f->ctx, &e), 0);
    assert_int_equal(e.event_type, type);
    assert_ptr_equal(e.element.qp, element);
}

static void order_and_counts(void **state)
{
    struct fixture *f = *state;
    static const enum ibv_event_type of_qp[] = {
        IBV_EVENT_QP_FATAL,     IBV_EVENT_QP_REQ_ERR,         IBV_EVENT_QP_ACCESS_ERR,
        IBV_EVENT_COMM_EST,     IBV_EVENT_SQ_DRAINED,         IBV_EVENT_PATH_MIG,
        IBV_EVENT_PATH_MIG_ERR, IBV_EVENT_QP_LAST_WQE_REACHED};
    const unsigned n = sizeof(of_qp) / sizeof(of_qp[0]);
    for (unsigned i = 0; i < n; i++)
        raise_qp(f, 0, of_qp[i]);
    raise_cq(f);
    for (unsigned i = 0; i < n; i++) {
        expect(f, of_qp[i], &f->qp[0]);
        assert_int_equal(f->qp[0].async_events_read, i + 1);
    }
    expect(f, IBV_EVENT_CQ_ERR, &f->cq);
    assert_int_equal(f->cq.async_events_read, 1);
    assert_int_equal(f->cq.events_read, 0);
    assert_int_equal(f->qp[1].async_events_read, 0);
    assert_false(readable(f));
}

static void about_the_port(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event e = {.element.port_num = 1, .event_type = IBV_EVENT_PORT_ACTIVE};
    iw_async_raise(&f->ctx, &e, NULL);
    assert_int_equal(iw_async_drop(&f->ctx, e.element.qp), 0);
    e = (struct ibv_async_event){0};
    assert_int_equal(iw_async_get(&f->ctx, &e), 0);
    assert_int_equal(e.event_type, IBV_EVENT_PORT_ACTIVE);
    assert_int_equal(e.element.port_num, 1);
}

static void drop(void **state)
{
    struct fixture *f = *state;
    raise_qp(f, 0, IBV_EVENT_QP_FATAL);
    raise_qp(f, 1, IBV_EVENT_QP_FATAL);
    raise_cq(f);
    raise_qp(f, 0, IBV_EVENT_QP_REQ_ERR);
    assert_int_equal(iw_async_drop(&f->ctx, &f->qp[0]), 2);
    assert_int_equal(iw_async_drop(&f->ctx, &f->qp[0]), 0);
    expect(f, IBV_EVENT_QP_FATAL, &f->qp[1]);
    assert_true(readable(f));
    assert_int_equal(iw_async_drop(&f->ctx, &f->cq), 1);
    assert_false(readable(f));
    assert_int_equal(f->qp[0].async_events_read + f->cq.async_events_read, 0);
}

static void nonblocking(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event e;
    fcntl(f->ctx.vctx.context.async_fd, F_SETFL, O_NONBLOCK);
    errno = 0;
    assert_int_equal(iw_async_get(&f->ctx, &e), -1);
    assert_int_equal(errno, EAGAIN);
    raise_cq(f);
    expect(f, IBV_EVENT_CQ_ERR, &f->cq);
}

/* ---- a thread that waits ---- */

struct waiter {
    pthread_t thread;
    struct fixture *f;
    int result, error;
    struct ibv_async_event event;
};

static void *get(void *arg)
{
    struct waiter *w = arg;
    w->result = iw_async_get(&w->f->ctx, &w->event);
    w->error = errno;
    return NULL;
}

static void start(struct waiter *w, struct fixture *f)
{
    *w = (struct waiter){.f = f, .result = 1};
    assert_int_equal(pthread_create(&w->thread, NULL, get, w), 0);
}

static bool ends_within(struct waiter *w, int ms, void **result)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(w->thread, result, &t) == 0;
}

static void waits_for_an_event(void **state)
{
    struct waiter w;
    start(&w, *state);
    assert_false(ends_within(&w, 20, NULL));
    raise_qp(*state, 1, IBV_EVENT_SQ_DRAINED);
    assert_true(ends_within(&w, 10000, NULL));
    assert_int_equal(w.result, 0);
    assert_int_equal(w.event.event_type, IBV_EVENT_SQ_DRAINED);
}

static void cancelled(void **state)
{
    struct fixture *f = *state;
    struct waiter w;
    void *result = NULL;
    start(&w, f);
    assert_false(ends_within(&w, 20, NULL));
    pthread_cancel(w.thread);
    assert_true(ends_within(&w, 10000, &result));
    assert_ptr_equal(result, PTHREAD_CANCELED);
    raise_cq(f); /* no lock stayed behind, no event went along */
    expect(f, IBV_EVENT_CQ_ERR, &f->cq);
}

static void on_signal(int sig)
{
    (void)sig;
}

static void interrupted(void **state)
{
    struct sigaction sa = {.sa_handler = on_signal}, old;
    struct waiter w;
    sigaction(SIGUSR1, &sa, &old);
    start(&w, *state);
    while (!ends_within(&w, 10, NULL))
        pthread_kill(w.thread, SIGUSR1);
    sigaction(SIGUSR1, &old, NULL);
    assert_int_equal(w.result, -1);
    assert_int_equal(w.error, EINTR);
}

/** The stack of a cancelled thread stays poisoned; the sanitizer would trip over it at its end. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(order_and_counts),   TEST(about_the_port), TEST(drop),        TEST(nonblocking),
        TEST(waits_for_an_event), TEST(cancelled),      TEST(interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
