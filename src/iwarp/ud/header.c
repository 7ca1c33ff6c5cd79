/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/header.h"

#include "wire/bytes.h"

#define VERSION   1
#define HAS_IMM   1
#define SOLICITED 2
#define QPN_MAX   0xffffffu
#define FLOW_MAX  0xfffffu
#define UDP_BYTES 8
#define PROTOCOL  17 /* UDP */
#define IPV4_LEN  20

static const uint8_t magic[4] = {'A', 'W', 'D', VERSION};

void iw_ud_header_encode(uint8_t bytes[IW_UD_HEADER], const struct iw_ud_header *h)
{
    memcpy(bytes, magic, sizeof(magic));
    bytes[4] = (uint8_t)((h->has_imm ? HAS_IMM : 0) | (h->solicited ? SOLICITED : 0));
    bytes[5] = h->traffic_class;
    bytes[6] = h->hop_limit;
    bytes[7] = 0;
    put_be32(bytes + 8, h->to);
    put_be32(bytes + 12, h->from);
    put_be32(bytes + 16, h->qkey);
    memcpy(bytes + 20, &h->imm, sizeof(h->imm));
    put_be32(bytes + 24, h->flow_label);
}

bool iw_ud_header_decode(const uint8_t *bytes, size_t len, struct iw_ud_header *h)
{
    if (len < IW_UD_HEADER || memcmp(bytes, magic, sizeof(magic)) != 0 ||
        (bytes[4] & ~(HAS_IMM | SOLICITED)) || bytes[7])
        return false;
    *h = (struct iw_ud_header){
        .has_imm = bytes[4] & HAS_IMM,
        .solicited = bytes[4] & SOLICITED,
        .traffic_class = bytes[5],
        .hop_limit = bytes[6],
        .to = get_be32(bytes + 8),
        .from = get_be32(bytes + 12),
        .qkey = get_be32(bytes + 16),
        .flow_label = get_be32(bytes + 24),
    };
    memcpy(&h->imm, bytes + 20, sizeof(h->imm));
    return h->to <= QPN_MAX && h->from <= QPN_MAX && h->flow_label <= FLOW_MAX;
}

/** RFC 1071, of 20 bytes. */
static uint16_t checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < IPV4_LEN; i += 2)
        sum += get_be16(header + i);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void put_ipv4(uint8_t *p, const struct iw_ud_header *h, const uint8_t *from,
                     const uint8_t *to, size_t payload)
{
    p[0] = 0x45;
    p[1] = h->traffic_class;
    put_be16(p + 2, (uint16_t)(IPV4_LEN + UDP_BYTES + IW_UD_HEADER + payload));
    put_be16(p + 6, 0x4000); /* not to be fragmented */
    p[8] = h->hop_limit;
    p[9] = PROTOCOL;
    memcpy(p + 12, from, 4);
    memcpy(p + 16, to, 4);
    put_be16(p + 10, checksum(p));
}

void iw_ud_grh(uint8_t grh[IW_UD_GRH], const struct iw_ud_header *h, const struct in6_addr *from,
               const struct in6_addr *to, size_t payload)
{
    memset(grh, 0, IW_UD_GRH);
    if (IN6_IS_ADDR_V4MAPPED(from) && IN6_IS_ADDR_V4MAPPED(to)) {
        put_ipv4(grh + IW_UD_IPV4_AT, h, from->s6_addr + 12, to->s6_addr + 12, payload);
        return;
    }
    put_be32(grh, 6u << 28 | (uint32_t)h->traffic_class << 20 | h->flow_label);
    put_be16(grh + 4, (uint16_t)(UDP_BYTES + IW_UD_HEADER + payload));
    grh[6] = PROTOCOL;
    grh[7] = h->hop_limit;
    memcpy(grh + 8, from, sizeof(*from));
    memcpy(grh + 24, to, sizeof(*to));
}

static void map(struct in6_addr *a, const uint8_t *ipv4)
{
    *a = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(a->s6_addr + 12, ipv4, 4);
}

void iw_ud_grh_addresses(const uint8_t grh[IW_UD_GRH], struct in6_addr *from, struct in6_addr *to)
{
    if (!iw_ud_grh_is_ipv4(grh)) {
        memcpy(from, grh + 8, sizeof(*from));
        memcpy(to, grh + 24, sizeof(*to));
    } else {
        map(from, grh + 32);
        map(to, grh + 36);
    }
}
