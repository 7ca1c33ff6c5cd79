/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMAP: the opcode table and the headers behind the DDP header (RFC 5040, RFC 7306). */
#ifndef ANYWARP_WIRE_RDMAP_H
#define ANYWARP_WIRE_RDMAP_H

#include "wire/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rdmap_opcode {
    RDMAP_WRITE = 0x0,
    RDMAP_READ_REQUEST = 0x1,
    RDMAP_READ_RESPONSE = 0x2,
    RDMAP_SEND = 0x3,
    RDMAP_SEND_INV = 0x4,
    RDMAP_SEND_SE = 0x5,
    RDMAP_SEND_SE_INV = 0x6,
    RDMAP_TERMINATE = 0x7,
    RDMAP_IMM = 0x8,
    RDMAP_IMM_SE = 0x9,
    RDMAP_ATOMIC_REQUEST = 0xa,
    RDMAP_ATOMIC_RESPONSE = 0xb,
    RDMAP_PATH = 0xc, /* experimental, as the next: of the path of the stream, not of messages */
    RDMAP_SEND_IMM = 0xf, /* experimental (RFC 6580): data behind 4 bytes imm, 1 byte flags, 3 zero;
                             only between peers that agreed on the extension */
};
#define RDMAP_OPCODES 16

#define RDMAP_READ_REQUEST_HDR    28
#define RDMAP_ATOMIC_REQUEST_HDR  52
#define RDMAP_ATOMIC_RESPONSE_HDR 12
#define RDMAP_IMM_HDR             8
#define RDMAP_SEND_IMM_HDR        8
#define RDMAP_PATH_HDR            4

/** RFC 5040 section 4.4. */
struct rdmap_read_request {
    uint32_t sink_stag;
    uint64_t sink_to;
    uint32_t size;
    uint32_t source_stag;
    uint64_t source_to;
};

/** Atomic operation codes (RFC 7306 section 5.1). */
enum rdmap_aop { RDMAP_AOP_FETCH_ADD = 0, RDMAP_AOP_CMP_SWAP = 2 };

/** RFC 7306 section 5.2.1. */
struct rdmap_atomic_request {
    uint8_t aop; /* low 4 bits of the word; values other than enum rdmap_aop are possible */
    uint32_t id;
    uint32_t stag;
    uint64_t to;
    uint64_t data, data_mask;
    uint64_t compare, compare_mask;
};

/** RFC 7306 section 5.2.2. */
struct rdmap_atomic_response {
    uint32_t id;
    uint64_t original;
};

/** What follows in this direction is in the ring; others mean nothing. */
#define RDMAP_PATH_SWITCH 2

/*
 * Decoders read exactly the header's bytes, whose presence ddp_decode() has checked; encoders write
 * exactly that many.
 */
void rdmap_read_request_decode(const uint8_t *p, struct rdmap_read_request *out);
void rdmap_read_request_encode(uint8_t *p, const struct rdmap_read_request *in);
void rdmap_atomic_request_decode(const uint8_t *p, struct rdmap_atomic_request *out);
void rdmap_atomic_request_encode(uint8_t *p, const struct rdmap_atomic_request *in);
void rdmap_atomic_response_decode(const uint8_t *p, struct rdmap_atomic_response *out);
void rdmap_atomic_response_encode(uint8_t *p, const struct rdmap_atomic_response *in);

/** The value that an atomic leaves in memory where @p original was (RFC 7306 section 5.1). */
uint64_t rdmap_atomic_apply(const struct rdmap_atomic_request *r, uint64_t original);

#endif
