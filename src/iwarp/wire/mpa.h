/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA start-up frames: Request and Reply of revisions 1 and 2 (RFC 5044 section 7.1.1, RFC 6581
 * sections 6 and 9). Pure functions over bytes.
 */
#ifndef ANYWARP_WIRE_MPA_H
#define ANYWARP_WIRE_MPA_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_START_HDR    20  /* bytes before the private data */
#define MPA_START_PD_MAX 512 /* private data, the revision 2 block included */
#define MPA_START_MAX    (MPA_START_HDR + MPA_START_PD_MAX)
#define MPA_V2_BLOCK     4      /* IRD/ORD block in front of the private data */
#define MPA_DEPTH_MAX    0x3fff /* largest IRD or ORD the block can carry */
#define MPA_QPN          4      /* the number of a QP behind the private data */
#define MPA_QPN_MAX      0xffffff
#define MPA_OFFER        32 /* where the responder can be met, behind that, with MPA_FLAG_SHM */

/** Flag bits. The low four bits are reserved; between our own peers they are used. */
#define MPA_FLAG_M           0x80
#define MPA_FLAG_C           0x40
#define MPA_FLAG_R           0x20
#define MPA_FLAG_S           0x10
#define MPA_FLAG_EXT_REPLY   0x04 /* reply: "I am anywarp" with MPA_FLAG_EXT_REQUEST clear */
#define MPA_FLAG_EXT_REQUEST 0x02 /* request: "I am anywarp"; peers that echo flags echo it too */
/* Of use only where the two above say so. */
#define MPA_FLAG_SHM         0x01 /* both: "rings in shared memory may carry what follows" */
#define MPA_FLAG_QPN_REQUEST 0x04 /* request: "tell me the number of your QP" */
#define MPA_FLAG_QPN_REPLY   0x08 /* reply: it stands behind the private data */
#define MPA_FLAG_FULL        0x08 /* rejection: by a full backlog, not by the program */

/** RTR messages, as a set (RFC 6581 section 9.2). A zero-length Send is never offered by us. */
#define MPA_RTR_SEND  0x1
#define MPA_RTR_WRITE 0x2
#define MPA_RTR_READ  0x4

struct mpa_start {
    bool reply;        /* Reply, else Request */
    uint8_t flags;     /* MPA_FLAG_* as on the wire */
    uint8_t rev;       /* 1 or 2 */
    bool enhanced;     /* rev 2 with S: the next four fields are on the wire */
    bool p2p;          /* A */
    uint8_t rtr;       /* MPA_RTR_* set (B, C, D) */
    uint16_t ird;      /* 0..MPA_DEPTH_MAX */
    uint16_t ord;      /* 0..MPA_DEPTH_MAX */
    const uint8_t *pd; /* private data of the program, without the block; points into the input */
    uint16_t pd_len;
};

/** What mpa_start_decode() made of the bytes so far. */
enum mpa_parse { MPA_PARSE_MORE, MPA_PARSE_OK, MPA_PARSE_BAD };

/**
 * Decodes a start frame from the @p len bytes received so far.
 *
 * A frame is refused as early as its bytes allow: a wrong key at the first wrong byte, so that a
 * peer that speaks another protocol is not waited for. Revision 0 and revisions above 2 are bad; a
 * revision 2 frame without S is decoded as not enhanced.
 *
 * @param reply  whether the frame expected is a Reply
 * @param out    filled for MPA_PARSE_OK; for MPA_PARSE_BAD only out->rev, and 0 if not yet known
 * @param used   [out] for MPA_PARSE_OK: size of the frame
 */
enum mpa_parse mpa_start_decode(const uint8_t *p, size_t len, bool reply, struct mpa_start *out,
                                size_t *used);

/**
 * Encodes a start frame. flags S and the block follow from m->enhanced; the other flag bits are
 * taken from m->flags.
 *
 * @param buf  at least MPA_START_MAX bytes
 * @return size of the frame; 0 if pd_len, ird or ord is over its limit
 */
size_t mpa_start_encode(uint8_t *buf, const struct mpa_start *m);

/**
 * Puts the number of the QP behind the private data of a Reply, if there is room for it.
 *
 * @param buf  of MPA_START_MAX bytes, with an encoded frame of @p len
 * @return size of the frame now
 */
size_t mpa_start_add_qpn(uint8_t *buf, size_t len, uint32_t qpn);

/**
 * Takes it off the private data of a decoded Reply of our own peer.
 * @return up to MPA_QPN_MAX; 0: there is none
 */
uint32_t mpa_start_take_qpn(struct mpa_start *m);

/** Puts an offer of MPA_OFFER bytes behind all of a Reply, in which there is room for it. @return
 * size of the frame now */
size_t mpa_start_add_offer(uint8_t *buf, size_t len, const uint8_t *offer);

/** Takes it off the private data of a decoded Reply of our own peer. @return false if there is
 * none */
bool mpa_start_take_offer(struct mpa_start *m, uint8_t *offer);

#endif
