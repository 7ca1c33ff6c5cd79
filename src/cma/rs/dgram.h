/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of rsockets. There is no UD queue pair: each is a UDP datagram in the form in which
 * rdma-core's rsockets send the first one to an address, with a header in front. The number of a
 * socket is that of the UDP socket, so the kernel waits for it. It belongs to a child of fork(),
 * too.
 *
 * Functions are those that <rdma/rsocket.h> tells of; for other numbers they fail with EBADF.
 */
#ifndef ANYWARP_RS_DGRAM_H
#define ANYWARP_RS_DGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RS_DGRAM_HEADER_MAX 28
#define RS_DGRAM_MAX        2048 /* header and data */

/** @param type  SOCK_DGRAM, maybe with SOCK_NONBLOCK and SOCK_CLOEXEC */
int rs_dgram_open(int domain, int type);
bool rs_dgram_is(int fd);
int rs_dgram_bind(int fd, const struct sockaddr *addr, socklen_t len);
int rs_dgram_connect(int fd, const struct sockaddr *addr, socklen_t len);
int rs_dgram_name(int fd, struct sockaddr *addr, socklen_t *len, bool peer);
int rs_dgram_shutdown(int fd, int how);
int rs_dgram_close(int fd);
/** @param msg  its name is where to, NULL: where the socket is connected to */
ssize_t rs_dgram_send(int fd, const struct msghdr *msg, int flags);
/** Waits for the next datagram that has this form; others are dropped. */
ssize_t rs_dgram_receive(int fd, struct msghdr *msg, int flags);
int rs_dgram_get_option(int fd, int level, int name, void *value, socklen_t *len);
int rs_dgram_set_option(int fd, int level, int name, const void *value, socklen_t len);
int rs_dgram_fcntl(int fd, int command, long argument);

/**
 * The header of data from @p from.
 * @return its length
 */
size_t rs_dgram_encode(const struct sockaddr *from, uint8_t out[RS_DGRAM_HEADER_MAX]);
/** @return the length of the header before the data, or -1: none, or one without data */
int rs_dgram_decode(const uint8_t *in, size_t len);

#endif
