/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as programs ask for them. */
#ifndef ANYWARP_RS_ADDRESS_H
#define ANYWARP_RS_ADDRESS_H

#include <sys/socket.h>

/** Copies at most *len bytes and sets *len to the address's size. */
void rs_copy_address(const struct sockaddr *from, struct sockaddr *to, socklen_t *len);

#endif
