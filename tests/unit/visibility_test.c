/* SPDX-License-Identifier: BSD-2-Clause */
/* When completions wait for a look at the other connections, on scripted passes. */
#include "cq/visibility.h"

#include "engine/active.h"
#include "engine/poller.h"
#include "engine/presence.h"
#include "engine/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct iw_cq cq;
static unsigned looks, passes; /* made */
static uint32_t left_alone;    /* the QP of the last look */
static unsigned full;          /* passes that find as much as one can take */
static unsigned at_another;    /* looks at whose end the engine was at another QP */
static unsigned taken;         /* passes that find another thread at a connection */
static unsigned turning;       /* passes during which a source gets quiet, or moves */
static unsigned turns;

void iw_adopted_return(uint32_t but)
{
    looks++;
    left_alone = but;
}

void iw_active_run_all(uint32_t but)
{
    assert_int_equal(but, left_alone);
}

bool iw_engine_run_linked(uint32_t but)
{
    assert_int_equal(but, left_alone);
    if (taken > 0) {
        taken--;
        iw_visibility_busy();
    }
    if (turning > 0) {
        turning--;
        turns++;
    }
    return passes++ < full;
}

unsigned iw_source_turns(void)
{
    return turns;
}

bool iw_source_wait_engine(uint32_t qp_num)
{
    assert_int_equal(qp_num, left_alone);
    return at_another > 0 && at_another--;
}

static int setup(void **state)
{
    (void)state;
    iw_visibility_expose();
    iw_visibility_connections(2);
    memset(&cq, 0, sizeof(cq));
    looks = passes = full = at_another = taken = turning = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    iw_visibility_connections(-2);
    return 0;
}

/** A completion of @p opcode comes, or with @p opcode -1 fails, is taken and shown. */
static unsigned show(int opcode, uint32_t qp_num)
{
    struct ibv_wc wc = {.qp_num = qp_num};
    unsigned before = looks;
    if (opcode < 0)
        wc.status = IBV_WC_WR_FLUSH_ERR;
    else
        wc.opcode = (enum ibv_wc_opcode)opcode;
    atomic_fetch_add(&cq.tail, 1);
    atomic_fetch_add(&cq.head, 1);
    iw_visibility_show(&cq, &wc, 1);
    return looks - before;
}

static void what_tells_of_a_peer_waits(void **state)
{
    static const struct {
        int opcode;
        unsigned looks;
    } rows[] = {
        {IBV_WC_RECV, 1},
        {IBV_WC_RECV_RDMA_WITH_IMM, 1},
        {IBV_WC_RDMA_READ, 1},
        {IBV_WC_COMP_SWAP, 1},
        {IBV_WC_FETCH_ADD, 1},
        {IBV_WC_SEND, 0},
        {IBV_WC_RDMA_WRITE, 0},
        {IBV_WC_BIND_MW, 0},
        {-1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(show(rows[i].opcode, 7), rows[i].looks);
        if (rows[i].looks)
            assert_int_equal(left_alone, 7);
    }
}

static void one_connection_has_an_order(void **state)
{
    (void)state;
    iw_visibility_connections(-1);
    assert_int_equal(show(IBV_WC_RECV, 7), 0);
    iw_visibility_connections(1);
    assert_int_equal(show(IBV_WC_RECV, 7), 1);
}

/** What stood in the queue when the look began needs none of its own, if it is of the same QP. */
static void a_look_is_good_for_what_was_there(void **state)
{
    static const struct {
        uint32_t qp_num;
        unsigned looks;
    } rows[] = {{7, 1}, {7, 0}, {8, 1}, {8, 0}, {7, 1}, {7, 1}};
    (void)state;
    atomic_store(&cq.tail, 5);
    for (uint32_t i = 0; i < 6; i++) {
        struct ibv_wc wc = {.qp_num = rows[i].qp_num, .opcode = IBV_WC_RECV};
        unsigned before = looks;
        if (i == 5) /* the last one came in later */
            atomic_store(&cq.tail, 6);
        atomic_store(&cq.head, i + 1);
        iw_visibility_show(&cq, &wc, 1);
        assert_int_equal(looks - before, rows[i].looks);
    }
}

static void several_are_behind_a_look_at_all(void **state)
{
    struct ibv_wc wc[3] = {{.qp_num = 7, .opcode = IBV_WC_RECV},
                           {.qp_num = 9, .opcode = IBV_WC_SEND},
                           {.qp_num = 8, .opcode = IBV_WC_RECV}};
    (void)state;
    atomic_store(&cq.tail, 3);
    atomic_store(&cq.head, 3);
    iw_visibility_show(&cq, wc, 3);
    assert_int_equal(looks, 1);
    assert_int_equal(left_alone, 0);
}

static void a_look_goes_on(void **state)
{
    static const struct {
        unsigned full, at_another, taken, turning, looks, passes;
    } rows[] = {
        {0, 0, 0, 0, 1, 1}, {3, 0, 0, 0, 1, 4}, {1000, 0, 0, 0, 1, 64}, {0, 1, 0, 0, 2, 2},
        {0, 0, 2, 0, 3, 3}, {0, 0, 0, 1, 2, 2}, {0, 1000, 0, 0, 4, 4},  {0, 0, 0, 1000, 4, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        passes = 0;
        full = rows[i].full;
        at_another = rows[i].at_another;
        taken = rows[i].taken;
        turning = rows[i].turning;
        assert_int_equal(show(IBV_WC_RECV, 7), rows[i].looks);
        assert_int_equal(passes, rows[i].passes);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_tells_of_a_peer_waits),
        TEST(one_connection_has_an_order),
        TEST(a_look_is_good_for_what_was_there),
        TEST(several_are_behind_a_look_at_all),
        TEST(a_look_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
