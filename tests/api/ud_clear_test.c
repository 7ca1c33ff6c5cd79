/* SPDX-License-Identifier: BSD-2-Clause */
/* ANYWARP_TLS=require: datagrams, which are in the clear, do not leave the host. */
#include "logfile.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_ah_attr here = {.port_num = 1, .is_global = 1};

static void to_another_host(void **state)
{
    struct ibv_ah_attr attr = here;
    (void)state;
    attr.grh.dgid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 198, 51, 100, 7}};
    log_clear();
    errno = 0;
    assert_null(ibv_create_ah(pd, &attr));
    assert_int_equal(errno, EACCES);
    assert_true(log_has("*ibv_create_ah: ANYWARP_TLS=require: datagrams to 198.51.100.7*"));
}

static void to_this_host(void **state)
{
    (void)state;
    struct ibv_ah *ah = ibv_create_ah(pd, &here);
    assert_non_null(ah);
    assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void groups(void **state)
{
    union ibv_gid group = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}};
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    (void)state;
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(ibv_attach_mcast(qp, &group, 0), EACCES);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_another_host),
        cmocka_unit_test(to_this_host),
        cmocka_unit_test(groups),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    setenv("ANYWARP_TLS", "require", 1);
    if (log_setup(NULL))
        return 1;
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    if (ibv_query_gid(ctx, 1, 0, &here.grh.dgid))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    log_teardown(NULL);
    return failed;
}
