/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a QP that the program made itself, and moves to RTR with a GID and a number, comes to its
 * connection: the end with the lower number, or the lower GID, dials the other's port (number.h)
 * and sends a hello, the other keeps that until its QP is in RTR for this very peer, too, and
 * accepts. A QP that is its own peer has a socket that is connected to itself, and asks nobody. The
 * connection is an endpoint of the CM (cm/port.h), hello and accept are the private data of its
 * Request and Reply. Calls of the program never wait for any of it.
 *
 * An end that was connected once dials no more, until its QP is reset. What is posted without a
 * connection fails when the time of the QP's attributes is over.
 */
#ifndef ANYWARP_QPN_DIAL_H
#define ANYWARP_QPN_DIAL_H

#include "cm/port.h"

struct iw_dial;
struct iw_qp;

/**
 * @param numbered  with a number of its own, if a port can be had; else the CM alone connects the
 * QP, and only the clock is of use
 * @return NULL: no memory
 */
struct iw_dial *iw_dial_new(bool numbered);
/** 0: it has none. */
uint32_t iw_dial_number(const struct iw_dial *d);
/** The QP that it is for, which has its number. */
void iw_dial_attach(struct iw_dial *d, struct iw_qp *qp);
/** Nothing of it is under way (iw_dial_stop()), or it was never attached. NULL is harmless. */
void iw_dial_free(struct iw_dial *d);

/**
 * Whether the QP can be moved so.
 * @return 0, or a positive errno: EINVAL (no GID, no such sgid_index, no number), EHOSTUNREACH, or
 * what the port's socket said
 */
int iw_dial_check(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask);
/** It was. NULL is harmless. */
void iw_dial_moved(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask);

/** Before the QP is reset or stopped: no attempt is made any more, and no thread is at one. */
void iw_dial_stop(struct iw_dial *d);
/** The QP is as new. */
void iw_dial_renew(struct iw_dial *d);

/** What the module does about fork(); see process/atfork.h. In a child nobody is dialled. */
void iw_dial_fork(enum fork_step step);

/* ---- for number.c ---- */

/** Keeps it from being freed until whoever found it is done. */
void iw_dial_pin(struct iw_dial *d);

#endif
