/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pack: several datagrams for one QP in one message to a process of this host, as the kernel
 * queues few messages, however short. Pure functions over bytes.
 *
 *     |        'A' 'W' 'P'                            |    version    |
 *     |     length of the first, in network order                     |
 *     |     the first, as it would go alone: header, global route header, payload
 *     |     length of the second ...
 */
#ifndef ANYWARP_UD_PACK_H
#define ANYWARP_UD_PACK_H

#include "ud/header.h"

#define IW_UD_PAYLOAD     4096                                       /* the largest MTU */
#define IW_UD_DATAGRAM    (IW_UD_HEADER + IW_UD_GRH + IW_UD_PAYLOAD) /* the longest */
#define IW_UD_PACK_BEGIN  4
#define IW_UD_PACK_LENGTH 4
#define IW_UD_PACK_MAX    (IW_UD_PACK_BEGIN + 8 * (IW_UD_PACK_LENGTH + IW_UD_DATAGRAM))

void iw_ud_pack_begin(uint8_t bytes[IW_UD_PACK_BEGIN]);
void iw_ud_pack_length(uint8_t bytes[IW_UD_PACK_LENGTH], size_t length);

/** A datagram inside a message. */
struct iw_ud_packed {
    const uint8_t *bytes;
    size_t len;
};

/**
 * The next datagram of a message that is a pack or, alone, one itself.
 * @param at  [in, out] where it begins; 0 at first
 * @return false: there is no more, or what follows cannot be one
 */
bool iw_ud_unpack(const uint8_t *bytes, size_t len, size_t *at, struct iw_ud_packed *out);

#endif
