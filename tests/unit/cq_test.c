/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/cq.h"
#include "device/async.h"
#include "env/eventfd.h"
#include "env/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

struct fixture {
    struct iw_context ctx;
    struct iw_channel *ch;
    struct iw_cq *cq;
    uint64_t posted, polled; /* wr_ids in order */
};

static struct ibv_context *context(struct fixture *f)
{
    return &f->ctx.vctx.context;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    lock_init(&f->ctx.lock, LOCK_CONTEXT);
    list_init(&f->ctx.async);
    context(f)->num_comp_vectors = 2;
    context(f)->async_fd = iw_eventfd_create();
    f->ch = iw_channel_create(context(f));
    f->cq = iw_cq_create(context(f), 7, f, &f->ch->pub, 0, NULL);
    *state = f;
    return f->cq && f->ch ? 0 : -1;
}

static void drop_cq(struct fixture *f)
{
    iw_cq_ack(f->cq, f->cq->events_read);
    assert_int_equal(iw_cq_destroy(f->cq), 0);
    f->cq = NULL;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->cq)
        drop_cq(f);
    assert_int_equal(iw_channel_destroy(f->ch), 0);
    iw_eventfd_close(context(f)->async_fd);
    lock_fini(&f->ctx.lock);
    free(f);
    return 0;
}

/* One completion: plain, solicited, failed. */
static bool add(struct fixture *f, char kind, struct iw_cq_wakes *w)
{
    struct iw_cqe cqe = {
        .wc = {.wr_id = f->posted, .status = kind == 'f' ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS},
        .solicited = kind == 's',
    };
    f->posted++;
    return iw_cq_add(f->cq, &cqe, w);
}

static void expect_poll(struct fixture *f, int ask, int expect)
{
    struct ibv_wc wc[16];
    assert_int_equal(iw_cq_take(f->cq, ask, wc), expect);
    for (int i = 0; i < expect; i++)
        assert_int_equal(wc[i].wr_id, f->polled++);
}

/* ---- life ---- */

static void create(void **state)
{
    struct fixture *f = *state;
    struct ibv_context other = {.num_comp_vectors = 2};
    struct ibv_comp_channel foreign = {.context = &other};
    const struct {
        int cqe, vector, err;
        struct ibv_comp_channel *channel;
        int cqe_given;
    } rows[] = {
        {0, 0, EINVAL, NULL, 0},
        {-1, 0, EINVAL, NULL, 0},
        {IW_MAX_CQE + 1, 0, EINVAL, NULL, 0},
        {1, -1, EINVAL, NULL, 0},
        {1, 2, EINVAL, NULL, 0},
        {1, 0, EINVAL, &foreign, 0},
        {1, 1, 0, NULL, 1},
        {2, 0, 0, &f->ch->pub, 3},
        {3, 0, 0, NULL, 3},
        {IW_MAX_CQE, 0, 0, NULL, IW_MAX_CQE},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        struct iw_cq *cq =
            iw_cq_create(context(f), rows[i].cqe, &errno, rows[i].channel, rows[i].vector, NULL);
        if (!cq != !!rows[i].err || errno != rows[i].err)
            fail_msg("row %zu: %p, errno %d", i, (void *)cq, errno);
        if (!cq)
            continue;
        assert_int_equal(cq->pub.cqe, rows[i].cqe_given);
        assert_ptr_equal(cq->pub.context, context(f));
        assert_ptr_equal(cq->pub.channel, rows[i].channel);
        assert_ptr_equal(cq->pub.cq_context, &errno);
        assert_int_equal(iw_cq_destroy(cq), 0);
    }
}

static void busy_while_used(void **state)
{
    struct fixture *f = *state;
    atomic_store(&f->cq->users, 1);
    assert_int_equal(iw_cq_destroy(f->cq), EBUSY);
    atomic_store(&f->cq->users, 0);
}

static void *destroy_thread(void *arg)
{
    return (void *)(intptr_t)iw_cq_destroy(arg);
}

static bool ends_within(pthread_t thread, int ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(thread, NULL, &t) == 0;
}

static void ack_async(struct iw_cq *cq)
{
    pthread_mutex_lock(&cq->pub.mutex);
    cq->pub.async_events_completed++;
    pthread_cond_signal(&cq->pub.cond);
    pthread_mutex_unlock(&cq->pub.mutex);
}

static void destroy_waits_for_acks(void **state)
{
    struct fixture *f = *state;
    struct ibv_async_event e = {.element.cq = &f->cq->pub, .event_type = IBV_EVENT_CQ_ERR};
    pthread_t t;
    for (int i = 0; i < 2; i++) {
        iw_channel_raise(f->cq);
        assert_ptr_equal(iw_channel_take(f->ch), f->cq);
        iw_async_raise(&f->ctx, &e, &f->cq->async_events_read);
    }
    iw_channel_raise(f->cq); /* never read: nothing to wait for */
    assert_int_equal(iw_async_get(&f->ctx, &e), 0);
    assert_int_equal(pthread_create(&t, NULL, destroy_thread, f->cq), 0);
    assert_false(ends_within(t, 20));
    iw_cq_ack(f->cq, 1);
    assert_false(ends_within(t, 20));
    pthread_cancel(t); /* no effect: a CQ is not left half destroyed */
    ack_async(f->cq);
    assert_false(ends_within(t, 20));
    iw_cq_ack(f->cq, 1);
    assert_true(ends_within(t, 10000));
    f->cq = NULL;
    assert_null(iw_channel_take(f->ch));
    assert_true(list_empty(&f->ctx.async));
}

static void too_many_acks_do_no_harm(void **state)
{
    struct fixture *f = *state;
    iw_channel_raise(f->cq);
    assert_ptr_equal(iw_channel_take(f->ch), f->cq);
    iw_cq_ack(f->cq, 5);
    ack_async(f->cq);
    assert_int_equal(iw_cq_destroy(f->cq), 0);
    f->cq = NULL;
}

/* ---- completions ---- */

/** As if that many completions had gone through, polled, without any event. */
static void fast_forward(struct iw_cq *cq, uint32_t pos)
{
    atomic_store(&cq->head, pos);
    atomic_store(&cq->tail, pos);
    cq->raised_at = cq->matched_at = pos;
}

static void in_order(void **state)
{
    struct fixture *f = *state;
    struct iw_cq_wakes w = {0};
    fast_forward(f->cq, UINT32_MAX - 9);
    assert_true(iw_cq_is_empty(f->cq));
    expect_poll(f, 1, 0);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 5; i++)
            assert_true(add(f, 'p', &w));
        assert_false(iw_cq_is_empty(f->cq));
        expect_poll(f, 0, 0);
        expect_poll(f, -1, 0);
        expect_poll(f, 2, 2);
        expect_poll(f, 16, 3);
        assert_true(iw_cq_is_empty(f->cq));
    }
    assert_null(w.told[0]);
}

static void overrun(void **state)
{
    struct fixture *f = *state;
    struct iw_cq_wakes w = {0}, later = {0};
    for (int i = 0; i < 7; i++)
        assert_true(add(f, 'p', &w));
    assert_null(w.overrun[0]);
    assert_false(add(f, 'p', &w));
    assert_false(add(f, 'p', &w));
    assert_ptr_equal(w.overrun[0], f->cq);
    assert_null(w.overrun[1]);
    expect_poll(f, 16, 7);
    assert_false(add(f, 'p', &later));
    assert_null(later.overrun[0]);
    expect_poll(f, 16, -EIO);
    assert_int_equal(iw_cq_resize(f->cq, 20), EINVAL);
    for (int i = 0; i < 2; i++) {
        assert_null(iw_channel_take(f->ch));
        iw_cq_arm(f->cq, i == 0);
        assert_ptr_equal(iw_channel_take(f->ch), f->cq);
    }
}

/** Who sleeps on a solicited arm learns of the overrun, too. */
static void overrun_wakes(void **state)
{
    struct fixture *f = *state;
    struct iw_cq_wakes w = {0};
    iw_cq_arm(f->cq, true);
    for (int i = 0; i < 7; i++)
        assert_true(add(f, 'p', &w));
    assert_null(w.told[0]);
    assert_false(add(f, 'p', &w));
    assert_ptr_equal(w.told[0], f->cq);
}

/* ---- events ---- */

/*
 * A script of a letter a step; positions and the number of completions do not matter to the
 * program: p s f    a plain, solicited, failed completion is added a o      arm for all, arm for
 * solicited ones only 1 9      poll one, poll all !        an event is there, and is read . no
 * event is there
 */
static const struct {
    const char *what, *script;
} scripts[] = {
    {"nothing happens unarmed", "psf."},
    {"one event an arm", "ap!.p."},
    {"armed twice, one event", "aap!p."},
    {"what is polled does not fire", "p9a.p!"},
    {"what came before the arm fires at once", "pa!"},
    {"and not twice", "pa!a.p!"},
    {"one completion an event, arm before poll", "appp!a1!a1!a1.p!a1."},
    {"one completion an event, poll before arm", "appp!1a!1a!1a.p!"},
    {"a race: added between arm and poll", "ap!ap1!a1.p!"},
    {"two unpolled, two arms, two events", "ppa!a!a.9p!"},
    {"each arm has its completion", "ppaaa!!.9"},
    {"solicited: plain ones pass", "op.p.s!"},
    {"solicited: failures count", "of!"},
    {"solicited: one event", "os!s.f."},
    {"solicited: late ones fire", "pspo!o."},
    {"solicited: late plain ones do not", "ppo.p.s!"},
    {"solicited: late ones one by one", "pspspo!o!o."},
    {"solicited: polled ones do not fire", "ps9o.p.s!"},
    {"solicited: older plain ones count no more after it", "ps9po."},
    {"a solicited arm does not weaken a full one", "aop!"},
    {"a full arm strengthens a solicited one", "oap!"},
    {"a full arm fires for a plain one the solicited one let pass", "op.a!"},
    {"what raised a solicited event covers older plain ones", "po.s!a."},
    {"a full arm after a solicited event sees what is newer", "os!pa!a."},
};

static void run_script(struct fixture *f, const char *what, const char *script)
{
    for (const char *s = script; *s; s++) {
        struct iw_cq_wakes w = {0};
        struct ibv_wc wc[16];
        struct iw_cq *cq;
        switch (*s) {
        case 'p':
        case 's':
        case 'f':
            assert_true(add(f, *s, &w));
            if (w.told[0])
                iw_channel_tell(w.told[0]);
            break;
        case 'a':
        case 'o':
            iw_cq_arm(f->cq, *s == 'o');
            break;
        case '1':
        case '9':
            if (iw_cq_take(f->cq, *s - '0', wc) < 1)
                fail_msg("%s: %s: nothing to poll at %s", what, script, s);
            break;
        default:
            cq = iw_channel_take(f->ch);
            if (!cq != (*s == '.'))
                fail_msg("%s: %s: wrong at %s", what, script, s);
        }
    }
}

static void arming(void **state)
{
    struct fixture *f = *state;
    static const uint32_t starts[] = {0, UINT32_MAX, UINT32_MAX - 1, UINT32_MAX - 3, 1u << 31};
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
        for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
            drop_cq(f);
            f->cq = iw_cq_create(context(f), 15, NULL, &f->ch->pub, 0, NULL);
            assert_non_null(f->cq);
            fast_forward(f->cq, starts[k]);
            run_script(f, scripts[i].what, scripts[i].script);
        }
}

/** Positions move along with polling, however long nobody arms. */
static void arming_after_many_polls(void **state)
{
    struct fixture *f = *state;
    struct iw_cq_wakes w = {0};
    run_script(f, "event", "as!9");
    for (int i = 0; i < 100; i++) {
        assert_true(add(f, i % 3 ? 'p' : 's', &w));
        assert_true(add(f, 'p', &w));
        run_script(f, "poll", "1");
        uint32_t h = atomic_load(&f->cq->head), t = atomic_load(&f->cq->tail);
        assert_true(f->cq->raised_at - h <= t - h);
        assert_true(f->cq->matched_at - h <= t - h);
        run_script(f, "poll", "1");
    }
    run_script(f, "nothing is late", "o.a.p!");
}

static void wakes_of_two_cqs(void **state)
{
    struct fixture *f = *state;
    struct iw_cq *other = iw_cq_create(context(f), 3, NULL, &f->ch->pub, 1, NULL);
    struct iw_cqe cqe = {.wc.wr_id = 1};
    struct iw_cq_wakes w = {0};
    assert_non_null(other);
    assert_false(iw_cq_is_armed(f->cq));
    iw_cq_arm(f->cq, false);
    iw_cq_arm(other, true);
    assert_true(iw_cq_is_armed(f->cq));
    assert_true(iw_cq_is_armed(other));
    assert_true(iw_cq_add(f->cq, &cqe, &w));
    assert_false(iw_cq_is_armed(f->cq));
    cqe.solicited = true;
    assert_true(iw_cq_add(other, &cqe, &w));
    iw_cq_arm(f->cq, false);
    assert_true(iw_cq_add(f->cq, &cqe, &w));
    assert_ptr_equal(w.told[0], f->cq);
    assert_ptr_equal(w.told[1], other);
    assert_int_equal(iw_cq_destroy(other), 0);
}

static void arming_without_a_channel(void **state)
{
    struct fixture *f = *state;
    struct iw_cq *cq = iw_cq_create(context(f), 3, NULL, NULL, 0, NULL);
    struct iw_cqe cqe = {.solicited = true};
    struct iw_cq_wakes w = {0};
    iw_cq_arm(cq, false);
    assert_true(iw_cq_add(cq, &cqe, &w));
    iw_cq_arm(cq, true);
    assert_null(w.told[0]);
    assert_int_equal(iw_cq_destroy(cq), 0);
}

/* ---- threads: every completion is polled once, in order ---- */

#define MANY 20000

static void *producer(void *arg)
{
    struct fixture *f = arg;
    while (f->posted < MANY) {
        struct iw_cq_wakes w = {0};
        if (atomic_load(&f->cq->tail) - atomic_load(&f->cq->head) >= (uint32_t)f->cq->pub.cqe) {
            sched_yield();
            continue;
        }
        if (!add(f, f->posted % 7 ? 'p' : 's', &w))
            return f;
        if (w.told[0])
            iw_channel_tell(w.told[0]);
    }
    return NULL;
}

static void threads(void **state)
{
    struct fixture *f = *state;
    pthread_t t;
    void *failed;
    unsigned events = 0;
    assert_int_equal(pthread_create(&t, NULL, producer, f), 0);
    while (f->polled < MANY) {
        struct ibv_wc wc[4];
        iw_cq_arm(f->cq, false);
        int n = iw_cq_take(f->cq, 4, wc);
        for (int i = 0; i < n; i++)
            assert_int_equal(wc[i].wr_id, f->polled++);
        if (f->polled == MANY)
            break;
        while (!iw_channel_take(f->ch))
            assert_int_equal(iw_eventfd_wait(f->ch->pub.fd), 0);
        events++;
    }
    assert_int_equal(pthread_join(t, &failed), 0);
    assert_null(failed);
    assert_int_equal(f->cq->events_read, events);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(create),
        TEST(busy_while_used),
        TEST(destroy_waits_for_acks),
        TEST(too_many_acks_do_no_harm),
        TEST(in_order),
        TEST(overrun),
        TEST(overrun_wakes),
        TEST(arming),
        TEST(arming_after_many_polls),
        TEST(wakes_of_two_cqs),
        TEST(arming_without_a_channel),
        TEST(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
