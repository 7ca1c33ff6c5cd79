/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources that pollers run without being told: active.c on scripted sources and a lease. */
#include "engine/active.h"

#include "engine/engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MANY   (IW_ACTIVE + 2)
#define KEY(i) (7ull << 32 | ((i) + 1))
#define MS     1000000

struct iw_shard iw_shards[IW_SHARDS];

static struct thing {
    struct iw_source source;
    unsigned polled, looked, rested; /* times */
    bool quiet, has_bytes;
} things[MANY];

static bool leased, keeps;
static uint32_t left_alone;

static struct thing *thing_of(uint64_t key)
{
    assert_int_equal(key >> 32, KEY(0) >> 32);
    uint32_t i = (uint32_t)key - 1;
    assert_true(i < MANY);
    return &things[i];
}

bool iw_engine_leased(const struct iw_shard *s)
{
    assert_ptr_equal(s, &iw_shards[0]);
    return leased;
}

bool iw_engine_keep(void)
{
    return keeps;
}

unsigned iw_shard_count(void)
{
    return 2;
}

struct iw_shard *iw_source_place(const struct iw_source *s, uint64_t *key)
{
    *key = KEY((uint32_t)((const struct thing *)s - things));
    return s->slot ? &iw_shards[0] : NULL;
}

bool iw_source_poll(uint64_t key)
{
    thing_of(key)->polled++;
    return thing_of(key)->has_bytes;
}

bool iw_source_look(uint64_t key, uint32_t but)
{
    left_alone = but;
    if (!key)
        return false;
    thing_of(key)->looked++;
    return thing_of(key)->has_bytes;
}

void iw_source_rest(uint64_t key)
{
    thing_of(key)->rested++;
}

void iw_source_quiet(uint64_t key)
{
    thing_of(key)->quiet = true;
}

void iw_source_loud(uint64_t key)
{
    thing_of(key)->quiet = false;
}

void iw_source_take_begin(void)
{
}

void iw_source_take_end(void)
{
}

static int setup(void **state)
{
    (void)state;
    memset(things, 0, sizeof(things));
    memset(iw_shards, 0, sizeof(iw_shards));
    for (unsigned i = 0; i < MANY; i++)
        things[i].source.slot = 1;
    leased = true;
    keeps = false;
    return 0;
}

static bool polls(unsigned i)
{
    unsigned before = things[i].polled;
    iw_active_poll(&iw_shards[0]);
    return things[i].polled > before;
}

static bool looks_at(unsigned i, uint32_t but)
{
    unsigned before = things[i].looked;
    iw_active_run_all(but);
    assert_int_equal(left_alone, but);
    return things[i].looked > before;
}

static void pollers_run_it(void **state)
{
    (void)state;
    assert_false(polls(0));
    assert_true(iw_active_add(&things[0].source));
    assert_true(things[0].quiet);
    assert_true(polls(0));
    assert_true(looks_at(0, 9));
    assert_false(iw_active_poll(&iw_shards[0]));
    things[0].has_bytes = true;
    assert_true(iw_active_poll(&iw_shards[0]));
    assert_true(iw_active_add(&things[0].source)); /* it is there */
    assert_int_equal(atomic_load(&iw_shards[0].actives), 1);
}

static void at_rest_only_looks_find_it(void **state)
{
    (void)state;
    assert_true(iw_active_add(&things[0].source));
    iw_active_rest(&iw_shards[0]);
    iw_active_rest(&iw_shards[0]);
    assert_int_equal(things[0].rested, 1);
    assert_int_equal(atomic_load(&iw_shards[0].actives), 0);
    assert_false(polls(0));
    assert_true(looks_at(0, 0));
    assert_true(things[0].quiet);
    assert_true(iw_active_add(&things[0].source));
    assert_true(polls(0));
    assert_int_equal(atomic_load(&iw_shards[0].places), 1);
}

static void only_with_a_lease(void **state)
{
    (void)state;
    leased = false;
    assert_false(iw_active_add(&things[0].source));
    leased = true;
    things[1].source.slot = 0; /* it is not added */
    assert_false(iw_active_add(&things[1].source));
    assert_int_equal(atomic_load(&iw_shards[0].actives), 0);
}

static void or_until_the_thread_sleeps(void **state)
{
    (void)state;
    leased = false;
    keeps = true;
    assert_true(iw_active_add(&things[0].source));
    assert_true(polls(0));
    iw_active_rest(&iw_shards[0]);
    assert_int_equal(things[0].rested, 1);
    assert_false(polls(0));
}

static void no_more_than_there_are_places(void **state)
{
    (void)state;
    for (unsigned i = 0; i < IW_ACTIVE; i++)
        assert_true(iw_active_add(&things[i].source));
    assert_false(iw_active_add(&things[IW_ACTIVE].source));
    assert_false(things[IW_ACTIVE].quiet);
}

/* Whose descriptor is looked at again before it is nowhere else. */
static void one_that_rests_makes_room(void **state)
{
    unsigned loud = 0;
    (void)state;
    for (unsigned i = 0; i < IW_ACTIVE; i++)
        assert_true(iw_active_add(&things[i].source));
    iw_active_rest(&iw_shards[0]);
    assert_true(iw_active_add(&things[3].source));
    assert_true(iw_active_add(&things[IW_ACTIVE].source));
    assert_true(polls(IW_ACTIVE));
    assert_true(polls(3));
    for (unsigned i = 0; i < IW_ACTIVE; i++) {
        assert_int_not_equal(looks_at(i, 0), !things[i].quiet);
        loud += !things[i].quiet;
    }
    assert_int_equal(loud, 1);
    assert_true(things[3].quiet);
}

static void what_moves_nothing_is_put_to_rest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_true(iw_active_add(&things[i].source));
    iw_active_check(&iw_shards[0], 10 * MS);
    things[1].has_bytes = true;
    iw_active_poll(&iw_shards[0]);
    iw_active_check(&iw_shards[0], 11 * MS - 1);
    assert_int_equal(things[0].rested, 0);
    iw_active_check(&iw_shards[0], 11 * MS);
    assert_int_equal(things[0].rested, 1);
    assert_int_equal(things[1].rested, 0);
    iw_active_check(&iw_shards[0], 13 * MS);
    assert_int_equal(things[0].rested, 1);
    assert_int_equal(things[1].rested, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, NULL)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pollers_run_it),
        TEST(at_rest_only_looks_find_it),
        TEST(only_with_a_lease),
        TEST(or_until_the_thread_sleeps),
        TEST(no_more_than_there_are_places),
        TEST(one_that_rests_makes_room),
        TEST(what_moves_nothing_is_put_to_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
