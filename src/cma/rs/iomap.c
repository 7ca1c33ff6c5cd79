/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the peer writes to with riowrite(). */
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <stdlib.h>
#include <sys/mman.h>

/* An entry of the peer's table that none of our mappings has. @return -1: all are taken */
static int free_slot(const struct rs *rs)
{
    for (int slot = 0; slot < rs->peer.mappings; slot++) {
        bool taken = false;
        for (const struct list *l = rs->iomaps.next; l != &rs->iomaps; l = l->next)
            taken |= container_of(l, const struct rs_iomap, link)->slot == slot;
        if (!taken)
            return slot;
    }
    return -1;
}

/* Lock held. */
static int map(struct rs *rs, struct rs_iomap *map, int prot)
{
    int access = IBV_ACCESS_LOCAL_WRITE;
    if (rs->phase != RS_CONNECTED)
        return -ENOTCONN;
    map->slot = -1;
    if (prot & PROT_WRITE) {
        access |= IBV_ACCESS_REMOTE_WRITE;
        /* The peer never gives the credit back that telling it takes. */
        if (rs->mapped >= rs->peer.credits / 2U)
            return -ENOSPC;
        map->slot = free_slot(rs);
        if (map->slot < 0)
            return -ENOMEM;
    }
    map->mr = ibv_reg_mr(rs->id->pd, map->buf, map->len, access);
    if (!map->mr)
        return -errno;
    map->pending = map->slot >= 0;
    if (map->pending) {
        rs->mapped++;
        rs->iomap_pending = true;
    }
    list_add_tail(&rs->iomaps, &map->link);
    return 0;
}

off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_fail(rs_dgram_is(socket) ? ENOTSUP : EBADF);
    if (!buf || !len || len > UINT32_MAX || flags || prot & ~PROT_WRITE)
        return rs_fail(EINVAL);
    struct rs_iomap *m = calloc(1, sizeof *m);
    if (!m)
        return -1;
    m->buf = buf;
    m->len = len;
    m->offset = offset == -1 ? (off_t)(uintptr_t)buf : offset;
    pthread_mutex_lock(&rs->lock);
    int r = map(rs, m, prot);
    pthread_mutex_unlock(&rs->lock);
    if (r == 0)
        return m->offset;
    free(m);
    return rs_fail(-r);
}

int riounmap(int socket, void *buf, size_t len)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_fail(EBADF);
    struct rs_iomap *found = NULL;
    pthread_mutex_lock(&rs->lock);
    for (struct list *l = rs->iomaps.next; l != &rs->iomaps && !found; l = l->next) {
        struct rs_iomap *m = container_of(l, struct rs_iomap, link);
        found = m->buf == buf && m->len == len ? m : NULL;
    }
    if (found) {
        list_del(&found->link);
        ibv_dereg_mr(found->mr);
        free(found);
    }
    pthread_mutex_unlock(&rs->lock);
    return found ? 0 : rs_fail(EINVAL);
}
