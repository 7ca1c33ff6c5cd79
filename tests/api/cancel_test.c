/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that are cancelled just as an event comes: they take no event and write nothing, as who
 * cancelled them may have taken the memory back. The event is there for the next one.
 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SPIN_US "1000000" /* longer than a round of the test */
#define SETTLED 20000     /* us in which a thread gets to its spin */
#define LONG_MS 5000
#define UNUSED  0xa5

enum getter { CM_EVENT, CQ_EVENT, ASYNC_EVENT };

/** What a getter writes to. */
struct out {
    struct rdma_cm_event *cm;
    struct ibv_cq *cq;
    void *context;
    struct ibv_async_event async;
};

struct wait {
    struct pair *p;
    enum getter getter;
    bool at_once; /* the thread cancels itself before it asks */
    atomic_bool begun;
    struct out out;
};

static int get(struct pair *p, enum getter getter, struct out *out)
{
    switch (getter) {
    case CM_EVENT:
        return rdma_get_cm_event(p->b.events, &out->cm);
    case CQ_EVENT:
        return ibv_get_cq_event(p->b.channel, &out->cq, &out->context);
    default:
        return ibv_get_async_event(p->b.id->verbs, &out->async);
    }
}

static void acknowledge(enum getter getter, struct out *out)
{
    if (getter == CM_EVENT)
        rdma_ack_cm_event(out->cm);
    else if (getter == CQ_EVENT)
        ibv_ack_cq_events(out->cq, 1);
    else
        ibv_ack_async_event(&out->async);
}

static void *wait_thread(void *arg)
{
    struct wait *w = arg;
    if (w->at_once)
        pthread_cancel(pthread_self());
    atomic_store(&w->begun, true);
    get(w->p, w->getter, &w->out);
    return NULL;
}

/** The descriptor of what the getter waits for. */
static int descriptor(const struct pair *p, enum getter getter)
{
    return getter == CM_EVENT   ? p->b.events->fd
           : getter == CQ_EVENT ? p->b.channel->fd
                                : p->b.id->verbs->async_fd;
}

static void break_qp(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buf, 1, s->mr->lkey + 1};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr_id = 1};
    assert_int_equal(ibv_post_send(s->id->qp, &wr, &bad), 0);
}

/** Makes an event that the getter would get: of side b, or of its context. */
static void cause(struct pair *p, enum getter getter)
{
    switch (getter) {
    case CM_EVENT:
        assert_int_equal(rdma_disconnect(p->a.id), 0);
        break;
    case CQ_EVENT:
        assert_int_equal(ibv_req_notify_cq(p->b.cq, 0), 0);
        side_recv(&p->b, 1, 0, 64);
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 1, 0, 64, 0, 0), 0);
        assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
        break;
    default:
        break_qp(&p->a); /* our work request, or what the peer hears of it */
    }
}

static void await_readable(int fd)
{
    assert_int_equal(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LONG_MS), 1);
}

static void join_cancelled(pthread_t t)
{
    struct timespec end;
    void *result;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LONG_MS / 1000;
    assert_int_equal(pthread_timedjoin_np(t, &result, &end), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

static void one(enum getter getter, bool at_once)
{
    struct pair p;
    struct out untouched;
    struct wait w = {.p = &p, .getter = getter, .at_once = at_once};
    pthread_t t;

    pair_open(&p, &(struct pair_conf){0});
    int fd = descriptor(&p, getter);
    memset(&w.out, UNUSED, sizeof(w.out));
    memset(&untouched, UNUSED, sizeof(untouched));
    if (at_once) {
        cause(&p, getter);
        await_readable(fd);
    }
    assert_int_equal(pthread_create(&t, NULL, wait_thread, &w), 0);
    if (!at_once) {
        while (!atomic_load(&w.begun))
            sched_yield();
        usleep(SETTLED);
        assert_int_equal(pthread_cancel(t), 0);
        cause(&p, getter);
    }
    join_cancelled(t);
    assert_memory_equal(&w.out, &untouched, sizeof(untouched));
    await_readable(fd);
    assert_int_equal(get(&p, getter, &w.out), 0);
    acknowledge(getter, &w.out);
    pair_close(&p, 0);
}

/** A cancellation point even if an event waits. */
static void before_they_ask(void **state)
{
    (void)state;
    for (enum getter g = CM_EVENT; g <= ASYNC_EVENT; g++)
        one(g, true);
}

/** In their spin, which is none; the event comes after the cancellation. */
static void while_they_spin(void **state)
{
    (void)state;
    for (enum getter g = CM_EVENT; g <= ASYNC_EVENT; g++)
        one(g, false);
}

/** The stack of a cancelled thread stays poisoned; the sanitizer would trip over it at its end. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_they_ask),
        cmocka_unit_test(while_they_spin),
    };
    assert_int_equal(setenv("ANYWARP_SPIN_US", SPIN_US, 1), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
