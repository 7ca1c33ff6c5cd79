/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_NET_IPV6_H
#define KVERBS_NET_IPV6_H

#include <linux/in6.h>

#endif
