/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/tls_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define AES      0x1301
#define CHACHA20 0x1303

/* RFC 8448 section 3: the client's application traffic secret, and its first record. */
static const uint8_t secret[TLS_SECRET_BYTES] = {
    0x9e, 0x40, 0x64, 0x6c, 0xe7, 0x9a, 0x7f, 0x9d, 0xc0, 0x5a, 0xf8, 0x88, 0x9b, 0xce, 0x65, 0x52,
    0x87, 0x5a, 0xfa, 0x0b, 0x06, 0xdf, 0x00, 0x87, 0xf7, 0x92, 0xeb, 0xb7, 0xc1, 0x75, 0x04, 0xa5};
static const uint8_t record[] = {
    0x17, 0x03, 0x03, 0x00, 0x43, 0xa2, 0x3f, 0x70, 0x54, 0xb6, 0x2c, 0x94, 0xd0, 0xaf, 0xfa,
    0xfe, 0x82, 0x28, 0xba, 0x55, 0xcb, 0xef, 0xac, 0xea, 0x42, 0xf9, 0x14, 0xaa, 0x66, 0xbc,
    0xab, 0x3f, 0x2b, 0x98, 0x19, 0xa8, 0xa5, 0xb4, 0x6b, 0x39, 0x5b, 0xd5, 0x4a, 0x9a, 0x20,
    0x44, 0x1e, 0x2b, 0x62, 0x97, 0x4e, 0x1f, 0x5a, 0x62, 0x92, 0xa2, 0x97, 0x70, 0x14, 0xbd,
    0x1e, 0x3d, 0xea, 0xe6, 0x3a, 0xee, 0xbb, 0x21, 0x69, 0x49, 0x15, 0xe4};

static struct tls_half seal, open_half;
static uint8_t buf[TLS_RECORD_MAX + 64];

static void begin(uint16_t suite)
{
    assert_true(tls_half_init(&seal, true, suite, secret));
    assert_true(tls_half_init(&open_half, false, suite, secret));
}

static int end(void **state)
{
    (void)state;
    tls_half_fini(&seal);
    tls_half_fini(&open_half);
    return 0;
}

static void the_vector(void **state)
{
    uint8_t type;
    (void)state;
    begin(AES);
    for (int i = 0; i < 50; i++)
        buf[TLS_RECORD_HEADER + i] = (uint8_t)i;
    assert_int_equal(tls_seal(&seal, TLS_DATA, buf, 50), sizeof(record));
    assert_memory_equal(buf, record, sizeof(record));
    assert_int_equal(tls_record_length(buf), sizeof(record));
    assert_int_equal(tls_open(&open_half, buf, sizeof(record), &type), 50);
    assert_int_equal(type, TLS_DATA);
    for (int i = 0; i < 50; i++)
        assert_int_equal(buf[TLS_RECORD_HEADER + i], i);
}

static void every_length(void **state)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 1000, TLS_RECORD_DATA_MAX};
    uint8_t type;
    (void)state;
    for (int suite = 0; suite < 2; suite++) {
        begin(suite ? CHACHA20 : AES);
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            memset(buf + TLS_RECORD_HEADER, (int)i + 1, lengths[i]);
            size_t n = tls_seal(&seal, TLS_HANDSHAKE, buf, lengths[i]);
            assert_int_equal(n, lengths[i] + TLS_RECORD_EXTRA);
            assert_int_equal(tls_open(&open_half, buf, n, &type), lengths[i]);
            assert_int_equal(type, TLS_HANDSHAKE);
            for (size_t at = 0; at < lengths[i]; at++)
                assert_int_equal(buf[TLS_RECORD_HEADER + at], i + 1);
        }
        end(NULL);
    }
}

static void a_new_key(void **state)
{
    uint8_t type;
    (void)state;
    begin(AES);
    for (int i = 0; i < 3; i++) {
        assert_true(tls_half_update(&seal));
        memcpy(buf + TLS_RECORD_HEADER, "next", 4);
        size_t n = tls_seal(&seal, TLS_DATA, buf, 4);
        assert_true(tls_half_update(&open_half));
        assert_int_equal(tls_open(&open_half, buf, n, &type), 4);
        assert_memory_equal(buf + TLS_RECORD_HEADER, "next", 4);
    }
    size_t n = tls_seal(&seal, TLS_DATA, buf, 4);
    assert_true(tls_half_update(&open_half));
    assert_int_equal(tls_open(&open_half, buf, n, &type), -TLS_BAD_RECORD_MAC);
}

static void another_order(void **state)
{
    uint8_t first[64], type;
    (void)state;
    begin(AES);
    size_t n = tls_seal(&seal, TLS_DATA, first, 4);
    tls_seal(&seal, TLS_DATA, buf, 4);
    assert_int_equal(tls_open(&open_half, buf, n, &type), -TLS_BAD_RECORD_MAC);
}

static void changed(void **state)
{
    uint8_t type;
    (void)state;
    for (size_t at = 0; at < sizeof(record); at++) {
        begin(AES);
        memcpy(buf, record, sizeof(record));
        buf[at] ^= 0x10;
        assert_int_equal(tls_open(&open_half, buf, sizeof(record), &type), -TLS_BAD_RECORD_MAC);
        end(NULL);
    }
}

static void padded(void **state)
{
    uint8_t type;
    (void)state;
    begin(AES);
    memcpy(buf + TLS_RECORD_HEADER, "data\x17\0\0\0", 8);
    size_t n = tls_seal(&seal, 0, buf, 8);
    assert_int_equal(tls_open(&open_half, buf, n, &type), 4);
    assert_int_equal(type, TLS_DATA);
    memset(buf + TLS_RECORD_HEADER, 0, 8);
    n = tls_seal(&seal, 0, buf, 8);
    assert_int_equal(tls_open(&open_half, buf, n, &type), -TLS_UNEXPECTED_MESSAGE);
}

static void too_long(void **state)
{
    uint8_t type;
    (void)state;
    begin(AES);
    size_t n = tls_seal(&seal, TLS_DATA, buf, TLS_RECORD_DATA_MAX + 1);
    assert_int_equal(tls_open(&open_half, buf, n, &type), -TLS_RECORD_OVERFLOW);
}

static void lengths(void **state)
{
    static const struct {
        uint8_t header[TLS_RECORD_HEADER];
        size_t len;
    } rows[] = {
        {{0x17, 3, 3, 0, 0}, 5},    {{0x17, 3, 3, 0x41, 0}, TLS_RECORD_MAX},
        {{0x17, 3, 3, 0x41, 1}, 0}, {{0x17, 3, 3, 0xff, 0xff}, 0},
        {{0x16, 3, 3, 0, 9}, 0},    {{0x15, 3, 3, 0, 2}, 0},
        {{0x17, 4, 3, 0, 9}, 0},    {{0, 0, 0, 0, 0}, 0},
    };
    uint8_t type;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(tls_record_length(rows[i].header), rows[i].len);
    begin(AES);
    for (size_t n = TLS_RECORD_HEADER; n < TLS_RECORD_EXTRA; n++)
        assert_int_equal(tls_open(&open_half, buf, n, &type), -TLS_BAD_RECORD_MAC);
}

static void no_such_suite(void **state)
{
    (void)state;
    assert_false(tls_half_init(&seal, true, 0x1302, secret));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_vector, end),
        cmocka_unit_test(every_length),
        cmocka_unit_test_teardown(a_new_key, end),
        cmocka_unit_test_teardown(another_order, end),
        cmocka_unit_test(changed),
        cmocka_unit_test_teardown(padded, end),
        cmocka_unit_test_teardown(too_long, end),
        cmocka_unit_test_teardown(lengths, end),
        cmocka_unit_test_teardown(no_such_suite, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
