/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/header.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct iw_ud_header header = {
    .has_imm = true,
    .solicited = true,
    .traffic_class = 0x68,
    .hop_limit = 64,
    .to = 0x8a2501,
    .from = 0xfffffe,
    .qkey = 0x11223344,
    .imm = 0x01020304,
    .flow_label = 0xabcde,
};

static const struct in6_addr ipv4_from = {.s6_addr = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
                             ipv4_to = {.s6_addr = {[10] = 0xff, 0xff, 198, 51, 100, 2}},
                             ipv6_from = {.s6_addr = {0xfd, [15] = 1}},
                             ipv6_to = {.s6_addr = {0xfe, 0x80, [15] = 2}};

static void there_and_back(void **state)
{
    uint8_t bytes[IW_UD_HEADER], again[IW_UD_HEADER];
    struct iw_ud_header h;
    (void)state;
    iw_ud_header_encode(bytes, &header);
    assert_true(iw_ud_header_decode(bytes, sizeof(bytes), &h));
    assert_true(h.has_imm && h.solicited);
    assert_int_equal(h.traffic_class, header.traffic_class);
    assert_int_equal(h.hop_limit, header.hop_limit);
    assert_int_equal(h.to, header.to);
    assert_int_equal(h.from, header.from);
    assert_int_equal(h.qkey, header.qkey);
    assert_int_equal(h.imm, header.imm);
    assert_int_equal(h.flow_label, header.flow_label);
    iw_ud_header_encode(again, &h);
    assert_memory_equal(again, bytes, sizeof(bytes));
    assert_true(iw_ud_header_decode(bytes, sizeof(bytes) + 1, &h)); /* a payload follows */
}

/** The bytes on the wire, which another release must read. */
static void layout(void **state)
{
    static const uint8_t want[IW_UD_HEADER] = {
        'A',  'W',  'D',  1,    3,    0x68, 64, 0, 0, 0x8a, 0x25, 1,    0,    0xff,
        0xff, 0xfe, 0x11, 0x22, 0x33, 0x44, 1,  2, 3, 4,    0,    0x0a, 0xbc, 0xde,
    };
    struct iw_ud_header h = header;
    uint8_t bytes[IW_UD_HEADER];
    (void)state;
    memcpy(&h.imm, "\1\2\3\4", 4);
    iw_ud_header_encode(bytes, &h);
    assert_memory_equal(bytes, want, sizeof(want));
}

static void not_one(void **state)
{
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {
        {0, 'B'}, {1, 0},     {2, 0},  /* somebody else's */
        {3, 0},   {3, 2},              /* another version */
        {4, 4},   {4, 0x80},           /* flags that are none */
        {7, 1},   {8, 1},     {12, 1}, /* numbers have 24 bits */
        {24, 1},  {25, 0x1a},          /* flow labels 20 */
    };
    uint8_t bytes[IW_UD_HEADER];
    struct iw_ud_header h;
    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        iw_ud_header_encode(bytes, &header);
        bytes[changes[i].at] = changes[i].value;
        assert_false(iw_ud_header_decode(bytes, sizeof(bytes), &h));
    }
    iw_ud_header_encode(bytes, &header);
    assert_false(iw_ud_header_decode(bytes, sizeof(bytes) - 1, &h));
    assert_false(iw_ud_header_decode(NULL, 0, &h));
}

static void global_route_of_ipv4(void **state)
{
    /* RFC 791, but for the checksum, which makes all words one's complement 0xffff. */
    static const uint8_t want[20] = {0x45, 0x68, 0,   66, 0, 0, 0x40, 0,  64,  17,
                                     0,    0,    192, 0,  2, 1, 198,  51, 100, 2};
    uint8_t grh[IW_UD_GRH];
    struct in6_addr from, to;
    unsigned sum = 0;
    (void)state;
    iw_ud_grh(grh, &header, &ipv4_from, &ipv4_to, 10);
    for (unsigned i = 0; i < IW_UD_IPV4_AT; i++)
        assert_int_equal(grh[i], 0);
    assert_memory_equal(grh + 20, want, 10);
    assert_memory_equal(grh + 32, want + 12, 8);
    for (unsigned i = 20; i < 40; i += 2)
        sum += (unsigned)grh[i] << 8 | grh[i + 1];
    assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
    assert_true(iw_ud_grh_is_ipv4(grh));
    iw_ud_grh_addresses(grh, &from, &to);
    assert_memory_equal(&from, &ipv4_from, sizeof(from));
    assert_memory_equal(&to, &ipv4_to, sizeof(to));
}

static void global_route_of_ipv6(void **state)
{
    uint8_t grh[IW_UD_GRH];
    struct in6_addr from, to;
    (void)state;
    iw_ud_grh(grh, &header, &ipv6_from, &ipv6_to, 10);
    assert_memory_equal(grh, "\x66\x8a\xbc\xde\0\x2e\x11\x40", 8);
    assert_false(iw_ud_grh_is_ipv4(grh));
    iw_ud_grh_addresses(grh, &from, &to);
    assert_memory_equal(&from, &ipv6_from, sizeof(from));
    assert_memory_equal(&to, &ipv6_to, sizeof(to));
    iw_ud_grh(grh, &header, &ipv4_from, &ipv6_to, 0); /* of two kinds: as they are */
    assert_int_equal(grh[0] >> 4, 6);
}

/** Others may leave the first byte empty: the addresses are where InfiniBand has them. */
static void global_route_of_no_version(void **state)
{
    uint8_t grh[IW_UD_GRH] = {0};
    struct in6_addr from, to;
    (void)state;
    memcpy(grh + 8, &ipv6_from, sizeof(from));
    memcpy(grh + 24, &ipv6_to, sizeof(to));
    iw_ud_grh_addresses(grh, &from, &to);
    assert_memory_equal(&from, &ipv6_from, sizeof(from));
    assert_memory_equal(&to, &ipv6_to, sizeof(to));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(layout),
        cmocka_unit_test(not_one),
        cmocka_unit_test(global_route_of_ipv4),
        cmocka_unit_test(global_route_of_ipv6),
        cmocka_unit_test(global_route_of_no_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
