/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/group.h"

#include "common/sys.h"
#include "device/device.h"
#include "ud/receive.h"
#include "ud/socket.h"

#include <stdlib.h>
#include <string.h>

struct group {
    struct list link; /* ud->groups */
    union ibv_gid gid;
};

static struct lock lock = LOCK(LOCK_UD_GROUPS); /* all lists of groups */

/* What rdma_cm makes of 224.0.0.0/4, for a RoCE v1 device: ff0e::ffff:a.b.c.d */
static const uint8_t made_of_ipv4[12] = {0xff, 0x0e, [10] = 0xff, 0xff};

static bool is_ipv4_group(const uint8_t *ip)
{
    return (ip[0] & 0xf0) == 0xe0;
}

bool iw_ud_group_address(const union ibv_gid *gid, struct in6_addr *ip)
{
    memcpy(ip, gid->raw, sizeof(*ip));
    bool made = memcmp(gid->raw, made_of_ipv4, sizeof(made_of_ipv4)) == 0;
    if (made && is_ipv4_group(gid->raw + 12))
        *ip = (struct in6_addr){
            .s6_addr = {[10] = 0xff, 0xff, gid->raw[12], gid->raw[13], gid->raw[14], gid->raw[15]}};
    return IN6_IS_ADDR_MULTICAST(ip) ||
           (IN6_IS_ADDR_V4MAPPED(ip) && is_ipv4_group(ip->s6_addr + 12));
}

/** Joins or leaves on one interface. @return 0 or a negative errno */
static int change(int fd, const struct in6_addr *ip, unsigned ifindex, bool join)
{
    struct ip_mreqn four = {.imr_ifindex = (int)ifindex};
    struct ipv6_mreq six = {.ipv6mr_multiaddr = *ip, .ipv6mr_interface = ifindex};
    memcpy(&four.imr_multiaddr, ip->s6_addr + 12, 4);
    if (IN6_IS_ADDR_V4MAPPED(ip))
        return (int)sys_setsockopt(fd, IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP,
                                   &four, sizeof(four));
    return (int)sys_setsockopt(fd, IPPROTO_IPV6, join ? IPV6_JOIN_GROUP : IPV6_LEAVE_GROUP, &six,
                               sizeof(six));
}

/** On every interface on which the device has an address. @return 0 if that was possible on one */
static int change_everywhere(const struct iw_ud *ud, const struct in6_addr *ip, bool join)
{
    const struct iw_device *dev = iw_device(ud->qp->pub.context->device);
    struct ibv_gid_entry e;
    int first = -ENODEV;
    bool any = false;
    for (unsigned i = 0; iw_device_gid(dev, 1, i, &e) == 0; i++) {
        int r = e.ndev_ifindex ? change(ud->in[IW_UD_GROUP].fd, ip, e.ndev_ifindex, join) : -ENODEV;
        any |= r == 0 || r == -EADDRINUSE; /* joined there already, by another address of it */
        if (first == -ENODEV)
            first = r;
    }
    return any ? 0 : first;
}

static int open_locked(struct iw_ud *ud)
{
    struct iw_ud_socket *s = &ud->in[IW_UD_GROUP];
    assert_held(&lock);
    if (s->fd >= 0)
        return 0;
    int fd = iw_ud_open_group();
    if (fd < 0)
        return -fd;
    s->fd = fd;
    int r = iw_source_add(&s->source, fd, IW_UD_INPUT, iw_ud_ready);
    if (r) {
        sys_close(fd);
        s->fd = -1;
    }
    return r;
}

static struct group *find_locked(const struct iw_ud *ud, const union ibv_gid *gid)
{
    assert_held(&lock);
    list_for_each (it, &ud->groups) {
        struct group *g = container_of(it, struct group, link);
        if (memcmp(&g->gid, gid, sizeof(*gid)) == 0)
            return g;
    }
    return NULL;
}

static int join_locked(struct iw_ud *ud, const union ibv_gid *gid, const struct in6_addr *ip)
{
    assert_held(&lock);
    if (find_locked(ud, gid))
        return 0;
    int r = open_locked(ud);
    struct group *g = r ? NULL : calloc(1, sizeof(*g));
    if (!g)
        return r ? r : ENOMEM;
    r = -change_everywhere(ud, ip, true);
    if (r) {
        free(g);
        return r == ENOBUFS ? ENOMEM : r;
    }
    g->gid = *gid;
    list_add_tail(&ud->groups, &g->link);
    return 0;
}

int iw_ud_join(struct iw_ud *ud, const union ibv_gid *gid)
{
    struct in6_addr ip;
    if (!iw_ud_group_address(gid, &ip))
        return EINVAL;
    lock_get(&lock);
    int r = join_locked(ud, gid, &ip);
    lock_put(&lock);
    return r;
}

int iw_ud_leave(struct iw_ud *ud, const union ibv_gid *gid)
{
    struct in6_addr ip;
    if (!iw_ud_group_address(gid, &ip))
        return EINVAL;
    lock_get(&lock);
    struct group *g = find_locked(ud, gid);
    if (g) {
        change_everywhere(ud, &ip, false);
        list_del(&g->link);
        free(g);
    }
    lock_put(&lock);
    return g ? 0 : EINVAL;
}

void iw_ud_groups_forget(struct iw_ud *ud)
{
    lock_get(&lock);
    for (struct list *it; (it = list_pop(&ud->groups));)
        free(container_of(it, struct group, link));
    lock_put(&lock);
}

void iw_ud_groups_fork(enum fork_step step)
{
    lock_fork(&lock, step);
}
