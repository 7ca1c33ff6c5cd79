/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: what programs know from sockets of TCP. */
#include "rsocket_kit.h"

#include <string.h>
#include <unistd.h>

/* All that has come, whatever was peeked at before, and into however many pieces. */
static void peeking_shows_all(void **unused)
{
    (void)unused;
    struct ends e;
    char text[8] = {0};
    struct iovec in[3] = {{text, 2}, {text + 2, 3}, {text + 5, 3}};
    struct msghdr msg = {.msg_iov = in, .msg_iovlen = 3};
    join(&e);
    assert_int_equal(rsend(e.a, "abc", 3, 0), 3);
    assert_int_equal(rrecv(e.b, text, 1, MSG_PEEK), 1);
    assert_int_equal(rsend(e.a, "defg", 4, 0), 4);
    for (int ms = 0; ms < WAIT_MS && rrecv(e.b, text, 8, MSG_PEEK) < 7; ms++)
        usleep(1000);
    assert_int_equal(rrecv(e.b, text, 8, MSG_PEEK), 7);
    memset(text, 0, sizeof text);
    assert_int_equal(rrecvmsg(e.b, &msg, MSG_PEEK | MSG_WAITALL), 7);
    assert_memory_equal(text, "abcdefg", 8);
    memset(text, 0, sizeof text);
    assert_int_equal(rrecv(e.b, text, 8, 0), 7);
    assert_memory_equal(text, "abcdefg", 8);
    part(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peeking_shows_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
