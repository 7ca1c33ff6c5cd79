/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/mpa.h"

#include "vectors.h"
#include "wire/bytes.h"

static const struct {
    struct vector v;
    struct mpa_start m; /* without pd */
    const char *pd;
} rows[] = {
    {VECTOR(V1), {.flags = MPA_FLAG_C, .rev = 1}, "ping"},
    {VECTOR(V2), {.reply = true, .flags = MPA_FLAG_C, .rev = 1}, "pong"},
    {VECTOR(V3), {.reply = true, .flags = MPA_FLAG_C | MPA_FLAG_R, .rev = 1}, "no"},
    {VECTOR(V4),
     {.flags = MPA_FLAG_C | MPA_FLAG_S,
      .rev = 2,
      .enhanced = true,
      .p2p = true,
      .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
      .ird = 16,
      .ord = 8},
     "ping"},
    {VECTOR(V5),
     {.reply = true,
      .flags = MPA_FLAG_C | MPA_FLAG_S,
      .rev = 2,
      .enhanced = true,
      .p2p = true,
      .rtr = MPA_RTR_READ,
      .ird = 8,
      .ord = 16},
     ""},
    {VECTOR(V6), {.flags = MPA_FLAG_S, .rev = 2, .enhanced = true, .ird = 1, .ord = 1}, ""},
};

static bool same(const struct mpa_start *a, const struct mpa_start *b, const char *pd)
{
    return a->reply == b->reply && a->flags == b->flags && a->rev == b->rev &&
           a->enhanced == b->enhanced && a->p2p == b->p2p && a->rtr == b->rtr && a->ird == b->ird &&
           a->ord == b->ord && a->pd_len == strlen(pd) && memcmp(a->pd, pd, a->pd_len) == 0;
}

static void vectors_decode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct vector *v = &rows[i].v;
        struct mpa_start m;
        size_t used = 0;
        uint8_t *p = exact(v->bytes, v->len);
        check(v->name, mpa_start_decode(p, v->len, rows[i].m.reply, &m, &used) == MPA_PARSE_OK);
        check(v->name, used == v->len);
        check(v->name, same(&m, &rows[i].m, rows[i].pd));
        free(p);
    }
}

static void vectors_encode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct vector *v = &rows[i].v;
        struct mpa_start m = rows[i].m;
        uint8_t buf[MPA_START_MAX];
        m.pd = (const uint8_t *)rows[i].pd;
        m.pd_len = strlen(rows[i].pd);
        memset(buf, 0xee, sizeof(buf));
        check(v->name, mpa_start_encode(buf, &m) == v->len);
        check(v->name, memcmp(buf, v->bytes, v->len) == 0);
        check(v->name, buf[v->len] == 0xee);
    }
}

static void every_truncation_wants_more(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t len = 0; len < rows[i].v.len; len++) {
            struct mpa_start m;
            size_t used;
            uint8_t *p = exact(rows[i].v.bytes, len);
            check(rows[i].v.name,
                  mpa_start_decode(p, len, rows[i].m.reply, &m, &used) == MPA_PARSE_MORE);
            free(p);
        }
}

static void bytes_behind_are_left(void **state)
{
    uint8_t b[sizeof(V5) + sizeof(V9)];
    struct mpa_start m;
    size_t used = 0;

    (void)state;
    memcpy(b, V5, sizeof(V5));
    memcpy(b + sizeof(V5), V9, sizeof(V9));
    assert_int_equal(mpa_start_decode(b, sizeof(b), true, &m, &used), MPA_PARSE_OK);
    assert_int_equal(used, sizeof(V5));
    assert_int_equal(m.pd_len, 0);
}

/** Each wrong key byte is refused as soon as it is there, and the other side's key is wrong. */
static void wrong_keys(void **state)
{
    struct mpa_start m;
    size_t used;

    (void)state;
    for (size_t at = 0; at < 16; at++)
        for (size_t len = at + 1; len <= sizeof(V1); len++) {
            uint8_t *p = exact(V1, len);
            p[at] ^= 0x20;
            m.rev = 9;
            assert_int_equal(mpa_start_decode(p, len, false, &m, &used), MPA_PARSE_BAD);
            assert_int_equal(m.rev, 0);
            free(p);
        }
    assert_int_equal(mpa_start_decode(V1, 9, true, &m, &used), MPA_PARSE_MORE);
    assert_int_equal(mpa_start_decode(V1, 10, true, &m, &used), MPA_PARSE_BAD);
    assert_int_equal(mpa_start_decode(V2, 10, false, &m, &used), MPA_PARSE_BAD);
    assert_int_equal(mpa_start_decode((const uint8_t *)"G", 1, false, &m, &used), MPA_PARSE_BAD);
}

static void revisions(void **state)
{
    (void)state;
    for (unsigned rev = 0; rev < 256; rev++) {
        struct mpa_start m = {.rev = 9};
        size_t used;
        uint8_t *p = exact(V4, sizeof(V4));
        p[17] = rev;
        bool good = rev == 1 || rev == 2;
        assert_int_equal(mpa_start_decode(p, sizeof(V4), false, &m, &used),
                         good ? MPA_PARSE_OK : MPA_PARSE_BAD);
        assert_int_equal(m.rev, rev);
        assert_int_equal(mpa_start_decode(p, 18, false, &m, &used),
                         good ? MPA_PARSE_MORE : MPA_PARSE_BAD);
        free(p);
    }
}

/** S counts in revision 2 only, and a revision 2 frame can do without. */
static void enhanced_takes_revision_and_s(void **state)
{
    struct mpa_start m;
    size_t used;
    uint8_t b[sizeof(V4)];

    (void)state;
    memcpy(b, V4, sizeof(b));
    b[17] = 1;
    assert_int_equal(mpa_start_decode(b, sizeof(b), false, &m, &used), MPA_PARSE_OK);
    assert_false(m.enhanced);
    assert_int_equal(m.flags, MPA_FLAG_C | MPA_FLAG_S);
    assert_int_equal(m.pd_len, 8);
    assert_ptr_equal(m.pd, b + 20);
    b[17] = 2;
    b[16] = MPA_FLAG_C;
    assert_int_equal(mpa_start_decode(b, sizeof(b), false, &m, &used), MPA_PARSE_OK);
    assert_false(m.enhanced || m.p2p || m.rtr || m.ird || m.ord);
    assert_int_equal(m.pd_len, 8);
}

/** All flag bits are handed on, reserved ones too, and change nothing else. */
static void flags(void **state)
{
    (void)state;
    for (unsigned f = 0; f < 256; f++) {
        struct mpa_start m;
        size_t used;
        uint8_t b[sizeof(V2)], out[MPA_START_MAX];
        memcpy(b, V2, sizeof(b));
        b[16] = f;
        assert_int_equal(mpa_start_decode(b, sizeof(b), true, &m, &used), MPA_PARSE_OK);
        assert_int_equal(m.flags, f);
        assert_int_equal(m.pd_len, 4);
        assert_int_equal(mpa_start_encode(out, &m), sizeof(b));
        assert_int_equal(out[16], f & ~MPA_FLAG_S);
    }
}

static void private_data_lengths(void **state)
{
    static const struct {
        const char *name;
        const uint8_t *start;
        unsigned pd_len;
        bool good;
    } lens[] = {
        {"rev 1, none", V1, 0, true},         {"rev 1, most", V1, 512, true},
        {"rev 1, too long", V1, 513, false},  {"rev 1, 768", V1, 768, false},
        {"rev 1, longest", V1, 65535, false}, {"rev 2, no block", V4, 0, false},
        {"rev 2, short block", V4, 3, false}, {"rev 2, block", V4, 4, true},
        {"rev 2, most", V4, 512, true},       {"rev 2, too long", V4, 513, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lens); i++) {
        uint8_t b[MPA_START_HDR + MPA_START_PD_MAX] = {0};
        struct mpa_start m = {.rev = 9};
        size_t used = 0, whole = MPA_START_HDR + lens[i].pd_len;
        memcpy(b, lens[i].start, MPA_START_HDR);
        b[18] = lens[i].pd_len >> 8;
        b[19] = lens[i].pd_len;
        if (!lens[i].good) {
            check(lens[i].name, mpa_start_decode(b, 20, false, &m, &used) == MPA_PARSE_BAD);
            check(lens[i].name, m.rev == b[17]);
            continue;
        }
        check(lens[i].name,
              whole == 20 || mpa_start_decode(b, whole - 1, false, &m, &used) == MPA_PARSE_MORE);
        check(lens[i].name, mpa_start_decode(b, whole, false, &m, &used) == MPA_PARSE_OK);
        check(lens[i].name, used == whole);
        check(lens[i].name, m.pd_len == lens[i].pd_len - (m.enhanced ? 4 : 0));
    }
    uint8_t b[19];
    struct mpa_start m;
    size_t used;
    memcpy(b, V1, sizeof(b));
    b[18] = 3;
    assert_int_equal(mpa_start_decode(b, sizeof(b), false, &m, &used), MPA_PARSE_BAD);
    b[18] = 2;
    assert_int_equal(mpa_start_decode(b, sizeof(b), false, &m, &used), MPA_PARSE_MORE);
}

static void blocks(void **state)
{
    static const struct {
        const char *name;
        uint8_t block[4];
        bool p2p;
        uint8_t rtr;
        uint16_t ird, ord;
        bool same; /* encoding gives the block back */
    } cases[] = {
        {"nothing", {0, 0, 0, 0}, false, 0, 0, 0, true},
        {"B", {0xc0, 0, 0, 0}, true, MPA_RTR_SEND, 0, 0, true},
        {"C", {0x80, 0, 0x80, 0}, true, MPA_RTR_WRITE, 0, 0, true},
        {"D", {0x80, 0, 0x40, 0}, true, MPA_RTR_READ, 0, 0, true},
        {"A alone", {0x80, 0, 0, 0}, true, 0, 0, 0, true},
        {"B, C and D without A", {0x40, 1, 0xc0, 2}, false, 0, 1, 2, false},
        {"most IRD", {0x3f, 0xff, 0, 0}, false, 0, MPA_DEPTH_MAX, 0, true},
        {"most ORD", {0, 0, 0x3f, 0xff}, false, 0, 0, MPA_DEPTH_MAX, true},
        {"all", {0xff, 0xff, 0xff, 0xff}, true, 7, MPA_DEPTH_MAX, MPA_DEPTH_MAX, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint8_t b[24], out[MPA_START_MAX];
        struct mpa_start m;
        size_t used;
        memcpy(b, V6, 20);
        memcpy(b + 20, cases[i].block, 4);
        check(cases[i].name, mpa_start_decode(b, sizeof(b), false, &m, &used) == MPA_PARSE_OK);
        check(cases[i].name, m.p2p == cases[i].p2p && m.rtr == cases[i].rtr);
        check(cases[i].name, m.ird == cases[i].ird && m.ord == cases[i].ord);
        check(cases[i].name, mpa_start_encode(out, &m) == sizeof(b));
        check(cases[i].name, (memcmp(out, b, sizeof(b)) == 0) == cases[i].same);
    }
}

static void encode_limits(void **state)
{
    static const uint8_t pd[MPA_START_PD_MAX + 1];
    uint8_t buf[MPA_START_MAX];

    (void)state;
    struct mpa_start m = {.rev = 1, .pd = pd, .pd_len = MPA_START_PD_MAX};
    assert_int_equal(mpa_start_encode(buf, &m), MPA_START_MAX);
    m.pd_len++;
    assert_int_equal(mpa_start_encode(buf, &m), 0);
    m = (struct mpa_start){.rev = 2, .enhanced = true, .pd = pd, .pd_len = 508};
    assert_int_equal(mpa_start_encode(buf, &m), MPA_START_MAX);
    m.pd_len++;
    assert_int_equal(mpa_start_encode(buf, &m), 0);
    m = (struct mpa_start){.rev = 2, .enhanced = true, .ird = MPA_DEPTH_MAX, .ord = MPA_DEPTH_MAX};
    assert_int_equal(mpa_start_encode(buf, &m), 24);
    m.ird++;
    assert_int_equal(mpa_start_encode(buf, &m), 0);
    m.ird = 0;
    m.ord++;
    assert_int_equal(mpa_start_encode(buf, &m), 0);
}

/** Without A, B, C and D stay clear whatever the caller says (RFC 6581 section 9.2). */
static void encode_without_p2p(void **state)
{
    struct mpa_start m = {.rev = 2, .enhanced = true, .rtr = 7};
    uint8_t buf[MPA_START_MAX];

    (void)state;
    assert_int_equal(mpa_start_encode(buf, &m), 24);
    assert_memory_equal(buf + 20, "\0\0\0\0", 4);
}

static void number_behind_the_private_data(void **state)
{
    static const uint8_t pd[512];
    static const struct {
        uint8_t rev;
        bool enhanced;
        uint16_t pd_len;
        bool fits;
    } t[] = {
        {2, true, 0, true},    {2, true, 255, true},  {2, true, 504, true},  {2, true, 505, false},
        {2, true, 508, false}, {2, false, 508, true}, {1, false, 508, true}, {1, false, 509, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        uint8_t buf[MPA_START_MAX];
        struct mpa_start m = {.reply = true,
                              .rev = t[i].rev,
                              .enhanced = t[i].enhanced,
                              .pd = pd,
                              .pd_len = t[i].pd_len};
        size_t used, len = mpa_start_encode(buf, &m);
        assert_int_equal(mpa_start_add_qpn(buf, len, 0xabcdef), len + (t[i].fits ? 4 : 0));
        assert_int_equal(mpa_start_decode(buf, sizeof(buf), true, &m, &used), MPA_PARSE_OK);
        assert_int_equal(used, len + (t[i].fits ? 4 : 0));
        assert_int_equal(mpa_start_take_qpn(&m), t[i].fits ? 0xabcdef : 0);
        assert_int_equal(m.pd_len, t[i].pd_len);
    }
}

/* What a peer may make of it. */
static void numbers_that_are_none(void **state)
{
    static const struct {
        uint8_t flags;
        uint16_t pd_len;
        uint32_t number, got;
        uint16_t left;
    } t[] = {
        {MPA_FLAG_QPN_REPLY, 4, 0xffffff, 0xffffff, 0},
        {MPA_FLAG_QPN_REPLY, 4, 0x1000000, 0, 0},
        {MPA_FLAG_QPN_REPLY, 4, 0xffffffff, 0, 0},
        {MPA_FLAG_QPN_REPLY, 4, 0, 0, 0},
        {MPA_FLAG_QPN_REPLY, 3, 2, 0, 3},
        {MPA_FLAG_QPN_REPLY, 0, 2, 0, 0},
        {0, 4, 2, 0, 4},
        {MPA_FLAG_QPN_REQUEST, 4, 2, 0, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        uint8_t pd[4];
        struct mpa_start m = {.flags = t[i].flags, .pd = pd, .pd_len = t[i].pd_len};
        put_be32(pd, t[i].number);
        assert_int_equal(mpa_start_take_qpn(&m), t[i].got);
        assert_int_equal(m.pd_len, t[i].left);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_decode),
        cmocka_unit_test(vectors_encode),
        cmocka_unit_test(every_truncation_wants_more),
        cmocka_unit_test(bytes_behind_are_left),
        cmocka_unit_test(wrong_keys),
        cmocka_unit_test(revisions),
        cmocka_unit_test(enhanced_takes_revision_and_s),
        cmocka_unit_test(flags),
        cmocka_unit_test(private_data_lengths),
        cmocka_unit_test(blocks),
        cmocka_unit_test(encode_limits),
        cmocka_unit_test(encode_without_p2p),
        cmocka_unit_test(number_behind_the_private_data),
        cmocka_unit_test(numbers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
