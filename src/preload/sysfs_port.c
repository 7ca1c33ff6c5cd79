/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/sysfs_port.h"

#include <net/if.h>
#include <stdio.h>
#include <string.h>

void sysfs_words(char line[SYSFS_LINE], const uint8_t *bytes, int words)
{
    for (int i = 0, n = 0; i < words; i++)
        n += snprintf(line + n, SYSFS_LINE - (size_t)n, "%s%02x%02x", i ? ":" : "", bytes[2 * i],
                      bytes[2 * i + 1]);
}

int sysfs_port_file(const char *path, char file[16])
{
    int index, end = 0;
    if (sscanf(path, "ports/1/%15[a-z]/%3d%n", file, &index, &end) == 2 && !strcmp(file, "gids") &&
        !path[end] && index >= 0)
        return index;
    if (sscanf(path, "ports/1/gid_attrs/%15[a-z]/%3d%n", file, &index, &end) == 2 &&
        (!strcmp(file, "types") || !strcmp(file, "ndevs")) && !path[end] && index >= 0)
        return index;
    if (sscanf(path, "ports/1/%15[a-z_]%n", file, &end) == 1 && !path[end] &&
        (!strcmp(file, "state") || !strcmp(file, "phys_state") || !strcmp(file, "rate")))
        return 0;
    return -1;
}

/* As Linux writes them. */
static const char *state_of(enum ibv_port_state state)
{
    static const char *const names[] = {"0: NOP",   "1: DOWN",   "2: INIT",
                                        "3: ARMED", "4: ACTIVE", "5: ACTIVE_DEFER"};
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : names[0];
}

static const char *phys_state_of(uint8_t state)
{
    static const char *const names[] = {
        "0: <unknown>", "1: Sleep", "2: Polling", "3: Disabled", "4: PortConfigurationTraining",
        "5: LinkUp"};
    return state < sizeof names / sizeof names[0] ? names[state] : names[0];
}

static void print_rate(char line[SYSFS_LINE], const struct ibv_port_attr *port)
{
    static const struct {
        uint8_t speed;
        uint16_t tenths; /* of a Gb/s, a lane */
        const char *name;
    } speeds[] = {{1, 25, "SDR"},   {2, 50, "DDR"},   {4, 100, "QDR"},  {8, 100, "FDR10"},
                  {16, 140, "FDR"}, {32, 250, "EDR"}, {64, 500, "HDR"}, {128, 1000, "NDR"}};
    static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    unsigned n = port->active_width < sizeof lanes ? lanes[port->active_width] : 0, i = 0;
    while (i < sizeof speeds / sizeof speeds[0] - 1 && speeds[i].speed != port->active_speed)
        i++;
    unsigned tenths = n * speeds[i].tenths;
    if (tenths % 10)
        snprintf(line, SYSFS_LINE, "%u.%u Gb/sec (%uX %s)", tenths / 10, tenths % 10, n,
                 speeds[i].name);
    else
        snprintf(line, SYSFS_LINE, "%u Gb/sec (%uX %s)", tenths / 10, n, speeds[i].name);
}

static void port_line(struct ibv_context *context, const char *file, char line[SYSFS_LINE])
{
    struct ibv_port_attr port = {0};
    (ibv_query_port)(context, 1, (struct _compat_ibv_port_attr *)&port);
    if (!strcmp(file, "state"))
        snprintf(line, SYSFS_LINE, "%s", state_of(port.state));
    else if (!strcmp(file, "phys_state"))
        snprintf(line, SYSFS_LINE, "%s", phys_state_of(port.phys_state));
    else
        print_rate(line, &port);
}

void sysfs_port_line(struct ibv_context *context, const char *file, int index,
                     char line[SYSFS_LINE])
{
    struct ibv_gid_entry entry = {0};
    bool of_gid = !strcmp(file, "gids") || !strcmp(file, "types") || !strcmp(file, "ndevs");
    if (of_gid && ibv_query_gid_ex(context, 1, (uint32_t)index, &entry, 0) != 0)
        entry = (struct ibv_gid_entry){0};
    if (!of_gid)
        port_line(context, file, line);
    else if (!strcmp(file, "gids"))
        sysfs_words(line, entry.gid.raw, 8);
    else if (!strcmp(file, "types"))
        strcpy(line, entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
    else if (!if_indextoname(entry.ndev_ifindex, line))
        strcpy(line, "lo");
}
