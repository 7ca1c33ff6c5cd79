/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_stream [poll] BYTES [BATCH]: messages one way over plain TCP, BATCH of them in each send();
 * the receiver takes up to 256 KB a recv(), in which it sleeps, or busy-polls. Prints bandwidth and
 * message rate, of what was received.
 */
#include "kit.h"
#include "tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct test {
    int listener;
    bool poll;
};

static void serve(void *arg)
{
    const struct test *t = arg;
    void *buf = kit_pages(KIT_BULK_RECV);
    int fd = tcp_accept(t->listener);
    ssize_t n;
    do
        n = recv(fd, buf, KIT_BULK_RECV, t->poll ? MSG_DONTWAIT : 0);
    while (n > 0 || (n < 0 && errno == EAGAIN));
    KIT_CHECK(n == 0);
}

/** @return calls of send() */
static uint64_t stream(int fd, const void *buf, size_t len, uint64_t ns)
{
    uint64_t calls = 0, start = kit_ns();
    do {
        for (int i = 0; i < 16; i++, calls++)
            KIT_CHECK(tcp_send(fd, buf, len, false));
    } while (kit_ns() - start < ns);
    return calls;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at;
    struct test t = {.poll = argc > 1 && strcmp(argv[1], "poll") == 0};
    argc -= t.poll;
    argv += t.poll;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: raw_stream [poll] BYTES [BATCH]\n");
        return 2;
    }
    size_t bytes = kit_number(argv[1]);
    size_t batch = argc == 3 ? kit_number(argv[2]) : 1;
    t.listener = tcp_listen(&at);
    kit_start(serve, &t);
    int fd = tcp_connect(&at);
    void *buf = kit_pages(bytes * batch);
    stream(fd, buf, bytes * batch, kit_duration() / 5);
    tcp_wait_sent(fd);

    uint64_t start = kit_ns();
    uint64_t messages = stream(fd, buf, bytes * batch, kit_duration()) * batch;
    tcp_finish(fd);
    double ns = (double)(kit_ns() - start);
    printf("bw %.6f GB/s\n", (double)(messages * bytes) / ns);
    printf("rate %.6f M/s\n", (double)messages / ns * 1e3);
    return 0;
}
