/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_devinfo: what the devices say of themselves. */
#include "devinfo.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *device; /* NULL: all */
    unsigned port;      /* 0: all */
    bool list, verbose;
};

static const char usage[] = "usage: ibv_devinfo [-v] [-d DEVICE] [-i PORT]\n"
                            "       ibv_devinfo -l\n"
                            "\n"
                            "  -d, --ib-dev=DEVICE   this device (default: all)\n"
                            "  -i, --ib-port=PORT    this port (default: all)\n"
                            "  -l, --list            only the names of the devices\n"
                            "  -v, --verbose         all attributes\n"
                            "  -h, --help\n";

static bool parse_port(const char *s, unsigned *port)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(s, &end, 10);
    *port = (unsigned)n;
    return *s >= '0' && *s <= '9' && !*end && !errno && n >= 1 && n <= UINT8_MAX;
}

static struct request parse(int argc, char **argv)
{
    static const struct option options[] = {
        {"ib-dev", required_argument, NULL, 'd'}, {"ib-port", required_argument, NULL, 'i'},
        {"list", no_argument, NULL, 'l'},         {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct request r = {0};
    bool ok = true;
    for (int c; ok && (c = getopt_long(argc, argv, "d:i:lvh", options, NULL)) != -1;) {
        if (c == 'h') {
            fputs(usage, stdout);
            exit(0);
        }
        if (c == 'd')
            r.device = optarg;
        ok = c != '?' && (c != 'i' || parse_port(optarg, &r.port));
        r.list |= c == 'l';
        r.verbose |= c == 'v';
    }
    if (!ok || optind < argc) {
        fputs(usage, stderr);
        exit(2);
    }
    return r;
}

static int failed(const char *device, const char *what, int err)
{
    fprintf(stderr, "ibv_devinfo: %s: %s: %s\n", device, what, strerror(err));
    return 1;
}

static int print_open(struct ibv_context *ctx, const struct request *r)
{
    const char *name = ibv_get_device_name(ctx->device);
    unsigned ports;
    int err = devinfo_device(ctx, r->verbose, &ports);
    if (err)
        return failed(name, "cannot query the device", err);
    if (r->port > ports)
        return failed(name, "there is no such port", EINVAL);
    for (unsigned port = r->port ? r->port : 1; port <= (r->port ? r->port : ports); port++) {
        err = devinfo_port(ctx, (uint8_t)port, r->verbose);
        if (err)
            return failed(name, "cannot query the port", err);
    }
    putchar('\n');
    return 0;
}

static int print_device(struct ibv_device *device, const struct request *r)
{
    struct ibv_context *ctx = ibv_open_device(device);
    if (!ctx)
        return failed(ibv_get_device_name(device), "cannot open", errno);
    int status = print_open(ctx, r);
    ibv_close_device(ctx);
    return status;
}

static int print_names(struct ibv_device **devices, int n)
{
    printf("%d HCA%s found:\n", n, n == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        printf("\t%s\n", ibv_get_device_name(devices[i]));
    putchar('\n');
    return 0;
}

static int print_all(struct ibv_device **devices, int n, const struct request *r)
{
    int found = 0, status = 0;
    for (int i = 0; i < n; i++) {
        if (r->device && strcmp(r->device, ibv_get_device_name(devices[i])) != 0)
            continue;
        status |= print_device(devices[i], r);
        found++;
    }
    if (!found && r->device)
        fprintf(stderr, "IB device '%s' wasn't found\n", r->device);
    else if (!found)
        fputs("No IB devices found\n", stderr);
    return found ? status : 1;
}

int main(int argc, char **argv)
{
    struct request r = parse(argc, argv);
    int n;
    struct ibv_device **devices = ibv_get_device_list(&n);
    if (!devices)
        return failed("libibverbs", "cannot list the devices", errno);
    int status = r.list ? print_names(devices, n) : print_all(devices, n, &r);
    ibv_free_device_list(devices);
    return fflush(stdout) != 0 || ferror(stdout) ? 1 : status;
}
