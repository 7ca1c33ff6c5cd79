/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_connect: connections over plain TCP one after another: connect, a request of 20 bytes, a
 * reply of 20 bytes, close. Prints how many a second.
 */
#include "kit.h"
#include "tcp.h"

#include <stdio.h>
#include <unistd.h>

#define MESSAGE 20

static void serve(void *arg)
{
    char buf[MESSAGE], end;
    for (;;) {
        int fd = tcp_accept(*(int *)arg);
        KIT_CHECK(tcp_recv(fd, buf, sizeof(buf), false));
        KIT_CHECK(tcp_send(fd, buf, sizeof(buf), false));
        KIT_CHECK(!tcp_recv(fd, &end, 1, false));
        close(fd);
    }
}

int main(void)
{
    struct sockaddr_in at;
    char buf[MESSAGE] = "";
    int listener = tcp_listen(&at);
    kit_start(serve, &listener);
    uint64_t n = 0, now, start = kit_ns();
    do {
        int fd = tcp_connect(&at);
        KIT_CHECK(tcp_send(fd, buf, sizeof(buf), false));
        KIT_CHECK(tcp_recv(fd, buf, sizeof(buf), false));
        close(fd);
        n++;
        now = kit_ns();
    } while (now - start < kit_duration());
    printf("rate %.4f k/s\n", (double)n / (double)(now - start) * 1e6);
    return 0;
}
