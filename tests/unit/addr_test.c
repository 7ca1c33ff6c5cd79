/* SPDX-License-Identifier: BSD-2-Clause */
/* Lengths, ports, bytes and texts of addresses, in both families and in none. */
#include "common/addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct sockaddr_storage address(sa_family_t family, const char *text, uint16_t port)
{
    struct sockaddr_storage addr = {.ss_family = family};
    struct sockaddr_in *four = (struct sockaddr_in *)&addr;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&addr;
    if (family == AF_INET) {
        four->sin_port = htons(port);
        assert_int_equal(inet_pton(family, text, &four->sin_addr), 1);
    } else if (family == AF_INET6) {
        six->sin6_port = htons(port);
        assert_int_equal(inet_pton(family, text, &six->sin6_addr), 1);
    }
    return addr;
}

static const struct {
    sa_family_t family;
    const char *ip;
    socklen_t len;
    const char *text; /* with port 7 */
    uint8_t bytes[16], six[16];
} rows[] = {
    {AF_INET,
     "192.0.2.1",
     sizeof(struct sockaddr_in),
     "192.0.2.1:7",
     {192, 0, 2, 1},
     {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1}},
    {AF_INET6,
     "2001:db8::9",
     sizeof(struct sockaddr_in6),
     "[2001:db8::9]:7",
     {0x20, 1, 0xd, 0xb8, [15] = 9},
     {0x20, 1, 0xd, 0xb8, [15] = 9}},
};

static void two_families(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sockaddr_storage addr = address(rows[i].family, rows[i].ip, 7), eight;
        struct sockaddr *a = (struct sockaddr *)&addr;
        char text[ADDR_TEXT_MAX];
        uint8_t ip[16] = {0};
        assert_int_equal(addr_len(a), rows[i].len);
        assert_int_equal(addr_port(a), 7);
        addr_ip(a, ip);
        assert_memory_equal(ip, rows[i].bytes, sizeof(ip));
        addr_ip6(a, ip);
        assert_memory_equal(ip, rows[i].six, sizeof(ip));
        addr_text(&addr, text);
        assert_string_equal(text, rows[i].text);
        addr_set_port(a, 258);
        assert_int_equal(addr_port(a), 258);
        eight = address(rows[i].family, rows[i].ip, 258); /* nothing else has changed */
        assert_memory_equal(&addr, &eight, sizeof(addr));
    }
}

static void no_family(void **state)
{
    struct sockaddr_storage addr = address(AF_UNSPEC, "", 0);
    struct sockaddr *a = (struct sockaddr *)&addr;
    uint8_t ip[16] = {1, 2, 3};
    const uint8_t before[16] = {1, 2, 3}, zeros[16] = {0};
    (void)state;
    ((struct sockaddr_in *)&addr)->sin_port = htons(7);
    assert_int_equal(addr_len(a), 0);
    assert_int_equal(addr_port(a), 0);
    addr_ip(a, ip);
    assert_memory_equal(ip, before, sizeof(ip));
    addr_ip6(a, ip);
    assert_memory_equal(ip, zeros, sizeof(ip));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_families),
        cmocka_unit_test(no_family),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
