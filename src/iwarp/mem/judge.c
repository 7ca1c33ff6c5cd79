/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/judge.h"

#include "mem/gone.h"
#include "mem/quiesce.h"
#include "mem/stag.h"

enum iw_key iw_key_judge(uint32_t stag, const struct iw_pd *pd, unsigned *access)
{
    struct iw_region *r, *swapped;
    *access = 0;
    iw_copy_begin(pd);
    bool good = iw_stag_find(stag, pd, &r) == IW_STAG_OWN && !iw_region_is_dead(r);
    bool turned = iw_stag_find(__builtin_bswap32(stag), pd, &swapped) == IW_STAG_OWN &&
                  !iw_region_is_dead(swapped);
    if (good)
        *access = __atomic_load_n(&r->grant.access, __ATOMIC_ACQUIRE);
    iw_copy_end();
    return good                   ? IW_KEY_GOOD
           : iw_gone_lately(stag) ? IW_KEY_GONE
           : turned               ? IW_KEY_SWAPPED
                                  : IW_KEY_UNKNOWN;
}
