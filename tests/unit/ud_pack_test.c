/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LEAST (IW_UD_HEADER + IW_UD_GRH)

static uint8_t bytes[IW_UD_PACK_MAX];
static size_t used;

static int begin(void **state)
{
    (void)state;
    memset(bytes, 0, sizeof(bytes));
    iw_ud_pack_begin(bytes);
    used = IW_UD_PACK_BEGIN;
    return 0;
}

/** A datagram of @p len bytes of value @p v. */
static void add(size_t len, uint8_t v)
{
    iw_ud_pack_length(bytes + used, len);
    used += IW_UD_PACK_LENGTH;
    memset(bytes + used, v, len);
    used += len;
}

/** How many are found in the first @p len bytes. */
static unsigned count(size_t len)
{
    struct iw_ud_packed one;
    size_t at = 0;
    unsigned n = 0;
    while (iw_ud_unpack(bytes, len, &at, &one)) {
        assert_true(one.bytes >= bytes && one.bytes + one.len <= bytes + len);
        n++;
    }
    assert_false(iw_ud_unpack(bytes, len, &at, &one));
    return n;
}

static void layout(void **state)
{
    static const uint8_t want[] = {'A', 'W', 'P', 1, 0, 0, 0x10, 0x44};
    (void)state;
    add(IW_UD_DATAGRAM, 7);
    assert_memory_equal(bytes, want, sizeof(want));
}

static void one_after_the_other(void **state)
{
    struct iw_ud_packed one;
    size_t at = 0;
    (void)state;
    add(LEAST, 1);
    add(LEAST + 5, 2);
    add(IW_UD_DATAGRAM, 3);
    for (uint8_t v = 1; v <= 3; v++) {
        assert_true(iw_ud_unpack(bytes, used, &at, &one));
        assert_int_equal(one.bytes[0], v);
        assert_int_equal(one.bytes[one.len - 1], v);
    }
    assert_int_equal(one.len, IW_UD_DATAGRAM);
    assert_int_equal(at, used);
    assert_int_equal(count(used), 3);
}

static void as_many_as_fit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++)
        add(IW_UD_DATAGRAM, 1);
    assert_int_equal(used, IW_UD_PACK_MAX);
    assert_int_equal(count(used), 8);
}

/** A message that is no pack is a datagram, whatever is in it. */
static void alone(void **state)
{
    struct iw_ud_packed one;
    size_t at = 0;
    (void)state;
    bytes[2] = 'D';
    assert_true(iw_ud_unpack(bytes, 100, &at, &one));
    assert_ptr_equal(one.bytes, bytes);
    assert_int_equal(one.len, 100);
    assert_int_equal(count(100), 1);
    assert_int_equal(count(3), 1);
    assert_int_equal(count(0), 0);
}

static void cut_short(void **state)
{
    (void)state;
    add(LEAST, 1);
    size_t first = used;
    add(LEAST, 2);
    for (size_t len = IW_UD_PACK_BEGIN; len <= used; len++)
        assert_int_equal(count(len), (len >= first) + (len == used));
}

static void lengths_of_strangers(void **state)
{
    static const uint32_t bad[] = {0,          1,          LEAST - 1,  IW_UD_DATAGRAM + 1,
                                   0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff};
    (void)state;
    add(LEAST, 1);
    size_t at = used;
    add(IW_UD_DATAGRAM, 2);
    add(LEAST, 3);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        iw_ud_pack_length(bytes + at, bad[i]);
        assert_int_equal(count(used), 1); /* nothing behind it is believed */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(layout, begin),
        cmocka_unit_test_setup(one_after_the_other, begin),
        cmocka_unit_test_setup(as_many_as_fit, begin),
        cmocka_unit_test_setup(alone, begin),
        cmocka_unit_test_setup(cut_short, begin),
        cmocka_unit_test_setup(lengths_of_strangers, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
