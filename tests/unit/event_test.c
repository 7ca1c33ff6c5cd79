/* SPDX-License-Identifier: BSD-2-Clause */
/* The event getters: event.c on a scripted channel and engine. */
#include "advice/life.h"
#include "advice/shadow.h"
#include "cq/cq.h"
#include "device/async.h"
#include "engine/poller.h"
#include "engine/waiter.h"
#include "env/eventfd.h"
#include "qp/await.h"
#include "verbs/export.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct iw_context context;
static struct iw_channel channel = {.pub.context = &context.vctx.context, .pub.fd = 3};
static struct iw_cq cq;
static bool nonblocking;
static int queued; /* events in the channel */
static int by_pass, by_wait;
static int wait_result;
static int passes, waits;

struct iw_cq *iw_channel_take(struct iw_channel *ch)
{
    assert_ptr_equal(ch, &channel);
    if (!queued)
        return NULL;
    queued--;
    return &cq;
}

/* Nobody is cancelled. */
void iw_channel_leave(struct iw_channel *ch)
{
    assert_ptr_equal(ch, &channel);
    fail();
}

void iw_channel_expect(struct iw_channel *ch, iw_channel_look *look)
{
    assert_ptr_equal(ch, &channel);
    assert_ptr_equal(look, iw_await_look);
}

bool iw_await_look(struct iw_channel *ch)
{
    (void)ch;
    return false;
}

bool iw_eventfd_nonblocking(int fd)
{
    assert_int_equal(fd, 3);
    return nonblocking;
}

void iw_engine_pass(void)
{
    passes++;
    queued += by_pass;
}

int iw_engine_wait(int fd)
{
    assert_int_equal(fd, 3);
    waits++;
    queued += waits == 2 ? by_wait : 0; /* the first time another thread was faster */
    return waits == 2 ? wait_result : 0;
}

static unsigned acked;

void iw_cq_ack(struct iw_cq *c, unsigned n)
{
    assert_ptr_equal(c, &cq);
    acked += n;
}

struct iw_channel *iw_channel_create(struct ibv_context *ctx)
{
    (void)ctx;
    return &channel;
}

void iw_context_put(struct iw_context *ctx)
{
    atomic_fetch_sub(&ctx->users, 1);
}

static int destroy_result;

int iw_channel_destroy(struct iw_channel *ch)
{
    (void)ch;
    return destroy_result;
}

int iw_async_get(struct iw_context *ctx, struct ibv_async_event *event)
{
    assert_ptr_equal(ctx, &context);
    event->event_type = IBV_EVENT_PORT_ERR;
    return 0;
}

/* No check is going on. */

void iw_life_note(const void *object, const char *kind)
{
    (void)object, (void)kind;
    fail();
}

int iw_life_look(const void *object, const char *call)
{
    (void)object, (void)call;
    fail();
    return 0;
}

void iw_shadow_sleeps(const struct ibv_comp_channel *ch)
{
    (void)ch;
    fail();
}

static const struct {
    bool nonblocking;
    int queued, by_pass, by_wait, wait_result;
    int result, error, passes, waits;
} rows[] = {
    {false, 1, 0, 0, 0, 0, 0, 0, 0},
    {false, 0, 0, 1, 0, 0, 0, 0, 2},
    {false, 0, 0, 0, -EINTR, -1, EINTR, 0, 2},
    {true, 1, 0, 0, 0, 0, 0, 0, 0},
    {true, 0, 1, 0, 0, 0, 0, 1, 0},
    {true, 0, 0, 0, 0, -1, EAGAIN, 1, 0},
};

static void test_get(void **state)
{
    static int mine;
    (void)state;
    cq.pub.cq_context = &mine;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct ibv_cq *got = NULL;
        void *user = NULL;
        nonblocking = rows[i].nonblocking;
        queued = rows[i].queued;
        by_pass = rows[i].by_pass;
        by_wait = rows[i].by_wait;
        wait_result = rows[i].wait_result;
        passes = waits = 0;
        errno = 0;
        int r = ibv_get_cq_event(&channel.pub, &got, &user);
        if (r != rows[i].result || (r && errno != rows[i].error) || passes != rows[i].passes ||
            waits != rows[i].waits)
            fail_msg("row %zu: %d, errno %d, %d passes, %d waits", i, r, errno, passes, waits);
        assert_ptr_equal(got, r ? NULL : &cq.pub);
        assert_ptr_equal(user, r ? NULL : &mine);
    }
}

static void test_ack(void **state)
{
    (void)state;
    acked = 0;
    ibv_ack_cq_events(&cq.pub, 0);
    ibv_ack_cq_events(&cq.pub, 3);
    assert_int_equal(acked, 3);
}

/** Each kind of event is counted where its destroy waits. */
static void test_ack_async(void **state)
{
    struct ibv_qp qp = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    struct ibv_cq c = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    unsigned of_qp = 0;
    (void)state;
    for (int type = IBV_EVENT_CQ_ERR; type <= IBV_EVENT_QP_LAST_WQE_REACHED; type++) {
        struct ibv_async_event e = {.event_type = (enum ibv_event_type)type, .element.qp = &qp};
        switch (type) {
        case IBV_EVENT_CQ_ERR:
            e.element.cq = &c;
            break;
        case IBV_EVENT_SRQ_ERR:
        case IBV_EVENT_SRQ_LIMIT_REACHED:
            continue;
        case IBV_EVENT_DEVICE_FATAL:
        case IBV_EVENT_PORT_ACTIVE:
        case IBV_EVENT_PORT_ERR:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_SM_CHANGE:
            e.element.port_num = 1;
            break;
        default:
            of_qp++;
        }
        ibv_ack_async_event(&e);
        assert_int_equal(qp.events_completed, of_qp);
        assert_int_equal(c.async_events_completed, 1);
    }
    assert_int_equal(of_qp, 8);
    assert_int_equal(c.comp_events_completed, 0);
}

static void test_get_async(void **state)
{
    struct ibv_async_event e;
    (void)state;
    assert_int_equal(ibv_get_async_event(&context.vctx.context, &e), 0);
    assert_int_equal(e.event_type, IBV_EVENT_PORT_ERR);
}

/** A channel counts as a user of its context from creation to a destroy that worked. */
static void test_channel_users(void **state)
{
    (void)state;
    assert_ptr_equal(ibv_create_comp_channel(&context.vctx.context), &channel.pub);
    assert_int_equal(atomic_load(&context.users), 1);
    destroy_result = EBUSY;
    assert_int_equal(ibv_destroy_comp_channel(&channel.pub), EBUSY);
    assert_int_equal(atomic_load(&context.users), 1);
    destroy_result = 0;
    assert_int_equal(ibv_destroy_comp_channel(&channel.pub), 0);
    assert_int_equal(atomic_load(&context.users), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_get),           cmocka_unit_test(test_ack),
        cmocka_unit_test(test_ack_async),     cmocka_unit_test(test_get_async),
        cmocka_unit_test(test_channel_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
