/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer that does not say that it is anywarp: what the standards lack cannot be sent to it. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void an_immediate_with_a_send_is_refused(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_send_wr *bad = NULL, imm = {.wr_id = 2, .opcode = IBV_WR_SEND_WITH_IMM},
                       plain = {.wr_id = 1, .next = &imm, .opcode = IBV_WR_SEND};
    side_recv(&p.b, 3, 0, 8);
    assert_int_equal(ibv_post_send(p.a.id->qp, &plain, &bad), EOPNOTSUPP);
    assert_ptr_equal(bad, &imm);

    /* What was before it is sent, and the connection goes on. */
    assert_int_equal(side_poll(&p.b).wr_id, 3);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 4, 0, 8, 0, 0), 0);
    struct ibv_wc wc = side_poll(&p.a);
    assert_int_equal(wc.wr_id, 4);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_immediate_with_a_send_is_refused),
    };
    setenv("ANYWARP_EXT", "off", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
