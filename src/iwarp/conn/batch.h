/* SPDX-License-Identifier: BSD-2-Clause */
/* A batch of FPDUs on its way to the stream. */
#ifndef ANYWARP_CONN_BATCH_H
#define ANYWARP_CONN_BATCH_H

#include "conn/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IWC_BATCH_LIMIT (1024 * 1024)             /* of bytes: no batch needs more to be fast */
#define IWC_BATCH_COPY  (IWC_BATCH_LIMIT + 65536) /* copied bytes a batch can hold */
#define IWC_BATCH_IOV   512

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

struct iwc_tx;

/**
 * Hands the batch to the stream with as few calls as the stream allows.
 * @return 0 when all of it is sent (the batch is empty and can be filled anew), -EAGAIN if the rest
 *         must wait, or another negative errno
 */
int iwc_tx_send(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_stream *s);

#endif
