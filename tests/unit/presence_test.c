/* SPDX-License-Identifier: BSD-2-Clause */
/* The adopted source: presence.c on a scripted epoll set and lease. */
#include "engine/presence.h"

#include "engine/engine.h"
#include "engine/poller.h"
#include "engine/source.h"
#include "engine/timer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define KEY   0x700000003u
#define OTHER 0x900000004u
#define QP    17

struct iw_shard iw_shards[IW_SHARDS];

static struct iw_poller poller, neighbour;
static bool leased, has_room, waits_for_output;
static uint64_t out; /* of the epoll set; 0: none */
static struct {
    unsigned n; /* times that a source was run */
    uint64_t key;
    uint32_t events, but;
} run;
static struct {
    struct iw_timer *timer;
    unsigned ms;
    void (*fire)(struct iw_timer *);
} timer;

bool iw_engine_leased(const struct iw_shard *s)
{
    assert_ptr_equal(s, iw_shard_of(&poller));
    return leased;
}

bool iw_source_take_out(uint64_t key)
{
    if (waits_for_output)
        return false;
    assert_int_equal(out, 0);
    out = key;
    return true;
}

bool iw_source_put_back(uint64_t key)
{
    assert_int_equal(out, key);
    if (has_room)
        out = 0;
    return has_room;
}

bool iw_source_is_of(uint64_t key, uint32_t qp_num)
{
    return key == KEY && qp_num == QP;
}

bool iw_source_run(uint64_t key, uint32_t events, uint32_t but)
{
    run.n++;
    run.key = key;
    run.events = events;
    run.but = but;
    return false;
}

void iw_timer_set(struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *))
{
    timer.timer = t;
    timer.ms = ms;
    timer.fire = fire;
}

static int setup(void **state)
{
    (void)state;
    poller = neighbour = (struct iw_poller){0};
    leased = has_room = true;
    waits_for_output = false;
    memset(&run, 0, sizeof(run));
    memset(&timer, 0, sizeof(timer));
    return 0;
}

/** Nothing is adopted any more, so that the next test begins as a process does. */
static int teardown(void **state)
{
    (void)state;
    has_room = true;
    iw_adopted_put_back(NULL);
    out = 0;
    return 0;
}

static void one_source_is_adopted(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    assert_int_equal(out, KEY);
    iw_adopt(&neighbour, OTHER);
    assert_int_equal(out, KEY);
    iw_adopted_put_back(&poller);
    assert_int_equal(out, 0);
    iw_adopt(&neighbour, OTHER);
    assert_int_equal(out, OTHER);
}

static void only_with_a_lease(void **state)
{
    (void)state;
    leased = false;
    iw_adopt(&poller, KEY);
    assert_int_equal(out, 0);
}

static void only_what_can_be_taken_out(void **state)
{
    (void)state;
    waits_for_output = true;
    iw_adopt(&poller, KEY);
    assert_int_equal(out, 0);
    waits_for_output = false;
    iw_adopt(&poller, KEY);
    assert_int_equal(out, KEY);
}

static void put_back_by_who_adopted(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    iw_adopted_put_back(&neighbour);
    assert_int_equal(out, KEY);
    iw_adopted_put_back(&poller);
    assert_int_equal(out, 0);
    iw_adopt(&poller, KEY);
    iw_adopted_put_back(NULL); /* whoever that is */
    assert_int_equal(out, 0);
}

static void put_back_with_its_shard(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    iw_adopted_leave(&iw_shards[1]);
    assert_int_equal(out, KEY);
    iw_adopted_leave(iw_shard_of(&poller));
    assert_int_equal(out, 0);
    iw_adopted_leave(iw_shard_of(&poller)); /* there is none */
}

static void put_back_unless_it_is_run(void **state)
{
    struct iw_shard *s = iw_shard_of(&poller);
    (void)state;
    iw_adopt(&poller, KEY);
    iw_adopted_check(s); /* just adopted */
    assert_int_equal(out, KEY);
    iw_adopted_note(&poller);
    iw_adopted_note(&poller);
    iw_adopted_check(s);
    assert_int_equal(out, KEY);
    iw_adopted_note(&neighbour); /* of a source of its own */
    iw_adopted_check(&iw_shards[1]);
    assert_int_equal(out, KEY);
    iw_adopted_check(s);
    assert_int_equal(out, 0);
    iw_adopted_check(s);
}

static void run_by_a_timer_without_room(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    has_room = false;
    iw_adopted_put_back(&poller);
    assert_int_equal(out, KEY);
    assert_int_equal(timer.ms, 1);
    for (unsigned i = 1; i <= 3; i++) {
        void (*fire)(struct iw_timer *) = timer.fire;
        timer.fire = NULL;
        fire(timer.timer);
        assert_int_equal(run.n, i);
        assert_int_equal(run.key, KEY);
        assert_int_equal(run.events, EPOLLIN | EPOLLOUT);
        assert_non_null(timer.fire);
    }
    iw_adopt(&neighbour, OTHER); /* that one is out still */
    assert_int_equal(out, KEY);
    has_room = true;
    timer.fire(timer.timer);
    assert_int_equal(out, 0);
    iw_adopt(&neighbour, OTHER);
    assert_int_equal(out, OTHER);
}

static void put_back_by_who_looks_at_all(void **state)
{
    (void)state;
    iw_adopted_return(QP); /* there is none */
    iw_adopt(&poller, KEY);
    iw_adopted_return(QP);
    assert_int_equal(out, KEY);
    assert_int_equal(run.n, 0);
    iw_adopted_return(QP + 1);
    assert_int_equal(out, 0);
    assert_int_equal(run.n, 1); /* somebody may be at it */
    assert_int_equal(run.key, KEY);
    iw_adopt(&poller, KEY);
    iw_adopted_return(0);
    assert_int_equal(out, 0);
}

static void run_by_who_looks_without_room(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    has_room = false;
    iw_adopted_return(QP);
    assert_int_equal(run.n, 0);
    iw_adopted_return(QP + 1);
    assert_int_equal(out, KEY);
    assert_int_equal(run.key, KEY);
    assert_int_equal(run.events, 0);
    assert_int_equal(run.but, QP + 1);
}

static void gone_with_its_owner(void **state)
{
    (void)state;
    iw_adopt(&poller, KEY);
    iw_adopted_gone(OTHER); /* not that one */
    assert_int_equal(out, KEY);
    iw_adopted_gone(KEY);
    out = 0;
    iw_adopted_put_back(&poller); /* asserts that nothing is put back */
    iw_adopt(&poller, OTHER);
    assert_int_equal(out, OTHER);
}

static void forgotten_by_a_child(void **state)
{
    (void)state;
    iw_adopted_fork(FORK_PREPARE);
    iw_adopt(&poller, KEY); /* does not wait for the lock */
    assert_int_equal(out, 0);
    iw_adopted_fork(FORK_PARENT);
    iw_adopt(&poller, KEY);
    iw_adopted_fork(FORK_PREPARE);
    iw_adopted_fork(FORK_PARENT);
    assert_int_equal(out, KEY);
    iw_adopted_fork(FORK_PREPARE);
    iw_adopted_fork(FORK_CHILD);
    iw_adopted_put_back(NULL); /* nothing: the set is the parent's */
    assert_int_equal(out, KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_source_is_adopted, setup, teardown),
        cmocka_unit_test_setup_teardown(only_with_a_lease, setup, teardown),
        cmocka_unit_test_setup_teardown(only_what_can_be_taken_out, setup, teardown),
        cmocka_unit_test_setup_teardown(put_back_by_who_adopted, setup, teardown),
        cmocka_unit_test_setup_teardown(put_back_with_its_shard, setup, teardown),
        cmocka_unit_test_setup_teardown(put_back_unless_it_is_run, setup, teardown),
        cmocka_unit_test_setup_teardown(run_by_a_timer_without_room, setup, teardown),
        cmocka_unit_test_setup_teardown(put_back_by_who_looks_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(run_by_who_looks_without_room, setup, teardown),
        cmocka_unit_test_setup_teardown(gone_with_its_owner, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_by_a_child, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
