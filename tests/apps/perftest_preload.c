/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into perftest by perftest.sh. Before each report perftest spins for 0.2 s to learn the
 * frequency of the CPU: here that time passes at once. With PERFTEST_PART_ID in the environment the
 * device has that part number: perftest uses inline data and ibv_wr_*() with adapters it knows
 * only.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/time.h>

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    static long calls;
    (void)zone;
    calls++;
    now->tv_sec = calls / 100;
    now->tv_usec = calls % 100 * 10000;
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*query)(struct ibv_context *, struct ibv_device_attr *);
    *(void **)&query = dlsym(RTLD_NEXT, "ibv_query_device");
    int r = query(context, attr);
    const char *part = getenv("PERFTEST_PART_ID");
    if (r == 0 && part)
        attr->vendor_part_id = (uint32_t)strtoul(part, NULL, 0);
    return r;
}
