/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct iw_hello hello = {
    .kind = IW_HELLO_DOUBTS,
    .uc = true,
    .token = 0x0102030405060708,
    .from = {.qpn = 0x8a2501, .epoch = 0x11223344, .gid.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
    .to = {.qpn = 0xfffffe, .epoch = 0, .gid.raw = {0xfe, 0x80, [15] = 2}},
};

static void there_and_back(void **state)
{
    uint8_t bytes[IW_HELLO_BYTES], again[IW_HELLO_BYTES];
    struct iw_hello h;
    (void)state;
    iw_hello_encode(bytes, &hello);
    assert_true(iw_hello_decode(bytes, sizeof(bytes), &h));
    assert_int_equal(h.kind, hello.kind);
    assert_int_equal(h.uc, hello.uc);
    assert_true(h.token == hello.token);
    assert_memory_equal(&h.from, &hello.from, sizeof(h.from));
    assert_memory_equal(&h.to, &hello.to, sizeof(h.to));
    iw_hello_encode(again, &h);
    assert_memory_equal(again, bytes, sizeof(bytes));
}

/** The bytes on the wire, which another release must read. */
static void layout(void **state)
{
    static const uint8_t want[IW_HELLO_BYTES] = {
        'A',  'W',  'Q',  'P',  'N', 2, 2, 1, 0,    0x8a, 0x25, 1, 0, 0xff, 0xff, 0xfe,
        0x11, 0x22, 0x33, 0x44, 0,   0, 0, 0, 0,    0,    0,    0, 0, 0,    0,    0,
        0,    0,    0xff, 0xff, 192, 0, 2, 1, 0xfe, 0x80, 0,    0, 0, 0,    0,    0,
        0,    0,    0,    0,    0,   0, 0, 2, 1,    2,    3,    4, 5, 6,    7,    8,
    };
    uint8_t bytes[IW_HELLO_BYTES];
    (void)state;
    iw_hello_encode(bytes, &hello);
    assert_memory_equal(bytes, want, sizeof(want));
}

static void not_one(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {0, 'B'},           /* another protocol's private data */
        {5, 3},             /* a version to come */
        {5, 1},             /* one before, without tokens */
        {6, 4},             /* a kind of that one */
        {7, 2},     {8, 1}, /* numbers have 24 bits */
        {12, 0xff},
    };
    uint8_t bytes[IW_HELLO_BYTES + 1] = {0};
    struct iw_hello h;
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        iw_hello_encode(bytes, &hello);
        bytes[changes[i].at] = changes[i].value;
        assert_false(iw_hello_decode(bytes, IW_HELLO_BYTES, &h));
    }
    iw_hello_encode(bytes, &hello);
    memset(bytes + 16, 0, 4); /* no epoch */
    assert_false(iw_hello_decode(bytes, IW_HELLO_BYTES, &h));
    iw_hello_encode(bytes, &hello);
    assert_false(iw_hello_decode(bytes, IW_HELLO_BYTES - 1, &h));
    assert_false(iw_hello_decode(bytes, IW_HELLO_BYTES + 1, &h));
    assert_false(iw_hello_decode(NULL, 0, &h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(layout),
        cmocka_unit_test(not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
