/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What one direction of a stream has carried, by kind of message. Counters only ever grow. They are
 * written by whoever owns the half of the stream (relaxed stores, no lock of their own) and may be
 * read by anybody, another process included: the struct stands as it is in shared memory.
 */
#ifndef ANYWARP_CONN_FLOW_H
#define ANYWARP_CONN_FLOW_H

#include "wire/opcode.h"
#include "wire/rdmap.h"

#include <stdbool.h>
#include <stdint.h>

enum iwc_kind {
    /* with data */
    IWC_KIND_SEND, /* all Sends, with invalidate, solicited event or immediate */
    IWC_KIND_WRITE,
    IWC_KIND_READ_RESPONSE,
    IWC_KIND_DATA, /* so many have data */
    /* without */
    IWC_KIND_READ = IWC_KIND_DATA, /* Read Request */
    IWC_KIND_ATOMIC,               /* Atomic Request */
    IWC_KIND_ATOMIC_RESPONSE,
    IWC_KIND_IMMEDIATE, /* Immediate Data */
    IWC_KINDS,
};

struct iwc_flow {
    uint64_t fpdus;
    uint64_t invalidates; /* Sends with Invalidate */
    uint64_t messages[IWC_KINDS];
    uint64_t bytes[IWC_KIND_DATA]; /* of the program, headers not counted */
};

extern const uint8_t iwc_kinds[RDMAP_OPCODES]; /* enum iwc_kind of each opcode */

/** Counts for one writer at a time. */
static inline void iwc_count(uint64_t *counter, uint64_t by)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
}

/** Counts a segment with @p data bytes of the program; its message, if it is the last. */
static inline void iwc_flow_segment(struct iwc_flow *f, unsigned opcode, bool last, uint32_t data)
{
    enum iwc_kind kind = iwc_kinds[opcode];
    iwc_count(&f->fpdus, 1);
    if (kind < IWC_KIND_DATA)
        iwc_count(&f->bytes[kind], data);
    if (!last || kind == IWC_KINDS)
        return;
    iwc_count(&f->messages[kind], 1);
    if (rdmap_ops[opcode].invalidate)
        iwc_count(&f->invalidates, 1);
}

/** Counts @p data bytes of a segment that has data and is counted, without them, later. */
void iwc_flow_data(struct iwc_flow *f, unsigned opcode, uint32_t data);

/** Adds all of @p more. */
void iwc_flow_add(struct iwc_flow *f, const struct iwc_flow *more);

#endif
