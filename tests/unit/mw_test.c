/* SPDX-License-Identifier: BSD-2-Clause */
/* What readers without a lock see of a window that is bound again and again. */
#include "mem/mr.h"
#include "mem/mw.h"
#include "mem/quiesce.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define READERS 2
#define BINDS   20000
#define PART    16

static uint8_t memory[256 * PART];
static struct iw_pd *pd;
static struct iw_accessor binder;
static struct iw_mr *mr;
static struct iw_mw *mw;
static atomic_bool stop;
static atomic_uint granted, wrong;

static int setup(void **state)
{
    static struct ibv_context context;
    (void)state;
    pd = iw_pd_alloc(&context);
    mr = iw_mr_reg(pd, memory, sizeof(memory), 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    mw = iw_mw_alloc(pd, IBV_MW_TYPE_1);
    binder.pd = pd;
    return mr && mw ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    iw_mw_dealloc(mw);
    assert_int_equal(iw_mr_dereg(mr), 0);
    return iw_pd_dealloc(pd);
}

static uint32_t with_key(unsigned key)
{
    return (mw->pub.rkey & ~0xffu) | key;
}

/** Key k gives part k of the memory, where odd ones can be read and even ones written. */
static enum iw_err bind(unsigned key)
{
    struct iw_bind b = {
        .addr = (uint64_t)key * PART,
        .length = PART,
        .lkey = mr->pub.lkey,
        .access = key % 2 ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE,
    };
    bool was_bound, before = mw->memory;
    enum iw_err err = iw_mw_bind(&binder, with_key(key), &b, &was_bound);
    assert_int_equal(was_bound, before);
    return err;
}

static void *reader(void *arg)
{
    const struct iw_accessor *by = arg;
    for (unsigned key = 0; !atomic_load(&stop); key = (key + 1) % 256) {
        uint8_t *p;
        iw_copy_begin(pd);
        enum iw_err err = iw_region_check(with_key(key), by, key % 2 ? IW_USE_READ : IW_USE_WRITE,
                                          (uint64_t)key * PART, PART, &p);
        if (!err)
            atomic_fetch_add(&granted, 1);
        if (err ? err != IW_ERR_READ_STAG && err != IW_ERR_TAGGED_STAG : p != memory + key * PART)
            atomic_fetch_add(&wrong, 1);
        iw_copy_end();
    }
    return NULL;
}

static void a_binding_is_seen_whole_or_not_at_all(void **state)
{
    static struct iw_accessor by[READERS];
    pthread_t t[READERS];
    (void)state;
    for (int i = 0; i < READERS; i++) {
        by[i].pd = pd;
        assert_int_equal(pthread_create(&t[i], NULL, reader, &by[i]), 0);
    }
    for (unsigned i = 0; i < BINDS || !atomic_load(&granted); i++)
        assert_int_equal(bind(i * 7 % 256), IW_OK);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
}

/** Each bind lets go of the memory region of the one before. */
static void one_pin_a_window(void **state)
{
    (void)state;
    for (unsigned key = 0; key < 5; key++)
        assert_int_equal(bind(key), IW_OK);
    assert_int_equal(atomic_load(&mr->region->windows), 1);
    struct iw_mw *second = iw_mw_alloc(pd, IBV_MW_TYPE_2);
    struct iw_bind b = {.length = 1, .lkey = mr->pub.lkey};
    bool was_bound = true;
    assert_int_equal(iw_mw_bind(&binder, second->pub.rkey, &b, &was_bound), IW_OK);
    assert_false(was_bound);
    assert_int_equal(iw_mw_bind(&binder, second->pub.rkey, &b, &was_bound),
                     IW_ERR_LOCAL_MW_BIND); /* not free */
    assert_int_equal(atomic_load(&mr->region->windows), 2);
    iw_mw_leave(&binder);
    assert_int_equal(atomic_load(&mr->region->windows), 1);
    iw_mw_dealloc(second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_binding_is_seen_whole_or_not_at_all),
        TEST(one_pin_a_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
