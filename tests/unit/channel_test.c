/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/cq.h"
#include "device/context.h"
#include "env/eventfd.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CQS 3

struct fixture {
    struct iw_context ctx;
    struct iw_channel *ch;
    struct iw_cq *cq[CQS];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct ibv_context *ctx = &f->ctx.vctx.context;
    lock_init(&f->ctx.lock, LOCK_CONTEXT);
    list_init(&f->ctx.async);
    ctx->num_comp_vectors = 1;
    f->ch = iw_channel_create(ctx);
    for (int i = 0; i < CQS; i++)
        f->cq[i] = iw_cq_create(ctx, 4, NULL, &f->ch->pub, 0, NULL);
    *state = f;
    return f->ch && f->cq[0] && f->cq[1] && f->cq[2] ? 0 : -1;
}

static void destroy(struct fixture *f, int i)
{
    assert_int_equal(iw_cq_destroy(f->cq[i]), 0);
    f->cq[i] = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CQS; i++)
        if (f->cq[i]) {
            iw_cq_ack(f->cq[i], f->cq[i]->events_read);
            destroy(f, i);
        }
    assert_int_equal(iw_channel_destroy(f->ch), 0);
    lock_fini(&f->ctx.lock);
    free(f);
    return 0;
}

static bool readable(struct fixture *f)
{
    struct pollfd p = {.fd = f->ch->pub.fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void first_in_first_out(void **state)
{
    struct fixture *f = *state;
    static const int order[] = {2, 0, 1};
    assert_null(iw_channel_take(f->ch));
    for (int i = 0; i < CQS; i++)
        iw_channel_raise(f->cq[order[i]]);
    for (int i = 0; i < CQS; i++) {
        assert_true(readable(f));
        assert_ptr_equal(iw_channel_take(f->ch), f->cq[order[i]]);
        assert_int_equal(f->cq[order[i]]->events_read, 1);
    }
    assert_false(readable(f));
    assert_null(iw_channel_take(f->ch));
}

static void each_is_read_once(void **state)
{
    struct fixture *f = *state;
    for (unsigned i = 0; i < 3; i++)
        iw_channel_raise(f->cq[0]);
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(readable(f));
        assert_ptr_equal(iw_channel_take(f->ch), f->cq[0]);
        assert_int_equal(f->cq[0]->events_read, i);
    }
    assert_null(iw_channel_take(f->ch));
    assert_false(readable(f));
}

/** Who has many events does not keep the others waiting. */
static void cqs_take_turns(void **state)
{
    struct fixture *f = *state;
    static const int raised[] = {0, 0, 0, 1, 2, 2}, taken[] = {0, 1, 2, 0, 2, 0};
    for (int i = 0; i < 6; i++)
        iw_channel_raise(f->cq[raised[i]]);
    for (int i = 0; i < 6; i++) {
        assert_true(readable(f));
        assert_ptr_equal(iw_channel_take(f->ch), f->cq[taken[i]]);
    }
    assert_false(readable(f));
}

/** What is queued can be taken before the descriptor tells it, which then has nothing to tell. */
static void told_later(void **state)
{
    struct fixture *f = *state;
    assert_true(iw_channel_queue(f->cq[0]));
    assert_false(iw_channel_queue(f->cq[0]));
    assert_true(iw_channel_queue(f->cq[1]));
    assert_false(readable(f));
    iw_channel_tell(f->cq[1]);
    assert_true(readable(f));
    assert_ptr_equal(iw_channel_take(f->ch), f->cq[0]);
    assert_ptr_equal(iw_channel_take(f->ch), f->cq[1]);
    assert_ptr_equal(iw_channel_take(f->ch), f->cq[0]);
    assert_false(readable(f));
    iw_channel_tell(f->cq[0]);
    assert_false(readable(f));
    assert_null(iw_channel_take(f->ch));
    assert_true(iw_channel_queue(f->cq[0]));
    assert_ptr_equal(iw_channel_take(f->ch), f->cq[0]);
    assert_true(iw_channel_queue(f->cq[0]));
    iw_channel_tell(f->cq[0]);
    assert_true(readable(f));
    assert_ptr_equal(iw_channel_take(f->ch), f->cq[0]);
    assert_false(readable(f));
}

static void busy_while_it_has_cqs(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < CQS; i++) {
        assert_int_equal(f->ch->pub.refcnt, CQS - i);
        assert_int_equal(iw_channel_destroy(f->ch), EBUSY);
        destroy(f, i);
    }
    assert_int_equal(f->ch->pub.refcnt, 0);
}

static void a_destroyed_cq_takes_its_events_along(void **state)
{
    struct fixture *f = *state;
    iw_channel_raise(f->cq[0]);
    iw_channel_raise(f->cq[1]);
    iw_channel_raise(f->cq[0]);
    destroy(f, 0);
    assert_true(readable(f));
    struct iw_cq *left = f->cq[1];
    assert_ptr_equal(iw_channel_take(f->ch), left);
    iw_cq_ack(left, 1);
    iw_channel_raise(left);
    destroy(f, 1);
    assert_false(readable(f));
    assert_null(iw_channel_take(f->ch));
}

/* ---- many threads: no event is lost, none is read twice ---- */

#define EVENTS 2000

static atomic_uint taken;

static void *raiser(void *arg)
{
    struct iw_cq *cq = arg;
    for (unsigned i = 1; i <= EVENTS; i++) {
        iw_channel_raise(cq);
        while (__atomic_load_n(&cq->pub.comp_events_completed, __ATOMIC_ACQUIRE) < i)
            sched_yield();
    }
    return NULL;
}

static void *getter(void *arg)
{
    struct iw_channel *ch = arg;
    for (;;) {
        struct iw_cq *cq = iw_channel_take(ch);
        if (cq) {
            atomic_fetch_add(&taken, 1);
            __atomic_fetch_add(&cq->pub.comp_events_completed, 1, __ATOMIC_RELEASE);
        } else {
            iw_eventfd_wait(ch->pub.fd);
            sched_yield();
        }
    }
    return NULL;
}

static void threads(void **state)
{
    struct fixture *f = *state;
    pthread_t raisers[CQS], getters[2];
    atomic_store(&taken, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&getters[i], NULL, getter, f->ch), 0);
    for (int i = 0; i < CQS; i++)
        assert_int_equal(pthread_create(&raisers[i], NULL, raiser, f->cq[i]), 0);
    for (int i = 0; i < CQS; i++)
        assert_int_equal(pthread_join(raisers[i], NULL), 0);
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_cancel(getters[i]);
        assert_int_equal(pthread_join(getters[i], &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
    assert_int_equal(atomic_load(&taken), CQS * EVENTS);
    assert_false(readable(f));
    for (int i = 0; i < CQS; i++)
        f->cq[i]->events_read = 0;
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
        TEST(first_in_first_out),
        TEST(each_is_read_once),
        TEST(cqs_take_turns),
        TEST(told_later),
        TEST(busy_while_it_has_cqs),
        TEST(a_destroyed_cq_takes_its_events_along),
        TEST(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
