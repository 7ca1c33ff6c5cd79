/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/vouch.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct sockaddr_storage four(uint32_t ip, uint16_t port)
{
    struct sockaddr_storage addr = {.ss_family = AF_INET};
    ((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(ip);
    ((struct sockaddr_in *)&addr)->sin_port = htons(port);
    return addr;
}

static struct sockaddr_storage six(uint8_t last, uint16_t port)
{
    struct sockaddr_storage addr = {.ss_family = AF_INET6};
    ((struct sockaddr_in6 *)&addr)->sin6_addr.s6_addr[15] = last;
    ((struct sockaddr_in6 *)&addr)->sin6_port = htons(port);
    return addr;
}

/** A token is that of one process: not of its neighbour's port, nor of another host's. */
static void of_one_process(void **state)
{
    struct sockaddr_storage p = four(0x7f000001, 5000), port = four(0x7f000001, 5001),
                            host = four(0x7f000002, 5000), v6 = six(1, 5000);
    (void)state;
    iw_vouch_given(&p, 11);
    assert_true(iw_vouch_is_given(&p, 11));
    assert_false(iw_vouch_is_given(&p, 12));
    assert_false(iw_vouch_is_given(&port, 11));
    assert_false(iw_vouch_is_given(&host, 11));
    iw_vouch_given(&v6, 13);
    assert_true(iw_vouch_is_given(&v6, 13));
    iw_vouch_given(&p, 14); /* the port is another process's now */
    assert_false(iw_vouch_is_given(&p, 11));
    assert_true(iw_vouch_is_given(&p, 14));
}

/** None is no token that could be shown. */
static void none(void **state)
{
    struct sockaddr_storage p = four(0x0a000001, 1);
    (void)state;
    assert_false(iw_vouch_is_given(&p, 0));
    iw_vouch_given(&p, 0);
    assert_false(iw_vouch_is_given(&p, 0));
    assert_int_equal(iw_vouch_token(&p), 0);
    iw_vouch_got(&p, 7);
    assert_int_equal(iw_vouch_token(&p), 7);
    assert_false(iw_vouch_is_given(&p, 7)); /* what we got is not what we gave */
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    for (uint32_t i = 0; i <= IW_VOUCH_MAX; i++) {
        struct sockaddr_storage p = four(0x0b000000 + i, 2);
        iw_vouch_got(&p, 100 + i);
    }
    struct sockaddr_storage first = four(0x0b000000, 2), last = four(0x0b000000 + IW_VOUCH_MAX, 2);
    assert_int_equal(iw_vouch_token(&first), 0);
    assert_int_equal(iw_vouch_token(&last), 100 + IW_VOUCH_MAX);
}

static void drawn(void **state)
{
    uint64_t token = iw_vouch_draw();
    (void)state;
    assert_true(token && token != iw_vouch_draw());
}

static void nothing_after_fork(void **state)
{
    struct sockaddr_storage p = four(0x0c000001, 3);
    (void)state;
    iw_vouch_given(&p, 5);
    iw_vouch_fork(FORK_PREPARE);
    iw_vouch_fork(FORK_CHILD);
    assert_false(iw_vouch_is_given(&p, 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_one_process),        cmocka_unit_test(none),
        cmocka_unit_test(the_oldest_makes_room), cmocka_unit_test(drawn),
        cmocka_unit_test(nothing_after_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
