/* SPDX-License-Identifier: BSD-2-Clause */
/* What librspreload.so asks of rsockets beside the calls of <rdma/rsocket.h>. */
#ifndef ANYWARP_RS_PLAIN_H
#define ANYWARP_RS_PLAIN_H

/**
 * rsetsockopt(), SOL_RDMA, before rlisten(): raccept() also returns connections of peers that did
 * not begin with an MPA Request, or with nothing for a second. Their numbers are sockets of the
 * kernel, not blocking, of which rfcntl() knows nothing: EBADF.
 */
#define RS_TAKE_TCP 0x616e7901
/**
 * rsetsockopt(), SOL_RDMA: a socket that is connecting, or has failed to, is as it was before, but
 * not bound. Nothing with one that has not begun; EINVAL with others.
 */
#define RS_ANEW     0x616e7902
/** rgetsockopt(), SOL_RDMA, an int: how many bytes there are to read; 0 without a connection. */
#define RS_UNREAD   0x616e7903

#endif
