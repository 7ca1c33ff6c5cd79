/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/fpdu.h"

#include "wire/bytes.h"
#include "wire/crc32c.h"

#include "vectors.h"

static void pad_table(void **state)
{
    static const struct {
        uint32_t ulpdu;
        unsigned pad;
        uint32_t size;
    } rows[] = {
        {0, 2, 8},
        {1, 1, 8},
        {2, 0, 8},
        {3, 3, 12},
        {4, 2, 12},
        {14, 0, 20},
        {15, 3, 24},
        {18, 0, 24},
        {23, 3, 32},
        {46, 0, 52},
        {FPDU_ULPDU_MAX, 2, FPDU_MAX},
        {65535, 3, 65544},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(fpdu_pad(rows[i].ulpdu), rows[i].pad);
        assert_int_equal(fpdu_size(rows[i].ulpdu), rows[i].size);
    }
    for (uint32_t n = 0; n <= UINT16_MAX; n++) {
        assert_true(fpdu_pad(n) <= 3);
        assert_int_equal(fpdu_size(n) % 4, 0);
        assert_int_equal(fpdu_size(n), 2 + n + fpdu_pad(n) + 4);
    }
}

static void vectors_have_that_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fpdu_vectors); i++) {
        const struct vector *v = &fpdu_vectors[i];
        uint32_t ulpdu = get_be16(v->bytes);
        check(v->name, fpdu_size(ulpdu) == v->len);
        for (unsigned k = 0; k < fpdu_pad(ulpdu); k++)
            check(v->name, v->bytes[2 + ulpdu + k] == 0);
    }
    assert_int_equal(fpdu_size(get_be16(V9n)), sizeof(V9n));
    assert_memory_equal(V9n, V9, sizeof(V9) - FPDU_CRC_FIELD);
}

static void mulpdu(void **state)
{
    static const struct {
        uint32_t emss;
        uint32_t plain, marked;
    } rows[] = {
        {0, 128, 128},         {1, 128, 128},
        {100, 128, 128},       {134, 128, 128},
        {138, 130, 128},       {140, 134, 130},
        {536, 530, 522},       {1448, 1442, 1430},
        {1460, 1454, 1442},    {8948, 8942, 8870},
        {65483, 64768, 64768}, {64774, 64766, 64258},
        {64776, 64768, 64262}, {UINT32_MAX, 64768, 64768},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(fpdu_mulpdu(rows[i].emss, false), rows[i].plain);
        assert_int_equal(fpdu_mulpdu(rows[i].emss, true), rows[i].marked);
    }
}

/** A MULPDU of ULPDU fills the segment and no more, wherever the markers fall. */
static void mulpdu_fits_the_segment(void **state)
{
    (void)state;
    for (uint32_t emss = 160; emss < 3000; emss++) {
        uint32_t plain = fpdu_mulpdu(emss, false), marked = fpdu_mulpdu(emss, true);
        assert_true(fpdu_size(plain) <= emss && fpdu_size(plain) + 4 > emss);
        uint32_t markers = (emss + 511) / 512;
        assert_true(fpdu_size(marked) + 4 * markers <= emss);
        assert_true(marked < plain);
    }
}

/** RFC 5044 figure 5: a marker in front of the first length field, part of its FPDU's CRC. */
static void first_marker(void **state)
{
    uint8_t out[sizeof(V23) + FPDU_MARKER];
    uint32_t crc = CRC32C_INIT;

    (void)state;
    size_t n = fpdu_mark(out, V23 + 4, sizeof(V23) - 4 - FPDU_CRC_FIELD, 0, 0, &crc);
    assert_int_equal(n, sizeof(V23) - FPDU_CRC_FIELD);
    put_le32(out + n, crc32c_done(crc));
    assert_memory_equal(out, V23, sizeof(V23));
}

static void marker_positions(void **state)
{
    static const struct {
        const char *name;
        uint64_t pos, fpdu_pos;
        size_t len;
        size_t written;
        size_t at[3]; /* of markers in the output; SIZE_MAX: no more */
        uint16_t ptr[3];
    } rows[] = {
        {"nothing to write", 512, 100, 0, 0, {SIZE_MAX}, {0}},
        {"far from a marker", 4, 4, 100, 100, {SIZE_MAX}, {0}},
        {"last byte in front of one", 511, 12, 1, 1, {SIZE_MAX}, {0}},
        {"up to the next one", 4, 4, 508, 508, {SIZE_MAX}, {0}},
        {"first byte behind it", 4, 4, 509, 513, {508, SIZE_MAX}, {508}},
        {"between two FPDUs", 512, 512, 20, 24, {0, SIZE_MAX}, {0}},
        {"the same, named by the length field", 512, 516, 20, 24, {0, SIZE_MAX}, {0}},
        {"inside the FPDU", 500, 400, 100, 104, {12, SIZE_MAX}, {112}},
        {"on the piece's first byte", 1024, 400, 4, 8, {0, SIZE_MAX}, {624}},
        {"behind the length field", 508, 508, 8, 12, {4, SIZE_MAX}, {4}},
        {"two", 600, 600, 1000, 1008, {424, 936, SIZE_MAX}, {424, 936}},
        {"marker in front and two inside", 512, 512, 1500, 1512, {0, 512, 1024}, {0, 508, 1020}},
        {"at a boundary, of an FPDU begun there", 1024, 512, 4, 8, {0, SIZE_MAX}, {508}},
        {"beyond 2^32", 0x100000000, 0x0fffffffc, 8, 12, {0, SIZE_MAX}, {4}},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint8_t src[1500], out[1600];
        size_t from = 0, next = 0;
        for (size_t k = 0; k < sizeof(src); k++)
            src[k] = k * 7 + 1;
        memset(out, 0xee, sizeof(out));
        uint32_t crc = 5;
        size_t n = fpdu_mark(out, src, rows[i].len, rows[i].pos, rows[i].fpdu_pos, &crc);
        check(rows[i].name, n == rows[i].written);
        check(rows[i].name, n <= fpdu_marked_max(rows[i].len));
        check(rows[i].name, out[n] == 0xee);
        check(rows[i].name, crc == crc32c_add(5, out, n));
        for (size_t k = 0; k < n;) {
            if (next < 3 && k == rows[i].at[next]) {
                check(rows[i].name, get_be16(out + k) == 0);
                check(rows[i].name, get_be16(out + k + 2) == rows[i].ptr[next]);
                next++;
                k += FPDU_MARKER;
                continue;
            }
            check(rows[i].name, out[k++] == src[from++]);
        }
        check(rows[i].name, from == rows[i].len);
        check(rows[i].name, next == 3 || rows[i].at[next] == SIZE_MAX);
    }
}

/** Whole or in any two pieces, with or without a CRC: the same bytes. */
static void pieces_make_the_whole(void **state)
{
    enum { LEN = 1200 };
    static const uint64_t starts[] = {0, 4, 508, 512, 516, 1000, 1024};
    uint8_t src[LEN], whole[LEN + 64], parts[LEN + 64];

    (void)state;
    for (size_t k = 0; k < LEN; k++)
        src[k] = k * 13 + 5;
    for (size_t i = 0; i < COUNT(starts); i++) {
        uint32_t crc = CRC32C_INIT;
        uint64_t start = starts[i];
        size_t n = fpdu_mark(whole, src, LEN, start, start, &crc);
        for (size_t at = 0; at <= LEN; at++) {
            uint32_t c = CRC32C_INIT;
            size_t a = fpdu_mark(parts, src, at, start, start, &c);
            a += fpdu_mark(parts + a, src + at, LEN - at, start + a, start, &c);
            assert_int_equal(a, n);
            assert_memory_equal(parts, whole, n);
            assert_int_equal(c, crc);
        }
        assert_int_equal(fpdu_mark(parts, src, LEN, start, start, NULL), n);
        assert_memory_equal(parts, whole, n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pad_table),
        cmocka_unit_test(vectors_have_that_size),
        cmocka_unit_test(mulpdu),
        cmocka_unit_test(mulpdu_fits_the_segment),
        cmocka_unit_test(first_marker),
        cmocka_unit_test(marker_positions),
        cmocka_unit_test(pieces_make_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
