/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of UDP whose datagrams tell which of our addresses they came to. */
#ifndef ANYWARP_CM_UDP_H
#define ANYWARP_CM_UDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/** Between which addresses a datagram goes; both of the family of the socket. */
struct iw_udp_way {
    struct sockaddr_storage local, peer;
};

/** A bound socket that does not block. @return descriptor above 1023 if possible, or negative errno
 */
int iw_udp_open(const struct sockaddr *addr, bool afonly);
void iw_udp_set_tos(int fd, uint8_t tos);

/**
 * @param way  [out] with the port of the socket as the local one
 * @return bytes of the datagram, which may be more than @p size, or a negative errno: -EAGAIN, or
 * -ECONNREFUSED of a connected socket whose peer has no such port
 */
long iw_udp_recv(int fd, void *buf, size_t size, struct iw_udp_way *way);

/** @return 0 or a negative errno */
int iw_udp_send(int fd, const void *buf, size_t len, const struct iw_udp_way *way);

#endif
