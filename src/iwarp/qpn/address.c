/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/address.h"

#include "common/addr.h"

#include <errno.h>
#include <string.h>

static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
static const uint8_t isatap[12] = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0x5e, 0xfe};

static bool is_ipv4(const union ibv_gid *gid)
{
    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0 ||
           memcmp(gid->raw, isatap, sizeof(isatap)) == 0;
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static void to_address(const union ibv_gid *gid, unsigned ifindex, struct sockaddr_storage *addr)
{
    *addr = (struct sockaddr_storage){0};
    if (is_ipv4(gid)) {
        struct sockaddr_in *four = (struct sockaddr_in *)addr;
        four->sin_family = AF_INET;
        memcpy(&four->sin_addr, gid->raw + sizeof(mapped), sizeof(four->sin_addr));
    } else {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)addr;
        six->sin6_family = AF_INET6;
        memcpy(&six->sin6_addr, gid->raw, sizeof(six->sin6_addr));
        six->sin6_scope_id = is_link_local(gid) ? ifindex : 0;
    }
}

static void to_loopback(struct sockaddr_storage *addr)
{
    struct sockaddr_in *four = (struct sockaddr_in *)addr;
    *addr = (struct sockaddr_storage){0};
    four->sin_family = AF_INET;
    four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

int iw_path_find(const struct iw_device *dev, const struct ibv_ah_attr *ah, struct iw_path *path)
{
    struct ibv_gid_entry own;
    union ibv_gid mac = iw_device_mac_gid(dev);
    if (!ah->is_global || iw_device_gid(dev, 1, ah->grh.sgid_index, &own))
        return EINVAL;
    path->own_gid = own.gid;
    path->peer_gid = ah->grh.dgid;
    bool here = memcmp(&path->peer_gid, &mac, sizeof(mac)) == 0;
    if (here)
        to_loopback(&path->peer);
    else
        to_address(&path->peer_gid, own.ndev_ifindex, &path->peer);
    if (own.gid_type == IBV_GID_TYPE_ROCE_V2) {
        to_address(&path->own_gid, own.ndev_ifindex, &path->own);
    } else { /* whichever leads there */
        path->own = (struct sockaddr_storage){.ss_family = path->peer.ss_family};
    }
    if (here && path->own.ss_family == AF_INET6)
        path->peer = path->own;
    return path->own.ss_family == path->peer.ss_family ? 0 : EHOSTUNREACH;
}

/** As an IPv4 address in four bytes or an IPv6 address in sixteen. */
static size_t bytes_of(const struct sockaddr_storage *addr, const void **bytes)
{
    if (addr->ss_family == AF_INET) {
        *bytes = &((const struct sockaddr_in *)addr)->sin_addr;
        return 4;
    }
    const uint8_t *six = ((const struct sockaddr_in6 *)addr)->sin6_addr.s6_addr;
    bool four = memcmp(six, mapped, sizeof(mapped)) == 0;
    *bytes = four ? six + sizeof(mapped) : six;
    return four ? 4 : 16;
}

static bool same(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const void *x, *y;
    size_t len = bytes_of(a, &x);
    return bytes_of(b, &y) == len && memcmp(x, y, len) == 0;
}

static bool is_loopback(const struct sockaddr_storage *addr)
{
    const void *bytes;
    return bytes_of(addr, &bytes) == 4 && *(const uint8_t *)bytes == 127;
}

bool iw_path_ends_here(const struct iw_device *dev, const struct iw_path *path)
{
    struct ibv_gid_entry own;
    struct sockaddr_storage addr;
    if (is_loopback(&path->peer))
        return true;
    for (uint32_t i = 0; iw_device_gid(dev, 1, i, &own) == 0; i++) {
        if (own.gid_type != IBV_GID_TYPE_ROCE_V2)
            continue;
        to_address(&own.gid, own.ndev_ifindex, &addr);
        if (same(&addr, &path->peer))
            return true;
    }
    return false;
}

bool iw_path_fits(const struct iw_path *path, const struct sockaddr_storage *own,
                  const struct sockaddr_storage *peer)
{
    if (is_loopback(&path->peer)) /* or by another address of this host */
        return same(own, peer) || is_loopback(peer);
    return same(&path->peer, peer);
}
