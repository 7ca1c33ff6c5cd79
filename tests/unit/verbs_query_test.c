/* SPDX-License-Identifier: BSD-2-Clause */
/* The library as a program sees it: opening, queries, and what is refused, with its errno. */
#include "fails.h"
#include "verbs/private.h"

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

/* Exported for providers and old programs only: no header has them. */
const char *ibv_get_sysfs_path(void);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

static struct ibv_context *ctx;

static int open_device(void **state)
{
    int n = 0;
    (void)state;
    struct ibv_device **list = ibv_get_device_list(&n);
    if (n < 1)
        return -1;
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list); /* the device outlives the list */
    return ctx ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    return ibv_close_device(ctx);
}

static void test_list(void **state)
{
    (void)state;
    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    assert_ptr_equal(list[0], ctx->device);
    assert_string_equal(ibv_get_device_name(list[0]), list[0]->name);
    assert_int_equal(ibv_get_device_index(list[0]), 0);
    struct ibv_device_attr a;
    assert_int_equal(ibv_query_device(ctx, &a), 0);
    assert_int_equal(ibv_get_device_guid(list[0]), a.node_guid);
    struct ibv_context *second = ibv_open_device(list[0]);
    assert_non_null(second);
    assert_ptr_not_equal(second, ctx);
    assert_int_not_equal(second->async_fd, ctx->async_fd);
    assert_int_equal(ibv_close_device(second), 0);
    ibv_free_device_list(list);
}

static void test_query_device_ex(void **state)
{
    struct verbs_context *v = verbs_get_ctx(ctx);
    struct ibv_query_device_ex_input strange = {.comp_mask = 1}, plain = {0};
    struct {
        struct ibv_device_attr_ex known;
        unsigned char later[32];
    } a;
    (void)state;
    assert_int_equal(ibv_query_device_ex(ctx, &strange, &a.known), EINVAL);
    memset(&a, 0xff, sizeof(a));
    assert_int_equal(v->query_device_ex(ctx, &plain, &a.known, sizeof(a)), 0);
    assert_int_equal(a.known.phys_port_cnt_ex, 1);
    assert_int_equal(a.known.odp_caps.general_caps, 0);
    assert_int_equal(a.known.comp_mask, 0);
    for (size_t i = 0; i < sizeof(a.later); i++)
        assert_int_equal(a.later[i], 0);

    memset(&a, 0xff, sizeof(a));
    size_t old = offsetof(struct ibv_device_attr_ex, odp_caps);
    assert_int_equal(v->query_device_ex(ctx, NULL, &a.known, old), 0);
    assert_int_equal(a.known.orig_attr.phys_port_cnt, 1);
    assert_int_equal(((unsigned char *)&a)[old], 0xff);
    assert_int_equal(v->query_device_ex(ctx, NULL, &a.known, 8), EINVAL);
}

/** Programs give the size of the struct they know: nothing behind it is touched. */
static void test_query_port(void **state)
{
    static const size_t sizes[] = {48, 50, sizeof(struct ibv_port_attr), 80};
    struct verbs_context *v = verbs_get_ctx(ctx);
    union {
        struct ibv_port_attr attr;
        struct _compat_ibv_port_attr *none;
        unsigned char bytes[128];
    } p;
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(&p, 0xff, sizeof(p));
        assert_int_equal(v->query_port(ctx, 1, &p.attr, sizes[i]), 0);
        assert_int_equal(p.attr.state, IBV_PORT_ACTIVE);
        for (size_t b = sizeof(p.attr); b < sizes[i]; b++)
            assert_int_equal(p.bytes[b], 0);
        assert_int_equal(p.bytes[sizes[i]], 0xff);
    }
    memset(&p, 0xff, sizeof(p));
    assert_int_equal((ibv_query_port)(ctx, 1, (struct _compat_ibv_port_attr *)&p), 0);
    assert_int_equal(p.attr.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(p.bytes[47], 0);
    assert_int_equal(p.bytes[48], 0xff);

    memset(&p, 0xff, sizeof(p));
    assert_int_equal(v->query_port(ctx, 2, &p.attr, 48), EINVAL);
    assert_int_equal(p.bytes[0], 0xff);
    assert_int_equal((ibv_query_port)(ctx, 0, (struct _compat_ibv_port_attr *)&p), EINVAL);
}

static void test_gids(void **state)
{
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_gid_entry e, table[256];
    struct {
        struct ibv_gid_entry known;
        uint64_t later;
    } big, bigs[256];
    unsigned type;
    (void)state;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    for (int i = 0; i < port.gid_tbl_len; i++) {
        assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
        assert_int_equal(ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0), 0);
        assert_memory_equal(&gid, &e.gid, sizeof(gid));
        type = 7;
        assert_int_equal(private_query_gid_type(ctx, 1, (unsigned)i, &type), 0);
        assert_int_equal(type, i ? 1 : 0); /* RoCE v2 */
    }
    static const struct {
        unsigned port;
        int index;
    } bad[] = {{1, 1000}, {1, -1}, {0, 0}, {2, 0}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        errno = 0;
        assert_int_equal(ibv_query_gid(ctx, (uint8_t)bad[i].port, bad[i].index, &gid), -1);
        assert_int_equal(errno, EINVAL);
        assert_int_equal(ibv_query_gid_ex(ctx, bad[i].port, (uint32_t)bad[i].index, &e, 0), EINVAL);
        errno = 0;
        assert_int_equal(
            private_query_gid_type(ctx, (uint8_t)bad[i].port, (unsigned)bad[i].index, &type), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 1), EINVAL);
    assert_int_equal(ibv_query_gid_ex(ctx, 257, 0, &e, 0), EINVAL);
    assert_int_equal(_ibv_query_gid_ex(ctx, 1, 0, &e, 0, sizeof(e) - 1), EINVAL);

    memset(&big, 0xff, sizeof(big));
    assert_int_equal(_ibv_query_gid_ex(ctx, 1, 0, &big.known, 0, sizeof(big)), 0);
    assert_int_equal(big.later, 0);

    assert_int_equal(ibv_query_gid_table(ctx, table, 256, 0), port.gid_tbl_len);
    assert_int_equal(table[1].gid_index, 1);
    assert_int_equal(ibv_query_gid_table(ctx, table, 1, 0), -EINVAL);
    assert_int_equal(ibv_query_gid_table(ctx, table, 256, 1), -EINVAL);
    assert_int_equal(_ibv_query_gid_table(ctx, &bigs[0].known, 256, 0, sizeof(bigs[0])),
                     port.gid_tbl_len);
    assert_memory_equal(&bigs[1].known, &table[1], sizeof(table[1]));
}

static void test_pkeys(void **state)
{
    __be16 pkey = 0;
    (void)state;
    assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
    assert_int_equal(be16toh(pkey), 0xffff);
    assert_int_equal(ibv_query_pkey(ctx, 1, 1, &pkey), -1);
    assert_int_equal(ibv_query_pkey(ctx, 1, -1, &pkey), -1);
    assert_int_equal(ibv_query_pkey(ctx, 2, 0, &pkey), -1);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, htobe16(0xffff)), 0);
    assert_int_equal(ibv_get_pkey_index(ctx, 1, htobe16(0x7fff)), -1);
}

/** No inline of the header may meet an empty slot. */
static void test_no_empty_slot(void **state)
{
    struct verbs_context *v = verbs_get_ctx(ctx);
    void *const *op = (void *const *)&ctx->ops;
    (void)state;
    for (size_t i = 0; i < sizeof(ctx->ops) / sizeof(*op); i++)
        if (!op[i])
            fail_msg("slot %zu of ibv_context_ops", i);
    op = (void *const *)v;
    for (size_t i = 0; i < offsetof(struct verbs_context, _ABI_placeholder3) / sizeof(*op); i++)
        if (!op[i] && i != offsetof(struct verbs_context, priv) / sizeof(*op))
            fail_msg("slot %zu of verbs_context", i);
}

static void test_refused(void **state)
{
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct verbs_context *v = verbs_get_ctx(ctx);
    union ibv_gid gid = {0};
    (void)state;
    assert_non_null(pd);
    NULL_AND(EOPNOTSUPP, ibv_import_device(0));
    NULL_AND(EOPNOTSUPP, ibv_import_pd(ctx, 1));
    NULL_AND(EOPNOTSUPP, ibv_import_mr(pd, 1));
    NULL_AND(EOPNOTSUPP, ibv_import_dm(ctx, 1));
    NULL_AND(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0));
    NULL_AND(EOPNOTSUPP, ibv_alloc_dm(ctx, &(struct ibv_alloc_dm_attr){.length = 64}));
    NULL_AND(EINVAL, ibv_create_ah(pd, &(struct ibv_ah_attr){0}));
    NULL_AND(EINVAL, ibv_create_ah_from_wc(pd, &(struct ibv_wc){0}, NULL, 1));
    NULL_AND(EOPNOTSUPP, ibv_create_wq(ctx, &(struct ibv_wq_init_attr){0}));
    NULL_AND(EOPNOTSUPP, ibv_create_counters(ctx, &(struct ibv_counters_init_attr){0}));
    NULL_AND(EOPNOTSUPP, ibv_open_xrcd(ctx, &(struct ibv_xrcd_init_attr){0}));
    NULL_AND(EOPNOTSUPP, ibv_open_qp(ctx, &(struct ibv_qp_open_attr){0}));
    NULL_AND(EOPNOTSUPP, v->ibv_create_flow(NULL, NULL));
    assert_int_equal(ibv_attach_mcast(NULL, &gid, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(NULL, &gid, 0), EINVAL);
    assert_int_equal(ibv_set_ece(NULL, &(struct ibv_ece){0}), EOPNOTSUPP);
    assert_int_equal(ibv_query_ece(NULL, &(struct ibv_ece){0}), EOPNOTSUPP);
    assert_int_equal(v->close_xrcd(NULL), EOPNOTSUPP);
    uint8_t mac[ETHERNET_LL_SIZE];
    uint16_t vid;
    assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &(struct ibv_ah_attr){0}, mac, &vid),
                     -EOPNOTSUPP);
    assert_int_equal(ibv_rereg_mr(NULL, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
                     IBV_REREG_MR_ERR_INPUT);
    ibv_unimport_pd(NULL);
    ibv_unimport_mr(NULL);
    ibv_unimport_dm(NULL);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void test_null(void **state)
{
    struct ibv_device_attr a;
    void *cq_context;
    (void)state;
    assert_null(ibv_open_device(NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_alloc_pd(NULL));
    assert_null(ibv_create_comp_channel(NULL));
    assert_null(ibv_create_cq(NULL, 1, NULL, NULL, 0));
    assert_null(ibv_create_qp(NULL, NULL));
    assert_null((ibv_reg_mr)(NULL, &a, sizeof(a), 0));
    assert_int_equal(ibv_close_device(NULL), EINVAL);
    assert_int_equal(ibv_query_device(NULL, &a), EINVAL);
    assert_int_equal(ibv_dealloc_pd(NULL), EINVAL);
    assert_int_equal(ibv_dereg_mr(NULL), EINVAL);
    assert_int_equal(ibv_destroy_cq(NULL), EINVAL);
    assert_int_equal(ibv_resize_cq(NULL, 1), EINVAL);
    assert_int_equal(ibv_destroy_qp(NULL), EINVAL);
    assert_int_equal(ibv_modify_qp(NULL, NULL, 0), EINVAL);
    assert_int_equal(ibv_query_qp(NULL, NULL, 0, NULL), EINVAL);
    assert_int_equal(ibv_destroy_comp_channel(NULL), EINVAL);
    errno = 0;
    assert_int_equal(ibv_get_cq_event(NULL, NULL, &cq_context), -1);
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_int_equal(ibv_get_async_event(NULL, NULL), -1);
    assert_int_equal(errno, EINVAL);
    ibv_ack_cq_events(NULL, 1);
    ibv_ack_async_event(NULL);
    ibv_free_device_list(NULL);
}

/** Optional access flags are for devices that know them; the page offsets of iova must agree. */
static void test_reg_mr(void **state)
{
    static char buf[8192] __attribute__((aligned(65536))); /* at a page of any machine */
    const unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    (void)state;
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, 100, access);
    assert_non_null(mr);
    assert_ptr_equal(mr->addr, buf);
    assert_int_equal(mr->length, 100);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = (ibv_reg_mr)(pd, buf, 100, (int)access);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = ibv_reg_mr_iova2(pd, buf + 8, 100, 0x10008, access);
    assert_non_null(mr);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    errno = 0;
    assert_null(ibv_reg_mr_iova2(pd, buf + 8, 100, 0x10000, access));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null((ibv_reg_mr_iova)(pd, buf + 8, 100, 0x10000, 0));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void test_helpers(void **state)
{
    char buf[64], dir[] = "test-dir-XXXXXX", path[64];
    (void)state;
    assert_int_equal(ibv_fork_init(), 0);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    assert_int_equal(ibv_dontfork_range(buf, sizeof(buf)), 0);
    assert_int_equal(ibv_dofork_range(buf, sizeof(buf)), 0);
    assert_int_equal(private_refuse(), EOPNOTSUPP);
    private_nothing();
    private_log(verbs_get_ctx(ctx), 4, "%s %d\n", "nobody reads this", 1);

    assert_string_equal(ibv_get_sysfs_path(), "/some/sys"); /* main() set it with slashes */
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/file", dir);
    FILE *f = fopen(path, "w");
    fputs("board 1\n", f);
    fclose(f);
    memset(buf, '#', sizeof(buf));
    assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, sizeof(buf)), 7);
    assert_string_equal(buf, "board 1");
    memset(buf, '#', sizeof(buf));
    assert_int_equal(ibv_read_sysfs_file(dir, "file", buf, 5), -1);
    assert_memory_equal(buf, "board#", 6);
    errno = 0;
    assert_int_equal(ibv_read_sysfs_file(dir, "none", buf, sizeof(buf)), -1);
    assert_int_equal(errno, ENOENT);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),       cmocka_unit_test(test_query_device_ex),
        cmocka_unit_test(test_query_port), cmocka_unit_test(test_gids),
        cmocka_unit_test(test_pkeys),      cmocka_unit_test(test_no_empty_slot),
        cmocka_unit_test(test_refused),    cmocka_unit_test(test_null),
        cmocka_unit_test(test_reg_mr),     cmocka_unit_test(test_helpers),
    };
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    setenv("SYSFS_PATH", "/some/sys//", 1);
    return cmocka_run_group_tests(tests, open_device, close_device);
}
