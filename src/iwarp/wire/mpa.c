/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mpa.h"

#include "wire/bytes.h"

#include <string.h>

#define KEY_LEN   16
#define FLAGS_AT  16
#define REV_AT    17
#define PD_LEN_AT 18

#define WORD0_A 0x8000
#define WORD0_B 0x4000
#define WORD1_C 0x8000
#define WORD1_D 0x4000

static const char request_key[] = "MPA ID Req Frame";
static const char reply_key[] = "MPA ID Rep Frame";

static const char *key(bool reply)
{
    return reply ? reply_key : request_key;
}

/** What the block of @p p says; B, C and D mean nothing without A (RFC 6581 section 9.2). */
static void get_block(const uint8_t *p, struct mpa_start *m)
{
    uint16_t word0 = get_be16(p), word1 = get_be16(p + 2);

    m->p2p = word0 & WORD0_A;
    if (m->p2p)
        m->rtr = (word0 & WORD0_B ? MPA_RTR_SEND : 0) | (word1 & WORD1_C ? MPA_RTR_WRITE : 0) |
                 (word1 & WORD1_D ? MPA_RTR_READ : 0);
    m->ird = word0 & MPA_DEPTH_MAX;
    m->ord = word1 & MPA_DEPTH_MAX;
}

static void put_block(uint8_t *p, const struct mpa_start *m)
{
    uint8_t rtr = m->p2p ? m->rtr : 0;

    put_be16(p, (m->p2p ? WORD0_A : 0) | (rtr & MPA_RTR_SEND ? WORD0_B : 0) | m->ird);
    put_be16(p + 2,
             (rtr & MPA_RTR_WRITE ? WORD1_C : 0) | (rtr & MPA_RTR_READ ? WORD1_D : 0) | m->ord);
}

static bool is_enhanced(uint8_t flags, uint8_t rev)
{
    return rev == 2 && (flags & MPA_FLAG_S);
}

enum mpa_parse mpa_start_decode(const uint8_t *p, size_t len, bool reply, struct mpa_start *out,
                                size_t *used)
{
    struct mpa_start m = {.reply = reply};

    out->rev = 0;
    if (len == 0)
        return MPA_PARSE_MORE;
    if (memcmp(p, key(reply), len < KEY_LEN ? len : KEY_LEN) != 0)
        return MPA_PARSE_BAD;
    if (len <= REV_AT)
        return MPA_PARSE_MORE;
    m.flags = p[FLAGS_AT];
    m.rev = out->rev = p[REV_AT];
    if (m.rev != 1 && m.rev != 2)
        return MPA_PARSE_BAD;
    if (len > PD_LEN_AT && p[PD_LEN_AT] > MPA_START_PD_MAX >> 8)
        return MPA_PARSE_BAD;
    if (len < MPA_START_HDR)
        return MPA_PARSE_MORE;
    m.enhanced = is_enhanced(m.flags, m.rev);
    uint16_t block = m.enhanced ? MPA_V2_BLOCK : 0, rest = get_be16(p + PD_LEN_AT);
    if (rest > MPA_START_PD_MAX || rest < block)
        return MPA_PARSE_BAD;
    if (len < (size_t)MPA_START_HDR + rest)
        return MPA_PARSE_MORE;
    if (m.enhanced)
        get_block(p + MPA_START_HDR, &m);
    m.pd = p + MPA_START_HDR + block;
    m.pd_len = rest - block;
    *out = m;
    *used = (size_t)MPA_START_HDR + rest;
    return MPA_PARSE_OK;
}

size_t mpa_start_encode(uint8_t *buf, const struct mpa_start *m)
{
    uint16_t block = m->enhanced ? MPA_V2_BLOCK : 0;

    if (m->pd_len > MPA_START_PD_MAX - block || m->ird > MPA_DEPTH_MAX || m->ord > MPA_DEPTH_MAX)
        return 0;
    memcpy(buf, key(m->reply), KEY_LEN);
    buf[FLAGS_AT] = (m->flags & ~MPA_FLAG_S) | (m->enhanced ? MPA_FLAG_S : 0);
    buf[REV_AT] = m->rev;
    put_be16(buf + PD_LEN_AT, block + m->pd_len);
    if (m->enhanced)
        put_block(buf + MPA_START_HDR, m);
    if (m->pd_len)
        memcpy(buf + MPA_START_HDR + block, m->pd, m->pd_len);
    return (size_t)MPA_START_HDR + block + m->pd_len;
}

size_t mpa_start_add_qpn(uint8_t *buf, size_t len, uint32_t qpn)
{
    if (len > MPA_START_MAX - MPA_QPN)
        return len;
    buf[FLAGS_AT] |= MPA_FLAG_QPN_REPLY;
    put_be16(buf + PD_LEN_AT, get_be16(buf + PD_LEN_AT) + MPA_QPN);
    put_be32(buf + len, qpn);
    return len + MPA_QPN;
}

uint32_t mpa_start_take_qpn(struct mpa_start *m)
{
    if (!(m->flags & MPA_FLAG_QPN_REPLY) || m->pd_len < MPA_QPN)
        return 0;
    m->pd_len -= MPA_QPN;
    uint32_t qpn = get_be32(m->pd + m->pd_len);
    return qpn <= MPA_QPN_MAX ? qpn : 0;
}

size_t mpa_start_add_offer(uint8_t *buf, size_t len, const uint8_t *offer)
{
    put_be16(buf + PD_LEN_AT, (uint16_t)(get_be16(buf + PD_LEN_AT) + MPA_OFFER));
    memcpy(buf + len, offer, MPA_OFFER);
    return len + MPA_OFFER;
}

bool mpa_start_take_offer(struct mpa_start *m, uint8_t *offer)
{
    if (!(m->flags & MPA_FLAG_SHM) || m->pd_len < MPA_OFFER)
        return false;
    m->pd_len -= MPA_OFFER;
    memcpy(offer, m->pd + m->pd_len, MPA_OFFER);
    return true;
}
