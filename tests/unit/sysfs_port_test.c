/* SPDX-License-Identifier: BSD-2-Clause */
/* The files below ports/1, as Linux would write them. */
#include "preload/sysfs_port.h"

#include "vectors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct ibv_port_attr port;
static struct ibv_gid_entry entry;
static int gid_error;

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *attr)
{
    assert_null(context);
    assert_int_equal(number, 1);
    memcpy(attr, &port, sizeof(port));
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index,
                      struct ibv_gid_entry *e, uint32_t flags, size_t size)
{
    assert_null(context);
    assert_int_equal(number, 1);
    assert_int_equal(index, 3);
    assert_int_equal(flags, 0);
    assert_int_equal(size, sizeof(*e));
    memset(e, 0xff, sizeof(*e)); /* what it leaves there when it fails is nobody's */
    if (!gid_error)
        *e = entry;
    return gid_error;
}

static void paths(void **state)
{
    static const struct {
        const char *path, *file;
        int index;
    } rows[] = {
        {"ports/1/gids/0", "gids", 0},
        {"ports/1/gids/15", "gids", 15},
        {"ports/1/gid_attrs/types/7", "types", 7},
        {"ports/1/gid_attrs/ndevs/2", "ndevs", 2},
        {"ports/1/state", "state", 0},
        {"ports/1/phys_state", "phys_state", 0},
        {"ports/1/rate", "rate", 0},
        {"ports/2/gids/0", NULL, -1},
        {"ports/1/gids", NULL, -1},
        {"ports/1/gids/", NULL, -1},
        {"ports/1/gids/x", NULL, -1},
        {"ports/1/gids/1x", NULL, -1},
        {"ports/1/gids/-1", NULL, -1},
        {"ports/1/pkeys/0", NULL, -1},
        {"ports/1/gid_attrs/types/-1", NULL, -1},
        {"ports/1/gid_attrs/gids/0", NULL, -1},
        {"ports/1/gid_attrs/types/0/", NULL, -1},
        {"ports/1/link_layer", NULL, -1},
        {"ports/1/state/0", NULL, -1},
        {"node_type", NULL, -1},
        {"", NULL, -1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char file[16] = "";
        int index = sysfs_port_file(rows[i].path, file);
        if (index != rows[i].index || (rows[i].file && strcmp(file, rows[i].file) != 0))
            fail_msg("%s: %d, %s", rows[i].path, index, file);
    }
}

static void holds(const char *file, const char *expected)
{
    char line[SYSFS_LINE];
    sysfs_port_line(NULL, file, 3, line);
    assert_string_equal(line, expected);
}

static void entries(void **state)
{
    (void)state;
    for (size_t i = 0; i < 16; i++)
        entry.gid.raw[i] = (uint8_t)(0xf0 + i);
    entry.gid_type = IBV_GID_TYPE_ROCE_V2;
    entry.ndev_ifindex = 1; /* loopback, in every namespace */
    holds("gids", "f0f1:f2f3:f4f5:f6f7:f8f9:fafb:fcfd:feff");
    holds("types", "RoCE v2");
    holds("ndevs", "lo");
    entry.gid_type = IBV_GID_TYPE_ROCE_V1;
    entry.ndev_ifindex = 0;
    holds("types", "IB/RoCE v1");
    holds("ndevs", "lo");
    gid_error = ENODATA;
    holds("gids", "0000:0000:0000:0000:0000:0000:0000:0000");
    holds("types", "IB/RoCE v1");
}

static void states(void **state)
{
    static const char *const logical[] = {"0: NOP",    "1: DOWN",         "2: INIT", "3: ARMED",
                                          "4: ACTIVE", "5: ACTIVE_DEFER", "0: NOP"};
    static const char *const physical[] = {
        "0: <unknown>", "1: Sleep",    "2: Polling", "3: Disabled", "4: PortConfigurationTraining",
        "5: LinkUp",    "0: <unknown>"};
    (void)state;
    for (size_t i = 0; i < COUNT(logical); i++) {
        port.state = (enum ibv_port_state)i;
        holds("state", logical[i]);
        port.phys_state = (uint8_t)i;
        holds("phys_state", physical[i]);
    }
}

static void rates(void **state)
{
    static const struct {
        uint8_t width, speed;
        const char *line;
    } rows[] = {
        {1, 1, "2.5 Gb/sec (1X SDR)"},   {2, 1, "10 Gb/sec (4X SDR)"},
        {2, 2, "20 Gb/sec (4X DDR)"},    {4, 4, "80 Gb/sec (8X QDR)"},
        {2, 8, "40 Gb/sec (4X FDR10)"},  {8, 16, "168 Gb/sec (12X FDR)"},
        {16, 32, "50 Gb/sec (2X EDR)"},  {2, 64, "200 Gb/sec (4X HDR)"},
        {2, 128, "400 Gb/sec (4X NDR)"}, {3, 1, "0 Gb/sec (0X SDR)"},
        {255, 32, "0 Gb/sec (0X EDR)"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        port.active_width = rows[i].width;
        port.active_speed = rows[i].speed;
        holds("rate", rows[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),
        cmocka_unit_test(entries),
        cmocka_unit_test(states),
        cmocka_unit_test(rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
