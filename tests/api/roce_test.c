/* SPDX-License-Identifier: BSD-2-Clause */
/* A device with RoCE manners beside one with iWARP: what is different, and that they reach each
 * other. */
#include "by_number.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CM_MASK (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

static struct end a, b;

static void two_of_it(void **state)
{
    (void)state;
    end_make(&a);
    end_make(&b);
    assert_int_equal(end_state(&a), IBV_QPS_RESET);
    ends_connect(&a, &b);
    end_send_once(&a, &b, 5);
    end_send_once(&b, &a, 6);
    a.data[END_HALF / 8] = 7;
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    assert_true(b.data[0] == 7);
    end_drop(&a);
    end_drop(&b);
}

/** By GID 0 and by GID 1, which are the same address. */
static void one_of_each(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *roce = ctx;
    struct ibv_pd *roces = pd;
    (void)state;
    end_make(&a);
    ctx = ibv_open_device(list[1]);
    pd = ibv_alloc_pd(ctx);
    end_make(&b);
    assert_int_equal(end_state(&b), IBV_QPS_INIT);
    end_init(&b);
    end_rtr(&b, a.qp->qp_num); /* GID 1 of lo here is an address */
    end_rts(&b, 7);
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);

    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = b.qp->qp_num,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.port_num = 1, .is_global = 1, .grh = {.dgid = gid, .sgid_index = 0}},
    };
    end_init(&a);
    assert_int_equal(ibv_modify_qp(a.qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    end_rts(&a, 7);
    end_send_once(&a, &b, 5);
    end_send_once(&b, &a, 6);
    end_drop(&b);
    end_drop(&a);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    ctx = roce;
    pd = roces;
    ibv_free_device_list(list);
}

static void the_cms_masks_are_refused(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    (void)state;
    end_make(&a);
    assert_int_equal(ibv_modify_qp(a.qp, &attr, CM_MASK), EINVAL);
    end_init(&a);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(a.qp, &attr, CM_MASK), EINVAL);
    assert_int_equal(end_state(&a), IBV_QPS_INIT);
    end_drop(&a);
}

/* ---- address handles ---- */

static struct ibv_ah_attr address(uint8_t sgid_index)
{
    struct ibv_ah_attr attr = {
        .port_num = 1, .is_global = 1, .grh = {.sgid_index = sgid_index, .hop_limit = 1}};
    assert_int_equal(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid), 0);
    return attr;
}

static void no_handle(struct ibv_ah_attr attr, int err)
{
    errno = 0;
    assert_null(ibv_create_ah(pd, &attr));
    assert_int_equal(errno, err);
}

static void address_handles(void **state)
{
    struct ibv_ah_attr attr = address(0), wrong;
    (void)state;
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    assert_non_null(ah);
    assert_ptr_equal(ah->context, ctx);
    assert_ptr_equal(ah->pd, pd);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    assert_int_equal(ibv_destroy_ah(NULL), EINVAL);

    wrong = attr, wrong.port_num = 2, no_handle(wrong, EINVAL);
    wrong = attr, wrong.is_global = 0, no_handle(wrong, EINVAL);
    no_handle(address(2), EINVAL);
    wrong = attr, memset(wrong.grh.dgid.raw, 0x20, 16), no_handle(wrong, EHOSTUNREACH);
    assert_null(ibv_create_ah(pd, NULL));
    assert_null(ibv_create_ah(NULL, &attr));
}

static void an_address_handle_from_a_completion(void **state)
{
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_grh grh = {.hop_limit = 3};
    (void)state;
    assert_int_equal(ibv_query_gid(ctx, 1, 0, &grh.dgid), 0);
    grh.sgid = grh.dgid;
    struct ibv_ah *ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    grh.dgid.raw[0] = 0x3f; /* not ours */
    assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
}

/* ---- what else there is to see ---- */

static void tables(void **state)
{
    struct ibv_gid_entry e, all[3];
    __be16 pkey;
    (void)state;
    assert_int_equal(ibv_query_gid_table(ctx, all, 3, 0), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ibv_query_gid_ex(ctx, 1, i, &e, 0), 0);
        assert_memory_equal(&e, &all[i], sizeof(e));
        assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
    }
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 2, &e, 0), EINVAL);
    assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
    assert_int_equal(pkey, htobe16(0xffff));
    assert_int_equal(ibv_get_pkey_index(ctx, 1, pkey), 0);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(two_of_it),
        cmocka_unit_test(one_of_each),
        cmocka_unit_test(the_cms_masks_are_refused),
        cmocka_unit_test(address_handles),
        cmocka_unit_test(an_address_handle_from_a_completion),
        cmocka_unit_test(tables),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo w0=iwarp:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return ends_run(tests);
}
