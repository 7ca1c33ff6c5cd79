/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/gone.h"

#include "advice/advice.h"
#include "env/log.h"

#include <stdatomic.h>

#define KEPT 64

/* STag 0 is none of ours. */
static _Atomic uint32_t gone[KEPT];
static atomic_uint next;

void iw_gone_note(uint32_t stag)
{
    if (iw_log_on(IW_LOG_WARN) || iw_advice_on())
        atomic_store(&gone[atomic_fetch_add(&next, 1) % KEPT], stag);
}

bool iw_gone_lately(uint32_t stag)
{
    for (unsigned i = 0; i < KEPT; i++)
        if (stag && atomic_load(&gone[i]) == stag)
            return true;
    return false;
}
