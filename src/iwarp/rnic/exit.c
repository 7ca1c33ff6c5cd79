/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the process; see atfork.h. */
#include "rnic/cm.h"
#include "rnic/engine.h"

#include <time.h>

#define WAIT_NS 1000000000u
#define LOOK_NS 1000000

static void close_all(struct iw_dirty *d)
{
    (void)d;
    iw_cm_disconnect_all();
}

static void __attribute__((destructor)) at_exit(void)
{
    static struct iw_dirty closing = {.run = close_all};
    uint64_t end = iw_now() + WAIT_NS;
    if (iw_cm_all_delivered())
        return;
    iw_dirty_push(&closing);
    while (!iw_cm_all_delivered() && iw_now() < end)
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}
