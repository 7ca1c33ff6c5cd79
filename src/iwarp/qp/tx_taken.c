/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/tx_taken.h"

#include "common/patience.h"
#include "engine/timer.h"

#define WAIT_NS 1000000000

void iw_sent_wait(struct iw_sent *s)
{
    uint64_t end = iw_now() + WAIT_NS;
    unsigned turn = 0;
    while (atomic_load_explicit(&s->turns, memory_order_acquire) == s->came_in && iw_now() < end)
        patience(turn++);
    s->came_in++; /* the others that the same bytes bring do not wait */
}
