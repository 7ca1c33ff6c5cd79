/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups: an MGID is the address of an IP group, which the QP's socket for groups joins
 * on the device's interfaces; loop is on, so that every QP of the host that has joined gets a copy,
 * the sender's, too. IPv4 groups are IPv4-mapped MGIDs, and those of the form ff0e::ffff:a.b.c.d
 * that rdma_cm makes of them.
 */
#ifndef ANYWARP_UD_GROUP_H
#define ANYWARP_UD_GROUP_H

#include "ud/ud.h"

/** Whether a GID is one of a group. @param ip  [out] its address, if so */
bool iw_ud_group_address(const union ibv_gid *gid, struct in6_addr *ip);

/**
 * Joins, or leaves; joining again what was joined does no harm. Call with no lock held.
 * @return 0, EINVAL (no group, or one that was not joined), ENOMEM (the system allows no more
 * groups a socket), or what the socket said
 */
int iw_ud_join(struct iw_ud *ud, const union ibv_gid *gid);
int iw_ud_leave(struct iw_ud *ud, const union ibv_gid *gid);

/** The socket is going to be closed: forgets them. */
void iw_ud_groups_forget(struct iw_ud *ud);

/** What the module does about fork(); see process/atfork.h. */
void iw_ud_groups_fork(enum fork_step step);

#endif
