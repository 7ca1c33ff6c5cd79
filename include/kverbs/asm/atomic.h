/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_ASM_ATOMIC_H
#define KVERBS_ASM_ATOMIC_H

#include <linux/atomic.h>

#endif
