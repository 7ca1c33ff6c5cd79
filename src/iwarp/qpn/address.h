/* SPDX-License-Identifier: BSD-2-Clause */
/* GIDs as the addresses that QPs are dialled by. */
#ifndef ANYWARP_QPN_ADDRESS_H
#define ANYWARP_QPN_ADDRESS_H

#include "device/device.h"

#include <sys/socket.h>

/** The two ends of a connection: as GIDs that the programs told each other, and as addresses. */
struct iw_path {
    union ibv_gid own_gid, peer_gid;
    struct sockaddr_storage own, peer; /* port 0 */
};

/**
 * Where a QP of @p dev with these attributes is, and its peer. IPv4-mapped GIDs and those of the
 * form fe80::5efe:a.b.c.d are IPv4 addresses, a link-local one is on the interface of sgid_index.
 * GID 0 of an iWARP device, which is no address, as peer means this host.
 * @return 0; EINVAL (no GID in it, no GID sgid_index), EHOSTUNREACH (no address of this kind)
 */
int iw_path_find(const struct iw_device *dev, const struct ibv_ah_attr *ah, struct iw_path *path);

/** Whether the peer's address is one of the device's own. */
bool iw_path_ends_here(const struct iw_device *dev, const struct iw_path *path);

/** Whether a connection with these addresses may be that of the path: ports do not matter. */
bool iw_path_fits(const struct iw_path *path, const struct sockaddr_storage *own,
                  const struct sockaddr_storage *peer);

#endif
