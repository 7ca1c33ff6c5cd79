/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints of datagrams, for librdmacm: part of the face that port.h is, and as that says. One is
 * a bound address, a listener, a question (which queue pair serves that port?) or a Request that a
 * listener brought; those that are bound own a socket of UDP. Nothing is connected afterwards: the
 * answer is all that there is.
 *
 * A question is asked again and again, for as long as ANYWARP_CONNECT_MS says; a listener knows
 * what is asked again by who asks and a random number, and repeats the answer. What it keeps of
 * others is bounded: IW_SIDR_UNDECIDED Requests without an answer, what comes beyond is dropped,
 * and IW_SIDR_ANSWERS answers, of which the oldest makes room.
 *
 * There is no TLS for datagrams: with ANYWARP_TLS=require only processes of one host ask each
 * other.
 */
#ifndef ANYWARP_CM_SIDR_H
#define ANYWARP_CM_SIDR_H

#include "common/lock.h"
#include "env/export.h"
#include "wire/sidr.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define IW_SIDR_UNDECIDED 1024
#define IW_SIDR_ANSWERS   256

struct iw_sidr;
struct iw_cm_event;

/**
 * Told of
 *   CONNECT_REQUEST  a listener's: event->datagrams is the new endpoint, the handler's from now on
 *   ESTABLISHED      the answer: peer_qpn, qkey, private data
 *   UNREACHABLE      -ETIMEDOUT; or the status of a Reply, as InfiniBand numbers it: 1 if nobody
 *                    listens there, as was said twice, 2 if the program rejects; or another negative errno
 * @return nonzero: the handler did not take a CONNECT_REQUEST, which is dropped
 */
typedef int iw_sidr_handler(void *owner, const struct iw_cm_event *event);

struct iw_sidr_param {
    const void *private_data;
    uint8_t private_data_len; /* up to SIDR_REQUEST_DATA, SIDR_REPLY_DATA */
    bool ib;                  /* question: of a RoCE device */
    uint32_t qpn, qkey;       /* answer */
};

/** @param ps  port space: others are not heard */
IW_CM_EXPORT int iw_sidr_create(struct iw_sidr **s, uint16_t ps, iw_sidr_handler *handler,
                                void *owner);

/**
 * Binds a socket of UDP. The zero address is the wildcard; port 0 lets the kernel choose.
 * @return -EINVAL (bound already), -EAFNOSUPPORT, -EADDRINUSE, -EADDRNOTAVAIL, ...
 */
IW_CM_EXPORT int iw_sidr_bind(struct iw_sidr *s, const struct sockaddr *addr, bool afonly);

/** As iw_cm_set_afonly(), iw_cm_set_tos(). */
IW_CM_EXPORT int iw_sidr_set_afonly(struct iw_sidr *s, bool afonly);
IW_CM_EXPORT int iw_sidr_set_tos(struct iw_sidr *s, uint8_t tos);

/** @return -EINVAL (not bound, or past that), -ENOMEM, ... */
IW_CM_EXPORT int iw_sidr_listen(struct iw_sidr *s);

/**
 * Asks; the outcome is one event.
 * @return -EINVAL as above, -EACCES (ANYWARP_ACCESS, ANYWARP_TLS), what UDP said at once
 */
IW_CM_EXPORT int iw_sidr_ask(struct iw_sidr *s, const struct sockaddr *dst,
                             const struct iw_sidr_param *param);

/** Answers a Request. @return -EINVAL if it is none that is undecided, or what UDP said */
IW_CM_EXPORT int iw_sidr_accept(struct iw_sidr *s, const struct iw_sidr_param *param);
IW_CM_EXPORT int iw_sidr_reject(struct iw_sidr *s, const void *private_data, uint8_t len);

/**
 * Ends the endpoint; rejects a Request that is undecided. Waits for a handler that is running;
 * afterwards none runs. A listener's port is free when its Requests are decided.
 */
IW_CM_EXPORT void iw_sidr_destroy(struct iw_sidr *s);

/** Local and peer address; either may be NULL; zeroed if there is none. */
IW_CM_EXPORT void iw_sidr_addresses(struct iw_sidr *s, struct sockaddr_storage *local,
                                    struct sockaddr_storage *peer);

/** What the module does about fork(), see process/atfork.h: a child has none of the sockets. */
void iw_sidr_fork(enum fork_step step);

#endif
