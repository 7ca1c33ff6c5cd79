/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service ID resolution: how who knows an address and a port of UDP learns which queue pair serves
 * it, and with which key. One datagram asks, one answers, and each is as long as the management
 * datagram of InfiniBand that does the same: what is asked under a false address brings nobody more
 * bytes than were sent. Functions over bytes.
 *
 *      0  magic "AWSR"                   20  Reply: number of the queue pair
 *      4  version                        24  Reply: its Q_Key
 *      5  1: Request, 2: Reply           28  zeros
 *      6  Reply: status                  32  private data, then zeros up to the end
 *         Request: 1 if of a RoCE device
 *      7  bytes of private data
 *      8  whose Request this is, random
 *     16  port space
 *     18  zeros
 */
#ifndef ANYWARP_WIRE_SIDR_H
#define ANYWARP_WIRE_SIDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDR_BYTES        256
#define SIDR_REQUEST_DATA 180 /* room for private data, as on InfiniBand */
#define SIDR_REPLY_DATA   136

/** InfiniBand's. */
enum sidr_status {
    SIDR_SUCCESS,
    SIDR_UNSUPPORTED, /* nobody serves this */
    SIDR_REJECT,
    SIDR_STATUS_END,
};

struct sidr {
    bool reply;
    bool ib;                 /* Request */
    enum sidr_status status; /* Reply */
    uint16_t ps;             /* enum rdma_port_space */
    uint64_t id;
    uint32_t qpn, qkey; /* Reply; the number is one if it succeeds, and 0 if not */
    uint8_t data_len;   /* up to the limit of its kind */
    uint8_t data[SIDR_REQUEST_DATA];
};

void sidr_encode(uint8_t bytes[SIDR_BYTES], const struct sidr *s);

/** @return false: it is none, or not one that can be; @p s is undefined then */
bool sidr_decode(const uint8_t *bytes, size_t len, struct sidr *s);

#endif
