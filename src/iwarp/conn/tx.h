/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transmit half of an iWARP stream: cuts messages into FPDUs, many FPDUs a batch, one system call a
 * batch. No allocation; one owner at a time (the RNIC holds the QP's sq lock).
 *
 * Positions are stream offsets since the start-up frame, 64 bits: tx->cut_pos after the last byte
 * that stands in a batch, tx->sent_pos after the last byte that the stream took. A message is with
 * TCP when sent_pos has reached the cut_pos noted at its end.
 *
 * A batch copies headers and small payload, and gathers large payload from where it lies. With CRC
 * or markers everything is copied: the CRC must cover the bytes that are sent, whatever the program
 * does to its memory meanwhile.
 */
#ifndef ANYWARP_CONN_TX_H
#define ANYWARP_CONN_TX_H

#include "conn/batch.h"
#include "conn/flow.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define IWC_GATHER_MIN 4096 /* mean piece of payload from which a segment is gathered */

struct iwc_tx {
    bool crc, markers;
    struct iwc_flow *flow;      /* where to count, set behind iwc_tx_init(); NULL: nowhere */
    uint32_t mulpdu;            /* largest ULPDU now; the owner may change it between segments */
    uint32_t msn[DDP_QN_COUNT]; /* of the next message */
    uint64_t cut_pos, sent_pos;
};

void iwc_tx_init(struct iwc_tx *tx, bool crc, bool markers, uint32_t mulpdu);

/** An outgoing message; payload is hdr[0..hdr_len) followed by the iov bytes. */
struct iwc_msg {
    uint8_t opcode;
    uint8_t hdr_len; /* RDMAP header, 0..TERMINATE_MAX */
    uint32_t stag;   /* tagged: STag; Send with Invalidate: STag to invalidate */
    uint64_t to;     /* tagged: of the first byte */
    const struct iovec *iov;
    unsigned niov;
    uint64_t len; /* bytes in iov, below 2^32 - hdr_len */
    uint64_t cut; /* payload bytes cut so far, hdr included; 0 to begin */
    bool begun;   /* the first segment was cut */
    const uint8_t *hdr;
};

/**
 * Cuts segments of @p m into @p b until the message ends or the batch is full. A message must be
 * finished before the next one begins, unless that is a Terminate.
 *
 * m->cut and m->begun carry the position: the caller may build @p m anew for the rest, with the
 * same bytes. Segments but the last have full size, trimmed so that they need no pad.
 *
 * @return true if the last segment is in the batch
 */
bool iwc_tx_cut(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_msg *m);

#endif
