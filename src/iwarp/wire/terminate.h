/* SPDX-License-Identifier: BSD-2-Clause */
/* The Terminate message (RFC 5040 section 4.8), without the 18-byte DDP header in front of it. */
#ifndef ANYWARP_WIRE_TERMINATE_H
#define ANYWARP_WIRE_TERMINATE_H

#include "wire/ddp.h"
#include "wire/error.h"
#include "wire/rdmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TERMINATE_MIN 4
#define TERMINATE_MAX (4 + 2 + DDP_UNTAGGED_HDR + RDMAP_READ_REQUEST_HDR)

struct terminate {
    uint8_t layer, etype, code;
    bool swapped;     /* decode: it had siw's bit order (little-endian bit-fields) */
    bool has_ddp;     /* M and D: seg_len and ddp are there */
    bool has_rdmap;   /* R: rdmap holds a Read Request header */
    uint16_t seg_len; /* ULPDU length of the offending segment */
    uint8_t ddp[DDP_UNTAGGED_HDR];
    uint8_t ddp_len; /* DDP_TAGGED_HDR or DDP_UNTAGGED_HDR */
    uint8_t rdmap[RDMAP_READ_REQUEST_HDR];
};

/**
 * Encodes with the RFC's bit order.
 * @param p  at least TERMINATE_MAX bytes
 * @return bytes written
 */
size_t terminate_encode(uint8_t *p, const struct terminate *t);

/**
 * Decodes RFC order and siw's swapped order. Every piece is bounded by @p len; a piece that is
 * announced and cut short is treated as absent.
 * @return false if @p len is below TERMINATE_MIN
 */
bool terminate_decode(const uint8_t *p, size_t len, struct terminate *t);

/**
 * For a Terminate behind connection set-up: from a responder, whose Reply ended that, or behind
 * other FPDUs. What RFC 6581 has for set-up alone (2/0/06, 2/0/07) comes from siw then, which means
 * 0/2/06 and 0/2/07 and quotes no header that would tell.
 */
void terminate_after_setup(struct terminate *t);

/**
 * Makes the Terminate for @p err with the headers that RFC 5040 figure 10 wants.
 * @param seg        the offending segment, NULL if there is none
 * @param ulpdu_len  its ULPDU length
 */
void terminate_from_error(struct terminate *t, enum iw_err err, const struct ddp_seg *seg,
                          uint32_t ulpdu_len);

#endif
