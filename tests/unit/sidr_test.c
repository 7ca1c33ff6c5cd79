/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sidr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t request[SIDR_BYTES] = {
    'A', 'W',  'S',        'R', 1,   1, 1, 3, /* of a RoCE device, 3 bytes */
    1,   2,    3,          4,   5,   6, 7, 8, /* whose it is */
    1,   0x11, [32] = 'a', 'b', 'c',
};

static const uint8_t reply[SIDR_BYTES] = {
    'A', 'W', 'S', 'R', 1,    2,           0,    1, 1, 2,    3,    4,    5,
    6,   7,   8,   1,   0x11, [21] = 0x8a, 0x25, 1, 1, 0x23, 0x45, 0x67, [32] = 'z',
};

/** The bytes on the wire, which another release must read. */
static void layout(void **state)
{
    struct sidr s, made = {.ib = true,
                           .ps = 0x111,
                           .id = UINT64_C(0x0102030405060708),
                           .data_len = 3,
                           .data = "abc"};
    uint8_t bytes[SIDR_BYTES];
    (void)state;
    sidr_encode(bytes, &made);
    assert_memory_equal(bytes, request, sizeof(request));
    assert_true(sidr_decode(bytes, sizeof(bytes), &s));
    assert_false(s.reply);
    assert_true(s.ib);
    assert_int_equal(s.ps, 0x111);
    assert_int_equal(s.id, made.id);
    assert_int_equal(s.data_len, 3);
    assert_memory_equal(s.data, "abc", 3);

    made = (struct sidr){.reply = true,
                         .ps = 0x111,
                         .id = made.id,
                         .qpn = 0x8a2501,
                         .qkey = 0x01234567,
                         .data_len = 1,
                         .data = "z"};
    sidr_encode(bytes, &made);
    assert_memory_equal(bytes, reply, sizeof(reply));
    assert_true(sidr_decode(bytes, sizeof(bytes), &s));
    assert_true(s.reply);
    assert_int_equal(s.status, SIDR_SUCCESS);
    assert_int_equal(s.qpn, 0x8a2501);
    assert_int_equal(s.qkey, 0x01234567);
}

static void as_much_as_there_is_room_for(void **state)
{
    struct sidr s, made = {.data_len = SIDR_REQUEST_DATA};
    uint8_t bytes[SIDR_BYTES];
    (void)state;
    memset(made.data, 0x5a, sizeof(made.data));
    sidr_encode(bytes, &made);
    assert_true(sidr_decode(bytes, sizeof(bytes), &s));
    assert_memory_equal(s.data, made.data, SIDR_REQUEST_DATA);
    made = (struct sidr){.reply = true, .status = SIDR_REJECT, .data_len = SIDR_REPLY_DATA};
    sidr_encode(bytes, &made);
    assert_true(sidr_decode(bytes, sizeof(bytes), &s));
    assert_int_equal(s.status, SIDR_REJECT);
}

struct change {
    size_t at;
    uint8_t value;
};

static void expect_refused(const uint8_t *good, const struct change *c)
{
    struct sidr s;
    uint8_t bytes[SIDR_BYTES];
    memcpy(bytes, good, sizeof(bytes));
    bytes[c->at] = c->value;
    if (sidr_decode(bytes, sizeof(bytes), &s))
        fail_msg("%u at %zu is not seen", c->value, c->at);
}

static void not_one(void **state)
{
    static const struct change both[] = {
        {0, 'B'}, /* another protocol */
        {4, 2},   /* a version to come */
        {5, 0},
        {5, 3}, /* neither Request nor Reply */
    };
    static const struct change of_request[] = {
        {6, 2},                     /* a device of no kind */
        {7, SIDR_REQUEST_DATA + 1}, /* more than there is room for */
        {7, 255},
        {22, 1},
        {27, 1}, /* a number and a key: these are an answer's */
    };
    static const struct change of_reply[] = {
        {6, SIDR_STATUS_END},
        {7, SIDR_REPLY_DATA + 1},
        {20, 1},          /* a number of 25 bits */
        {6, SIDR_REJECT}, /* and yet a number */
    };
    struct sidr s;
    (void)state;
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        expect_refused(request, &both[i]);
        expect_refused(reply, &both[i]);
    }
    for (size_t i = 0; i < sizeof(of_request) / sizeof(of_request[0]); i++)
        expect_refused(request, &of_request[i]);
    for (size_t i = 0; i < sizeof(of_reply) / sizeof(of_reply[0]); i++)
        expect_refused(reply, &of_reply[i]);
    uint8_t nobodys[SIDR_BYTES] = {'A', 'W', 'S', 'R', 1, 2};
    assert_false(sidr_decode(nobodys, sizeof(nobodys), &s)); /* number 0 */
    assert_false(sidr_decode(request, sizeof(request) - 1, &s));
    assert_false(sidr_decode(request, sizeof(request) + 1, &s));
    assert_false(sidr_decode(NULL, 0, &s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(as_much_as_there_is_room_for),
        cmocka_unit_test(not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
