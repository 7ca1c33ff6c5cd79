/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_devices: the names and node GUIDs of the devices. */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

int main(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    int n, c = getopt_long(argc, argv, "h", options, NULL);
    if (c != -1 || optind < argc) {
        fputs("usage: ibv_devices\n", c == 'h' ? stdout : stderr);
        return c == 'h' ? 0 : 2;
    }
    struct ibv_device **devices = ibv_get_device_list(&n);
    if (!devices) {
        fprintf(stderr, "ibv_devices: cannot list the devices: %s\n", strerror(errno));
        return 1;
    }
    printf("    %-16s\t   %s\n", "device", "node GUID");
    printf("    %-16s\t%s\n", "------", "----------------");
    for (int i = 0; i < n; i++)
        printf("    %-16s\t%016" PRIx64 "\n", ibv_get_device_name(devices[i]),
               be64toh(ibv_get_device_guid(devices[i])));
    ibv_free_device_list(devices);
    return fflush(stdout) != 0 || ferror(stdout);
}
