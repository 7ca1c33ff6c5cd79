/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(): memory is not pinned, so nothing has to be kept from the child. */
#include "advice/life.h"
#include "verbs/export.h"

VERBS_EXPORT int ibv_fork_init(void)
{
    if (iw_advice_on())
        iw_life_fork_safe();
    return 0;
}

VERBS_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

/* For provider libraries; no public header declares them. */
VERBS_EXPORT int ibv_dontfork_range(void *base, size_t size);
VERBS_EXPORT int ibv_dofork_range(void *base, size_t size);

int ibv_dontfork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
    (void)base, (void)size;
    return 0;
}
