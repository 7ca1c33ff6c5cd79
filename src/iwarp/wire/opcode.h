/* SPDX-License-Identifier: BSD-2-Clause */
/* What the wire promises about each kind of message. */
#ifndef ANYWARP_WIRE_OPCODE_H
#define ANYWARP_WIRE_OPCODE_H

#include "wire/rdmap.h"

/** One row of the opcode table: what the wire promises about a message. */
struct rdmap_op {
    const char *name; /* NULL: the opcode is not assigned */
    bool tagged;
    uint8_t qn;      /* untagged: enum ddp_qn */
    uint8_t hdr_len; /* RDMAP header at the start of the first segment's payload */
    bool single;     /* one segment: L set, MO 0 */
    bool exact;      /* payload is exactly hdr_len */
    bool solicited;  /* carries Solicited Event */
    bool invalidate; /* carries an STag to invalidate */
    bool extension;  /* only between anywarp peers */
};

extern const struct rdmap_op rdmap_ops[RDMAP_OPCODES];

#endif
