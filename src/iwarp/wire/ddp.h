/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DDP segments (RFC 5041 section 4) with the RDMAP control byte inside them (RFC 5040 section 4.1).
 * Pure functions over bytes.
 */
#ifndef ANYWARP_WIRE_DDP_H
#define ANYWARP_WIRE_DDP_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DDP_T            0x80 /* of the first byte: the header is a tagged one */
#define DDP_TAGGED_HDR   14
#define DDP_UNTAGGED_HDR 18

/** Queue numbers. */
enum ddp_qn { DDP_QN_SEND = 0, DDP_QN_READ = 1, DDP_QN_TERMINATE = 2, DDP_QN_ATOMIC = 3 };
#define DDP_QN_COUNT 4

/**
 * One decoded segment, in host order and valid by construction: versions are right, the opcode is
 * known, the T bit and the queue number are those of the opcode, the payload is at least the
 * opcode's RDMAP header. Message state (MSN, MO, L where it matters) is not checked here.
 */
struct ddp_seg {
    bool tagged, last;
    uint8_t opcode;       /* enum rdmap_opcode */
    uint32_t stag;        /* tagged */
    uint64_t to;          /* tagged */
    uint32_t inval_stag;  /* untagged: STag to invalidate, of the opcodes that have one */
    uint32_t qn, msn, mo; /* untagged */
    const uint8_t *hdr;   /* the DDP header, in the caller's bytes */
    uint8_t hdr_len;
    const uint8_t *payload; /* RDMAP header, if any, and data */
    uint32_t len;           /* bytes of payload */
};

/**
 * Decodes one ULPDU.
 *
 * Checks in the order of siw and RFC 5041 section 7: length of the control bytes, DDP version,
 * RDMAP version, opcode known, T bit, length of the header, queue number, RDMAP header length.
 *
 * @param seg  filled as far as the bytes allow even for an error, so that a Terminate can quote
 *             the header: hdr and hdr_len are valid whenever the ULPDU holds a whole DDP header,
 *             else hdr is NULL
 * @return IW_OK; FRAMING (shorter than its headers), TAGGED_VERSION, UNTAGGED_VERSION,
 *         RDMAP_VERSION, OPCODE (unknown, reserved, or T bit against the opcode), UNTAGGED_QN
 */
enum iw_err ddp_decode(const uint8_t *ulpdu, size_t len, struct ddp_seg *seg);

/** Writes a tagged header, DDP_TAGGED_HDR bytes. */
void ddp_encode_tagged(uint8_t *p, uint8_t opcode, bool last, uint32_t stag, uint64_t to);

/** Writes an untagged header, DDP_UNTAGGED_HDR bytes; the queue number is the opcode's. */
void ddp_encode_untagged(uint8_t *p, uint8_t opcode, bool last, uint32_t inval_stag, uint32_t msn,
                         uint32_t mo);

#endif
