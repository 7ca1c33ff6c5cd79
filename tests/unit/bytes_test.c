/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/bytes.h"

#include "vectors.h"

static const uint8_t pattern[] = {0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87, 0x08};

/** Loads and stores at every alignment, with the bytes around them left alone. */
static void any_alignment(void **state)
{
    (void)state;
    for (size_t off = 0; off < 8; off++) {
        uint8_t b[24], out[24], want[24];
        memset(b, 0xee, sizeof(b));
        memcpy(b + off, pattern, sizeof(pattern));
        assert_int_equal(get_be16(b + off), 0x8102);
        assert_int_equal(get_be32(b + off), 0x81028304);
        assert_int_equal(get_be64(b + off), 0x8102830485068708);
        assert_int_equal(get_le32(b + off), 0x04830281);

        memset(out, 0xee, sizeof(out));
        put_be64(out + off, 0x8102830485068708);
        assert_memory_equal(out, b, sizeof(b));

        memset(want, 0xee, sizeof(want));
        memcpy(want + off, pattern, 4);
        memset(out, 0xee, sizeof(out));
        put_be32(out + off, 0x81028304);
        assert_memory_equal(out, want, sizeof(want));
        memset(out, 0xee, sizeof(out));
        put_le32(out + off, 0x04830281);
        assert_memory_equal(out, want, sizeof(want));

        memset(want, 0xee, sizeof(want));
        memcpy(want + off, pattern, 2);
        memset(out, 0xee, sizeof(out));
        put_be16(out + off, 0x8102);
        assert_memory_equal(out, want, sizeof(want));
    }
}

static void extremes(void **state)
{
    uint8_t b[8];

    (void)state;
    put_be64(b, UINT64_MAX);
    assert_int_equal(get_be64(b), UINT64_MAX);
    put_be64(b, 0);
    assert_int_equal(get_be64(b), 0);
    put_le32(b, UINT32_MAX);
    assert_int_equal(get_le32(b), UINT32_MAX);
    put_be16(b, UINT16_MAX);
    assert_int_equal(get_be16(b), UINT16_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_alignment),
        cmocka_unit_test(extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
