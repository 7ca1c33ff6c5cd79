/* SPDX-License-Identifier: BSD-2-Clause */
/* Which device an id gets by its address, and what happens where there is none. */
#include "cm_kit.h"
#include "cm_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- a device for each interface ---- */

static void an_address_has_its_device(void **state)
{
    static const struct {
        const char *addr, *device;
    } rows[] = {
        {"10.77.0.1", "aw0"}, {"10.77.1.1", "aw1"},   {"fd77:0::1", "aw0"},
        {"fd77:1::1", "aw1"}, {"fe80::70%v0", "aw0"}, {"fe80::71%v1", "aw1"},
        {"127.0.0.1", "aw0"}, {"::1", "aw0"},         {"::ffff:10.77.1.1", "aw1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct rdma_cm_id *bound = cm_net_id(), *resolved = cm_net_id();
        assert_int_equal(cm_net_bind(bound, rows[i].addr, 0), 0);
        assert_string_equal(ibv_get_device_name(bound->verbs->device), rows[i].device);
        assert_int_equal(cm_net_resolve(resolved, rows[i].addr, rows[i].addr, htons(7)), 0);
        assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
        assert_ptr_equal(resolved->verbs, bound->verbs);
        assert_ptr_equal(resolved->pd, bound->pd);
        assert_ptr_equal(resolved->pd->context, bound->verbs);
        assert_int_equal(rdma_destroy_id(bound), 0);
        assert_int_equal(rdma_destroy_id(resolved), 0);
    }
}

static void all_devices_are_listed(void **state)
{
    int n;
    (void)state;
    struct ibv_context **list = rdma_get_devices(&n), **again = rdma_get_devices(NULL);
    assert_non_null(list);
    assert_int_equal(n, 2);
    assert_string_equal(ibv_get_device_name(list[0]->device), "aw0");
    assert_string_equal(ibv_get_device_name(list[1]->device), "aw1");
    assert_null(list[2]);
    assert_memory_equal(list, again, 3 * sizeof(*list));
    rdma_free_devices(list);
    rdma_free_devices(again);
}

static void one_listener_serves_both_devices(void **state)
{
    (void)state;
    struct rdma_cm_id *listener = cm_net_listener("0.0.0.0", false);
    uint16_t port = rdma_get_src_port(listener);
    assert_null(listener->verbs);
    struct rdma_cm_id *a = cm_net_begin("10.77.1.1", "10.77.0.1", port), *b = cm_net_finish();
    assert_string_equal(ibv_get_device_name(a->verbs->device), "aw1");
    assert_string_equal(ibv_get_device_name(b->verbs->device), "aw0");
    cm_net_send(a, b);
    cm_net_send(b, a);
    /* What belongs to one is of no use with the other. */
    struct rdma_cm_id *c = cm_net_id();
    assert_int_equal(cm_net_bind(c, "10.77.0.1", 0), 0);
    struct ibv_qp_init_attr attr = {.cap = {.max_send_wr = 1, .max_recv_wr = 1},
                                    .qp_type = IBV_QPT_RC};
    assert_int_equal(rdma_create_qp(c, a->pd, &attr), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_destroy_id(c), 0);
    cm_drop(a);
    cm_drop(b);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

static int run_devices(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_its_device),
        cmocka_unit_test(all_devices_are_listed),
        cmocka_unit_test(one_listener_serves_both_devices),
    };
    return cmocka_run_group_tests_name("a device each", tests, cm_net_open, cm_net_close);
}

/* ---- an interface without a device ---- */

static void an_address_without_a_device(void **state)
{
    (void)state;
    struct rdma_cm_id *id = cm_net_id();
    assert_int_equal(cm_net_bind(id, "10.77.0.1", 0), ENODEV);
    assert_int_equal(cm_net_resolve(id, NULL, "10.77.0.99", htons(7)), 0);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_ADDR_ERROR), -ENODEV);
    assert_null(id->verbs);
    assert_int_equal(rdma_resolve_route(id, 100), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void a_request_without_a_device(void **state)
{
    (void)state;
    struct rdma_cm_id *listener = cm_net_listener("0.0.0.0", false);
    uint16_t port = rdma_get_src_port(listener);
    struct rdma_cm_id *a = cm_net_begin("10.77.1.1", "10.77.0.1", port);
    assert_int_equal(cm_expect(cm_net_channel, RDMA_CM_EVENT_REJECTED), -ECONNREFUSED);
    cm_drop(a);
    a = cm_net_begin(NULL, "10.77.1.1", port);
    struct rdma_cm_id *b = cm_net_finish();
    assert_string_equal(ibv_get_device_name(b->verbs->device), "aw1");
    cm_drop(a);
    cm_drop(b);
    assert_int_equal(rdma_destroy_id(listener), 0);
}

static int run_one_device(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_without_a_device),
        cmocka_unit_test(a_request_without_a_device),
    };
    return cmocka_run_group_tests_name("one interface", tests, cm_net_open, cm_net_close);
}

/* ---- more addresses than a GID table holds ---- */

#define GIDS 256

static void add_many(void)
{
    assert_int_equal(system("for i in 1 2; do for k in $(seq 150); do\n"
                            "    echo addr add 10.78.$i.$k/16 dev v0\n"
                            "done; done | ip -batch -"),
                     0);
}

static bool has_gid(struct ibv_context *ctx, const char *text)
{
    union ibv_gid gid, wanted = {0};
    struct sockaddr_storage addr = cm_net_address(text, 0);
    struct ibv_port_attr attr;
    wanted.raw[10] = wanted.raw[11] = 0xff;
    memcpy(wanted.raw + 12, &((struct sockaddr_in *)&addr)->sin_addr, 4);
    assert_int_equal(ibv_query_port(ctx, 1, &attr), 0);
    assert_in_range(attr.gid_tbl_len, 1, GIDS);
    for (int i = 0; i < attr.gid_tbl_len; i++) {
        assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
        if (memcmp(&gid, &wanted, sizeof(gid)) == 0)
            return true;
    }
    return false;
}

static void all_addresses_are_of_use(void **state)
{
    static const char *const some[] = {"10.77.0.1", "10.78.1.1", "10.78.2.150", "10.77.1.1",
                                       "127.0.0.1"};
    (void)state;
    for (size_t i = 0; i < COUNT(some); i++) {
        struct rdma_cm_id *listener = cm_net_listener(some[i], false);
        assert_non_null(listener->verbs);
        struct rdma_cm_id *a = cm_net_begin(NULL, some[i], rdma_get_src_port(listener));
        struct rdma_cm_id *b = cm_net_finish();
        cm_net_send(a, b);
        cm_drop(a);
        cm_drop(b);
        assert_int_equal(rdma_destroy_id(listener), 0);
    }
}

static void what_matters_has_a_gid(void **state)
{
    struct ibv_context **list = rdma_get_devices(NULL);
    (void)state;
    assert_true(has_gid(list[0], "127.0.0.1"));
    assert_true(has_gid(list[0], "10.77.0.1"));
    assert_true(has_gid(list[0], "10.77.1.1"));
    assert_true(has_gid(list[0], "10.78.1.1"));
    assert_false(has_gid(list[0], "10.78.2.150"));
    rdma_free_devices(list);
}

static int run_many(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_matters_has_a_gid),
                                       cmocka_unit_test(all_addresses_are_of_use)};
    add_many();
    return cmocka_run_group_tests_name("many addresses", tests, cm_net_open, cm_net_close);
}

static int run_many_of_one(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_addresses_are_of_use)};
    add_many();
    return cmocka_run_group_tests_name("many of one", tests, cm_net_open, cm_net_close);
}

/* ---- no device at all ---- */

static void nothing_can_be_made(void **state)
{
    struct rdma_cm_id *id;
    struct rdma_addrinfo *res;
    int n = 7;
    (void)state;
    assert_null(rdma_create_event_channel());
    assert_int_equal(errno, ENODEV);
    errno = 0;
    assert_int_equal(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), -1);
    assert_int_equal(errno, ENODEV);
    errno = 0;
    assert_int_equal(rdma_getaddrinfo("127.0.0.1", NULL, NULL, &res), -1);
    assert_int_equal(errno, ENODEV);
    errno = 0;
    assert_null(rdma_get_devices(&n));
    assert_int_equal(errno, ENODEV);
    assert_int_equal(n, 0);
}

static int run_no_device(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_can_be_made)};
    return cmocka_run_group_tests_name("no device", tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    static const struct cm_net_mode modes[] = {
        {"devices", "ANYWARP_DEVICES", "aw0=v0 aw1=v1", run_devices},
        {"one-device", "ANYWARP_DEVICES", "aw1=v1", run_one_device},
        {"many", NULL, NULL, run_many},
        {"many-of-one", "ANYWARP_DEVICES", "aw0=v0 aw1=v1", run_many_of_one},
        {"no-device", "IBV_CONFIG_DIR", "/nonexistent", run_no_device},
    };
    return cm_net_main(argc, argv, modes, COUNT(modes));
}
