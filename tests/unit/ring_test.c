/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define SIZE  65536u
#define MANY  400000u /* bytes that go through in the test with two threads */
#define PIECE 1777u

/* What the sides have of each other in shared memory, and the view of each of them. */
struct fixture {
    struct iwc_ring_ctl *ctl;
    uint8_t *data;
    struct iwc_ring in, out;
    atomic_int bells[2]; /* rung and not heard: for the consumer, for the producer */
};

static int setup(void **ctx)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int fd = memfd_create("ring", MFD_CLOEXEC);
    *ctx = f;
    if (fd < 0 || ftruncate(fd, SIZE))
        return -1;
    f->ctl = aligned_alloc(IWC_RING_LINE, sizeof(*f->ctl));
    memset(f->ctl, 0, sizeof(*f->ctl));
    f->data = mmap(NULL, 2ul * SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 2; i++)
        if (mmap(f->data + (size_t)i * SIZE, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                 fd, 0) == MAP_FAILED)
            return -1;
    close(fd);
    iwc_ring_init(&f->in, f->ctl, f->data, SIZE);
    iwc_ring_init(&f->out, f->ctl, f->data, SIZE);
    return 0;
}

static int teardown(void **ctx)
{
    struct fixture *f = *ctx;
    munmap(f->data, 2ul * SIZE);
    free(f->ctl);
    free(f);
    return 0;
}

static void put(struct fixture *f, const void *p, size_t n)
{
    assert_true(iwc_ring_room(&f->out, n) >= (ssize_t)n);
    memcpy(iwc_ring_place(&f->out), p, n);
    iwc_ring_publish(&f->out, n);
}

static void get(struct fixture *f, void *p, size_t n)
{
    const uint8_t *from;
    assert_true(iwc_ring_look(&f->in, &from) >= (ssize_t)n);
    memcpy(p, from, n);
    iwc_ring_use(&f->in, n);
}

static void passes_bytes_in_order(void **ctx)
{
    struct fixture *f = *ctx;
    const uint8_t *p;
    char buf[6] = "";
    assert_int_equal(iwc_ring_look(&f->in, &p), 0);
    assert_true(iwc_ring_is_empty(&f->in));
    put(f, "one", 3);
    assert_false(iwc_ring_is_empty(&f->in));
    put(f, "two", 3);
    assert_int_equal(iwc_ring_look(&f->in, &p), 6);
    get(f, buf, 4);
    assert_memory_equal(buf, "onet", 4);
    get(f, buf, 2);
    assert_memory_equal(buf, "wo", 2);
    assert_int_equal(iwc_ring_look(&f->in, &p), 0);
}

static void no_stretch_wraps(void **ctx)
{
    struct fixture *f = *ctx;
    uint8_t sent[PIECE], got[PIECE];
    for (unsigned i = 0; i < 10 * SIZE / PIECE; i++) {
        memset(sent, (int)i, sizeof(sent));
        put(f, sent, sizeof(sent));
        get(f, got, sizeof(got));
        assert_memory_equal(sent, got, sizeof(got));
    }
}

static void is_full_to_the_last_byte(void **ctx)
{
    struct fixture *f = *ctx;
    uint8_t byte = 7;
    assert_int_equal(iwc_ring_room(&f->out, 1), SIZE);
    memset(iwc_ring_place(&f->out), byte, SIZE);
    iwc_ring_publish(&f->out, SIZE);
    assert_int_equal(iwc_ring_room(&f->out, 1), 0);
    get(f, &byte, 1);
    assert_int_equal(iwc_ring_room(&f->out, 0), 0); /* it does not look without need */
    assert_int_equal(iwc_ring_room(&f->out, 1), 1);
}

static void counters_wrap(void **ctx)
{
    struct fixture *f = *ctx;
    const uint64_t before = UINT64_MAX - 5; /* as if so many had gone through */
    char buf[16];
    atomic_store(&f->ctl->head, before);
    atomic_store(&f->ctl->tail, before);
    atomic_store(&f->in.own, before);
    atomic_store(&f->out.own, before);
    f->in.other = f->out.other = before;
    put(f, "across the end", 14);
    get(f, buf, 14);
    assert_memory_equal(buf, "across the end", 14);
    assert_int_equal(atomic_load(&f->ctl->tail), 8);
    assert_int_equal(iwc_ring_room(&f->out, SIZE), SIZE);
}

static void rings_once_for_who_is_armed(void **ctx)
{
    struct fixture *f = *ctx;
    uint8_t byte;
    put(f, "a", 1);
    assert_true(iwc_ring_rouses(&f->out)); /* a new one is armed */
    put(f, "b", 1);
    assert_false(iwc_ring_rouses(&f->out));
    assert_false(iwc_ring_arm(&f->in)); /* there is something */
    put(f, "c", 1);
    assert_false(iwc_ring_rouses(&f->out)); /* so that it looks by itself */
    for (int i = 0; i < 3; i++)
        get(f, &byte, 1);
    assert_true(iwc_ring_arm(&f->in));
    put(f, "d", 1);
    assert_true(iwc_ring_rouses(&f->out));
}

static void rings_for_room_at_half(void **ctx)
{
    struct fixture *f = *ctx;
    assert_false(iwc_ring_want_room(&f->out)); /* there is */
    assert_int_equal(atomic_load(&f->ctl->wants_room), 0);
    iwc_ring_publish(&f->out, (size_t)iwc_ring_room(&f->out, SIZE));
    const uint8_t *p;
    assert_int_equal(iwc_ring_look(&f->in, &p), SIZE);
    assert_true(iwc_ring_want_room(&f->out));
    iwc_ring_use(&f->in, 1);
    assert_false(iwc_ring_relieves(&f->in));
    iwc_ring_use(&f->in, SIZE / 2);
    assert_true(iwc_ring_relieves(&f->in));
    assert_false(iwc_ring_relieves(&f->in)); /* once */
    assert_false(iwc_ring_want_room(&f->out));
}

/** It is asked whether to ring once for each quarter: not later than when a quarter is left. */
static void small_steps_ring_for_room_too(void **ctx)
{
    struct fixture *f = *ctx;
    const uint8_t *p;
    for (size_t step = 1; step < SIZE; step = step * 3 + 1) {
        for (int k = 0; k < 3; k++) { /* wherever the last question was */
            unsigned rings = 0;
            size_t left = SIZE;
            iwc_ring_publish(&f->out, (size_t)iwc_ring_room(&f->out, SIZE));
            assert_true(iwc_ring_want_room(&f->out));
            for (; left > step; left -= step) {
                assert_int_equal(iwc_ring_look(&f->in, &p), left);
                iwc_ring_use(&f->in, step);
                if (!iwc_ring_relieves(&f->in))
                    continue;
                rings++;
                assert_true(left - step <= SIZE / 2);
            }
            assert_true(rings == 1 || (rings == 0 && left > SIZE / 4));
        }
        atomic_store(&f->ctl->wants_room, 0);
    }
}

static void a_lie_of_the_producer_is_found(void **ctx)
{
    static const uint64_t lies[] = {SIZE + 1, UINT64_MAX, 1ull << 63, (1ull << 32) + 5};
    struct fixture *f = *ctx;
    const uint8_t *p;
    for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        atomic_store(&f->ctl->head, lies[i]);
        assert_int_equal(iwc_ring_look(&f->in, &p), -EPROTO);
    }
    atomic_store(&f->ctl->head, SIZE);
    assert_int_equal(iwc_ring_look(&f->in, &p), SIZE);
    iwc_ring_use(&f->in, 10);
    atomic_store(&f->ctl->head, 9); /* back behind what was used */
    assert_int_equal(iwc_ring_look(&f->in, &p), -EPROTO);
    atomic_store(&f->ctl->head, SIZE - 1); /* behind what was there before */
    assert_int_equal(iwc_ring_look(&f->in, &p), -EPROTO);
    atomic_store(&f->ctl->head, SIZE);
    assert_int_equal(iwc_ring_look(&f->in, &p), SIZE - 10);
}

static void a_lie_of_the_consumer_is_found(void **ctx)
{
    struct fixture *f = *ctx;
    iwc_ring_publish(&f->out, SIZE);
    iwc_ring_room(&f->out, 1);
    static const uint64_t lies[] = {SIZE + 1, UINT64_MAX, UINT64_MAX - SIZE, 1ull << 40};
    for (unsigned i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        atomic_store(&f->ctl->tail, lies[i]);
        assert_int_equal(iwc_ring_room(&f->out, 1), -EPROTO);
        assert_false(iwc_ring_want_room(&f->out)); /* it is not waited for */
        assert_int_equal(iwc_ring_room(&f->out, 0), 0);
    }
    atomic_store(&f->ctl->tail, 100);
    assert_int_equal(iwc_ring_room(&f->out, 1), 100);
    atomic_store(&f->ctl->tail, 99); /* back to where it was before */
    assert_int_equal(iwc_ring_room(&f->out, 101), -EPROTO);
}

static void own_counters_are_not_read_back(void **ctx)
{
    struct fixture *f = *ctx;
    const uint8_t *p;
    char buf[4];
    put(f, "abcd", 4);
    atomic_store(&f->ctl->tail, 3); /* by the producer, whose it is not */
    assert_int_equal(iwc_ring_look(&f->in, &p), 4);
    get(f, buf, 4);
    assert_memory_equal(buf, "abcd", 4);
    assert_int_equal(atomic_load(&f->ctl->tail), 4);
    atomic_store(&f->ctl->head, 1); /* by the consumer */
    put(f, "e", 1);
    assert_int_equal(atomic_load(&f->ctl->head), 5);
}

/** Whatever stands in the shared lines, nothing outside of the ring is touched or offered. */
static void any_garbage_is_survived(void **ctx)
{
    struct fixture *f = *ctx;
    unsigned seed = 1;
    for (int i = 0; i < 200000; i++) {
        const uint8_t *p;
        uint64_t noise = (uint64_t)rand_r(&seed) << 33 ^ (uint64_t)rand_r(&seed);
        bool small = rand_r(&seed) % 2;
        uint64_t at = atomic_load(&f->in.own) + noise % (3ull * SIZE) - SIZE;
        atomic_store(&f->ctl->head, small ? at : noise);
        atomic_store(&f->ctl->tail, small ? at - SIZE / 2 : noise * 3);
        atomic_store(&f->ctl->awake, (uint32_t)noise);
        atomic_store(&f->ctl->wants_room, (uint32_t)(noise >> 20));
        ssize_t there = iwc_ring_look(&f->in, &p);
        assert_true(there == -EPROTO || (there >= 0 && there <= (ssize_t)SIZE));
        if (there > 0) {
            assert_true(p >= f->data && p + there <= f->data + 2 * SIZE);
            iwc_ring_use(&f->in, (size_t)there / 2 + 1);
        }
        ssize_t room = iwc_ring_room(&f->out, SIZE);
        assert_true(room == -EPROTO || (room >= 0 && room <= (ssize_t)SIZE));
        if (room > 0) {
            uint8_t *to = iwc_ring_place(&f->out);
            assert_true(to >= f->data && to + room <= f->data + 2 * SIZE);
            iwc_ring_publish(&f->out, (size_t)room / 3 + 1);
        }
        iwc_ring_rouses(&f->out);
        iwc_ring_relieves(&f->in);
        iwc_ring_arm(&f->in);
        iwc_ring_want_room(&f->out);
    }
}

/* ---- two threads that sleep: a bell that does not come is a test that does not end ---- */

static void sleep_for(atomic_int *bell)
{
    while (!atomic_exchange(bell, 0))
        sched_yield();
}

static void *produce(void *arg)
{
    struct fixture *f = arg;
    for (unsigned sent = 0; sent < MANY;) {
        ssize_t room = iwc_ring_room(&f->out, 1);
        if (room == 0) {
            if (iwc_ring_want_room(&f->out))
                sleep_for(&f->bells[1]);
            continue;
        }
        unsigned n = (unsigned)room < PIECE ? (unsigned)room : PIECE;
        n = n < MANY - sent ? n : MANY - sent;
        uint8_t *to = iwc_ring_place(&f->out);
        for (unsigned i = 0; i < n; i++)
            to[i] = (uint8_t)((sent + i) * 31);
        iwc_ring_publish(&f->out, n);
        sent += n;
        if (iwc_ring_rouses(&f->out))
            atomic_store(&f->bells[0], 1);
    }
    return NULL;
}

static void nobody_oversleeps(void **ctx)
{
    struct fixture *f = *ctx;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, produce, f), 0);
    for (unsigned got = 0; got < MANY;) {
        const uint8_t *p;
        ssize_t there = iwc_ring_look(&f->in, &p);
        if (there == 0) {
            if (iwc_ring_arm(&f->in))
                sleep_for(&f->bells[0]);
            continue;
        }
        for (ssize_t i = 0; i < there; i++)
            assert_int_equal(p[i], (uint8_t)((got + (unsigned)i) * 31));
        got += (unsigned)there;
        iwc_ring_use(&f->in, (size_t)there);
        if (iwc_ring_relieves(&f->in))
            atomic_store(&f->bells[1], 1);
    }
    pthread_join(thread, NULL);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(passes_bytes_in_order),          TEST(no_stretch_wraps),
        TEST(is_full_to_the_last_byte),       TEST(counters_wrap),
        TEST(rings_once_for_who_is_armed),    TEST(rings_for_room_at_half),
        TEST(small_steps_ring_for_room_too),  TEST(a_lie_of_the_producer_is_found),
        TEST(a_lie_of_the_consumer_is_found), TEST(own_counters_are_not_read_back),
        TEST(any_garbage_is_survived),        TEST(nobody_oversleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
