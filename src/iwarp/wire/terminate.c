/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/terminate.h"

#include "wire/bytes.h"

#include <string.h>

/* Header control bits in byte 2. */
#define HDR_M       0x80
#define HDR_D       0x40
#define HDR_R       0x20
#define HDR_ANY     (HDR_M | HDR_D | HDR_R)
#define SWAPPED_M   0x01
#define SWAPPED_D   0x02
#define SWAPPED_R   0x04
#define SWAPPED_ANY (SWAPPED_M | SWAPPED_D | SWAPPED_R)

#define SEG_LEN_FIELD 2

size_t terminate_encode(uint8_t *p, const struct terminate *t)
{
    uint8_t *at = p + TERMINATE_MIN;

    p[0] = (uint8_t)(t->layer << 4) | t->etype;
    p[1] = t->code;
    p[2] = (t->has_ddp ? HDR_M | HDR_D : 0) | (t->has_rdmap ? HDR_R : 0);
    p[3] = 0;
    if (t->has_ddp) {
        put_be16(at, t->seg_len);
        at += SEG_LEN_FIELD;
        memcpy(at, t->ddp, t->ddp_len);
        at += t->ddp_len;
    }
    if (t->has_rdmap) {
        memcpy(at, t->rdmap, sizeof(t->rdmap));
        at += sizeof(t->rdmap);
    }
    return (size_t)(at - p);
}

static bool assigned(uint8_t layer, uint8_t etype, uint8_t code)
{
    return iw_err_from_terminate(layer, etype, code) != IW_ERR_PEER_TERMINATE;
}

/**
 * Whether the word has siw's bit order. The header bits tell; without any, a code that only the
 * swapped order gives a meaning does.
 */
static bool is_swapped(const uint8_t *p)
{
    uint8_t high = p[0] >> 4, low = p[0] & 0xf;

    if (p[2] & HDR_ANY)
        return false;
    if (p[2] & SWAPPED_ANY)
        return true;
    return !assigned(high, low, p[1]) && assigned(low, high, p[1]);
}

static uint8_t header_bits(uint8_t byte, bool swapped)
{
    if (!swapped)
        return byte & HDR_ANY;
    return (byte & SWAPPED_M ? HDR_M : 0) | (byte & SWAPPED_D ? HDR_D : 0) |
           (byte & SWAPPED_R ? HDR_R : 0);
}

/** Takes the headers that @p bits announce from the @p len bytes at @p p. */
static void read_headers(const uint8_t *p, size_t len, uint8_t bits, struct terminate *t)
{
    if (!(bits & HDR_M) || !(bits & HDR_D) || len <= SEG_LEN_FIELD)
        return;
    size_t ddp_len = p[SEG_LEN_FIELD] & DDP_T ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR;
    size_t rdmap_at = SEG_LEN_FIELD + ddp_len;
    if (len < rdmap_at)
        return;
    t->has_ddp = true;
    t->seg_len = get_be16(p);
    t->ddp_len = (uint8_t)ddp_len;
    memcpy(t->ddp, p + SEG_LEN_FIELD, ddp_len);
    if ((bits & HDR_R) && len - rdmap_at >= sizeof(t->rdmap)) {
        t->has_rdmap = true;
        memcpy(t->rdmap, p + rdmap_at, sizeof(t->rdmap));
    }
}

bool terminate_decode(const uint8_t *p, size_t len, struct terminate *t)
{
    memset(t, 0, sizeof(*t));
    if (len < TERMINATE_MIN)
        return false;
    t->swapped = is_swapped(p);
    t->layer = t->swapped ? p[0] & 0xf : p[0] >> 4;
    t->etype = t->swapped ? p[0] >> 4 : p[0] & 0xf;
    t->code = p[1];
    read_headers(p + TERMINATE_MIN, len - TERMINATE_MIN, header_bits(p[2], t->swapped), t);
    return true;
}

void terminate_after_setup(struct terminate *t)
{
    enum iw_err err = iw_err_from_terminate(t->layer, t->etype, t->code);

    if (t->swapped || t->has_ddp || (err != IW_ERR_IRD_SHORT && err != IW_ERR_NO_RTR))
        return;
    t->etype = t->layer;
    t->layer = TERM_RDMAP;
    t->swapped = true;
}

void terminate_from_error(struct terminate *t, enum iw_err err, const struct ddp_seg *seg,
                          uint32_t ulpdu_len)
{
    const struct iw_err_info *info = iw_err_info(err);
    bool ddp, rdmap;

    memset(t, 0, sizeof(*t));
    t->layer = info->layer;
    t->etype = info->etype;
    t->code = info->code;
    iw_err_headers(err, &ddp, &rdmap);
    if (!ddp || !seg || !seg->hdr)
        return;
    t->has_ddp = true;
    t->seg_len = (uint16_t)ulpdu_len;
    t->ddp_len = seg->hdr_len;
    memcpy(t->ddp, seg->hdr, seg->hdr_len);
    if (rdmap && seg->opcode == RDMAP_READ_REQUEST && seg->len >= sizeof(t->rdmap)) {
        t->has_rdmap = true;
        memcpy(t->rdmap, seg->payload, sizeof(t->rdmap));
    }
}
