/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/processors.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static cpu_set_t known;
static atomic_uint count; /* of those; 0: nobody was asked */

void iw_processors_add(void)
{
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof(mine), &mine)) /* there are more than fit */
        memset(&mine, 0xff, sizeof(mine));
    CPU_OR(&known, &known, &mine);
    atomic_store_explicit(&count, (unsigned)CPU_COUNT(&known), memory_order_relaxed);
}

unsigned iw_processors(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

bool iw_processors_are_few(unsigned threads)
{
    static int online;
    if (threads > 1)
        return threads > iw_processors();
    if (!online)
        online = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return threads == 1 && online == 1;
}
