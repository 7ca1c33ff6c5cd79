/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/pcapng.h"

#include "wire/bytes.h"

#include <string.h>

#define SECTION_HEADER   0x0a0d0d0au
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define INTERFACE        1
#define ENHANCED_PACKET  6
#define LINKTYPE_RAW     101 /* begins with an IP header of either version */
#define OPT_COMMENT      1
#define OPT_USERAPPL     4
#define OPT_TSRESOL      9
#define OPT_FLAGS        2
#define INBOUND          1
#define OUTBOUND         2
#define PROGRAM_MAX      64

#define IPV4_HEAD     20
#define IPV6_HEAD     40
#define TCP_HEAD      20
#define TCP_CHECKSUM  16 /* its place */
#define IPV4_CHECKSUM 10
#define PROTOCOL_TCP  6
#define TTL           64
#define DONT_FRAGMENT 0x4000
#define WINDOW        65535

static uint8_t *put16(uint8_t *p, uint16_t v)
{
    p[0] = v & 0xff;
    p[1] = v >> 8;
    return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
    put_le32(p, v);
    return p + 4;
}

static uint32_t pad(uint32_t len)
{
    return -len & 3u;
}

static uint8_t *put_option(uint8_t *p, uint16_t code, const void *value, uint16_t len)
{
    p = put16(put16(p, code), len);
    memcpy(p, value, len);
    memset(p + len, 0, pad(len));
    return p + len + pad(len);
}

/** Ends the block that begins at @p start: its length stands at both ends. */
static uint8_t *end_block(uint8_t *start, uint8_t *p)
{
    uint32_t len = (uint32_t)(p - start) + 4;
    put32(start + 4, len);
    return put32(p, len);
}

size_t pcapng_start(uint8_t buf[PCAPNG_START_MAX], const char *program)
{
    static const uint8_t nanoseconds = 9;
    uint8_t *p = put32(put32(buf, SECTION_HEADER), 0);
    p = put32(p, BYTE_ORDER_MAGIC);
    p = put16(put16(p, 1), 0);                   /* version */
    p = put32(put32(p, UINT32_MAX), UINT32_MAX); /* length of the section: unknown */
    p = put_option(p, OPT_USERAPPL, program, (uint16_t)strnlen(program, PROGRAM_MAX));
    uint8_t *interface = end_block(buf, put32(p, 0));
    p = put32(put32(interface, INTERFACE), 0);
    p = put16(put16(p, LINKTYPE_RAW), 0);
    p = put32(p, 0); /* no limit to a packet */
    p = put_option(p, OPT_TSRESOL, &nanoseconds, 1);
    return (size_t)(end_block(interface, put32(p, 0)) - buf);
}

static uint16_t comment_len(const char *comment)
{
    return comment ? (uint16_t)strnlen(comment, PCAPNG_COMMENT) : 0;
}

static uint32_t packet_block(uint32_t len, const char *comment)
{
    uint32_t bytes = comment_len(comment);
    return PCAPNG_HEAD + len + pad(len) + 16 + (comment ? 4 + bytes + pad(bytes) : 0);
}

void pcapng_head(uint8_t buf[PCAPNG_HEAD], uint64_t ns, uint32_t len, const char *comment)
{
    uint8_t *p = put32(put32(buf, ENHANCED_PACKET), packet_block(len, comment));
    p = put32(p, 0); /* the interface */
    p = put32(put32(p, (uint32_t)(ns >> 32)), (uint32_t)ns);
    put32(put32(p, len), len);
}

size_t pcapng_tail(uint8_t buf[PCAPNG_TAIL_MAX], uint32_t len, bool outgoing, const char *comment)
{
    uint8_t flags[4] = {outgoing ? OUTBOUND : INBOUND};
    memset(buf, 0, pad(len));
    uint8_t *p = buf + pad(len);
    if (comment)
        p = put_option(p, OPT_COMMENT, comment, comment_len(comment));
    p = put_option(p, OPT_FLAGS, flags, sizeof(flags));
    return (size_t)(put32(put32(p, 0), packet_block(len, comment)) - buf);
}

/* ---- IP and TCP ---- */

static uint64_t add_words(uint64_t sum, const uint8_t *p, uint32_t len)
{
    for (; len > 1; p += 2, len -= 2)
        sum += get_be16(p);
    return len ? sum + ((uint64_t)*p << 8) : sum;
}

/** RFC 1071. */
static uint16_t checksum(uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static size_t put_ip(uint8_t *p, const struct tcp_ip *h, uint32_t len)
{
    if (h->ipv6) {
        put_be32(p, 6u << 28);
        put_be16(p + 4, (uint16_t)len);
        p[6] = PROTOCOL_TCP;
        p[7] = TTL;
        memcpy(p + 8, h->src, 16);
        memcpy(p + 24, h->dst, 16);
        return IPV6_HEAD;
    }
    p[0] = 4 << 4 | IPV4_HEAD / 4;
    p[1] = 0;
    put_be16(p + 2, (uint16_t)(IPV4_HEAD + len));
    put_be16(p + 4, 0);
    put_be16(p + 6, DONT_FRAGMENT);
    p[8] = TTL;
    p[9] = PROTOCOL_TCP;
    put_be16(p + IPV4_CHECKSUM, 0);
    memcpy(p + 12, h->src, 4);
    memcpy(p + 16, h->dst, 4);
    put_be16(p + IPV4_CHECKSUM, checksum(add_words(0, p, IPV4_HEAD)));
    return IPV4_HEAD;
}

size_t tcp_ip_encode(uint8_t buf[PCAPNG_TCP_IP_MAX], const struct tcp_ip *h, const uint8_t *data,
                     uint32_t len)
{
    size_t ip = put_ip(buf, h, TCP_HEAD + len);
    uint32_t address = h->ipv6 ? 16 : 4;
    uint8_t *p = buf + ip;
    put_be16(p, h->sport);
    put_be16(p + 2, h->dport);
    put_be32(p + 4, h->seq);
    put_be32(p + 8, h->flags & TCP_FLAG_ACK ? h->ack : 0);
    p[12] = TCP_HEAD / 4 << 4;
    p[13] = h->flags;
    put_be16(p + 14, WINDOW);
    put_be32(p + TCP_CHECKSUM, 0);
    uint64_t sum = PROTOCOL_TCP + TCP_HEAD + len;
    sum = add_words(add_words(sum, h->src, address), h->dst, address);
    sum = add_words(add_words(sum, p, TCP_HEAD), data, len);
    put_be16(p + TCP_CHECKSUM, checksum(sum));
    return ip + TCP_HEAD;
}
