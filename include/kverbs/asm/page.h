/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_ASM_PAGE_H
#define KVERBS_ASM_PAGE_H

#include <linux/mm.h>

#endif
