/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as programs ask for them. */
#ifndef ANYWARP_RS_ADDRESS_H
#define ANYWARP_RS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/**
 * Copies at most *len bytes and sets *len to the address's size.
 * @param six  for a socket of IPv6: an address of IPv4 becomes ::ffff:a.b.c.d
 */
void rs_copy_address(const struct sockaddr *from, bool six, struct sockaddr *to, socklen_t *len);

#endif
