/* SPDX-License-Identifier: BSD-2-Clause */
/* Where an address handle leads. */
#ifndef ANYWARP_UD_AH_H
#define ANYWARP_UD_AH_H

#include "device/device.h"
#include "qp/route.h"

/**
 * The way from a device to a GID: an address, as qpn/address.h has it, or a multicast group.
 * @param call  that refuses
 * @return 0 or a positive errno: EINVAL (port, no GID, no such sgid_index), EHOSTUNREACH (GIDs of
 * two kinds), EACCES (ANYWARP_ACCESS, or ANYWARP_TLS=require and another host: datagrams are in the
 * clear)
 */
int iw_ud_route(const struct iw_device *dev, const struct ibv_ah_attr *attr, struct iw_route *route,
                const char *call);

#endif
