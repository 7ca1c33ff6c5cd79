/* SPDX-License-Identifier: BSD-2-Clause */
/* TCP sockets of the raw baseline, on 127.0.0.1. */
#ifndef ANYWARP_BENCH_TCP_H
#define ANYWARP_BENCH_TCP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/** A listening socket; @p at gets its address. */
int tcp_listen(struct sockaddr_in *at);
/** A connection, with TCP_NODELAY and the congestion control that was asked for. */
int tcp_connect(const struct sockaddr_in *to);
int tcp_accept(int listener);

/** All of it. @p poll: never sleeps. @return false at the end of the stream */
bool tcp_send(int fd, const void *from, size_t len, bool poll);
bool tcp_recv(int fd, void *to, size_t len, bool poll);

/** Waits until the peer's TCP has all that was sent. */
void tcp_wait_sent(int fd);
/** Ends the stream to the peer, and waits until it has received all, and ends its own. */
void tcp_finish(int fd);

#endif
