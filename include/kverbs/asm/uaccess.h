/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_ASM_UACCESS_H
#define KVERBS_ASM_UACCESS_H

#include <linux/uaccess.h>

#endif
