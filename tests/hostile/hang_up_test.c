/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that hang up first and go on when they see our FIN: by then the program has its event, so
 * that those of what comes next are behind it.
 */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#define ROUNDS  300
#define LIMIT_S 10

/** Busy, so that nothing wakes up between the FIN and the look. @return what recv() says then */
static ssize_t watch_for_fin(int fd)
{
    time_t end = time(NULL) + LIMIT_S;
    ssize_t n;
    char c;
    do
        n = recv(fd, &c, 1, MSG_DONTWAIT);
    while (n < 0 && errno == EAGAIN && time(NULL) < end);
    return n;
}

static void the_event_comes_before_our_fin(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        static struct peer p;
        struct side *v = &p.victim;
        struct peer_seg request;
        bool busy = i % 2; /* the victim has a read under way, which never ends */
        peer_open(&p, &(struct peer_conf){.no_crc = true});
        if (busy) {
            assert_int_equal(side_post(v, v, IBV_WR_RDMA_READ, 1, 0, 8, 8, 0), 0);
            assert_true(peer_next(&p, &request));
        }
        struct pollfd events = {.fd = v->events->fd, .events = POLLIN};
        assert_int_equal(poll(&events, 1, 0), 0);
        assert_int_equal(shutdown(p.fd, SHUT_WR), 0);
        ssize_t n = watch_for_fin(p.fd);
        int told = poll(&events, 1, 0);
        assert_int_equal(n, 0);
        assert_int_equal(told, 1);
        if (busy)
            assert_int_equal(side_poll(v).status, IBV_WC_WR_FLUSH_ERR);
        side_event(v, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_event_comes_before_our_fin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
