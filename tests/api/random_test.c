/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that a peer could make use of if it guessed them: keys, and those of queue pairs. */
#include "pair.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS 256
#define CHANCES 3 /* as many may be near to the one before, which is 1 in 32768 of all */

/** @p bits each, of objects that exist at once. */
static void expect_random(const uint32_t *numbers, unsigned bits)
{
    uint32_t all = bits < 32 ? (1u << bits) - 1 : UINT32_MAX, ones = 0, zeros = 0;
    uint32_t next = bits < 24 ? 1u << (bits - 16) : 256;
    unsigned near = 0;
    for (unsigned i = 0; i < NUMBERS; i++) {
        ones |= numbers[i];
        zeros |= ~numbers[i];
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(numbers[i], numbers[j]);
        near += i && numbers[i] - numbers[i - 1] + next < 2 * next;
    }
    assert_int_equal(ones, all);
    assert_int_equal(zeros & all, all);
    assert_in_range(near, 0, CHANCES);
}

static void keys_of_regions(void **state)
{
    struct pair *p = *state;
    struct ibv_mr *mrs[NUMBERS];
    uint32_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        mrs[i] = ibv_reg_mr(p->a.pd, p->a.buf, 8, IBV_ACCESS_REMOTE_READ);
        assert_non_null(mrs[i]);
        numbers[i] = mrs[i]->rkey;
    }
    expect_random(numbers, 32);
    for (int i = 0; i < NUMBERS; i++)
        assert_int_equal(ibv_dereg_mr(mrs[i]), 0);
}

/** Above the lowest byte, which programs choose. */
static void keys_of_windows(void **state)
{
    struct pair *p = *state;
    struct ibv_mw *mws[NUMBERS];
    uint32_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) {
        mws[i] = ibv_alloc_mw(p->a.pd, i % 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
        assert_non_null(mws[i]);
        numbers[i] = mws[i]->rkey >> 8;
    }
    expect_random(numbers, 24);
    for (int i = 0; i < NUMBERS; i++)
        assert_int_equal(ibv_dealloc_mw(mws[i]), 0);
}

/** Those that rdma_cm connects; one that is dialled by its number has a port's (qpn/number.h). */
static void numbers_of_queue_pairs(void **state)
{
    struct pair *p = *state;
    struct rdma_cm_id *ids[NUMBERS];
    uint32_t numbers[NUMBERS];
    struct sockaddr_in loopback = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < NUMBERS; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = p->a.cq, .recv_cq = p->a.cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
        assert_int_equal(rdma_create_id(NULL, &ids[i], NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_bind_addr(ids[i], (struct sockaddr *)&loopback), 0);
        assert_int_equal(rdma_create_qp(ids[i], p->a.pd, &attr), 0);
        numbers[i] = ids[i]->qp->qp_num;
    }
    expect_random(numbers, 18);
    for (int i = 0; i < NUMBERS; i++) {
        rdma_destroy_qp(ids[i]);
        assert_int_equal(rdma_destroy_id(ids[i]), 0);
    }
}

static int setup(void **state)
{
    static struct pair p;
    pair_open(&p, &(struct pair_conf){0});
    *state = &p;
    return 0;
}

static int teardown(void **state)
{
    pair_close(*state, 1);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_of_regions),
        cmocka_unit_test(keys_of_windows),
        cmocka_unit_test(numbers_of_queue_pairs),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
