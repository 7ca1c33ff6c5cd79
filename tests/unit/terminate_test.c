/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/terminate.h"

#include "wire/bytes.h"

#include "vectors.h"
#include "wire/terminate_text.h"

#define WORD(v) UNTAGGED_PAYLOAD(v)
#define LEN(v)  (sizeof(v) - 2 - 18 - 4)

static const struct row {
    const char *name;
    const uint8_t *bytes;
    size_t len;
    uint8_t layer, etype, code;
    bool has_ddp, has_rdmap;
    uint16_t seg_len;
    uint8_t ddp_len;
} rows[] = {
    {"V15", WORD(V15), LEN(V15), 1, 1, 0x00, true, false, 0x4e, 14},
    {"V16", WORD(V16), LEN(V16), 2, 0, 0x02, false, false, 0, 0},
    {"V17", WORD(V17), LEN(V17), 0, 1, 0x02, true, true, 0x2e, 18},
    {"V18", WORD(V18), LEN(V18), 1, 2, 0x02, true, false, 0x76, 18},
};

static bool same(const struct terminate *t, const struct row *r)
{
    if (t->layer != r->layer || t->etype != r->etype || t->code != r->code)
        return false;
    if (t->has_ddp != r->has_ddp || t->has_rdmap != r->has_rdmap)
        return false;
    if (t->has_ddp && (t->seg_len != r->seg_len || t->ddp_len != r->ddp_len ||
                       memcmp(t->ddp, r->bytes + 6, t->ddp_len) != 0))
        return false;
    return !t->has_rdmap || memcmp(t->rdmap, r->bytes + 6 + 18, sizeof(t->rdmap)) == 0;
}

static void vectors_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct terminate t;
        uint8_t *p = exact(rows[i].bytes, rows[i].len);
        check(rows[i].name, terminate_decode(p, rows[i].len, &t));
        check(rows[i].name, same(&t, &rows[i]));
        check(rows[i].name, !t.swapped);
        free(p);
    }
}

static void vectors_encode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct terminate t = {.layer = r->layer,
                              .etype = r->etype,
                              .code = r->code,
                              .has_ddp = r->has_ddp,
                              .has_rdmap = r->has_rdmap,
                              .seg_len = r->seg_len,
                              .ddp_len = r->ddp_len};
        uint8_t out[TERMINATE_MAX + 1];
        memset(out, 0xee, sizeof(out));
        memcpy(t.ddp, r->bytes + 6, r->ddp_len);
        if (r->has_rdmap)
            memcpy(t.rdmap, r->bytes + 6 + 18, sizeof(t.rdmap));
        check(r->name, terminate_encode(out, &t) == r->len);
        check(r->name, memcmp(out, r->bytes, r->len) == 0);
        check(r->name, out[r->len] == 0xee);
    }
    assert_int_equal(LEN(V17), TERMINATE_MAX);
}

/** A piece that is cut short is absent, and the pieces in front of it stay. */
static void every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        for (size_t len = 0; len < r->len; len++) {
            struct terminate t;
            struct row want = *r;
            uint8_t *p = exact(r->bytes, len);
            want.has_ddp = r->has_ddp && len >= 6u + r->ddp_len;
            want.has_rdmap = false;
            check(r->name, terminate_decode(p, len, &t) == (len >= TERMINATE_MIN));
            if (len >= TERMINATE_MIN)
                check(r->name, same(&t, &want));
            free(p);
        }
    }
}

/** siw builds the word from bit-fields of a little-endian machine. */
static void siw_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct terminate t;
        uint8_t *p = exact(r->bytes, r->len);
        p[0] = r->etype << 4 | r->layer;
        p[2] = (r->has_ddp ? 0x03 : 0) | (r->has_rdmap ? 0x04 : 0);
        check(r->name, terminate_decode(p, r->len, &t));
        check(r->name, same(&t, r));
        check(r->name, t.swapped == (p[0] != r->bytes[0] || p[2] != r->bytes[2]));
        for (size_t len = 0; len < r->len; len++) {
            uint8_t *cut = exact(p, len);
            check(r->name, terminate_decode(cut, len, &t) == (len >= TERMINATE_MIN));
            check(r->name, !t.has_rdmap);
            free(cut);
        }
        free(p);
    }
}

static void words(void **state)
{
    static const struct {
        const char *name;
        uint8_t word[4];
        uint8_t layer, etype, code;
        bool swapped;
    } cases[] = {
        {"RFC, CRC", {0x20, 0x02, 0x00, 0x00}, 2, 0, 0x02, false},
        {"siw, CRC", {0x02, 0x02, 0x00, 0x00}, 2, 0, 0x02, true},
        {"RFC, no buffer", {0x12, 0x02, 0xc0, 0x00}, 1, 2, 0x02, false},
        {"siw, no buffer", {0x21, 0x02, 0x03, 0x00}, 1, 2, 0x02, true},
        {"siw, no buffer, no headers", {0x21, 0x02, 0x00, 0x00}, 1, 2, 0x02, true},
        {"RFC, opcode", {0x02, 0x06, 0xc0, 0x00}, 0, 2, 0x06, false},
        {"siw, opcode", {0x20, 0x06, 0x03, 0x00}, 0, 2, 0x06, true},
        {"siw, unspecified operation error", {0x20, 0xff, 0x00, 0x00}, 0, 2, 0xff, true},
        {"both orders mean something: RFC", {0x20, 0x06, 0x00, 0x00}, 2, 0, 0x06, false},
        {"both orders mean something: RFC", {0x02, 0x06, 0x00, 0x00}, 0, 2, 0x06, false},
        {"same in both orders", {0x11, 0x01, 0x00, 0x00}, 1, 1, 0x01, false},
        {"RDMAP local", {0x00, 0x33, 0x00, 0x00}, 0, 0, 0x33, false},
        {"neither order means anything", {0x34, 0x77, 0x00, 0x00}, 3, 4, 0x77, false},
        {"RFC, reserved bits", {0x12, 0x02, 0xdf, 0xff}, 1, 2, 0x02, false},
        {"RFC, other reserved bits", {0x12, 0x02, 0x18, 0xff}, 1, 2, 0x02, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct terminate t;
        check(cases[i].name, terminate_decode(cases[i].word, 4, &t));
        check(cases[i].name, t.layer == cases[i].layer && t.etype == cases[i].etype);
        check(cases[i].name, t.code == cases[i].code && t.swapped == cases[i].swapped);
        check(cases[i].name, !t.has_ddp && !t.has_rdmap);
    }
}

/** What RFC 6581 has for set-up alone means something else later, from siw. */
static void after_setup(void **state)
{
    static const struct {
        const char *name;
        uint8_t word[4];
        uint8_t layer, etype;
        bool swapped;
    } cases[] = {
        {"siw, opcode", {0x20, 0x06, 0x00, 0x00}, 0, 2, true},
        {"siw, IRD exceeded", {0x20, 0x07, 0x00, 0x00}, 0, 2, true},
        {"RFC, opcode", {0x02, 0x06, 0x00, 0x00}, 0, 2, false},
        {"RFC, CRC", {0x20, 0x02, 0x00, 0x00}, 2, 0, false},
        {"RFC, local catastrophic", {0x20, 0x05, 0x00, 0x00}, 2, 0, false},
        {"siw, CRC", {0x02, 0x02, 0x00, 0x00}, 2, 0, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct terminate t;
        check(cases[i].name, terminate_decode(cases[i].word, 4, &t));
        terminate_after_setup(&t);
        check(cases[i].name, t.layer == cases[i].layer && t.etype == cases[i].etype);
        check(cases[i].name, t.code == cases[i].word[1] && t.swapped == cases[i].swapped);
    }
}

/** Header bits that make no sense, and siw's R without the header: what is there is taken. */
static void odd_header_bits(void **state)
{
    static const struct {
        const char *name;
        uint8_t bits;
        size_t len;
        bool has_ddp, has_rdmap;
    } cases[] = {
        {"none announced", 0x00, LEN(V17), false, false},
        {"M", 0x80, LEN(V17), false, false},
        {"D", 0x40, LEN(V17), false, false},
        {"R", 0x20, LEN(V17), false, false},
        {"M and R", 0xa0, LEN(V17), false, false},
        {"D and R", 0x60, LEN(V17), false, false},
        {"M and D", 0xc0, LEN(V17), true, false},
        {"all", 0xe0, LEN(V17), true, true},
        {"all, no RDMAP header", 0xe0, LEN(V17) - 28, true, false},
        {"all, most of an RDMAP header", 0xe0, LEN(V17) - 1, true, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct terminate t;
        uint8_t *p = exact(WORD(V17), cases[i].len);
        p[2] = cases[i].bits;
        check(cases[i].name, terminate_decode(p, cases[i].len, &t));
        check(cases[i].name, t.has_ddp == cases[i].has_ddp && t.has_rdmap == cases[i].has_rdmap);
        free(p);
    }
}

/** The Terminates of the vectors from the segments that they are about. */
static void from_error(void **state)
{
    uint8_t write[14 + 64] = {0}, read[18 + 28], send[18 + 100] = {0};
    static const struct rdmap_read_request wrong = {.sink_stag = 0x5511aa01,
                                                    .sink_to = 0x10000,
                                                    .size = 4096,
                                                    .source_stag = 0xbad0,
                                                    .source_to = 0x9000};
    ddp_encode_tagged(write, RDMAP_WRITE, true, 0xdeadbe00, 0x2000);
    ddp_encode_untagged(read, RDMAP_READ_REQUEST, true, 0, 1, 0);
    rdmap_read_request_encode(read + 18, &wrong);
    ddp_encode_untagged(send, RDMAP_SEND, true, 0, 5, 0);
    const struct {
        const char *name;
        enum iw_err err;
        const uint8_t *ulpdu;
        size_t len;
        const uint8_t *want;
        size_t want_len;
    } cases[] = {
        {"V15", IW_ERR_TAGGED_STAG, write, sizeof(write), WORD(V15), LEN(V15)},
        {"V16", IW_ERR_CRC, write, sizeof(write), WORD(V16), LEN(V16)},
        {"V17", IW_ERR_READ_ACCESS, read, sizeof(read), WORD(V17), LEN(V17)},
        {"V18", IW_ERR_UNTAGGED_NO_BUFFER, send, sizeof(send), WORD(V18), LEN(V18)},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ddp_seg seg;
        struct terminate t;
        uint8_t out[TERMINATE_MAX];
        check(cases[i].name, ddp_decode(cases[i].ulpdu, cases[i].len, &seg) == IW_OK);
        terminate_from_error(&t, cases[i].err, &seg, cases[i].len);
        check(cases[i].name, terminate_encode(out, &t) == cases[i].want_len);
        check(cases[i].name, memcmp(out, cases[i].want, cases[i].want_len) == 0);
    }
}

static void headers_from_error(void **state)
{
    static const struct {
        const char *name;
        enum iw_err err;
        const uint8_t *ulpdu; /* NULL: no segment */
        size_t len;
        bool has_ddp, has_rdmap;
    } cases[] = {
        {"no segment", IW_ERR_READ_ACCESS, NULL, 0, false, false},
        {"header not whole", IW_ERR_UNTAGGED_VERSION, ULPDU(V9), 17, false, false},
        {"header whole", IW_ERR_UNTAGGED_VERSION, ULPDU(V9), 18, true, false},
        {"protection error of a Send", IW_ERR_INVALIDATE_STREAM, ULPDU(V11), 21, true, false},
        {"protection error of an atomic", IW_ERR_READ_STAG, ULPDU(V20), 70, true, false},
        {"protection error of a cut read", IW_ERR_READ_STAG, ULPDU(V13), 45, true, false},
        {"protection error of a read", IW_ERR_READ_STAG, ULPDU(V13), 46, true, true},
        {"operation error of a read", IW_ERR_IRD_EXCEEDED, ULPDU(V13), 46, true, false},
        {"local error", IW_ERR_RDMAP_LOCAL, ULPDU(V9), 23, false, false},
        {"local work request", IW_ERR_LOCAL_PROT, ULPDU(V9), 23, false, false},
        {"error of MPA", IW_ERR_FRAMING, ULPDU(V9), 23, false, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct iw_err_info *info = iw_err_info(cases[i].err);
        struct ddp_seg seg;
        struct terminate t;
        memset(&t, 0xee, sizeof(t));
        if (cases[i].ulpdu)
            ddp_decode(cases[i].ulpdu, cases[i].len, &seg);
        terminate_from_error(&t, cases[i].err, cases[i].ulpdu ? &seg : NULL, cases[i].len);
        check(cases[i].name, t.has_ddp == cases[i].has_ddp && t.has_rdmap == cases[i].has_rdmap);
        check(cases[i].name, t.layer == info->layer && t.etype == info->etype);
        check(cases[i].name, t.code == info->code && !t.swapped);
        if (t.has_ddp)
            check(cases[i].name, t.seg_len == cases[i].len && t.ddp_len == 18);
    }
}

/** The words of a vector, cut off at any size. */
static void in_words(void **state)
{
    static const char whole[] = "RDMAP, Remote Protection Error, Access rights violation (0/1/02), "
                                "about the RDMA Read Request, MSN ";
    struct terminate t;
    char text[256], guard[256];
    (void)state;
    assert_true(terminate_decode(WORD(V17), LEN(V17), &t));
    terminate_describe(&t, text, sizeof(text));
    assert_memory_equal(text, whole, strlen(whole));
    size_t len = strlen(text);
    for (size_t size = 1; size <= len + 1; size++) {
        memset(guard, '#', sizeof(guard));
        terminate_describe(&t, guard, size);
        assert_memory_equal(guard, text, size - 1);
        assert_int_equal(guard[size - 1], 0);
        assert_int_equal(guard[size], '#');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_decode),
        cmocka_unit_test(vectors_encode),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(siw_order),
        cmocka_unit_test(words),
        cmocka_unit_test(after_setup),
        cmocka_unit_test(odd_header_bits),
        cmocka_unit_test(from_error),
        cmocka_unit_test(headers_from_error),
        cmocka_unit_test(in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
