/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ddp.h"

#include "wire/bytes.h"
#include "wire/opcode.h"
#include "wire/rdmap.h"

#include <string.h>

#define DDP_L              0x40
#define DDP_VERSION_MASK   0x03
#define DDP_VERSION        0x01
#define RDMAP_VERSION_MASK 0xc0
#define RDMAP_VERSION      0x40
#define RDMAP_OPCODE_MASK  0x0f

#define CONTROL_LEN   2
#define STAG_AT       2
#define TO_AT         6
#define INVAL_STAG_AT 2
#define QN_AT         6
#define MSN_AT        10
#define MO_AT         14

static uint8_t ddp_control(bool tagged, bool last)
{
    return (tagged ? DDP_T : 0) | (last ? DDP_L : 0) | DDP_VERSION;
}

/** Reads what the two control bytes and, if it is whole, the rest of the header say. */
static void read_header(const uint8_t *p, size_t len, struct ddp_seg *seg)
{
    seg->tagged = p[0] & DDP_T;
    seg->last = p[0] & DDP_L;
    seg->opcode = p[1] & RDMAP_OPCODE_MASK;
    uint8_t hdr_len = seg->tagged ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR;
    if (len < hdr_len)
        return;
    seg->hdr = p;
    seg->hdr_len = hdr_len;
    seg->payload = p + hdr_len;
    seg->len = (uint32_t)(len - hdr_len);
    if (seg->tagged) {
        seg->stag = get_be32(p + STAG_AT);
        seg->to = get_be64(p + TO_AT);
        return;
    }
    if (rdmap_ops[seg->opcode].invalidate)
        seg->inval_stag = get_be32(p + INVAL_STAG_AT);
    seg->qn = get_be32(p + QN_AT);
    seg->msn = get_be32(p + MSN_AT);
    seg->mo = get_be32(p + MO_AT);
}

enum iw_err ddp_decode(const uint8_t *ulpdu, size_t len, struct ddp_seg *seg)
{
    memset(seg, 0, sizeof(*seg));
    if (len < CONTROL_LEN)
        return IW_ERR_FRAMING;
    read_header(ulpdu, len, seg);

    const struct rdmap_op *op = &rdmap_ops[seg->opcode];
    if ((ulpdu[0] & DDP_VERSION_MASK) != DDP_VERSION)
        return seg->tagged ? IW_ERR_TAGGED_VERSION : IW_ERR_UNTAGGED_VERSION;
    if ((ulpdu[1] & RDMAP_VERSION_MASK) != RDMAP_VERSION)
        return IW_ERR_RDMAP_VERSION;
    if (!op->name || op->tagged != seg->tagged)
        return IW_ERR_OPCODE;
    if (!seg->hdr)
        return IW_ERR_FRAMING;
    if (seg->tagged)
        return IW_OK;
    if (seg->qn != op->qn)
        return IW_ERR_UNTAGGED_QN;
    if ((op->single || seg->mo == 0) && seg->len < op->hdr_len)
        return IW_ERR_FRAMING;
    return IW_OK;
}

void ddp_encode_tagged(uint8_t *p, uint8_t opcode, bool last, uint32_t stag, uint64_t to)
{
    p[0] = ddp_control(true, last);
    p[1] = RDMAP_VERSION | opcode;
    put_be32(p + STAG_AT, stag);
    put_be64(p + TO_AT, to);
}

void ddp_encode_untagged(uint8_t *p, uint8_t opcode, bool last, uint32_t inval_stag, uint32_t msn,
                         uint32_t mo)
{
    p[0] = ddp_control(false, last);
    p[1] = RDMAP_VERSION | opcode;
    put_be32(p + INVAL_STAG_AT, inval_stag);
    put_be32(p + QN_AT, rdmap_ops[opcode].qn);
    put_be32(p + MSN_AT, msn);
    put_be32(p + MO_AT, mo);
}
