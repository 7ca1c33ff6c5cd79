/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/linger.h"

void iw_linger_init(struct iw_linger *l, unsigned us, long processors)
{
    *l = (struct iw_linger){.us = us < IW_LINGER_US ? us : IW_LINGER_US, .next = 1};
    if (processors < 2)
        l->us = 0;
}

bool iw_linger_begin(struct iw_linger *l)
{
    if (l->us && l->rest == 0)
        return true;
    if (l->rest)
        l->rest--;
    return false;
}

void iw_linger_end(struct iw_linger *l, bool found)
{
    if (found) {
        l->next = 1;
        return;
    }
    l->rest = l->next;
    if (l->next < IW_LINGER_REST_MAX)
        l->next = l->next * 2 + 1;
}
