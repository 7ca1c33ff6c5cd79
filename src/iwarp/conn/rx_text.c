/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/rx_text.h"

#include "wire/opcode.h"
#include "wire/rdmap.h"
#include "wire/text.h"

#include <inttypes.h>

static const char *name_of(const struct iwc_rx *rx, uint8_t opcode)
{
    return rdmap_ops[opcode].name && (opcode != RDMAP_PATH || rx->rings) ? rdmap_ops[opcode].name
                                                                         : "unassigned";
}

/** Numbers that stand in the segment, and behind one that is wrong what was due. */
static void describe_untagged(const struct iwc_rx *rx, enum iw_err err, char *buf, size_t size)
{
    const struct ddp_seg *seg = &rx->bad;
    const struct rdmap_op *op = &rdmap_ops[seg->opcode];
    uint64_t mo = op->single ? 0 : rx->open_mo;
    text_add(buf, size, "QN %" PRIu32, seg->qn);
    if (err == IW_ERR_UNTAGGED_QN)
        text_add(buf, size, " (due: %u)", op->qn);
    text_add(buf, size, ", MSN %" PRIu32, seg->msn);
    if (err == IW_ERR_UNTAGGED_MSN)
        text_add(buf, size, " (due: %" PRIu32 ")", rx->msn[seg->qn]);
    text_add(buf, size, ", MO %" PRIu32, seg->mo);
    if (err == IW_ERR_UNTAGGED_MO && seg->mo != mo)
        text_add(buf, size, " (due: %" PRIu64 ")", mo);
    text_add(buf, size, seg->last ? ", last" : ", not last");
    if (err == IW_ERR_UNTAGGED_MO && op->single && !seg->last)
        text_add(buf, size, " (due: last)");
}

void iwc_rx_describe(const struct iwc_rx *rx, enum iw_err err, char *buf, size_t size)
{
    const struct ddp_seg *seg = &rx->bad;
    snprintf(buf, size, "FPDU %" PRIu64 ", ULPDU length %" PRIu32, rx->fpdus + 1,
             rx->bad_ulpdu_len);
    if (err == IW_ERR_CRC)
        text_add(buf, size, ", CRC 0x%08" PRIx32 " (computed: 0x%08" PRIx32 ")", rx->bad_crc,
                 rx->good_crc);
    if (!seg->hdr)
        return;
    text_add(buf, size, ", DDP version %u, RDMAP version %u, opcode 0x%x %s, ", seg->hdr[0] & 3u,
             seg->hdr[1] >> 6, seg->opcode, name_of(rx, seg->opcode));
    if (seg->tagged)
        text_add(buf, size, "STag 0x%08" PRIx32 ", TO 0x%" PRIx64 ", %s", seg->stag, seg->to,
                 seg->last ? "last" : "not last");
    else
        describe_untagged(rx, err, buf, size);
    if (err == IW_ERR_OPCODE && rx->open)
        text_add(buf, size, ", inside a %s", name_of(rx, rx->open_opcode));
}
