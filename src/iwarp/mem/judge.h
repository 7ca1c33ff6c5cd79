/* SPDX-License-Identifier: BSD-2-Clause */
/* What may be wrong with a key, for who checks a program. */
#ifndef ANYWARP_MEM_JUDGE_H
#define ANYWARP_MEM_JUDGE_H

#include "mem/region.h"

enum iw_key { IW_KEY_GOOD, IW_KEY_GONE, IW_KEY_SWAPPED, IW_KEY_UNKNOWN };

/**
 * Whether @p stag is one of a region that @p pd, a root, may use; gone lately; or in the wrong byte
 * order. Call with no lock held that comes after a QP's.
 * @param access  [out] the rights of a good one
 */
enum iw_key iw_key_judge(uint32_t stag, const struct iw_pd *pd, unsigned *access);

#endif
