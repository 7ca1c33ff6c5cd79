/* SPDX-License-Identifier: BSD-2-Clause */
/* Terminate messages: the room for their text and a cause of our own, then the peer's bytes. */
#include "fuzz/fuzz.h"
#include "wire/terminate.h"
#include "wire/terminate_text.h"

static void describe(const struct terminate *t, size_t room)
{
    char *text = malloc(room);
    FUZZ_CHECK(text);
    text[0] = '\0';
    terminate_describe(t, text, room);
    FUZZ_CHECK(strnlen(text, room) < room);
    free(text);
}

static bool same(const struct terminate *a, const struct terminate *b)
{
    return a->layer == b->layer && a->etype == b->etype && a->code == b->code &&
           a->has_ddp == b->has_ddp && a->has_rdmap == b->has_rdmap && a->seg_len == b->seg_len &&
           a->ddp_len == b->ddp_len && memcmp(a->ddp, b->ddp, a->ddp_len) == 0 &&
           memcmp(a->rdmap, b->rdmap, sizeof(a->rdmap)) == 0;
}

/** Encoded, it is decoded as it was; in the RFC's order, whichever the peer's was. */
static void check_again(const struct terminate *t)
{
    uint8_t p[TERMINATE_MAX];
    struct terminate again;
    size_t len = terminate_encode(p, t);
    FUZZ_CHECK(len >= TERMINATE_MIN && len <= sizeof(p));
    FUZZ_CHECK(terminate_decode(p, len, &again));
    /* Without headers the order is a guess, and certain only for a code that means something. */
    if (t->has_ddp || iw_err_from_terminate(t->layer, t->etype, t->code) != IW_ERR_PEER_TERMINATE)
        FUZZ_CHECK(!again.swapped && same(t, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    size_t room = 1 + fuzz_u8(&in);
    enum iw_err cause = (enum iw_err)(fuzz_u8(&in) % IW_ERR_COUNT);
    uint8_t *p = fuzz_exact(in.p, in.left);
    struct terminate t, own;
    struct ddp_seg seg;

    if (terminate_decode(p, in.left, &t)) {
        FUZZ_CHECK(!t.has_rdmap || t.has_ddp);
        FUZZ_CHECK(!t.has_ddp || t.ddp_len == DDP_TAGGED_HDR || t.ddp_len == DDP_UNTAGGED_HDR);
        describe(&t, room);
        check_again(&t);
    } else {
        FUZZ_CHECK(in.left < TERMINATE_MIN);
    }
    /* The same bytes as a segment that we refuse. */
    ddp_decode(p, in.left, &seg);
    terminate_from_error(&own, cause, &seg, (uint32_t)in.left);
    describe(&own, room);
    check_again(&own);
    free(p);
    return 0;
}
