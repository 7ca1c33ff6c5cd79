/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending. */
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"

#include <string.h>

#define LOW_WATER 2048
#define RESERVE   5 /* messages left for what has no credits: the peer may not have room for more */

static bool has_credit(const struct rs *rs)
{
    int reserve = rs->peer.credits / 4 < RESERVE ? rs->peer.credits / 4 : RESERVE;
    return (uint16_t)(rs->sseq_comp - rs->sseq) > reserve;
}

static bool has_room(const struct rs *rs)
{
    return rs->sqe >= 2 && rs->sbuf_free >= LOW_WATER;
}

bool rs_can_send(const struct rs *rs)
{
    return !rs->writable || (has_room(rs) && has_credit(rs) && rs->target[rs->target_at].length);
}

static bool can_write(const struct rs *rs)
{
    return !rs->writable || has_room(rs);
}

static bool can_tell(const struct rs *rs)
{
    return !rs->writable || (rs->sqe >= 2 && has_credit(rs));
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Copies to the ring. @return number of SGEs */
static int stage(struct rs *rs, const void *buf, uint32_t len, struct ibv_sge sge[2])
{
    if (rs->sbuf_free == rs->sizes.sbuf)
        rs->sbuf_at = 0; /* what was used last is still in the cache */
    uint32_t end = rs->sizes.sbuf - rs->sbuf_at, first = len < end ? len : end;
    memcpy(rs->sbuf + rs->sbuf_at, buf, first);
    sge[0] = (struct ibv_sge){(uintptr_t)rs->sbuf + rs->sbuf_at, first, rs->smr->lkey};
    rs->sbuf_free -= len;
    rs->sbuf_at = len < end ? rs->sbuf_at + len : len - end;
    if (first == len)
        return 1;
    memcpy(rs->sbuf, (const uint8_t *)buf + first, len - first);
    sge[1] = (struct ibv_sge){(uintptr_t)rs->sbuf, len - first, rs->smr->lkey};
    return 2;
}

/* It goes out, and the peer is at it while the next one is copied. */
static void after_piece(struct rs *rs, ssize_t n)
{
    if (n >= RS_OVERLAP)
        rs_progress(rs);
}

ssize_t rs_send_piece(struct rs *rs, const void *buf, size_t len, const struct rs_buffer *to,
                      bool message)
{
    struct ibv_sge sge[2] = {{(uintptr_t)buf, (uint32_t)len, 0}};
    bool inlined = len <= rs->sizes.inlined;
    int nsge = 1;
    if (!inlined) {
        len = least(len, rs->sbuf_free);
        nsge = stage(rs, buf, (uint32_t)len, sge);
    }
    unsigned sqe = message ? 2 : 1;
    uint64_t wr_id = rs_wr_data(inlined ? 0 : (uint32_t)len, sqe);
    rs->sqe -= sqe;
    int r = message
                ? rs_post(rs, wr_id, sge, nsge, inlined, to, RS_MESSAGE(RS_OP_DATA, (uint32_t)len))
                : rs_post_write(rs, wr_id, sge, nsge, inlined, to->addr, to->key);
    return r < 0 ? r : (ssize_t)len;
}

/* The next piece into what the peer offers. */
static ssize_t send_data(struct rs *rs, const void *buf, size_t len)
{
    struct rs_buffer *target = &rs->target[rs->target_at], to = *target;
    len = least(len, least(target->length, len <= rs->sizes.inlined ? len : rs->sbuf_free));
    target->addr += len;
    target->length -= (uint32_t)len;
    if (!target->length)
        rs->target_at ^= 1;
    rs->sseq++;
    return rs_send_piece(rs, buf, len, &to, true);
}

int rs_tell_iomaps(struct rs *rs)
{
    if (!rs->iomap_pending)
        return 0;
    for (struct list *l = rs->iomaps.next; l != &rs->iomaps; l = l->next) {
        struct rs_iomap *map = container_of(l, struct rs_iomap, link);
        if (!map->pending)
            continue;
        if (!can_tell(rs))
            return -EAGAIN;
        struct rs_mapping entry = {
            (uint64_t)map->offset,
            {(uintptr_t)map->buf, map->mr->rkey, (uint32_t)map->len},
        };
        struct ibv_sge sge = {(uintptr_t)&entry, sizeof entry, 0};
        struct rs_buffer to = {rs->peer.tables.addr +
                                   (uint64_t)rs->peer.tables.length * sizeof(struct rs_buffer) +
                                   (uint64_t)map->slot * RS_MAPPING_SIZE,
                               rs->peer.tables.key, sizeof entry};
        rs->sqe -= 2;
        rs->sseq++;
        int r = rs_post(rs, rs_wr_data(0, 2), &sge, 1, true, &to,
                        RS_MESSAGE(RS_OP_IOMAP, (uint32_t)map->slot));
        if (r < 0)
            return r;
        map->pending = false;
    }
    rs->iomap_pending = false;
    return 0;
}

static int gone(const struct rs *rs)
{
    return rs->phase != RS_CONNECTED ? -ENOTCONN : rs->err ? -rs->err : -ECONNRESET;
}

static int begin(struct rs *rs, bool nonblock)
{
    if (rs->phase == RS_CONNECTING) {
        rs_progress(rs);
        if (rs->phase == RS_CONNECTING)
            return -EAGAIN;
    }
    if (rs->phase != RS_CONNECTED)
        return gone(rs);
    for (;;) {
        int r = rs->writable ? rs_tell_iomaps(rs) : gone(rs);
        if (r != -EAGAIN)
            return r;
        r = rs_wait(rs, can_tell, nonblock, -1);
        if (r < 0)
            return r;
    }
}

/* Lock held. @return bytes sent or -errno */
static ssize_t send_from(struct rs *rs, const uint8_t *buf, size_t len, bool nonblock)
{
    size_t done = 0, step = RS_FIRST_STEP;
    while (done < len) {
        int r = rs_can_send(rs) ? 0 : rs_wait(rs, rs_can_send, nonblock, -1);
        if (r == 0 && !rs->writable)
            r = gone(rs);
        if (r < 0)
            return done ? (ssize_t)done : r;
        ssize_t n = send_data(rs, buf + done, least(step, len - done));
        if (n < 0)
            return done ? (ssize_t)done : n;
        done += (size_t)n;
        after_piece(rs, n);
        if (step < RS_OVERLAP)
            step *= 2;
    }
    return (ssize_t)done;
}

/* Small pieces go together, copied to @p room. @return bytes at @p from */
static size_t gather(const struct msghdr *msg, size_t *i, uint8_t *room, const uint8_t **from)
{
    const struct iovec *iov = &msg->msg_iov[*i];
    size_t n = 0, left = (size_t)msg->msg_iovlen - *i;
    if (left == 1 || iov[0].iov_len > RS_FIRST_STEP ||
        iov[1].iov_len > RS_FIRST_STEP - iov[0].iov_len) {
        ++*i;
        *from = iov->iov_base;
        return iov->iov_len;
    }
    for (; left && iov->iov_len <= RS_FIRST_STEP - n; iov++, left--, ++*i) {
        if (iov->iov_len)
            memcpy(room + n, iov->iov_base, iov->iov_len);
        n += iov->iov_len;
    }
    *from = room;
    return n;
}

ssize_t rsendmsg(int socket, const struct msghdr *msg, int flags)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return rs_dgram_send(socket, msg, flags);
    if (msg->msg_control && msg->msg_controllen)
        return rs_fail(ENOTSUP);
    ssize_t done = 0;
    pthread_mutex_lock(&rs->lock);
    bool nonblock = rs->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
    int r = begin(rs, nonblock);
    for (size_t i = 0; r == 0 && i < (size_t)msg->msg_iovlen;) {
        uint8_t room[RS_FIRST_STEP];
        const uint8_t *from;
        size_t len = gather(msg, &i, room, &from);
        ssize_t n = send_from(rs, from, len, nonblock);
        if (n < 0)
            r = (int)n;
        else
            done += n;
        if ((size_t)n != len)
            break;
    }
    pthread_mutex_unlock(&rs->lock);
    return done || r == 0 ? done : rs_fail(-r);
}

ssize_t rwritev(int socket, const struct iovec *iov, int iovcnt)
{
    if (iovcnt < 0)
        return rs_fail(EINVAL);
    struct msghdr msg = {.msg_iov = (struct iovec *)iov, .msg_iovlen = (size_t)iovcnt};
    return rsendmsg(socket, &msg, 0);
}

ssize_t rsend(int socket, const void *buf, size_t len, int flags)
{
    struct iovec iov = {(void *)buf, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    return rsendmsg(socket, &msg, flags);
}

ssize_t rwrite(int socket, const void *buf, size_t count)
{
    return rsend(socket, buf, count, 0);
}

ssize_t rsendto(int socket, const void *buf, size_t len, int flags,
                const struct sockaddr *dest_addr, socklen_t addrlen)
{
    struct iovec iov = {(void *)buf, len};
    struct msghdr msg = {(void *)dest_addr, addrlen, &iov, 1, NULL, 0, 0};
    if (rs_get(socket) && (dest_addr || addrlen))
        return rs_fail(EISCONN);
    return rsendmsg(socket, &msg, flags);
}

/* The next mapping entry that covers @p offset. @return bytes it covers, 0: none */
static size_t find(const struct rs *rs, uint64_t offset, struct rs_buffer *to)
{
    for (unsigned i = 0; i < rs->sizes.mappings; i++) {
        const struct rs_mapping *map = &rs->peer_maps[i];
        if (offset < map->offset || offset - map->offset >= map->memory.length)
            continue;
        uint64_t skip = offset - map->offset;
        *to = (struct rs_buffer){map->memory.addr + skip, map->memory.key, 0};
        return map->memory.length - (size_t)skip;
    }
    return 0;
}

size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
    struct rs *rs = rs_get(socket);
    if (!rs)
        return (size_t)rs_fail(EBADF);
    size_t done = 0, step = RS_FIRST_STEP;
    pthread_mutex_lock(&rs->lock);
    bool nonblock = rs->flags & O_NONBLOCK || flags & MSG_DONTWAIT;
    int r = begin(rs, nonblock);
    while (r == 0 && done < count) {
        struct rs_buffer to;
        size_t covered = find(rs, (uint64_t)offset + done, &to);
        if (!covered) {
            rs_progress(rs); /* it may just have come */
            covered = find(rs, (uint64_t)offset + done, &to);
        }
        if (!covered)
            break;
        r = can_write(rs) ? 0 : rs_wait(rs, can_write, nonblock, -1);
        if (r == 0 && !rs->writable)
            r = gone(rs);
        if (r < 0)
            break;
        ssize_t n = rs_send_piece(rs, (const uint8_t *)buf + done,
                                  least(step, least(covered, count - done)), &to, false);
        if (n < 0)
            r = (int)n;
        else
            done += (size_t)n;
        after_piece(rs, n);
        if (step < RS_OVERLAP)
            step *= 2;
    }
    pthread_mutex_unlock(&rs->lock);
    return done || r == 0 ? done : (size_t)rs_fail(-r);
}
