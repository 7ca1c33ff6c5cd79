/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as a capture file has them: pcapng blocks (IETF draft-ietf-opsawg-pcapng), and the IP and
 * TCP headers in front of what a socket has carried, with their checksums.
 */
#ifndef ANYWARP_WIRE_PCAPNG_H
#define ANYWARP_WIRE_PCAPNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PCAPNG_START_MAX  192
#define PCAPNG_HEAD       28 /* of a packet's block */
#define PCAPNG_COMMENT    64 /* bytes of a comment that are used */
#define PCAPNG_TAIL_MAX   (19 + 4 + PCAPNG_COMMENT)
#define PCAPNG_TCP_IP_MAX 60

/**
 * Writes the section header and the one interface, which has IP packets and time in nanoseconds.
 * @param program  at most 64 bytes of it are used
 * @return bytes written
 */
size_t pcapng_start(uint8_t buf[PCAPNG_START_MAX], const char *program);

/**
 * Writes what goes before a packet of @p len bytes.
 * @param ns       the time since 1970
 * @param comment  that pcapng_tail() writes; NULL: none
 */
void pcapng_head(uint8_t buf[PCAPNG_HEAD], uint64_t ns, uint32_t len, const char *comment);
/** Writes what goes behind it. @return bytes written */
size_t pcapng_tail(uint8_t buf[PCAPNG_TAIL_MAX], uint32_t len, bool outgoing, const char *comment);

enum tcp_flags { TCP_FLAG_FIN = 1, TCP_FLAG_SYN = 2, TCP_FLAG_RST = 4, TCP_FLAG_ACK = 16 };

struct tcp_ip {
    bool ipv6;
    uint8_t src[16], dst[16]; /* IPv4: the first four */
    uint16_t sport, dport;
    uint32_t seq, ack;
    uint8_t flags; /* enum tcp_flags */
};

/**
 * Writes the headers of a segment with these @p len bytes of data, at most 65475.
 * @return bytes written
 */
size_t tcp_ip_encode(uint8_t buf[PCAPNG_TCP_IP_MAX], const struct tcp_ip *h, const uint8_t *data,
                     uint32_t len);

#endif
