/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/pair.h"
#include "tools/text.h"
#include "tools/tool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct device {
    const char *name;
    char guid[20];
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    const char *state;
    char (*addresses)[INET6_ADDRSTRLEN];
    int n_addresses;
};

static const char *transport_name(enum ibv_transport_type transport)
{
    return transport == IBV_TRANSPORT_IWARP ? "iWARP" : "RoCE v2";
}

/**
 * Writes the address of a GID; false: it has none. With iWARP GID 0 is a MAC address and zeros,
 * with RoCE GID 1 says the IPv4 address of GID 0 once more.
 */
static bool gid_address(const union ibv_gid *gid, char *text)
{
    static const uint8_t once_more[12] = {0xfe, 0x80, [10] = 0x5e, 0xfe};
    const struct in6_addr *a = (const void *)gid->raw;
    if (!gid->global.interface_id || memcmp(gid->raw, once_more, sizeof(once_more)) == 0)
        return false;
    if (IN6_IS_ADDR_V4MAPPED(a))
        return inet_ntop(AF_INET, gid->raw + 12, text, INET6_ADDRSTRLEN);
    return inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static void find_addresses(const struct pair *p, struct ibv_context *ctx, struct device *d)
{
    union ibv_gid gid;
    d->addresses = calloc((size_t)d->port.gid_tbl_len + 1, sizeof(d->addresses[0]));
    if (!d->addresses)
        tool_die(TOOL_FAILED, "out of memory");
    for (int i = 0; i < d->port.gid_tbl_len; i++)
        if (p->query_gid(ctx, 1, i, &gid) == 0 && gid_address(&gid, d->addresses[d->n_addresses]))
            d->n_addresses++;
}

static void look_at(const struct pair *p, struct ibv_device *device, struct device *d)
{
    struct ibv_context *ctx = p->open_device(device);
    uint64_t guid = be64toh(p->get_device_guid(device));
    *d = (struct device){.name = p->get_device_name(device)};
    if (!ctx)
        tool_die(TOOL_FAILED, "%s: cannot open: %s", d->name, strerror(errno));
    if (p->query_device(ctx, &d->attr) != 0 || p->query_port(ctx, 1, (void *)&d->port) != 0)
        tool_die(TOOL_FAILED, "%s: cannot query", d->name);
    snprintf(d->guid, sizeof(d->guid), "%04" PRIx64 ":%04" PRIx64 ":%04" PRIx64 ":%04" PRIx64,
             guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff, guid & 0xffff);
    d->state = p->port_state_str(d->port.state);
    find_addresses(p, ctx, d);
    p->close_device(ctx);
}

static void print_human(const struct ibv_device *device, const struct device *d)
{
    const struct ibv_device_attr *a = &d->attr;
    printf("%s: %s, %s\n", d->name, transport_name(device->transport_type), d->state);
    printf("    node GUID   %s\n", d->guid);
    printf("    version     %s\n", a->fw_ver);
    printf("    QPs         %d, each with %d work requests of %d SGEs, %d reads and atomics\n",
           a->max_qp, a->max_qp_wr, a->max_sge, a->max_qp_rd_atom);
    printf("    CQs         %d, each with %d entries\n", a->max_cq, a->max_cqe);
    printf("    SRQs        %d, each with %d work requests\n", a->max_srq, a->max_srq_wr);
    printf("    MRs         %d\n", a->max_mr);
    printf("    message     up to %" PRIu32 " bytes\n", d->port.max_msg_sz);
    for (int i = 0; i < d->n_addresses; i++)
        printf("    %-12s%s\n", i == 0 ? "addresses" : "", d->addresses[i]);
}

static void print_json(const struct ibv_device *device, const struct device *d)
{
    const struct ibv_device_attr *a = &d->attr;
    const struct {
        const char *key;
        uint64_t value;
    } limits[] = {
        {"ports", a->phys_port_cnt},
        {"max_qp", (uint64_t)a->max_qp},
        {"max_qp_wr", (uint64_t)a->max_qp_wr},
        {"max_sge", (uint64_t)a->max_sge},
        {"max_qp_rd_atom", (uint64_t)a->max_qp_rd_atom},
        {"max_cq", (uint64_t)a->max_cq},
        {"max_cqe", (uint64_t)a->max_cqe},
        {"max_srq", (uint64_t)a->max_srq},
        {"max_srq_wr", (uint64_t)a->max_srq_wr},
        {"max_mr", (uint64_t)a->max_mr},
        {"max_msg_sz", d->port.max_msg_sz},
    };
    fputc('{', stdout);
    json_member(stdout, "name", d->name);
    json_member(stdout, "transport", transport_name(device->transport_type));
    json_member(stdout, "node_guid", d->guid);
    json_member(stdout, "fw_ver", a->fw_ver);
    json_member(stdout, "port_state", d->state);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        printf("\"%s\": %" PRIu64 ", ", limits[i].key, limits[i].value);
    fputs("\"addresses\": [", stdout);
    for (int i = 0; i < d->n_addresses; i++)
        printf("%s\"%s\"", i ? ", " : "", d->addresses[i]);
    fputs("]}", stdout);
}

static int print_devices(const struct pair *p, bool json)
{
    int n;
    struct ibv_device **list = p->get_device_list(&n);
    if (!list)
        tool_die(TOOL_FAILED, "cannot list the devices: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct device d;
        look_at(p, list[i], &d);
        if (json)
            fputs(i ? ",\n " : "[", stdout);
        (json ? print_json : print_human)(list[i], &d);
        free(d.addresses);
    }
    p->free_device_list(list);
    if (json)
        puts(n ? "]" : "[]");
    else if (n == 0)
        tool_die(TOOL_FAILED, "no device: see anywarp doctor");
    return n ? 0 : TOOL_FAILED;
}

static int devices(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'}, {0}};
    struct pair p;
    bool json = false;
    for (int c; (c = getopt_long(argc, argv, "j", options, NULL)) != -1;) {
        if (c != 'j')
            return TOOL_USAGE;
        json = true;
    }
    if (optind != argc)
        tool_die(TOOL_USAGE, "devices takes no argument");
    tool_check_libraries();
    const char *why = pair_load(&p);
    if (why)
        tool_die(TOOL_FAILED, "%s", why);
    return print_devices(&p, json);
}

const struct tool tool_devices = {
    .name = "devices",
    .arguments = "[--json]",
    .summary = "the devices that programs see on anywarp",
    .help = "Prints what programs see that run on anywarp in this environment: each device\n"
            "with its limits and the addresses that it can be reached at. It fails if there\n"
            "is none.\n"
            "\n"
            "  -j, --json   as an array of JSON objects\n",
    .run = devices,
};
