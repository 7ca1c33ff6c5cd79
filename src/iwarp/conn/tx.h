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

#include "conn/flow.h"
#include "conn/stream.h"
#include "wire/ddp.h"
#include "wire/rdmap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define IWC_BATCH_LIMIT (1024 * 1024)             /* of bytes: no batch needs more to be fast */
#define IWC_BATCH_COPY  (IWC_BATCH_LIMIT + 65536) /* copied bytes a batch can hold */
#define IWC_BATCH_IOV   512
#define IWC_GATHER_MIN  4096 /* mean piece of payload from which a segment is gathered */

struct iwc_batch {
    size_t limit;         /* with as many unsent bytes it is full */
    unsigned first, niov; /* iov[first..niov) is unsent */
    size_t unsent;        /* bytes in them */
    size_t copied;        /* bytes used in copy[] */
    bool gathered;        /* some iov points outside copy[] */
    struct iovec iov[IWC_BATCH_IOV];
    uint8_t copy[IWC_BATCH_COPY];
};

/** @param limit  see there; at most IWC_BATCH_LIMIT */
void iwc_batch_init(struct iwc_batch *b, size_t limit);

/** Adds bytes that stay where they are until sent. The caller has made sure of a free iov. */
void iwc_batch_push(struct iwc_batch *b, const void *p, size_t len);

/** Makes @p b, new, hold copies of the unsent bytes of @p from, which refers to others' memory. */
void iwc_batch_copy(struct iwc_batch *b, const struct iwc_batch *from);

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

/**
 * Hands the batch to the stream with as few calls as the stream allows.
 * @return 0 when all of it is sent (the batch is empty and can be filled anew), -EAGAIN if the rest
 *         must wait, or another negative errno
 */
int iwc_tx_send(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_stream *s);

#endif
