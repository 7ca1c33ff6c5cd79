/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving datagrams. The sockets are read for as many messages as receives are posted; what is
 * more in them, as in a pack (pack.h), is kept. Without any receive they rest for 100 ms at most,
 * as the program may be about to post some; then they are read again, and what finds no receive is
 * dropped, so that no sender waits for a program that posts none. What has another Q_Key, another
 * number, is longer than the MTU, or is not a datagram of an anywarp is dropped at once.
 */
#ifndef ANYWARP_UD_RECEIVE_H
#define ANYWARP_UD_RECEIVE_H

#include "ud/ud.h"

/** ready() of a struct iw_ud_socket's source. */
bool iw_ud_ready(struct iw_source *s, uint32_t events);

/** The resume() of struct iw_datagrams; also when the QP was moved. rx.lock */
void iw_ud_resume(struct iw_qp *qp);

/** The QP is gone: frees what is kept. */
void iw_ud_forget(struct iw_ud *ud);

#endif
