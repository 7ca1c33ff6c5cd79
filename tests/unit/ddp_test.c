/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/ddp.h"

#include "wire/bytes.h"
#include "wire/opcode.h"
#include "wire/rdmap.h"

#include "vectors.h"

#include <stdio.h>

static const struct row {
    struct vector v;
    bool tagged, last;
    uint8_t opcode;
    uint32_t stag; /* of tagged segments, or to invalidate */
    uint64_t to;
    uint32_t qn, msn, mo;
    uint32_t len;
} rows[] = {
    {VECTOR(V7), true, true, RDMAP_WRITE, 1, 0, 0, 0, 0, 0},
    {VECTOR(V8), false, true, RDMAP_READ_REQUEST, 0, 0, 1, 1, 0, 28},
    {VECTOR(V8b), true, true, RDMAP_READ_RESPONSE, 1, 0, 0, 0, 0, 0},
    {VECTOR(V9), false, true, RDMAP_SEND, 0, 0, 0, 1, 0, 5},
    {VECTOR(V9n), false, true, RDMAP_SEND, 0, 0, 0, 1, 0, 5},
    {VECTOR(V10), false, true, RDMAP_SEND, 0, 0, 0, 2, 0, 0},
    {VECTOR(V11), false, true, RDMAP_SEND_SE_INV, 0x11223344, 0, 0, 3, 0, 3},
    {VECTOR(V12a), true, false, RDMAP_WRITE, 0xa1b2, 0x7f0000001000, 0, 0, 0, 114},
    {VECTOR(V12b), true, true, RDMAP_WRITE, 0xa1b2, 0x7f0000001072, 0, 0, 0, 86},
    {VECTOR(V13), false, true, RDMAP_READ_REQUEST, 0, 0, 1, 1, 0, 28},
    {VECTOR(V14), true, true, RDMAP_READ_RESPONSE, 0x5511aa01, 0x10000, 0, 0, 0, 8},
    {VECTOR(V15), false, true, RDMAP_TERMINATE, 0, 0, 2, 1, 0, 20},
    {VECTOR(V16), false, true, RDMAP_TERMINATE, 0, 0, 2, 1, 0, 4},
    {VECTOR(V17), false, true, RDMAP_TERMINATE, 0, 0, 2, 1, 0, 52},
    {VECTOR(V18), false, true, RDMAP_TERMINATE, 0, 0, 2, 1, 0, 24},
    {VECTOR(V19), false, true, RDMAP_IMM, 0, 0, 0, 4, 0, 8},
    {VECTOR(V19b), false, true, RDMAP_IMM_SE, 0, 0, 0, 5, 0, 8},
    {VECTOR(V20), false, true, RDMAP_ATOMIC_REQUEST, 0, 0, 1, 2, 0, 52},
    {VECTOR(V21), false, true, RDMAP_ATOMIC_REQUEST, 0, 0, 1, 3, 0, 52},
    {VECTOR(V22), false, true, RDMAP_ATOMIC_RESPONSE, 0, 0, 3, 1, 0, 12},
};

static size_t hdr_len(const struct row *r)
{
    return r->tagged ? 14 : 18;
}

static size_t ulpdu_len(const struct row *r)
{
    return hdr_len(r) + r->len;
}

static bool same(const struct ddp_seg *s, const struct row *r, const uint8_t *p)
{
    return s->tagged == r->tagged && s->last == r->last && s->opcode == r->opcode &&
           s->stag == (r->tagged ? r->stag : 0) && s->inval_stag == (r->tagged ? 0 : r->stag) &&
           s->to == r->to && s->qn == r->qn && s->msn == r->msn && s->mo == r->mo && s->hdr == p &&
           s->hdr_len == hdr_len(r) && s->payload == p + hdr_len(r) && s->len == r->len;
}

static void vectors_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct ddp_seg s;
        uint8_t *p = exact(ULPDU(r->v.bytes), ulpdu_len(r));
        check(r->v.name, get_be16(r->v.bytes) == ulpdu_len(r));
        check(r->v.name, ddp_decode(p, ulpdu_len(r), &s) == IW_OK);
        check(r->v.name, same(&s, r, p));
        free(p);
    }
}

static void vectors_encode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        uint8_t b[20];
        memset(b, 0xee, sizeof(b));
        if (r->tagged)
            ddp_encode_tagged(b, r->opcode, r->last, r->stag, r->to);
        else
            ddp_encode_untagged(b, r->opcode, r->last, r->stag, r->msn, r->mo);
        check(r->v.name, memcmp(b, ULPDU(r->v.bytes), hdr_len(r)) == 0);
        check(r->v.name, b[hdr_len(r)] == 0xee);
    }
}

/** RFC 5044 figure 5, whose first four bytes are a marker. */
static void marked_vector(void **state)
{
    struct ddp_seg s;

    (void)state;
    assert_int_equal(ddp_decode(V23 + 6, 42, &s), IW_OK);
    assert_int_equal(s.opcode, RDMAP_SEND);
    assert_int_equal(s.msn, 1);
    assert_int_equal(s.len, 24);
    assert_true(s.last && !s.tagged);
}

/** A cut header or RDMAP header is refused; cut data are fewer data. */
static void every_truncation(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        for (size_t len = 0; len < ulpdu_len(r); len++) {
            struct ddp_seg s;
            uint8_t *p = exact(ULPDU(r->v.bytes), len);
            size_t needed = hdr_len(r) + rdmap_ops[r->opcode].hdr_len;
            enum iw_err err = ddp_decode(p, len, &s);
            check(r->v.name, err == (len < needed ? IW_ERR_FRAMING : IW_OK));
            check(r->v.name, s.hdr == (len < hdr_len(r) ? NULL : p));
            if (s.hdr)
                check(r->v.name, s.hdr_len == hdr_len(r) && s.len == len - hdr_len(r));
            free(p);
        }
    }
}

static void versions(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct ddp_seg s;
        uint8_t *p = exact(ULPDU(r->v.bytes), ulpdu_len(r));
        uint8_t ddp = p[0], rdmap = p[1];
        for (unsigned v = 0; v < 4; v++) {
            p[0] = (ddp & ~3) | v;
            check(r->v.name,
                  ddp_decode(p, ulpdu_len(r), &s) == (v == 1      ? IW_OK
                                                      : r->tagged ? IW_ERR_TAGGED_VERSION
                                                                  : IW_ERR_UNTAGGED_VERSION));
            check(r->v.name, same(&s, r, p));
            p[0] = ddp;
            p[1] = (rdmap & 0x3f) | v << 6;
            check(r->v.name,
                  ddp_decode(p, ulpdu_len(r), &s) == (v == 1 ? IW_OK : IW_ERR_RDMAP_VERSION));
            check(r->v.name, same(&s, r, p));
            p[1] = rdmap;
        }
        free(p);
    }
}

static void reserved_bits_are_ignored(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        struct ddp_seg s;
        uint8_t *p = exact(ULPDU(r->v.bytes), ulpdu_len(r));
        p[0] |= 0x3c;
        p[1] |= 0x30;
        if (!r->tagged && !rdmap_ops[r->opcode].invalidate)
            put_be32(p + 2, 0xdeadbeef);
        check(r->v.name, ddp_decode(p, ulpdu_len(r), &s) == IW_OK);
        check(r->v.name, same(&s, r, p));
        free(p);
    }
}

/** Every pair of control bytes over a long enough ULPDU; the order of the checks is in here. */
static void every_control_pair(void **state)
{
    uint8_t p[18 + 52];

    (void)state;
    memset(p, 0, sizeof(p));
    for (unsigned c = 0; c < 0x10000; c++) {
        put_be16(p, c);
        bool tagged = c & 0x8000;
        unsigned op = c & 0xf, rv = c >> 6 & 3, dv = c >> 8 & 3;
        uint32_t qn = op == 1 || op == 10 ? 1 : op == 7 ? 2 : op == 11 || op == 12 ? 3 : 0;
        enum iw_err want = IW_OK;
        if (dv != 1)
            want = tagged ? IW_ERR_TAGGED_VERSION : IW_ERR_UNTAGGED_VERSION;
        else if (rv != 1)
            want = IW_ERR_RDMAP_VERSION;
        else if (op == 13 || op == 14 || tagged != (op == 0 || op == 2))
            want = IW_ERR_OPCODE;
        put_be32(p + 6, qn);
        struct ddp_seg s;
        char name[16];
        snprintf(name, sizeof(name), "%04x", c);
        check(name, ddp_decode(p, sizeof(p), &s) == want);
        check(name, s.tagged == tagged && s.last == !!(c & 0x4000) && s.opcode == op);
        check(name, s.hdr == p && s.hdr_len == (tagged ? 14 : 18));
    }
}

static void queue_numbers(void **state)
{
    static const uint32_t others[] = {0, 1, 2, 3, 4, 0x100, 0x01000000, 0xffffffff};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        if (r->tagged)
            continue;
        uint8_t *p = exact(ULPDU(r->v.bytes), ulpdu_len(r));
        for (size_t k = 0; k < COUNT(others); k++) {
            struct ddp_seg s;
            put_be32(p + 6, others[k]);
            check(r->v.name, ddp_decode(p, ulpdu_len(r), &s) ==
                                 (others[k] == r->qn ? IW_OK : IW_ERR_UNTAGGED_QN));
            check(r->v.name, s.qn == others[k]);
        }
        free(p);
    }
}

/** The earlier check wins where a segment breaks two rules. */
static void order_of_checks(void **state)
{
    static const struct {
        const char *name;
        uint8_t bytes[18];
        size_t len;
        enum iw_err err;
    } cases[] = {
        {"no byte", {0}, 0, IW_ERR_FRAMING},
        {"one byte of a wrong version", {0x40}, 1, IW_ERR_FRAMING},
        {"both versions wrong", {0x40, 0x03}, 2, IW_ERR_UNTAGGED_VERSION},
        {"both versions wrong, tagged", {0xc2, 0x00}, 2, IW_ERR_TAGGED_VERSION},
        {"RDMAP version and opcode wrong", {0x41, 0x8c}, 2, IW_ERR_RDMAP_VERSION},
        {"opcode unknown and header short", {0x41, 0x4d}, 2, IW_ERR_OPCODE},
        {"T bit wrong and header short", {0xc1, 0x43}, 2, IW_ERR_OPCODE},
        {"header short", {0x41, 0x43}, 17, IW_ERR_FRAMING},
        {"tagged header short", {0xc1, 0x40}, 13, IW_ERR_FRAMING},
        {"QN wrong and RDMAP header short", {0x41, 0x41}, 18, IW_ERR_UNTAGGED_QN},
        {"RDMAP header short", {0x41, 0x48}, 18, IW_ERR_FRAMING},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct ddp_seg s;
        uint8_t *p = exact(cases[i].bytes, cases[i].len);
        check(cases[i].name, ddp_decode(p, cases[i].len, &s) == cases[i].err);
        free(p);
    }
}

/** Only a message of several segments may lack its RDMAP header behind the first one. */
static void rdmap_header_in_the_first_segment(void **state)
{
    static const struct {
        const char *name;
        uint8_t opcode;
        uint32_t mo, len;
        enum iw_err err;
    } cases[] = {
        {"imm, first, short", RDMAP_SEND_IMM, 0, 7, IW_ERR_FRAMING},
        {"imm, first", RDMAP_SEND_IMM, 0, 8, IW_OK},
        {"imm, second, short", RDMAP_SEND_IMM, 100, 1, IW_OK},
        {"imm, second, empty", RDMAP_SEND_IMM, 100, 0, IW_OK},
        {"read, first", RDMAP_READ_REQUEST, 0, 28, IW_OK},
        {"read, second, short", RDMAP_READ_REQUEST, 100, 27, IW_ERR_FRAMING},
        {"read, too long", RDMAP_READ_REQUEST, 0, 29, IW_OK},
        {"atomic, second, short", RDMAP_ATOMIC_REQUEST, 1, 51, IW_ERR_FRAMING},
        {"terminate, second, short", RDMAP_TERMINATE, 1, 3, IW_ERR_FRAMING},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t b[18 + 52] = {0};
        struct ddp_seg s;
        ddp_encode_untagged(b, cases[i].opcode, false, 0, 0xffffffff, cases[i].mo);
        uint8_t *p = exact(b, 18 + cases[i].len);
        check(cases[i].name, ddp_decode(p, 18 + cases[i].len, &s) == cases[i].err);
        check(cases[i].name, s.mo == cases[i].mo && s.msn == 0xffffffff && !s.last);
        check(cases[i].name, s.qn == rdmap_ops[cases[i].opcode].qn);
        free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_decode),     cmocka_unit_test(vectors_encode),
        cmocka_unit_test(marked_vector),      cmocka_unit_test(every_truncation),
        cmocka_unit_test(versions),           cmocka_unit_test(reserved_bits_are_ignored),
        cmocka_unit_test(every_control_pair), cmocka_unit_test(queue_numbers),
        cmocka_unit_test(order_of_checks),    cmocka_unit_test(rdmap_header_in_the_first_segment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
