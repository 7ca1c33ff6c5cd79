/* SPDX-License-Identifier: BSD-2-Clause */
/* DDP segments: the input is one ULPDU. */
#include "fuzz/fuzz.h"
#include "wire/ddp.h"
#include "wire/opcode.h"
#include "wire/rdmap.h"

/** The promises of a segment that was found good. */
static void check_good(const struct ddp_seg *s)
{
    const struct rdmap_op *op = &rdmap_ops[s->opcode];
    FUZZ_CHECK(s->hdr && op->name && op->tagged == s->tagged);
    if (s->tagged)
        return;
    FUZZ_CHECK(s->qn == op->qn && s->qn < DDP_QN_COUNT);
    FUZZ_CHECK((!op->single && s->mo) || s->len >= op->hdr_len);
    FUZZ_CHECK(op->invalidate || s->inval_stag == 0);
}

/** Decoded from what an encoder made of it, the header is the same. */
static void check_again(const struct ddp_seg *s)
{
    uint8_t *p = malloc(s->hdr_len + s->len);
    struct ddp_seg again;
    FUZZ_CHECK(p);
    if (s->tagged)
        ddp_encode_tagged(p, s->opcode, s->last, s->stag, s->to);
    else
        ddp_encode_untagged(p, s->opcode, s->last, s->inval_stag, s->msn, s->mo);
    memcpy(p + s->hdr_len, s->payload, s->len);
    FUZZ_CHECK(ddp_decode(p, s->hdr_len + s->len, &again) == IW_OK);
    FUZZ_CHECK(again.tagged == s->tagged && again.last == s->last && again.opcode == s->opcode);
    FUZZ_CHECK(again.stag == s->stag && again.to == s->to && again.inval_stag == s->inval_stag);
    FUZZ_CHECK(again.qn == s->qn && again.msn == s->msn && again.mo == s->mo);
    FUZZ_CHECK(again.len == s->len);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *p = fuzz_exact(data, size);
    struct ddp_seg seg;
    enum iw_err err = ddp_decode(p, size, &seg);
    size_t hdr = size && (p[0] & DDP_T) ? DDP_TAGGED_HDR : DDP_UNTAGGED_HDR;

    FUZZ_CHECK((seg.hdr != NULL) == (size >= hdr));
    if (seg.hdr) {
        FUZZ_CHECK(seg.hdr == p && seg.hdr_len == hdr);
        FUZZ_CHECK(seg.payload == p + hdr && seg.len == size - hdr);
    }
    if (!err) {
        check_good(&seg);
        check_again(&seg);
    }
    free(p);
    return 0;
}
