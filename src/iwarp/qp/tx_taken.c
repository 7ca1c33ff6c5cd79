/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_taken.h"

#include "common/sys.h"
#include "engine/timer.h"

#include <sched.h>

#define YIELDS  100 /* of a wait, which then sleeps */
#define NAP_NS  50000
#define WAIT_NS 1000000000

void iw_sent_wait(struct iw_sent *s)
{
    uint64_t end = iw_now() + WAIT_NS;
    unsigned yields = 0;
    while (atomic_load_explicit(&s->turns, memory_order_acquire) == s->came_in && iw_now() < end)
        if (++yields < YIELDS)
            sched_yield();
        else
            sys_nap(NAP_NS);
    s->came_in++; /* the others that the same bytes bring do not wait */
}
