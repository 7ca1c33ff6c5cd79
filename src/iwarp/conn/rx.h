/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive half of an iWARP stream in full operation: cuts FPDUs out of bytes, checks length and
 * CRC before anything else looks at them, keeps DDP message state (MSN, MO), dispatches by the
 * RDMAP opcode. No I/O, no allocation; one owner at a time (the RNIC holds the QP's rx lock).
 */
#ifndef ANYWARP_CONN_RX_H
#define ANYWARP_CONN_RX_H

#include "conn/flow.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"
#include "wire/terminate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Returned by an upcall that cannot take the segment now: it is offered again later, unchanged. */
#define IWC_HOLD (-1)

/**
 * What the RNIC does with a message. Each returns IW_OK, a positive enum iw_err that ends the
 * stream, or, for send and immediate only, IWC_HOLD. Segments arrive in order, MSN and MO are
 * checked. Zero-length segments of Writes and Read Responses that are not the last never get here;
 * the STag of a zero-length segment must not be looked at.
 */
struct iwc_upcalls {
    int (*write)(void *up, const struct ddp_seg *seg);
    int (*read_request)(void *up, const struct rdmap_read_request *r);
    int (*read_response)(void *up, const struct ddp_seg *seg);
    /** All Send kinds; seg->mo is the offset in the message, seg->last its end. */
    int (*send)(void *up, const struct ddp_seg *seg);
    int (*immediate)(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited);
    int (*atomic_request)(void *up, const struct rdmap_atomic_request *r);
    int (*atomic_response)(void *up, const struct rdmap_atomic_response *r);
    /** Only with rx->rings. */
    int (*path)(void *up, uint32_t kind);
    /** The peer ended the stream; nothing follows. */
    void (*terminate)(void *up, const struct terminate *t);
};

struct iwc_rx {
    const struct iwc_upcalls *ops;
    void *up;
    struct iwc_flow *flow; /* where to count, set behind iwc_rx_init(); NULL: nowhere */
    bool crc;              /* check it */
    bool ext;              /* the peer is anywarp: extension opcodes are legal */
    bool rings;            /* and that of a path is, too: set behind iwc_rx_init() */
    bool terminated;       /* the peer's Terminate came in */
    uint8_t open_opcode; /* of the QN 0 message in progress, while open_mo > 0 or its first segment
                            was not the last */
    bool open;           /* a QN 0 message is in progress */
    uint32_t open_inval; /* its STag to invalidate */
    uint64_t open_mo;    /* bytes of it so far */
    uint32_t msn[DDP_QN_COUNT]; /* next expected */
    uint64_t offset; /* in the stream, behind the last FPDU that was used; during an upcall: of its
                        own */
    uint32_t past;   /* bytes of the segment that comes next: iwc_rx_past() */
    uint64_t fpdus;  /* valid FPDUs so far, a held one included: the first one releases a
                        responder's sends */
    bool held;       /* the FPDU that comes next was counted and held */
    const struct ddp_seg *seg; /* during an upcall: what it is about */
    struct ddp_seg bad; /* the segment that caused an error, bad.hdr NULL if unknown (FRAMING of
                           the length field, CRC); points into the bytes given to
                           iwc_rx_input() */
    uint32_t bad_ulpdu_len;
    uint32_t bad_crc, good_crc; /* of an FPDU with a CRC error: received, computed */
};

void iwc_rx_init(struct iwc_rx *rx, const struct iwc_upcalls *ops, void *up, bool crc, bool ext);

enum iwc_rx_status {
    IWC_RX_MORE,       /* all whole FPDUs are used */
    IWC_RX_HELD,       /* stopped at an FPDU whose upcall said IWC_HOLD */
    IWC_RX_ERROR,      /* *err says what; feed no more */
    IWC_RX_TERMINATED, /* the peer's Terminate was delivered; feed no more */
};

/**
 * Uses as many whole FPDUs of @p p as it can.
 *
 * Checks per FPDU: ULPDU length 14..64768 (FRAMING), CRC, ddp_decode(), then per message: MSN
 * (UNTAGGED_MSN), MO (UNTAGGED_MO), L of single-segment opcodes (UNTAGGED_MO), opcode and STag to
 * invalidate constant over the segments of a message (OPCODE), extension opcodes only with ext
 * (OPCODE), a total length below 2^32 and the payload of fixed-size messages no longer than their
 * header (UNTAGGED_TOO_LONG).
 *
 * @param used  [out] bytes used; the caller keeps the rest and offers it again with more
 * @param err   [out] for IWC_RX_ERROR
 */
enum iwc_rx_status iwc_rx_input(struct iwc_rx *rx, const uint8_t *p, size_t len, size_t *used,
                                enum iw_err *err);

/** Whether a segment, decoded, is the next one of its message: what is checked before an upcall. */
bool iwc_rx_is_due(const struct iwc_rx *rx, const struct ddp_seg *seg);
/** The first @p len bytes of the segment that comes next, which is due, went past. */
void iwc_rx_past(struct iwc_rx *rx, const struct ddp_seg *seg, uint32_t len);

/**
 * How many bytes, from the start of the partial FPDU at @p p on, its whole length is.
 * @return 0 if @p len is too short to know; never more than FPDU_MAX for legal lengths
 */
size_t iwc_rx_need(const uint8_t *p, size_t len);

#endif
