/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/crc32c.h"

#include "wire/bytes.h"

#include "vectors.h"

#include <limits.h>
#include <sys/mman.h>

#define BUF 2048

static uint32_t crc(const void *p, size_t len)
{
    return crc32c_done(crc32c_add(CRC32C_INIT, p, len));
}

/** Bit by bit, from the polynomial. */
static uint32_t slow(uint32_t running, const uint8_t *p, size_t len)
{
    while (len--) {
        running ^= *p++;
        for (int bit = 0; bit < 8; bit++)
            running = running >> 1 ^ (running & 1 ? 0x82f63b78 : 0);
    }
    return running;
}

/** Bytes without a pattern that a CRC could hide. */
static void fill(uint8_t *p, size_t len)
{
    uint32_t x = 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = x >> 24;
    }
}

/** RFC 3720 section B.4. */
static void iscsi_vectors(void **state)
{
    uint8_t b[32];

    (void)state;
    assert_int_equal(crc("", 0), 0);
    assert_int_equal(crc("123456789", 9), 0xe3069283);
    memset(b, 0, sizeof(b));
    assert_int_equal(crc(b, sizeof(b)), 0x8a9136aa);
    memset(b, 0xff, sizeof(b));
    assert_int_equal(crc(b, sizeof(b)), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        b[i] = i;
    assert_int_equal(crc(b, sizeof(b)), 0x46dd794e);
    for (int i = 0; i < 32; i++)
        b[i] = 31 - i;
    assert_int_equal(crc(b, sizeof(b)), 0x113fdb5c);
}

static void fpdus(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(fpdu_vectors); i++) {
        const struct vector *v = &fpdu_vectors[i];
        uint8_t field[4];
        put_le32(field, crc(v->bytes, v->len - 4));
        check(v->name, memcmp(field, v->bytes + v->len - 4, 4) == 0);
    }
    assert_int_equal(crc(V9, sizeof(V9) - 4), 0x0cb190b9);
    assert_int_equal(crc(V23, sizeof(V23) - 4), 0x83992352);
}

/** Each length on both sides of the change of method, at each alignment. */
static void every_length(void **state)
{
    static uint8_t b[BUF + 8];

    (void)state;
    fill(b, sizeof(b));
    for (size_t off = 0; off < 8; off++) {
        uint32_t want = CRC32C_INIT;
        for (size_t len = 0; len <= BUF; len++) {
            if (crc32c_add(CRC32C_INIT, b + off, len) != want)
                fail_msg("length %zu at offset %zu", len, off);
            want = slow(want, b + off + len, 1);
        }
    }
}

static void reads_no_further(void **state)
{
    static uint8_t b[700];

    (void)state;
    fill(b, sizeof(b));
    for (size_t len = 0; len < sizeof(b); len++) {
        uint8_t *p = exact(b, len);
        assert_int_equal(crc(p, len), ~slow(CRC32C_INIT, b, len));
        free(p);
    }
}

static void every_split(void **state)
{
    static uint8_t b[BUF];

    (void)state;
    fill(b, sizeof(b));
    uint32_t whole = crc(b, sizeof(b));
    for (size_t at = 0; at <= sizeof(b); at++) {
        uint32_t c = crc32c_add(CRC32C_INIT, b, at);
        assert_int_equal(crc32c_done(crc32c_add(c, b + at, sizeof(b) - at)), whole);
    }
    uint32_t c = CRC32C_INIT;
    for (size_t i = 0; i < sizeof(b); i++)
        c = crc32c_add(c, b + i, 1);
    assert_int_equal(crc32c_done(c), whole);
}

/** Lengths around the block and the step of the copy; nothing behind it is touched. */
static void copies(void **state)
{
    static const size_t lengths[] = {0,   1,   255, 256,  257,  319,  320,   511,
                                     512, 513, 768, 8191, 8192, 8193, 16384, 20001};
    static uint8_t from[20001], to[sizeof(from) + 1];

    (void)state;
    fill(from, sizeof(from));
    for (size_t i = 0; i < COUNT(lengths); i++) {
        memset(to, 0xee, sizeof(to));
        assert_int_equal(crc32c_copy(17, to, from, lengths[i]), crc32c_add(17, from, lengths[i]));
        assert_memory_equal(to, from, lengths[i]);
        assert_int_equal(to[lengths[i]], 0xee);
    }
}

static void longer_than_an_int(void **state)
{
    size_t len = (size_t)INT_MAX + 4097, piece = 65536;

    (void)state;
    uint8_t *p =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(p != MAP_FAILED);
    for (size_t at = 0; at < len; at += len / 8)
        p[at] = at / piece;
    p[len - 1] = 1;
    uint32_t got = crc32c_add(CRC32C_INIT, p, len), want = CRC32C_INIT;
    for (size_t left = len; left > 0;) {
        size_t n = left < piece ? left : piece;
        want = crc32c_add(want, p + (len - left), n);
        left -= n;
    }
    assert_int_equal(got, want);
    munmap(p, len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iscsi_vectors),      cmocka_unit_test(fpdus),
        cmocka_unit_test(every_length),       cmocka_unit_test(reads_no_further),
        cmocka_unit_test(every_split),        cmocka_unit_test(copies),
        cmocka_unit_test(longer_than_an_int),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
