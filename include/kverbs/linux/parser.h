/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_PARSER_H
#define KVERBS_LINUX_PARSER_H

#include <linux/string.h>

#endif
