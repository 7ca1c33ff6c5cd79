/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of datagrams. Each function returns a descriptor or a negative errno. */
#ifndef ANYWARP_UD_SOCKET_H
#define ANYWARP_UD_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define IW_UD_GROUP_PORT 17791 /* of UDP: all groups, on all hosts */

/** Where a QP of this host gets datagrams from others of it. @return length of the address */
socklen_t iw_ud_local_name(struct sockaddr_un *name, uint32_t qpn);

/** That of QP @p qpn. */
int iw_ud_open_local(uint32_t qpn);
/** One to send from. */
int iw_ud_open_out(void);
/** One for groups, which all QPs of the host have on the same port. */
int iw_ud_open_group(void);

/** Large buffers; a socket of UDP tells where to a datagram was addressed. */
void iw_ud_tune(int fd, bool udp);
/** Whether a socket of UDP is of IPv4 alone. */
bool iw_ud_is_ipv4(int fd);

#endif
