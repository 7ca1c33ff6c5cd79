/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of rsockets in one process. What fails, fails the test. */
#ifndef ANYWARP_TESTS_API_RSOCKET_KIT_H
#define ANYWARP_TESTS_API_RSOCKET_KIT_H

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rsocket.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define MUCH    (1 << 20)

#define expect_errno(call, error)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(errno, error);                                                            \
    } while (0)

struct ends {
    int listener, a, b;
};

/** 127.0.0.1, port 0. */
struct sockaddr_in loopback(void);

/** A socket of IPv4. */
int stream(void);

/**
 * A listener at a free port.
 * @param addr      gets its address
 * @param mappings  that a peer may make
 */
int listen_at(struct sockaddr_in *addr, int mappings);

/** Connects a with b, each with room for two mappings. */
void join(struct ends *e);

/** Closes all three. */
void part(const struct ends *e);

/** Waits until rpoll() tells of one of @p events. */
void wait_for(int fd, short events);

/** Body of a thread: sends MUCH bytes to the socket *@p arg and shuts it. @return how many were
 * sent */
void *send_much(void *arg);

#endif
