/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/ephemeral.h"

#include "common/sys.h"
#include "env/random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define RANGE_FILE "/proc/sys/net/ipv4/ip_local_port_range"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned low, count;
static atomic_uint next;

static void read_range(void)
{
    char text[64];
    unsigned from, to;
    uint32_t start;
    int fd = (int)sys_open(RANGE_FILE, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    long n = sys_read(fd, text, sizeof(text) - 1);
    sys_close(fd);
    if (n <= 0 || iw_random32(&start))
        return;
    text[n] = 0;
    if (sscanf(text, "%u %u", &from, &to) != 2 || from == 0 || to < from || to > UINT16_MAX)
        return;
    low = from;
    count = to - from + 1;
    atomic_init(&next, start);
}

uint16_t iw_ephemeral_port(void)
{
    pthread_once(&once, read_range);
    return count ? (uint16_t)(low + atomic_fetch_add(&next, 1) % count) : 0;
}
