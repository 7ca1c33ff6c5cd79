/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/mr.h"
#include "mem/quiesce.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define LW IBV_ACCESS_LOCAL_WRITE
#define RW IBV_ACCESS_REMOTE_WRITE
#define RR IBV_ACCESS_REMOTE_READ
#define RA IBV_ACCESS_REMOTE_ATOMIC

static uint8_t memory[64];
static const uint8_t constant[64] = {1};
static struct iw_pd *pd;
static struct iw_accessor own; /* whose stream asks */
static struct ibv_context context;

static int setup(void **state)
{
    (void)state;
    pd = iw_pd_alloc(&context);
    own.pd = own.recv_pd = pd;
    return pd ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return iw_pd_dealloc(pd);
}

static void arguments(void **state)
{
    static const struct {
        const void *addr;
        size_t len;
        uint64_t iova;
        unsigned access;
        int err;
    } rows[] = {
        {memory, 64, 0, 0, 0},
        {memory, 64, 0, LW, 0},
        {memory, 64, 0, LW | RW | RR | RA, 0},
        {memory, 64, 0, RR, 0},
        {memory, 64, 0, LW | IBV_ACCESS_MW_BIND, 0},
        {memory, 64, 0, LW | IBV_ACCESS_HUGETLB, 0},
        {memory, 64, 0, LW | IBV_ACCESS_ZERO_BASED, 0},
        {memory, 64, 0, LW | IBV_ACCESS_RELAXED_ORDERING, 0},
        {memory, 64, 0, LW | 1u << 20 | 1u << 29, 0},
        {memory, 64, 0, RW, EINVAL},
        {memory, 64, 0, RA, EINVAL},
        {memory, 64, 0, RW | RR, EINVAL},
        {memory, 64, 0, LW | IBV_ACCESS_ON_DEMAND, EOPNOTSUPP},
        {memory, 64, 0, LW | 1u << 8, EINVAL},
        {memory, 64, 0, LW | 1u << 19, EINVAL},
        {memory, 64, 0, LW | 1u << 30, EINVAL},
        {memory, 64, 0, LW | 1u << 31, EINVAL},
        {memory, 0, 0, LW, EINVAL},
        {memory, SIZE_MAX, 0, LW, EINVAL},
        {memory, 64, UINT64_MAX - 63, LW, 0},
        {memory, 64, UINT64_MAX - 62, LW, EINVAL},
        {constant, 64, 0, RR, 0},
        {constant, 64, 0, LW, EFAULT},
        {NULL, 64, 0, 0, EFAULT},
        {NULL, 1 << 20, 0, 0, EFAULT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        errno = 0;
        struct iw_mr *mr = iw_mr_reg(pd, (void *)(uintptr_t)rows[i].addr, rows[i].len, rows[i].iova,
                                     rows[i].access);
        if (!mr != !!rows[i].err || errno != rows[i].err)
            fail_msg("row %zu: errno %d", i, errno);
        assert_int_equal(atomic_load(&pd->users), mr != NULL);
        if (mr)
            assert_int_equal(iw_mr_dereg(mr), 0);
    }
}

static void what_the_program_sees(void **state)
{
    (void)state;
    struct iw_mr *mr = iw_mr_reg(pd, memory, 64, 0x7000, LW);
    assert_non_null(mr);
    assert_ptr_equal(mr->pub.addr, memory);
    assert_int_equal(mr->pub.length, 64);
    assert_ptr_equal(mr->pub.pd, &pd->pub);
    assert_ptr_equal(mr->pub.context, &context);
    assert_int_not_equal(mr->pub.lkey, 0);
    assert_int_equal(mr->pub.lkey, mr->pub.rkey);
    assert_int_equal(iw_pd_dealloc(pd), EBUSY);
    assert_int_equal(iw_mr_dereg(mr), 0);
}

static enum iw_err check(uint32_t key, enum iw_use use, uint64_t to, uint64_t len, uint8_t **ptr)
{
    iw_copy_begin(pd);
    enum iw_err err = iw_region_check(key, &own, use, to, len, ptr);
    iw_copy_end();
    return err;
}

/** Tagged offsets: the address, an iova, or zero. */
static void bases(void **state)
{
    const struct {
        uint64_t iova, base;
        unsigned access;
    } rows[] = {
        {(uintptr_t)memory, (uintptr_t)memory, RR},
        {0x7000, 0x7000, RR},
        {0, 0, RR},
        {(uintptr_t)memory, 0, RR | IBV_ACCESS_ZERO_BASED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct iw_mr *mr = iw_mr_reg(pd, memory, 64, rows[i].iova, rows[i].access);
        uint8_t *ptr;
        assert_non_null(mr);
        uint32_t key = mr->pub.rkey;
        assert_int_equal(check(key, IW_USE_READ, rows[i].base + 5, 59, &ptr), IW_OK);
        assert_ptr_equal(ptr, memory + 5);
        assert_int_equal(check(key, IW_USE_READ, rows[i].base + 5, 60, &ptr), IW_ERR_READ_BOUNDS);
        assert_int_equal(check(key, IW_USE_WRITE, rows[i].base, 1, &ptr), IW_ERR_TAGGED_ACCESS);
        assert_int_equal(iw_mr_dereg(mr), 0);
        assert_int_equal(check(key, IW_USE_READ, rows[i].base, 1, &ptr), IW_ERR_READ_STAG);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments),
        TEST(what_the_program_sees),
        TEST(bases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
