/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A dial inside: dial.c its life, its own attempts and its clock, visitor.h who calls. Whoever
 * works for it in a thread of its own choice pins it; events of its endpoints find it pinned by
 * enter().
 */
#ifndef ANYWARP_QPN_DIALLING_H
#define ANYWARP_QPN_DIALLING_H

#include "engine/timer.h"
#include "qpn/address.h"
#include "qpn/dial.h"
#include "qpn/hello.h"
#include "qpn/number.h"

#include <stdatomic.h>

struct iw_dial {
    struct iw_number number;
    atomic_uint pins; /* threads that work for it beside those of the QP */
    struct iw_timer again, clock, not_ready;

    struct lock lock;
    struct iw_qp *qp;
    bool leaving;    /* stopped: everything is left to who stopped it */
    bool begun;      /* in RTR or later: self, peer and path are known */
    bool dials;      /* not the peer */
    bool itself;     /* the peer is this QP */
    bool is_the_cms; /* an id connects the QP, nobody is dialled */
    bool met;        /* there was a connection */
    bool over;       /* no attempts any more */
    uint8_t timeout, retry_cnt;
    uint64_t patience; /* us of what is posted without a connection, 0: for ever */
    struct iw_hello_end self, peer;
    struct iw_path path;
    unsigned tries;
    struct iw_cm *cm;      /* the attempt, or the connection */
    struct iw_cm *visitor; /* that asked before its time */
    struct iw_hello asked; /* what that said */
    struct iw_cm *doubt;   /* asks the peer's process whether it was the one */
    struct iw_hello doubted;
    uint32_t vouched; /* epoch of the visitor that it was */
};

/** Takes the lock. @return false if it is being stopped: then nothing is to be done */
bool iw_dial_enter(struct iw_dial *d);
void iw_dial_unpin(struct iw_dial *d);
/** NULL is harmless. */
void iw_dial_drop(struct iw_cm *cm);

/** What @p cm is told for the QP, with @p hello as its private data. d.lock */
struct iw_cm_param iw_dial_param(struct iw_dial *d, const uint8_t hello[IW_HELLO_BYTES]);
/** The port of the peer's number. d.lock */
struct sockaddr_storage iw_dial_peers_port_locked(const struct iw_dial *d);
/** Of the connection. */
int iw_dial_on_event(void *owner, const struct iw_cm_event *event);

#endif
