/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting by RDMA, and by TCP where the peer speaks nothing else. */
#ifndef ANYWARP_PRELOAD_RS_CONNECT_H
#define ANYWARP_PRELOAD_RS_CONNECT_H

#include "preload/rs_numbers.h"

/**
 * Sees how connecting ended, if it did and nobody has looked yet.
 * @param fd  a number that stands for @p s
 * @return false: it has become plain TCP, and the number is the kernel's
 */
bool pre_settle(int fd, struct pre_socket *s);

/** As pre_get(), and pre_settle() first. */
struct pre_socket *pre_get_settled(int fd);

#endif
