/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_ASM_TIMEX_H
#define KVERBS_ASM_TIMEX_H

#include <linux/timex.h>

#endif
