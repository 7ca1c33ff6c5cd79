/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA start frames: whether a Reply is expected, then the bytes of the peer. */
#include "fuzz/fuzz.h"
#include "wire/mpa.h"

/** But for S, which follows from the rest (revision 1 has none). */
static bool same(const struct mpa_start *a, const struct mpa_start *b)
{
    return a->reply == b->reply && ((a->flags ^ b->flags) & ~MPA_FLAG_S) == 0 && a->rev == b->rev &&
           a->enhanced == b->enhanced && a->p2p == b->p2p && a->rtr == b->rtr && a->ird == b->ird &&
           a->ord == b->ord && a->pd_len == b->pd_len && memcmp(a->pd, b->pd, a->pd_len) == 0;
}

/** What was decoded can be encoded, and says the same then. */
static void check_again(const struct mpa_start *m, size_t used)
{
    uint8_t frame[MPA_START_MAX];
    struct mpa_start again;
    size_t size;
    FUZZ_CHECK(mpa_start_encode(frame, m) == used);
    FUZZ_CHECK(mpa_start_decode(frame, used, m->reply, &again, &size) == MPA_PARSE_OK);
    FUZZ_CHECK(size == used && same(m, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    bool reply = fuzz_u8(&in) & 1;
    enum mpa_parse last = MPA_PARSE_MORE;
    size_t whole = 0;

    /* Bytes that come one by one are judged as those that come at once. */
    for (size_t len = 0; len <= in.left && len <= MPA_START_MAX + 1; len++) {
        uint8_t *p = fuzz_exact(in.p, len);
        struct mpa_start m = {0};
        size_t used = 0;
        enum mpa_parse parse = mpa_start_decode(p, len, reply, &m, &used);
        FUZZ_CHECK(last == MPA_PARSE_MORE || parse == last);
        if (parse == MPA_PARSE_OK) {
            FUZZ_CHECK(used <= len && used <= MPA_START_MAX && m.pd + m.pd_len == p + used);
            FUZZ_CHECK(last == MPA_PARSE_MORE ? used == len : used == whole);
            check_again(&m, used);
            whole = used;
        }
        last = parse;
        free(p);
    }
    FUZZ_CHECK(in.left < MPA_START_MAX || last != MPA_PARSE_MORE);
    return 0;
}
