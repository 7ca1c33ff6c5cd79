/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_SOCKET_H
#define KVERBS_LINUX_SOCKET_H

#include <sys/socket.h>

#include <linux/types.h>

#endif
