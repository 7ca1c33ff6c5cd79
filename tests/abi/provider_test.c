/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What provider libraries get under the names they ask for, at the version node of each release:
 * they register, they log, and whatever would command a device refuses.
 */
#include <infiniband/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *const nodes[] = {"33", "34", "57", "59", "64", "65"};
#define NODES (sizeof nodes / sizeof nodes[0])

static struct ibv_context *ctx;

static int open_device(void **state)
{
    (void)state;
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    ibv_free_device_list(list);
    return ctx ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    return ibv_close_device(ctx);
}

static void *at(const char *name, const char *node)
{
    char version[32];
    snprintf(version, sizeof version, "IBVERBS_PRIVATE_%s", node);
    void *symbol = dlvsym(RTLD_DEFAULT, name, version);
    if (!symbol)
        fail_msg("%s@%s: %s", name, version, dlerror());
    return symbol;
}

static void drivers_register(void **state)
{
    char name[32];
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "verbs_register_driver_%s", nodes[i]);
        void (*reg)(const void *) = at(name, nodes[i]);
        reg((const void *)1); /* nobody looks at it */
    }
    void (*old)(const char *, void *) = dlvsym(RTLD_DEFAULT, "ibv_register_driver", "IBVERBS_1.1");
    assert_non_null(old);
    old("vendor", NULL);
}

static void commands_refuse(void **state)
{
    static const char *const commands[] = {
        "execute_ioctl",
        "ibv_cmd_get_context",
        "ibv_cmd_create_cq_ex2",
        "ibv_cmd_create_qp",
        "ibv_cmd_alloc_dmah",
        "ibv_cmd_reg_mr_ex",
        "ibv_cmd_query_device_any",
        "ibv_cmd_create_comp_cntr",
        "ibv_cmd_export_dmabuf_fd",
    };
    static const char *const makers[] = {
        "_verbs_init_and_alloc_context",
        "verbs_open_device",
        "ibv_dmabuf_heap_cc_shared_init",
        "ibv_dmabuf_heap_alloc",
    };
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        for (size_t c = 0; c < sizeof commands / sizeof commands[0]; c++) {
            int (*command)(void *, void *) = at(commands[c], nodes[i]);
            assert_int_equal(command(NULL, NULL), EOPNOTSUPP);
        }
        for (size_t m = 0; m < sizeof makers / sizeof makers[0]; m++) {
            void *(*make)(void *, void *) = at(makers[m], nodes[i]);
            errno = 0;
            assert_null(make(NULL, NULL));
            assert_int_equal(errno, EOPNOTSUPP);
        }
        int (*read_file)(void *, void *) = at("ibv_read_ibdev_sysfs_file", nodes[i]);
        errno = 0;
        assert_int_equal(read_file(NULL, NULL), -1);
        assert_int_equal(errno, EOPNOTSUPP);
        unsigned (*attrs)(unsigned, void *) = at("__ioctl_final_num_attrs", nodes[i]);
        assert_int_equal(attrs(7, NULL), 7);
    }
}

static void what_a_device_has_not_ends(void **state)
{
    static const char *const names[] = {
        "verbs_uninit_context",    "verbs_set_ops",        "verbs_init_cq",
        "ibv_dmabuf_heap_destroy", "ibv_dmabuf_heap_free",
    };
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
            void (*end)(void *, void *) = at(names[n], nodes[i]);
            end(NULL, NULL);
        }
}

static void what_works(void **state)
{
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        int (*gid_type)(struct ibv_context *, uint8_t, unsigned, unsigned *) =
            at("ibv_query_gid_type", nodes[i]);
        unsigned type = 7;
        assert_int_equal(gid_type(ctx, 1, 0, &type), 0);
        assert_int_equal(type, 0);
        assert_int_equal(gid_type(ctx, 2, 0, &type), -1);
        void (*note)(struct verbs_context *, uint32_t, const char *, ...) =
            at("__verbs_log", nodes[i]);
        note(verbs_get_ctx(ctx), 4, "%s %d\n", "nobody reads this", 1);
        const char *(*opcode)(int) = at("ibv_wr_opcode_str", nodes[i]);
        assert_string_equal(opcode(IBV_WR_SEND_WITH_INV), "send-with-inv");
        assert_string_equal(opcode(14), "flush");
        assert_string_equal(opcode(IBV_WR_ATOMIC_WRITE), "atomic-write");
        assert_string_equal(opcode(13), "unknown");
        assert_string_equal(opcode(16), "unknown");
        assert_string_equal(opcode(-1), "unknown");
    }
}

/** Whatever node a library asks at, it sees the same byte. */
static void one_byte_for_all(void **state)
{
    bool *first = at("verbs_allow_disassociate_destroy", nodes[0]);
    (void)state;
    assert_false(*first);
    for (size_t i = 1; i < NODES; i++)
        assert_ptr_equal(at("verbs_allow_disassociate_destroy", nodes[i]), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_register),           cmocka_unit_test(commands_refuse),
        cmocka_unit_test(what_a_device_has_not_ends), cmocka_unit_test(what_works),
        cmocka_unit_test(one_byte_for_all),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
