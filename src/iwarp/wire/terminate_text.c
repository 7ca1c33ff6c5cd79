/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/terminate_text.h"

#include "wire/opcode.h"
#include "wire/text.h"

#include <inttypes.h>

/* RFC 5040 figure 9. */
static const char *const etypes[][3] = {
    [TERM_RDMAP] = {"Local Catastrophic Error", "Remote Protection Error",
                    "Remote Operation Error"},
    [TERM_DDP] = {"Local Catastrophic Error", "Tagged Buffer Error", "Untagged Buffer Error"},
    [TERM_MPA] = {"MPA Error", NULL, NULL},
};

static const char *const layers[] = {
    [TERM_RDMAP] = "RDMAP", [TERM_DDP] = "DDP", [TERM_MPA] = "LLP"};

/* RFC 5040 figure 9, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8. */
static const struct {
    uint8_t layer, etype, code;
    const char *name;
} codes[] = {
    {0, 1, 0x00, "Invalid STag"},
    {0, 1, 0x01, "Base or bounds violation"},
    {0, 1, 0x02, "Access rights violation"},
    {0, 1, 0x03, "STag not associated with RDMAP Stream"},
    {0, 1, 0x04, "TO wrap"},
    {0, 1, 0x09, "STag cannot be Invalidated"},
    {0, 1, 0xff, "Unspecified Error"},
    {0, 2, 0x05, "Invalid RDMAP version"},
    {0, 2, 0x06, "Unexpected OpCode"},
    {0, 2, 0x07, "Catastrophic error, localized to RDMAP Stream"},
    {0, 2, 0x08, "Catastrophic error, global"},
    {0, 2, 0x09, "STag cannot be Invalidated"},
    {0, 2, 0xff, "Unspecified Error"},
    {1, 1, 0x00, "Invalid STag"},
    {1, 1, 0x01, "Base or bounds violation"},
    {1, 1, 0x02, "STag not associated with DDP Stream"},
    {1, 1, 0x03, "TO wrap"},
    {1, 1, 0x04, "Invalid DDP version"},
    {1, 2, 0x01, "Invalid QN"},
    {1, 2, 0x02, "Invalid MSN - no buffer available"},
    {1, 2, 0x03, "Invalid MSN - MSN range is not valid"},
    {1, 2, 0x04, "Invalid MO"},
    {1, 2, 0x05, "DDP Message too long for available buffer"},
    {1, 2, 0x06, "Invalid DDP version"},
    {2, 0, 0x01, "TCP connection closed, terminated, or lost"},
    {2, 0, 0x02, "MPA CRC does not match"},
    {2, 0, 0x03, "MPA Marker and ULPDU_Length mismatch"},
    {2, 0, 0x04, "Invalid MPA Request or Reply Frame"},
    {2, 0, 0x05, "Local Catastrophic Error"},
    {2, 0, 0x06, "Insufficient IRD Resources"},
    {2, 0, 0x07, "No Matching RTR Option"},
};

static const char *code_name(const struct terminate *t)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i].layer == t->layer && codes[i].etype == t->etype && codes[i].code == t->code)
            return codes[i].name;
    return t->etype == 0 && t->layer <= TERM_DDP ? NULL : "code unknown";
}

/** The header of the segment that the peer found at fault. */
static void describe_segment(const struct terminate *t, char *buf, size_t size)
{
    struct ddp_seg seg;
    ddp_decode(t->ddp, t->ddp_len, &seg);
    const char *name = rdmap_ops[seg.opcode].name;
    if (!name)
        name = "unknown message";
    if (t->has_rdmap) {
        struct rdmap_read_request r;
        rdmap_read_request_decode(t->rdmap, &r);
        text_add(buf, size,
                 ", about the %s, MSN %" PRIu32 ", for %" PRIu32 " bytes at 0x%" PRIx64
                 ", key 0x%08" PRIx32,
                 name, seg.msn, r.size, r.source_to, r.source_stag);
    } else if (seg.tagged) {
        text_add(buf, size, ", about the %s segment at 0x%" PRIx64 ", key 0x%08" PRIx32, name,
                 seg.to, seg.stag);
    } else {
        text_add(buf, size, ", about the %s, QN %" PRIu32 ", MSN %" PRIu32 ", MO %" PRIu32, name,
                 seg.qn, seg.msn, seg.mo);
    }
}

void terminate_describe(const struct terminate *t, char *buf, size_t size)
{
    const char *layer = t->layer <= TERM_MPA ? layers[t->layer] : "layer unknown";
    const char *etype = t->layer <= TERM_MPA && t->etype <= 2 ? etypes[t->layer][t->etype] : NULL;
    const char *code = code_name(t);
    snprintf(buf, size, "%s, %s%s%s (%u/%u/%02x)", layer, etype ? etype : "type unknown",
             code ? ", " : "", code ? code : "", t->layer, t->etype, t->code);
    if (t->has_ddp)
        describe_segment(t, buf, size);
}
