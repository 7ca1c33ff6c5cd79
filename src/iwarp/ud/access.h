/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ANYWARP_TLS and ANYWARP_ACCESS with datagrams, which are in the clear and prove nobody's
 * identity. With ANYWARP_TLS=require none goes to, and none is taken from, another host. The rules
 * decide by the address of the other end: when an address handle is made, whatever port they name,
 * and for each datagram that comes in, on the port of the QP's number. Rules with an identity fit
 * nobody. Whoever is of this host cannot say that his address is one of another. What is known of
 * an address counts for a second.
 */
#ifndef ANYWARP_UD_ACCESS_H
#define ANYWARP_UD_ACCESS_H

#include "common/lock.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/** Whether datagrams to, or from, other hosts are out of the question. */
bool iw_ud_stays_here(void);

/** Whether datagrams may go to an address, @p here on this host; if not, the log says why. */
bool iw_ud_access_to(const char *call, const struct in6_addr *to, bool here);

/**
 * Whether one from there, to this port, is taken.
 * @param here  a process of this host says that it is from there
 */
bool iw_ud_access_from(const struct in6_addr *from, bool here, uint16_t port, uint64_t now);

/** What the module does about fork(); see process/atfork.h. */
void iw_ud_access_fork(enum fork_step step);

#endif
