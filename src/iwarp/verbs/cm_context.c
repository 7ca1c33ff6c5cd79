/* SPDX-License-Identifier: BSD-2-Clause */
/* The contexts that rdma_cm ids share, and which of them a local address belongs to. */
#include "cm/port.h"
#include "common/addr.h"
#include "device/context.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void close_all(struct ibv_context **all)
{
    for (int i = 0; all[i]; i++)
        ibv_close_device(all[i]);
    free(all);
}

/** @return NULL and errno, with none left open */
static struct ibv_context **open_all(struct ibv_device **list, int n)
{
    struct ibv_context **all = calloc((size_t)n + 1, sizeof(*all));
    for (int i = 0; all && i < n; i++) {
        all[i] = ibv_open_device(list[i]);
        if (!all[i]) {
            close_all(all);
            all = NULL;
        }
    }
    return all;
}

struct ibv_context *const *iw_cm_contexts(void)
{
    static struct ibv_context **_Atomic shared;
    struct ibv_context **first = shared, **all = NULL;
    int n = 0;

    if (first)
        return first;
    struct ibv_device **list = iw_device_list(&n);
    if (list && n > 0)
        all = open_all(list, n);
    else if (list)
        errno = ENODEV;
    iw_device_list_free(list);
    if (!all || atomic_compare_exchange_strong(&shared, &first, all))
        return all;
    close_all(all); /* another thread was first */
    return first;
}

/** An address as a GID, with the interface that a link-local one is of. */
static struct ibv_gid_entry gid_of(const struct sockaddr *addr)
{
    struct ibv_gid_entry e = {0};
    addr_ip6(addr, e.gid.raw);
    if (addr->sa_family == AF_INET6)
        e.ndev_ifindex = ((const struct sockaddr_in6 *)addr)->sin6_scope_id;
    return e;
}

static bool is_loopback(const union ibv_gid *gid)
{
    const struct in6_addr *six = (const struct in6_addr *)gid->raw;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && gid->raw[12] == 127);
}

static bool is_of(const struct ibv_context *ctx, enum iw_cm_kind_of_device kind)
{
    bool roce = iw_device(ctx->device)->roce;
    return kind == IW_CM_ANY_DEVICE || roce == (kind == IW_CM_ROCE_DEVICE);
}

struct ibv_context *iw_cm_context_of(const struct sockaddr *local, enum iw_cm_kind_of_device kind)
{
    struct ibv_context *const *all = iw_cm_contexts();
    struct ibv_context *first = NULL, *of_host = NULL;
    if (!all)
        return NULL;
    struct ibv_gid_entry address = gid_of(local);
    for (int i = 0; all[i]; i++) {
        const struct iw_device *dev = iw_device(all[i]->device);
        if (!is_of(all[i], kind))
            continue;
        if (dev->interface[0] && iw_device_has(dev, &address))
            return all[i];
        if (!first)
            first = all[i];
        if (!of_host && !dev->interface[0])
            of_host = all[i];
    }
    if (of_host)
        return of_host;
    if (first && is_loopback(&address.gid))
        return first;
    errno = ENODEV;
    return NULL;
}
