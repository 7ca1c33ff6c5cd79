/* SPDX-License-Identifier: BSD-2-Clause */
/* What a pass looks at: the source that had something last, and all of the shard. */
#include "engine/poller.h"

#include "engine/engine.h"
#include "engine/source.h"
#include "engine/timer.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define HOT_TRIES 64   /* of a hot source without a byte */
#define EMPTY     3000 /* passes that bring nothing */
#define IDLE_FOR  4    /* passes that an idle poller may need then to see a source */
#define LONG      20000
#define LONG_FOR  16
#define LEASE_RUN 64
#define FULL      32 /* polls that found something, after which one makes a pass */

struct thing {
    struct iw_source source;
    int fd;
    atomic_uint hot;   /* times that it was run without being known to be ready, by this thread */
    atomic_uint found; /* times that it was found ready, by this thread */
    atomic_uint taken; /* times that it had something */
};

static struct thing things[2];
static struct iw_poller poller;
static __thread bool is_test;

static bool take(struct iw_source *s, uint32_t events)
{
    struct thing *t = (struct thing *)s;
    eventfd_t value;
    if (is_test)
        atomic_fetch_add(events ? &t->found : &t->hot, 1);
    if (eventfd_read(t->fd, &value))
        return false;
    atomic_fetch_add(&t->taken, 1);
    return true;
}

static void pass(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        iw_engine_polled(&poller);
        iw_engine_poll(&poller);
    }
}

/** Until the thread leaves the sockets to this one, as far as that is not delayed. */
static void be_alone(void)
{
    bool relieved = false;
    while (!relieved) {
        pass(LEASE_RUN);
        lock_get(&iw_engine.lock);
        relieved = iw_shards[0].relieved;
        lock_put(&iw_engine.lock);
    }
}

static int setup(void **state)
{
    int r = 0;
    (void)state;
    is_test = true;
    poller = (struct iw_poller){0};
    for (int i = 0; i < 2; i++) {
        struct thing *t = &things[i];
        *t = (struct thing){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        r = r ? r : iw_source_add(&t->source, t->fd, EPOLLIN | EPOLLRDHUP, take);
    }
    return r;
}

static int teardown(void **state)
{
    (void)state;
    iw_engine_arm(&poller);
    for (int i = 0; i < 2; i++) {
        iw_source_del(&things[i].source);
        close(things[i].fd);
    }
    return 0;
}

/** Makes a source ready until this thread has found it, which the engine's may do first. */
static void find(struct thing *t)
{
    unsigned before = atomic_load(&t->found);
    while (atomic_load(&t->found) == before) {
        be_alone();
        assert_int_equal(eventfd_write(t->fd, 1), 0);
        pass(IDLE_FOR);
    }
}

/** Until nothing is hot any more. @return how often the thing was tried */
static unsigned cool_down(struct thing *t)
{
    unsigned before = atomic_load(&t->hot), last = before;
    for (unsigned i = 0; i < EMPTY; i++) {
        pass(1);
        if (atomic_load(&t->hot) != last)
            i = 0;
        last = atomic_load(&t->hot);
    }
    return last - before;
}

static void what_had_something_is_tried_first(void **state)
{
    (void)state;
    assert_int_equal(cool_down(&things[0]), 0);
    find(&things[0]);
    assert_in_range(cool_down(&things[0]), 1, HOT_TRIES + 1);
    assert_int_equal(cool_down(&things[0]), 0);
    assert_int_equal(atomic_load(&things[1].hot), 0);
}

static void of_two_none_is_hot(void **state)
{
    unsigned found;
    (void)state;
    do { /* both in one pass of this thread */
        cool_down(&things[0]);
        be_alone();
        found = atomic_load(&things[0].found) + atomic_load(&things[1].found);
        iw_engine_freeze();
        assert_int_equal(eventfd_write(things[0].fd, 1), 0);
        assert_int_equal(eventfd_write(things[1].fd, 1), 0);
        iw_engine_thaw();
        atomic_store(&poller.idle, 0); /* it looks at all of them at once */
        pass(1);
    } while (atomic_load(&things[0].found) + atomic_load(&things[1].found) != found + 2);
    assert_int_equal(cool_down(&things[0]), 0);
    assert_int_equal(cool_down(&things[1]), 0);
}

static void who_is_hot_does_not_hide_the_others(void **state)
{
    (void)state;
    find(&things[0]);
    for (unsigned i = 1; i <= 100; i++) {
        assert_int_equal(eventfd_write(things[0].fd, 1), 0);
        assert_int_equal(eventfd_write(things[1].fd, 1), 0);
        while (atomic_load(&things[1].taken) < i) {
            pass(1);
            eventfd_write(things[0].fd, 1); /* it goes on */
        }
    }
}

static void who_is_idle_looks_at_some_passes_only(void **state)
{
    (void)state;
    be_alone();
    for (unsigned i = 1; i <= 30; i++) {
        pass(i <= 20 ? EMPTY : LONG);
        assert_int_equal(eventfd_write(things[0].fd, 1), 0);
        pass(i <= 20 ? IDLE_FOR : LONG_FOR);
        while (atomic_load(&things[0].taken) < i) /* the engine's thread has it */
            sched_yield();
    }
}

static void who_always_finds_something_makes_some_passes(void **state)
{
    (void)state;
    find(&things[1]);
    cool_down(&things[1]);
    unsigned before = atomic_load(&things[1].taken), seen = 0;
    for (unsigned i = 1; i <= 100; i++) {
        be_alone();
        unsigned full = atomic_load(&poller.full), passes = atomic_load(&poller.passes);
        assert_int_equal(full, 0);
        for (unsigned k = 1; k < FULL; k++)
            iw_engine_found(&poller);
        assert_int_equal(atomic_load(&poller.passes), passes);
        eventfd_write(things[1].fd, 1);
        iw_engine_found(&poller);
        assert_int_equal(atomic_load(&poller.passes), passes + 1);
        seen += atomic_load(&things[1].taken) == before + i;
        while (atomic_load(&things[1].taken) < before + i) /* the engine's thread has it */
            sched_yield();
    }
    assert_true(seen >= 50); /* that pass looks at all */
    unsigned empty = atomic_load(&poller.empty);
    iw_engine_found(&poller);
    assert_int_equal(atomic_load(&poller.empty), empty);
    pass(1);
    assert_int_equal(atomic_load(&poller.empty), empty + 1);
}

static void a_wait_is_for_a_source_or_the_time(void **state)
{
    (void)state;
    iw_engine_poll_within(1000000);
    assert_int_equal(atomic_load(&things[0].taken), 0);
    assert_int_equal(eventfd_write(things[0].fd, 1), 0);
    while (atomic_load(&things[0].taken) == 0)
        iw_engine_poll_within(3600000000000);
}

/* ---- two shards ---- */

static struct iw_poller others;

/** Gets a shard of its own by polling; then polls on, and arms this thread's CQ. */
static void *be_another(void *arg)
{
    while (iw_shard_of(&others) == &iw_shards[0]) {
        iw_engine_polled(&others);
        iw_engine_poll(&others);
    }
    while (!atomic_load(&iw_shard_of(&others)->leased))
        iw_engine_polled(&others);
    iw_engine_arm(&poller);
    bool leased = atomic_load(&iw_shard_of(&others)->leased);
    return leased ? arg : NULL;
}

/** Who arms sleeps: what it has polled until then is the engine's, wherever that is. */
static void an_arm_ends_the_lease_of_its_threads_shard(void **state)
{
    pthread_t thread;
    void *leased;
    (void)state;
    pass(1); /* the first shard is this thread's */
    others = (struct iw_poller){0};
    assert_int_equal(pthread_create(&thread, NULL, be_another, &others), 0);
    assert_int_equal(pthread_join(thread, &leased), 0);
    assert_null(leased);
}

/** Leaves it readable for the thread of the test. */
static bool take_in_test(struct iw_source *s, uint32_t events)
{
    return is_test && take(s, events);
}

static void make_all_readable(struct thing *three)
{
    for (int i = 0; i < 3; i++) {
        atomic_store(&three[i].taken, 0);
        eventfd_write(three[i].fd, 1);
    }
}

static void look_finds(struct thing *three, uint32_t but, bool first, bool second, bool third)
{
    assert_false(iw_engine_run_linked(but));
    assert_int_equal(atomic_load(&three[0].taken), first);
    assert_int_equal(atomic_load(&three[1].taken), second);
    assert_int_equal(atomic_load(&three[2].taken), third);
}

/* The last one is in a shard of its own. */
static void one_look_at_all_connections(void **state)
{
    static struct thing three[3];
    struct iw_poller there = {.shard = 1};
    struct iw_home home = {.cq = {&there, &there}};
    (void)state;
    if (iw_shard_count() < 2)
        assert_non_null(iw_engine_open_shard());
    for (uint32_t i = 0; i < 3; i++) {
        three[i] = (struct thing){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
        assert_int_equal(iw_source_add(&three[i].source, three[i].fd, EPOLLIN, take_in_test), 0);
    }
    iw_source_link(&three[0].source, 7);
    iw_source_link(&three[2].source, 9);
    iw_source_move(&three[2].source, &home);
    make_all_readable(three);
    look_finds(three, 7, false, false, true); /* nothing is linked in the first, but that one */
    look_finds(three, 9, true, true, true);   /* what is there, is run as well */
    iw_source_link(&three[1].source, 8);
    make_all_readable(three);
    look_finds(three, 7, false, true, true); /* in two shards */
    look_finds(three, 0, true, true, true);
    for (int i = 0; i < 3; i++) {
        iw_source_del(&three[i].source);
        close(three[i].fd);
    }
    assert_false(iw_engine_run_linked(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_had_something_is_tried_first, setup, teardown),
        cmocka_unit_test_setup_teardown(of_two_none_is_hot, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_hot_does_not_hide_the_others, setup, teardown),
        cmocka_unit_test_setup_teardown(who_is_idle_looks_at_some_passes_only, setup, teardown),
        cmocka_unit_test_setup_teardown(who_always_finds_something_makes_some_passes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_wait_is_for_a_source_or_the_time, setup, teardown),
        cmocka_unit_test_setup_teardown(an_arm_ends_the_lease_of_its_threads_shard, setup,
                                        teardown),
        cmocka_unit_test(one_look_at_all_connections),
    };
    if (getenv("ANYWARP_TEST_EMULATED"))
        return 77; /* its passes take longer than the times it is about */
    alarm(120);
    return cmocka_run_group_tests_name("poller", tests, NULL, NULL);
}
