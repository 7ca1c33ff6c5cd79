/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive half of an iWARP stream: FPDU checks, DDP message state, dispatch by opcode. */
#include "conn/rx.h"

#include "conn/note.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/opcode.h"
#include "wire/range.h"

void iwc_rx_init(struct iwc_rx *rx, const struct iwc_upcalls *ops, void *up, bool crc, bool ext)
{
    *rx = (struct iwc_rx){.ops = ops, .up = up, .crc = crc, .ext = ext};
    for (unsigned qn = 0; qn < DDP_QN_COUNT; qn++)
        rx->msn[qn] = 1;
}

static int on_write(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    return seg->len || seg->last ? rx->ops->write(rx->up, seg) : IW_OK;
}

static int on_read_response(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    return seg->len || seg->last ? rx->ops->read_response(rx->up, seg) : IW_OK;
}

/** What holds for every untagged segment of a message of which @p mo bytes are in. */
static int check_untagged(const struct iwc_rx *rx, const struct ddp_seg *seg, uint64_t mo)
{
    if (seg->msn != rx->msn[seg->qn])
        return IW_ERR_UNTAGGED_MSN;
    if (seg->mo != mo)
        return IW_ERR_UNTAGGED_MO;
    return IW_OK;
}

/** What holds for messages of one segment, too. */
static int check_single(const struct iwc_rx *rx, const struct ddp_seg *seg)
{
    const struct rdmap_op *op = &rdmap_ops[seg->opcode];
    int r = check_untagged(rx, seg, 0);
    if (r != IW_OK)
        return r;
    if (!seg->last)
        return IW_ERR_UNTAGGED_MO;
    if (op->exact && seg->len != op->hdr_len)
        return IW_ERR_UNTAGGED_TOO_LONG;
    return IW_OK;
}

/** Counts a message of one segment unless the upcall refused it. */
static int finish_single(struct iwc_rx *rx, const struct ddp_seg *seg, int r)
{
    if (r == IW_OK)
        rx->msn[seg->qn]++;
    return r;
}

static int check_send(const struct iwc_rx *rx, const struct ddp_seg *seg)
{
    int r = check_untagged(rx, seg, rx->open_mo);
    if (r != IW_OK)
        return r;
    if (rx->open && (seg->opcode != rx->open_opcode || seg->inval_stag != rx->open_inval))
        return IW_ERR_OPCODE;
    return range_fits(UINT32_MAX, rx->open_mo, seg->len) ? IW_OK : IW_ERR_UNTAGGED_TOO_LONG;
}

static int on_send(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    int r = check_send(rx, seg);
    if (r != IW_OK)
        return r;
    r = rx->ops->send(rx->up, seg);
    if (r != IW_OK)
        return r;
    if (seg->last) {
        rx->msn[DDP_QN_SEND]++;
        rx->open = false;
        rx->open_mo = 0;
    } else {
        rx->open = true;
        rx->open_opcode = seg->opcode;
        rx->open_inval = seg->inval_stag;
        rx->open_mo += seg->len;
    }
    return IW_OK;
}

static int on_immediate(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    if (rx->open)
        return IW_ERR_OPCODE;
    r = rx->ops->immediate(rx->up, seg->payload, rdmap_ops[seg->opcode].solicited);
    return finish_single(rx, seg, r);
}

static int on_read_request(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    struct rdmap_read_request req;
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    rdmap_read_request_decode(seg->payload, &req);
    return finish_single(rx, seg, rx->ops->read_request(rx->up, &req));
}

static int on_atomic_request(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    struct rdmap_atomic_request req;
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    rdmap_atomic_request_decode(seg->payload, &req);
    return finish_single(rx, seg, rx->ops->atomic_request(rx->up, &req));
}

static int on_atomic_response(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    struct rdmap_atomic_response resp;
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    rdmap_atomic_response_decode(seg->payload, &resp);
    return finish_single(rx, seg, rx->ops->atomic_response(rx->up, &resp));
}

static int on_path(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    return finish_single(rx, seg, rx->ops->path(rx->up, get_be32(seg->payload)));
}

static int on_terminate(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    struct terminate t;
    int r = check_single(rx, seg);
    if (r != IW_OK)
        return r;
    if (!terminate_decode(seg->payload, seg->len, &t))
        return IW_ERR_FRAMING;
    rx->terminated = true;
    rx->ops->terminate(rx->up, &t);
    return finish_single(rx, seg, IW_OK);
}

/* A handler for every opcode that ddp_decode() knows. */
static int (*const handlers[RDMAP_OPCODES])(struct iwc_rx *, const struct ddp_seg *) = {
    [RDMAP_WRITE] = on_write,
    [RDMAP_READ_REQUEST] = on_read_request,
    [RDMAP_READ_RESPONSE] = on_read_response,
    [RDMAP_SEND] = on_send,
    [RDMAP_SEND_INV] = on_send,
    [RDMAP_SEND_SE] = on_send,
    [RDMAP_SEND_SE_INV] = on_send,
    [RDMAP_TERMINATE] = on_terminate,
    [RDMAP_IMM] = on_immediate,
    [RDMAP_IMM_SE] = on_immediate,
    [RDMAP_ATOMIC_REQUEST] = on_atomic_request,
    [RDMAP_ATOMIC_RESPONSE] = on_atomic_response,
    [RDMAP_PATH] = on_path,
    [RDMAP_SEND_IMM] = on_send,
};

/** Counts a segment that was taken. */
static void count(struct iwc_rx *rx, const struct ddp_seg *seg)
{
    const struct rdmap_op *op = &rdmap_ops[seg->opcode];
    uint32_t hdr = op->tagged || seg->mo ? 0 : op->hdr_len;
    if (rx->flow && iwc_is_counted(seg->opcode, seg->tagged ? seg->stag : 0, seg->len))
        iwc_flow_segment(rx->flow, seg->opcode, seg->last, seg->len - hdr);
}

static bool legal_ulpdu(uint32_t ulpdu)
{
    return ulpdu >= FPDU_ULPDU_MIN && ulpdu <= FPDU_ULPDU_MAX;
}

static bool crc_good(struct iwc_rx *rx, const uint8_t *p, uint32_t size)
{
    uint32_t covered = size - FPDU_CRC_FIELD;
    uint32_t good = crc32c_done(crc32c_add(CRC32C_INIT, p, covered));
    uint32_t received = get_le32(p + covered);
    if (good == received)
        return true;
    rx->good_crc = good;
    rx->bad_crc = received;
    return false;
}

/** To who has not agreed on them extensions are opcodes that nobody has assigned. */
static int judge_extension(const struct iwc_rx *rx, const struct ddp_seg *seg, int r)
{
    if (seg->opcode != RDMAP_PATH)
        return r == IW_OK && !rx->ext ? IW_ERR_OPCODE : r;
    bool read =
        r != IW_ERR_TAGGED_VERSION && r != IW_ERR_UNTAGGED_VERSION && r != IW_ERR_RDMAP_VERSION;
    return read && !rx->rings ? IW_ERR_OPCODE : r;
}

/** One whole FPDU of @p size bytes. An error that belongs to a segment leaves it in rx->bad. */
static int take_fpdu(struct iwc_rx *rx, const uint8_t *p, uint32_t ulpdu, uint32_t size)
{
    struct ddp_seg seg;

    if (rx->crc && !crc_good(rx, p, size)) {
        rx->bad_ulpdu_len = ulpdu;
        return IW_ERR_CRC;
    }
    int r = ddp_decode(p + FPDU_LEN_FIELD, ulpdu, &seg);
    if (rdmap_ops[seg.opcode].extension)
        r = judge_extension(rx, &seg, r);
    if (r == IW_OK) {
        rx->seg = &seg;
        r = handlers[seg.opcode](rx, &seg);
        rx->seg = NULL;
    }
    if (r == IW_OK)
        count(rx, &seg);
    if (r > IW_OK) {
        rx->bad = seg;
        rx->bad_ulpdu_len = ulpdu;
    }
    return r;
}

enum iwc_rx_status iwc_rx_input(struct iwc_rx *rx, const uint8_t *p, size_t len, size_t *used,
                                enum iw_err *err)
{
    size_t off = 0;
    int r = IW_OK;

    while (len - off >= FPDU_LEN_FIELD) {
        uint32_t ulpdu = get_be16(p + off);
        if (!legal_ulpdu(ulpdu)) {
            rx->bad_ulpdu_len = ulpdu;
            r = IW_ERR_FRAMING;
            break;
        }
        uint32_t size = fpdu_size(ulpdu);
        if (len - off < size)
            break;
        r = take_fpdu(rx, p + off, ulpdu, size);
        if (r > IW_OK)
            break;
        /* A held FPDU is valid: it counts now, and not again when it is offered again. */
        rx->fpdus += !rx->held;
        rx->held = r == IWC_HOLD;
        if (r == IWC_HOLD)
            break;
        off += size;
        rx->offset += size + rx->past;
        rx->past = 0;
        if (rx->terminated)
            break;
    }
    *used = off;
    if (r > IW_OK) {
        *err = r;
        return IWC_RX_ERROR;
    }
    if (r == IWC_HOLD)
        return IWC_RX_HELD;
    return rx->terminated ? IWC_RX_TERMINATED : IWC_RX_MORE;
}

bool iwc_rx_is_due(const struct iwc_rx *rx, const struct ddp_seg *seg)
{
    if (seg->tagged)
        return true;
    return handlers[seg->opcode] == on_send && check_send(rx, seg) == IW_OK;
}

void iwc_rx_past(struct iwc_rx *rx, const struct ddp_seg *seg, uint32_t len)
{
    rx->past = len;
    if (!seg->tagged)
        rx->open_mo += len;
    if (rx->flow)
        iwc_flow_data(rx->flow, seg->opcode, len);
}

size_t iwc_rx_need(const uint8_t *p, size_t len)
{
    return len < FPDU_LEN_FIELD ? 0 : fpdu_size(get_be16(p));
}
