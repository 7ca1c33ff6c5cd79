/* SPDX-License-Identifier: BSD-2-Clause */
/* IP addresses, and which of ours leads to a peer: both families, side by side. */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** "192.0.2.1", "2001:db8::1", "fe80::1%3"; "" is of no family. */
static struct sockaddr *address(const char *text, uint16_t port)
{
    static struct sockaddr_storage storage[4];
    static unsigned next;
    struct sockaddr_storage *at = &storage[next++ % 4];
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    char plain[64];
    memset(at, 0, sizeof *at);
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(text, "%"), text);
    if (strchr(text, '%'))
        in6.sin6_scope_id = (uint32_t)atoi(strchr(text, '%') + 1);
    if (inet_pton(AF_INET, plain, &in.sin_addr) == 1)
        memcpy(at, &in, sizeof in);
    else if (inet_pton(AF_INET6, plain, &in6.sin6_addr) == 1)
        memcpy(at, &in6, sizeof in6);
    else
        at->ss_family = AF_UNIX;
    return (struct sockaddr *)at;
}

static void expect(const struct sockaddr_storage *got, const char *text, uint16_t port)
{
    assert_memory_equal(got, address(text, port), sizeof *got);
}

static void facts(void **state)
{
    static const struct {
        const char *text;
        bool any, lacks_scope;
    } rows[] = {
        {"192.0.2.1", false, false},   {"0.0.0.0", true, false}, {"::", true, false},
        {"2001:db8::1", false, false}, {"fe80::1", false, true}, {"fe80::1%3", false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sockaddr *a = address(rows[i].text, 7);
        assert_int_equal(cma_addr_any(a), rows[i].any);
        assert_int_equal(cma_addr_lacks_scope(a), rows[i].lacks_scope);
    }
}

static void same_but_for_the_port(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"192.0.2.1", "192.0.2.1", true},     {"192.0.2.1", "192.0.2.2", false},
        {"2001:db8::1", "2001:db8::1", true}, {"2001:db8::1", "2001:db8::2", false},
        {"fe80::1%3", "fe80::1%3", true},     {"fe80::1%3", "fe80::1%4", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(cma_addr_same(address(rows[i].a, 1), address(rows[i].b, 2)), rows[i].same);
}

/* Copying zeroes the rest, also over itself. */
static void copies(void **state)
{
    struct sockaddr_storage to;
    (void)state;
    memset(&to, 0xee, sizeof to);
    cma_addr_copy(&to, address("192.0.2.1", 5));
    expect(&to, "192.0.2.1", 5);
    cma_addr_copy(&to, (struct sockaddr *)&to);
    expect(&to, "192.0.2.1", 5);
    cma_addr_wildcard(AF_INET6, &to);
    expect(&to, "::", 0);
}

static void mapped_addresses_are_what_they_mean(void **state)
{
    static const char *const rows[][2] = {
        {"::ffff:192.0.2.7", "192.0.2.7"},
        {"2001:db8::1", "2001:db8::1"},
        {"::1", "::1"},
        {"192.0.2.7", "192.0.2.7"},
    };
    struct sockaddr_storage a;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cma_addr_copy(&a, address(rows[i][0], 9));
        cma_addr_unmap(&a);
        expect(&a, rows[i][1], 9);
    }
}

static void destinations(void **state)
{
    static const struct {
        const char *dst, *src, *complete; /* NULL: the link is not known */
    } rows[] = {
        {"0.0.0.0", "0.0.0.0", "127.0.0.1"},
        {"::", "::", "::1"},
        {"192.0.2.1", "0.0.0.0", "192.0.2.1"},
        {"2001:db8::1", "::", "2001:db8::1"},
        {"fe80::1", "fe80::2%3", "fe80::1%3"},
        {"fe80::1%4", "fe80::2%3", "fe80::1%4"},
        {"fe80::1", "::", NULL},
    };
    struct sockaddr_storage dst;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cma_addr_copy(&dst, address(rows[i].dst, 9));
        int r = cma_addr_complete(&dst, address(rows[i].src, 0));
        assert_int_equal(r, rows[i].complete ? 0 : -EINVAL);
        if (r == 0)
            expect(&dst, rows[i].complete, 9);
    }
}

static void sources(void **state)
{
    struct sockaddr_storage from;
    (void)state;
    assert_int_equal(cma_route_source(address("0.0.0.0", 4791), address("127.0.0.1", 7), &from), 0);
    expect(&from, "127.0.0.1", 4791); /* the port of the source is kept */
    assert_int_equal(cma_route_source(address("127.0.0.3", 0), address("127.0.0.1", 7), &from), 0);
    expect(&from, "127.0.0.3", 0);
    memset(&from, 0xee, sizeof from);
    const struct sockaddr_storage before = from;
    assert_int_equal(cma_route_source(address("192.0.2.1", 0), address("127.0.0.1", 7), &from),
                     -EADDRNOTAVAIL); /* of no interface: TEST-NET-1 */
    assert_int_equal(cma_route_source(address("127.0.0.1", 0), address("", 7), &from), -EINVAL);
    assert_memory_equal(&from, &before, sizeof from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts),        cmocka_unit_test(same_but_for_the_port),
        cmocka_unit_test(copies),       cmocka_unit_test(mapped_addresses_are_what_they_mean),
        cmocka_unit_test(destinations), cmocka_unit_test(sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
