/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of the process; see atfork.h. */
#include "advice/life.h"
#include "cm/endpoint.h"
#include "engine/deferred.h"
#include "engine/timer.h"
#include "process/left.h"

#include <time.h>

#define WAIT_NS 500000000u /* twice: who takes nothing in the second half is stuck */
#define LOOK_NS 1000000

static void close_all(struct iw_deferred *d)
{
    (void)d;
    iw_cm_disconnect_all();
}

/** @return whether all is delivered */
static bool wait_delivered(void)
{
    uint64_t end = iw_now() + WAIT_NS;
    while (!iw_cm_all_delivered()) {
        if (iw_now() > end)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return true;
}

static void __attribute__((destructor)) at_exit(void)
{
    static struct iw_deferred closing = {.run = close_all};
    if (iw_advice_on())
        iw_life_tell_left();
    iw_tell_left();
    if (iw_cm_all_delivered())
        return;
    iw_deferred_push(&closing);
    for (int i = 0; i < 2 && !wait_delivered(); i++)
        iw_cm_reset_stuck();
}
