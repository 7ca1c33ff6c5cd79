/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_direct.h"

#include "advice/placed.h"
#include "env/pool.h"
#include "mem/quiesce.h"
#include "mem/region.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/rx_place.h"
#include "qp/rx_scatter.h"
#include "qp/tx_requests.h"
#include "wire/bytes.h"
#include "wire/fpdu.h"
#include "wire/opcode.h"
#include "wire/range.h"

#include <errno.h>

#define TAIL   64  /* bytes of the segment that are staged */
#define BEHIND 256 /* staged in the same call, at least: the tail, and the next header */
#define HEADER (FPDU_LEN_FIELD + DDP_UNTAGGED_HDR) /* the longer of the two */

uint32_t iw_direct_least = 8192;

static uint8_t *staged(const struct iw_qp_rx *rx)
{
    return rx->staging + rx->staged_at;
}

enum iw_err iw_direct_decode(const struct iw_qp_rx *rx, struct ddp_seg *seg)
{
    const uint8_t *p = staged(rx);
    return ddp_decode(p + FPDU_LEN_FIELD, get_be16(p), seg);
}

bool iw_direct_entry(const struct ibv_sge *sge, uint32_t nsge, uint64_t at, uint64_t len,
                     struct iw_direct *d)
{
    uint32_t k = 0;
    for (; k < nsge && at >= sge[k].length; k++)
        at -= sge[k].length;
    if (k == nsge || !range_fits(sge[k].length, at, len))
        return false;
    d->key = sge[k].lkey;
    d->to = sge[k].addr + at;
    return true;
}

/* ---- the plan ---- */

/** How many bytes of the segment go past staging, of which @p have are there already; so many that
 * the pad stays. @return 0: it is not large */
static uint32_t part_past(const struct ddp_seg *seg, uint32_t have)
{
    uint32_t past = seg->len > TAIL ? (seg->len - TAIL) & ~3u : 0;
    return past >= have && past - have >= iw_direct_least ? past : 0;
}

static bool find(struct iw_qp *qp, const struct ddp_seg *seg, uint32_t len, struct iw_direct *d)
{
    if (seg->opcode == RDMAP_READ_RESPONSE)
        return iw_response_find(qp, seg, len, d);
    if (seg->opcode != RDMAP_WRITE)
        return iw_recv_find(qp, seg, len, d);
    *d = (struct iw_direct){.key = seg->stag, .to = seg->to, .use = IW_USE_WRITE};
    return true;
}

/** In a section. @return NULL with IW_OK: they are thrown away */
static enum iw_err resolve(struct iw_qp *qp, const struct iw_direct *d, uint64_t len, uint8_t **p)
{
    enum iw_err err = iw_region_check(d->key, &qp->accessor, d->use, d->to, len, p);
    if (d->use != IW_USE_WRITE)
        return err ? IW_ERR_LOCAL_SINK : IW_OK;
    return err || iw_qp_allows(qp, IBV_ACCESS_REMOTE_WRITE) ? err : IW_ERR_TAGGED_ACCESS;
}

static bool is_placeable(struct iw_qp *qp, const struct iw_direct *d, const struct ddp_seg *seg,
                         uint32_t past)
{
    uint64_t len = d->use == IW_USE_WRITE ? seg->len : past; /* of the others an entry may end */
    uint8_t *p;
    iw_copy_begin(iw_region_pd(&qp->accessor, d->use));
    bool good = resolve(qp, d, len, &p) == IW_OK && p;
    iw_copy_end();
    return good;
}

/** Makes the header that of the segment without its first @p past bytes. */
static void shorten(uint8_t *p, const struct ddp_seg *seg, uint32_t past)
{
    put_be16(p, (uint16_t)(get_be16(p) - past));
    if (seg->tagged)
        ddp_encode_tagged(p + FPDU_LEN_FIELD, seg->opcode, seg->last, seg->stag, seg->to + past);
    else
        ddp_encode_untagged(p + FPDU_LEN_FIELD, seg->opcode, seg->last, seg->inval_stag, seg->msn,
                            seg->mo + past);
}

bool iw_direct_plan(struct iw_qp *qp)
{
    struct iw_qp_rx *rx = &qp->rx;
    struct ddp_seg seg;
    struct iw_direct d;
    if (rx->staged < HEADER || rx->half.crc || rx->late || qp->uc || !qp->stream->ops->recvv)
        return false;
    uint32_t ulpdu = get_be16(staged(rx));
    if (ulpdu < HEADER + iw_direct_least || ulpdu > FPDU_ULPDU_MAX ||
        iw_direct_decode(rx, &seg) != IW_OK)
        return false;
    uint32_t have = rx->staged - FPDU_LEN_FIELD - seg.hdr_len;
    uint32_t past = part_past(&seg, have);
    if (!past || !iwc_rx_is_due(&rx->half, &seg) || !find(qp, &seg, past, &d) ||
        !is_placeable(qp, &d, &seg, past))
        return false;
    d.left = past;
    rx->direct = d;
    if (seg.opcode == RDMAP_WRITE)
        rx->writing += past;
    else if (seg.opcode == RDMAP_READ_RESPONSE)
        iw_response_past(qp, past);
    iwc_rx_past(&rx->half, &seg, past);
    shorten(staged(rx), &seg, past);
    return true;
}

/* ---- as it comes in ---- */

static void went(struct iw_direct *d, uint32_t len)
{
    d->left -= len;
    d->to += len;
}

/** Of memory that is gone. */
static enum iw_err gone(const struct iw_direct *d)
{
    return d->use == IW_USE_WRITE ? IW_ERR_TAGGED_GONE : IW_ERR_LOCAL_GONE;
}

/** Of the segment that is planned: what of it is staged from the start. */
static uint32_t header_bytes(const struct iw_direct *d)
{
    return FPDU_LEN_FIELD + (d->use == IW_USE_RECEIVE ? DDP_UNTAGGED_HDR : DDP_TAGGED_HDR);
}

/** How much is staged behind the segment's bytes: where calls are dear, the next FPDU, too. */
static uint32_t behind(const struct iw_qp *qp)
{
    const struct iw_qp_rx *rx = &qp->rx;
    uint32_t room = IW_STAGING_BYTES - rx->staged_at - header_bytes(&rx->direct);
    uint32_t want = BEHIND + qp->stream->read_ahead;
    return want < room ? want : room;
}

/** Places what was staged when this was planned, then what comes in. In a section. */
static ssize_t receive(struct iw_qp *qp, enum iw_err *err)
{
    struct iw_qp_rx *rx = &qp->rx;
    struct iw_direct *d = &rx->direct;
    uint32_t header = header_bytes(d), have = rx->staged - header;
    uint8_t *to;
    *err = resolve(qp, d, d->left, &to);
    if (!*err && have && !iw_place(to, staged(rx) + header, have))
        *err = gone(d);
    if (*err)
        return -EAGAIN;
    rx->staged = header;
    went(d, have);
    struct iovec v[] = {{.iov_base = to + have, .iov_len = d->left},
                        {.iov_base = staged(rx) + header, .iov_len = behind(qp)}};
    iw_placed(to + have, d->left);
    ssize_t n = qp->stream->ops->recvv(qp->stream, v, 2);
    iw_placed(to + have, d->left);
    if (n == -EFAULT)
        *err = gone(d);
    return *err ? -EAGAIN : n;
}

static void explain(struct iw_qp *qp, enum iw_err err)
{
    const struct iw_direct *d = &qp->rx.direct;
    uint8_t status = (uint8_t)iw_err_info(err)->status;
    iw_qp_explain_access(qp, err, d->key, d->use, d->to, d->left);
    if (d->use == IW_USE_RECEIVE)
        qp->rx.recv_status = status;
    else if (d->use == IW_USE_SCATTER)
        iw_response_failed_locked(qp, status);
}

ssize_t iw_direct_recv(struct iw_qp *qp, enum iw_err *err)
{
    struct iw_qp_rx *rx = &qp->rx;
    bool read = rx->direct.use == IW_USE_SCATTER;
    ssize_t n = -EAGAIN;
    *err = IW_OK;
    if (read) /* whose memory is the program's again when it is flushed */
        lock_get(&qp->tx.lock);
    if (!read || !atomic_load(&qp->end.over)) {
        iw_copy_begin(iw_region_pd(&qp->accessor, rx->direct.use));
        n = receive(qp, err);
        if (*err)
            explain(qp, *err);
        iw_copy_end();
    }
    if (read)
        lock_put(&qp->tx.lock);
    if (n > 0) {
        uint32_t past = (uint64_t)n < rx->direct.left ? (uint32_t)n : rx->direct.left;
        if ((uint32_t)n < rx->direct.left + behind(qp))
            rx->stall.since = 0;
        went(&rx->direct, past);
        rx->staged += (uint32_t)n - past;
    }
    return n;
}
