/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who calls the port of a number. A hello for a QP makes its connection the visitor of that, the
 * newest alone. A visitor is let in once the QP is in RTR for the very peer that it says it is, and
 * the process at the port of the peer's number has vouched for it (vouch.h).
 */
#ifndef ANYWARP_QPN_VISITOR_H
#define ANYWARP_QPN_VISITOR_H

#include "qpn/dialling.h"

/** The handler of a port's listener, whose owner the port is. */
int iw_visitor_asked(void *port, const struct iw_cm_event *event);

/** Lets the visitor in, if there is one and it may; d.lock, which is given back. */
void iw_visitor_take(struct iw_dial *d);
/** The one before it has gone: lets in who called meanwhile, if anybody did. No lock. */
void iw_visitor_next(struct iw_dial *d);

#endif
