/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of a capture file, byte by byte, and the checksums of the headers in it. */
#include "wire/bytes.h"
#include "wire/pcapng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void the_start(void **state)
{
    static const uint8_t want[] = {
        0x0a, 0x0d, 0x0d, 0x0a, 40,   0,    0,    0, 0x4d, 0x3c, 0x2b, 0x1a, 1,   0, 0, 0, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 4, 0,    2,    0,    'h',  'i', 0, 0, 0, 0,
        0,    0,    40,   0,    0,    0, /* section header */
        1,    0,    0,    0,    32,   0,    0,    0, 101,  0,    0,    0,    0,   0, 0, 0, 9,
        0,    1,    0,    9,    0,    0,    0,    0, 0,    0,    0,    32,   0,   0, 0, /* interface
                                                                                         */
    };
    uint8_t buf[PCAPNG_START_MAX];
    (void)state;
    assert_int_equal(pcapng_start(buf, "hi"), sizeof(want));
    assert_memory_equal(buf, want, sizeof(want));
    char name[1000];
    memset(name, 'x', sizeof(name));
    name[999] = 0;
    assert_true(pcapng_start(buf, name) <= sizeof(buf));
}

static void a_packet(void **state)
{
    static const uint8_t want_head[PCAPNG_HEAD] = {6, 0, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 8, 7,
                                                   6, 5, 4, 3, 2,  1, 5, 0, 0, 0, 5, 0, 0, 0};
    static const uint8_t want_tail[] = {0, 0, 0, 2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 52, 0, 0, 0};
    uint8_t head[PCAPNG_HEAD], tail[PCAPNG_TAIL_MAX];
    (void)state;
    pcapng_head(head, 0x0506070801020304u, 5, NULL);
    assert_memory_equal(head, want_head, sizeof(head));
    assert_int_equal(pcapng_tail(tail, 5, true, NULL), sizeof(want_tail));
    assert_memory_equal(tail, want_tail, sizeof(want_tail));
    for (uint32_t len = 0; len < 9; len++) {
        pcapng_head(head, 0, len, NULL);
        size_t all = PCAPNG_HEAD + len + pcapng_tail(tail, len, false, NULL);
        assert_int_equal(get_le32(head + 4), all);
        assert_int_equal(all % 4, 0);
    }
}

static void a_comment(void **state)
{
    static const uint8_t want[] = {1, 0, 5, 0, 'h', 'e', 'l', 'l', 'o', 0, 0, 0};
    uint8_t head[PCAPNG_HEAD], tail[PCAPNG_TAIL_MAX];
    char longest[2 * PCAPNG_COMMENT];
    (void)state;
    pcapng_tail(tail, 4, true, "hello");
    assert_memory_equal(tail, want, sizeof(want));
    memset(longest, 'x', sizeof(longest));
    for (uint32_t len = 0; len < 9; len++)
        for (size_t bytes = 0; bytes < sizeof(longest); bytes++) {
            const char *comment = longest + sizeof(longest) - 1 - bytes;
            longest[sizeof(longest) - 1] = '\0';
            pcapng_head(head, 0, len, comment);
            size_t behind = pcapng_tail(tail, len, false, comment);
            assert_true(behind <= sizeof(tail));
            assert_int_equal(get_le32(head + 4), PCAPNG_HEAD + len + behind);
            assert_int_equal(get_le32(tail + behind - 4), PCAPNG_HEAD + len + behind);
        }
}

static uint16_t sum_of(uint32_t sum, const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/** A right checksum makes the sum of all 0xffff (RFC 1071). */
static void checksums(void **state)
{
    static uint8_t data[65475];
    static const uint32_t lengths[] = {0, 1, 2, 3, 1448, 65475};
    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7 + 1);
    for (int ipv6 = 0; ipv6 < 2; ipv6++)
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            struct tcp_ip h = {.ipv6 = ipv6,
                               .src = {10, 0, 0, 1, 5, 6, 7, 8},
                               .dst = {192, 168, 255, 254, 9},
                               .sport = 0x1234,
                               .dport = 0xfedc,
                               .seq = 0xfffffff0,
                               .ack = 17,
                               .flags = TCP_FLAG_ACK};
            uint8_t buf[PCAPNG_TCP_IP_MAX];
            size_t n = tcp_ip_encode(buf, &h, data, lengths[i]), ip = n - 20;
            assert_int_equal(ip, ipv6 ? 40 : 20);
            assert_int_equal(buf[0] >> 4, ipv6 ? 6 : 4);
            assert_int_equal(get_be16(buf + (ipv6 ? 4 : 2)), lengths[i] + (ipv6 ? 20 : 40));
            if (!ipv6)
                assert_int_equal(sum_of(0, buf, 20), 0xffff);
            uint32_t sum = 6 + 20 + lengths[i];
            sum = sum_of(sum, h.src, ipv6 ? 16 : 4);
            sum = sum_of(sum, h.dst, ipv6 ? 16 : 4);
            sum = sum_of(sum, buf + ip, 20);
            assert_int_equal(sum_of(sum, data, lengths[i]), 0xffff);
            assert_int_equal(get_be16(buf + ip), 0x1234);
            assert_int_equal(get_be32(buf + ip + 4), 0xfffffff0);
            assert_int_equal(get_be32(buf + ip + 8), 17);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_start),
        cmocka_unit_test(a_packet),
        cmocka_unit_test(a_comment),
        cmocka_unit_test(checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
