/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notes between two anywarps: RDMA Writes of no bytes, which every peer has to take and no program
 * sees, to keys that no region has.
 */
#ifndef ANYWARP_CONN_NOTE_H
#define ANYWARP_CONN_NOTE_H

#include "wire/ddp.h"
#include "wire/opcode.h"

#include <stdbool.h>

enum iwc_note {
    IWC_NOTE_RTR = 1,   /* the first FPDU; offset: the number of the QP, 0 to another's peer */
    IWC_NOTE_ACK = 2,   /* offset: of the stream; see qp/ack.h */
    IWC_NOTE_RETRY = 3, /* offset: rnr_retry */
};

static inline bool iwc_is_note(uint8_t opcode, uint32_t stag, uint64_t bytes)
{
    return opcode == RDMAP_WRITE && bytes == 0 && stag >= IWC_NOTE_RTR && stag <= IWC_NOTE_RETRY;
}

/** Whether a segment is counted: of notes only the RTR, which others send as well. */
static inline bool iwc_is_counted(uint8_t opcode, uint32_t stag, uint64_t bytes)
{
    return stag == IWC_NOTE_RTR || !iwc_is_note(opcode, stag, bytes);
}

#endif
