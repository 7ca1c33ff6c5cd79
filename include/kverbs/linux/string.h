/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_STRING_H
#define KVERBS_LINUX_STRING_H

#include <string.h>

#include <linux/types.h>

size_t kverbs_strlcpy(char *to, const char *from, size_t size);
#define strlcpy kverbs_strlcpy

#endif
