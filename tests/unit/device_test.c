/* SPDX-License-Identifier: BSD-2-Clause */
/* The device list, driver files, attributes and GIDs, on whatever interfaces this host has. */
#include "device/device.h"

#include "env/limits.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- ANYWARP_DEVICES is read once: each row has its own process ---- */

static const struct {
    const char *value;
    const char *names;
    enum ibv_port_state first;
} configured[] = {
    {"", "anywarp0", IBV_PORT_ACTIVE},
    {"a=lo", "a", IBV_PORT_ACTIVE},
    {"a=lo b=nosuch9", "a b", IBV_PORT_ACTIVE},
    {"b=nosuch9 a=lo", "b a", IBV_PORT_DOWN},
    {"a=lo,b=lo", "a b", IBV_PORT_ACTIVE},
    {"  a=lo  ", "a", IBV_PORT_ACTIVE},
    {"a=lo a=lo", "a", IBV_PORT_ACTIVE},
    {"a=lo nonsense", "a", IBV_PORT_ACTIVE},
    {"a", "anywarp0", IBV_PORT_ACTIVE},
    {"=lo a=", "anywarp0", IBV_PORT_ACTIVE},
    {"a/b=lo", "anywarp0", IBV_PORT_ACTIVE},
    {"a=interface-name-that-is-far-too-long-to-be-one", "anywarp0", IBV_PORT_ACTIVE},
    {"a=iwarp: b=roce:", "a b", IBV_PORT_ACTIVE},
    {"b=roce:lo a=iwarp:lo", "b a", IBV_PORT_ACTIVE},
    {"b=roce:nosuch9", "b", IBV_PORT_DOWN},
    {"a=roce", "a", IBV_PORT_DOWN}, /* an interface */
    {"a=roce:x/y b=infiniband:lo b=roce:/", "b", IBV_PORT_DOWN},
};

/** Whether the list is what row @p i says. */
static int configured_ok(size_t i)
{
    char names[512] = "";
    struct ibv_port_attr port;
    int n = -1;
    setenv("ANYWARP_DEVICES", configured[i].value, 1);
    struct ibv_device **list = iw_device_list(&n);
    for (int k = 0; k < n; k++) {
        size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", k ? " " : "", list[k]->name);
        if (iw_device(list[k])->index != k)
            return 0;
    }
    bool ok = strcmp(names, configured[i].names) == 0 && list[n] == NULL &&
              iw_device_query_port(iw_device(list[0]), 1, &port) == 0 &&
              port.state == configured[i].first;
    iw_device_list_free(list);
    return ok;
}

static void test_configured(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(configured) / sizeof(configured[0]); i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(configured_ok(i) ? 0 : 1);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            fail_msg("ANYWARP_DEVICES=\"%s\"", configured[i].value);
    }
}

/* ---- driver files ---- */

static const struct {
    const char *file, *content;
    int devices;
} driver_files[] = {
    {"anywarp.driver", "driver anywarp\n", 1},
    {"other.driver", "driver anywarp", 1},
    {"a.driver", "# ours\n\n \tdriver \t anywarp \n", 1},
    {"a.driver", "driver siw\ndriver anywarp\n", 1},
    {"a.driver", "driver siw\n", 0},
    {"a.driver", "#driver anywarp\n", 0},
    {"a.driver", "driver anywarp2\n", 0},
    {"a.driver", "driver\n", 0},
    {"a.driver", "", 0},
    {"anywarp.conf", "driver anywarp\n", 0},
    {".driver", "driver anywarp\n", 0},
    {".x.driver", "driver anywarp\n", 0},
};

static int devices(void)
{
    int n = -1;
    struct ibv_device **list = iw_device_list(&n);
    assert_non_null(list);
    assert_null(list[n]);
    iw_device_list_free(list);
    return n;
}

static void test_driver_files(void **state)
{
    char dir[] = "test-dir-XXXXXX", path[128];
    (void)state;
    assert_non_null(mkdtemp(dir));
    setenv("IBV_CONFIG_DIR", dir, 1);
    assert_int_equal(devices(), 0);
    for (size_t i = 0; i < sizeof(driver_files) / sizeof(driver_files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, driver_files[i].file);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(driver_files[i].content, f);
        fclose(f);
        if (devices() != driver_files[i].devices)
            fail_msg("row %zu", i);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/fifo.driver", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(devices(), 0);
    unlink(path);
    rmdir(dir);
    assert_int_equal(devices(), 0); /* it does not exist */
    setenv("IBV_CONFIG_DIR", "", 1);
    assert_int_equal(devices(), 1);
    unsetenv("IBV_CONFIG_DIR");
    assert_int_equal(devices(), 1);
}

/* ---- the one device ---- */

static struct iw_device *device(void)
{
    int n;
    struct ibv_device **list = iw_device_list(&n);
    assert_int_equal(n, 1);
    struct iw_device *dev = iw_device(list[0]);
    iw_device_list_free(list);
    return dev;
}

static void test_identity(void **state)
{
    static const char zero[sizeof(((struct iw_device *)0)->provider_words)];
    struct iw_device *dev = device();
    (void)state;
    assert_ptr_equal(dev, device());
    assert_int_equal(dev->index, 0);
    assert_string_equal(dev->pub.name, "anywarp0");
    assert_string_equal(dev->pub.dev_name, "uverbs192");
    assert_string_equal(dev->pub.dev_path, "/sys/class/infiniband_verbs/uverbs192");
    assert_string_equal(dev->pub.ibdev_path, "/sys/class/infiniband/anywarp0");
    assert_int_equal(dev->pub.node_type, IBV_NODE_RNIC);
    assert_int_equal(dev->pub.transport_type, IBV_TRANSPORT_IWARP);
    assert_int_equal(sizeof(zero) >= 64, 1);
    assert_memory_equal((char *)dev + sizeof(struct ibv_device), zero, sizeof(zero));
}

static void test_guid(void **state)
{
    struct iw_device *dev = device();
    struct ibv_gid_entry e;
    (void)state;
    uint64_t guid = be64toh(iw_device_guid(dev));
    assert_int_equal(iw_device_gid(dev, 1, 0, &e), 0);
    const uint8_t *m = e.gid.raw;
    assert_int_equal(guid >> 40, (uint64_t)(m[0] ^ 2) << 16 | m[1] << 8 | m[2]);
    assert_int_equal(guid >> 24 & 0xffff, 0xfffe);
    assert_int_equal(guid & 0xffffff, (uint64_t)m[3] << 16 | m[4] << 8 | m[5]);
    assert_int_equal(m[0] & 1, 0); /* no group address */
    assert_int_not_equal(guid & ~0xfffe000000ull, 0x0200000000000000);
}

static void test_attributes(void **state)
{
    struct iw_device *dev = device();
    struct ibv_device_attr a;
    (void)state;
    memset(&a, 0xff, sizeof(a));
    iw_device_query(dev, &a);
    assert_int_not_equal(a.fw_ver[0], 0);
    assert_int_equal(a.node_guid, iw_device_guid(dev));
    assert_int_equal(a.sys_image_guid, a.node_guid);
    /* An identifier of 24 bits with the bit for local use, so that it is no vendor's. */
    assert_int_equal(a.vendor_id >> 24, 0);
    assert_int_equal(a.vendor_id >> 16 & 3, 2);
    assert_int_equal(a.max_qp_wr, IW_MAX_QP_WR);
    assert_int_equal(a.max_sge, IW_MAX_SGE);
    assert_int_equal(a.max_cqe, IW_MAX_CQE);
    assert_int_equal(a.max_qp_rd_atom, IW_MAX_DEPTH);
    assert_int_equal(a.max_qp_init_rd_atom, IW_MAX_DEPTH);
    assert_int_equal(a.page_size_cap, sysconf(_SC_PAGESIZE));
    assert_int_equal(a.phys_port_cnt, 1);
    assert_int_equal(a.max_pkeys, 1);
    assert_int_equal(a.max_ah, IW_MAX_AH);
    assert_int_equal(a.max_mcast_grp, IW_MAX_MCAST_GRP);
    assert_int_equal(a.max_mcast_qp_attach, IW_MAX_QP);
}

static void test_port(void **state)
{
    struct iw_device *dev = device();
    struct ibv_port_attr p;
    (void)state;
    assert_int_equal(iw_device_query_port(dev, 0, &p), EINVAL);
    assert_int_equal(iw_device_query_port(dev, 2, &p), EINVAL);
    memset(&p, 0xff, sizeof(p));
    assert_int_equal(iw_device_query_port(dev, 1, &p), 0);
    assert_int_equal(p.state, IBV_PORT_ACTIVE);
    assert_int_equal(p.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(p.phys_state, 5);
    assert_int_equal(p.pkey_tbl_len, 1);
    assert_int_equal(p.gid_tbl_len, iw_device_gids(dev));
    assert_int_equal(p.max_msg_sz, 1u << 31);
    assert_in_range(p.active_mtu, IBV_MTU_256, p.max_mtu);
    assert_int_equal(p.lid | p.sm_lid | p.lmc, 0);
}

static void test_gids(void **state)
{
    static const uint8_t zero[10], loopback[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    struct iw_device *dev = device();
    struct ibv_gid_entry e;
    bool found = false;
    (void)state;
    unsigned n = iw_device_gids(dev);
    assert_in_range(n, 2, 256); /* tests need loopback */
    for (unsigned i = 0; i < n; i++) {
        memset(&e, 0xff, sizeof(e));
        assert_int_equal(iw_device_gid(dev, 1, i, &e), 0);
        assert_int_equal(e.gid_index, i);
        assert_int_equal(e.port_num, 1);
        assert_int_equal(e.gid_type, i ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB);
        if (i == 0)
            assert_memory_equal(e.gid.raw + 6, zero, 10);
        else
            assert_int_not_equal(e.ndev_ifindex, 0);
        found |= memcmp(e.gid.raw, loopback, 16) == 0;
    }
    assert_true(found);
    assert_int_equal(iw_device_gid(dev, 1, n, &e), ENODATA);
    assert_int_equal(iw_device_gid(dev, 1, UINT32_MAX, &e), ENODATA);
    assert_int_equal(iw_device_gid(dev, 0, 0, &e), EINVAL);
    assert_int_equal(iw_device_gid(dev, 2, 0, &e), EINVAL);
}

/* ---- a RoCE device ---- */

/** Of the loopback interface; in a process of its own. */
static void roce(void)
{
    static const uint8_t mapped[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};
    static const uint8_t link_local[16] = {0xfe, 0x80, [10] = 0x5e, 0xfe, 127, 0, 0, 1};
    struct ibv_device_attr a, iwarp;
    struct ibv_port_attr p;
    struct ibv_gid_entry e;
    int n;
    setenv("ANYWARP_DEVICES", "w=iwarp:lo r=roce:lo d=roce:", 1);
    struct ibv_device **list = iw_device_list(&n);
    assert_int_equal(n, 3);
    struct iw_device *dev = iw_device(list[1]);
    assert_int_equal(dev->pub.node_type, IBV_NODE_CA);
    assert_int_equal(dev->pub.transport_type, IBV_TRANSPORT_IB);

    iw_device_query(dev, &a);
    iw_device_query(iw_device(list[0]), &iwarp);
    assert_int_not_equal(a.node_guid, iwarp.node_guid);
    assert_int_equal(a.sys_image_guid, iwarp.sys_image_guid);
    assert_int_equal(a.max_ah, IW_MAX_AH);
    assert_int_equal(iwarp.max_ah, IW_MAX_AH);
    assert_int_equal(iw_device_query_port(dev, 1, &p), 0);
    assert_int_equal(p.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(p.flags, IBV_QPF_GRH_REQUIRED);
    assert_int_equal(p.gid_tbl_len, 2);

    assert_int_equal(iw_device_gid(dev, 1, 0, &e), 0);
    assert_memory_equal(e.gid.raw, mapped, 16);
    assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_not_equal(e.ndev_ifindex, 0);
    assert_int_equal(iw_device_gid(dev, 1, 1, &e), 0);
    assert_memory_equal(e.gid.raw, link_local, 16);
    assert_int_equal(e.gid_type, IBV_GID_TYPE_ROCE_V2);
    assert_int_equal(e.gid_index, 1);
    assert_int_equal(iw_device_gid(dev, 1, 2, &e), ENODATA);

    assert_int_equal(iw_device_gid(iw_device(list[2]), 1, 0, &e), 0); /* whichever it is */
    assert_int_not_equal(e.gid.global.interface_id, 0);
    iw_device_list_free(list);
}

static void test_roce(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        roce();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_configured), /* first: before this process has read its own */
        cmocka_unit_test(test_roce),       cmocka_unit_test(test_driver_files),
        cmocka_unit_test(test_identity),   cmocka_unit_test(test_guid),
        cmocka_unit_test(test_attributes), cmocka_unit_test(test_port),
        cmocka_unit_test(test_gids),
    };
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
