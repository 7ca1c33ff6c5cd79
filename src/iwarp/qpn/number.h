/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers that QPs are dialled by: TCP port << 8 | slot. A port serves 256 QPs of the process; it
 * is bound when the first of them is made, and listens when the first of them may be asked for.
 */
#ifndef ANYWARP_QPN_NUMBER_H
#define ANYWARP_QPN_NUMBER_H

#include "cm/port.h"

struct iw_dial;

struct iw_number_port;

/** The place of a number. */
struct iw_number {
    struct iw_number_port *port; /* NULL: it has none, and is not dialled */
    uint32_t qpn;                /* 0: none */
};

static inline uint16_t iw_number_tcp_port(uint32_t qpn)
{
    return (uint16_t)(qpn >> 8);
}

/** Takes a number for @p d. @return 0 or a negative errno of the port's socket */
int iw_number_take(struct iw_number *n, struct iw_dial *d);
/**
 * Takes one whose port no other QP has, for QPs of datagrams: nobody is found by it.
 * @param datagrams  [out] a socket of UDP on the port, of both versions of IP where there are both
 * @return as iw_number_take()
 */
int iw_number_take_alone(struct iw_number *n, int *datagrams);
/** Gives it back: nobody finds @p d by it any more. */
void iw_number_give(struct iw_number *n);
/** From now on the port listens. @return 0 or a negative errno */
int iw_number_listen(const struct iw_number *n);

/** By number, on this port; pinned (dial.h). @return NULL if there is none */
struct iw_dial *iw_number_find(struct iw_number_port *port, uint32_t qpn);

/** What the module does about fork(); see process/atfork.h. A child opens ports of its own. */
void iw_number_fork(enum fork_step step);

#endif
