/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/flow.h"

#include "wire/opcode.h"

const uint8_t iwc_kinds[RDMAP_OPCODES] = {
    [RDMAP_WRITE] = IWC_KIND_WRITE,
    [RDMAP_READ_REQUEST] = IWC_KIND_READ,
    [RDMAP_READ_RESPONSE] = IWC_KIND_READ_RESPONSE,
    [RDMAP_SEND] = IWC_KIND_SEND,
    [RDMAP_SEND_INV] = IWC_KIND_SEND,
    [RDMAP_SEND_SE] = IWC_KIND_SEND,
    [RDMAP_SEND_SE_INV] = IWC_KIND_SEND,
    [RDMAP_TERMINATE] = IWC_KINDS,
    [RDMAP_IMM] = IWC_KIND_IMMEDIATE,
    [RDMAP_IMM_SE] = IWC_KIND_IMMEDIATE,
    [RDMAP_ATOMIC_REQUEST] = IWC_KIND_ATOMIC,
    [RDMAP_ATOMIC_RESPONSE] = IWC_KIND_ATOMIC_RESPONSE,
    [RDMAP_PATH] = IWC_KINDS,
    [RDMAP_SEND_IMM] = IWC_KIND_SEND,
};

void iwc_flow_data(struct iwc_flow *f, unsigned opcode, uint32_t data)
{
    iwc_count(&f->bytes[iwc_kinds[opcode]], data);
}

void iwc_flow_add(struct iwc_flow *f, const struct iwc_flow *more)
{
    iwc_count(&f->fpdus, more->fpdus);
    iwc_count(&f->invalidates, more->invalidates);
    for (int k = 0; k < IWC_KINDS; k++)
        iwc_count(&f->messages[k], more->messages[k]);
    for (int k = 0; k < IWC_KIND_DATA; k++)
        iwc_count(&f->bytes[k], more->bytes[k]);
}
