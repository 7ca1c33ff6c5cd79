/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_pingpong poll|block BYTES: a message there and back over plain TCP, both ends busy-polling or
 * sleeping in recv(). Prints half of the round trip.
 */
#include "kit.h"
#include "tcp.h"

#include <stdio.h>
#include <string.h>

struct test {
    int listener;
    size_t bytes;
    bool poll;
};

static void serve(void *arg)
{
    const struct test *t = arg;
    void *buf = kit_pages(t->bytes);
    int fd = tcp_accept(t->listener);
    while (tcp_recv(fd, buf, t->bytes, t->poll) && tcp_send(fd, buf, t->bytes, t->poll))
        ;
}

static void round_trips(const struct test *t, int fd, struct kit_trips *trips, uint64_t ns)
{
    void *buf = kit_pages(t->bytes);
    uint64_t start = kit_ns(), before = start, now = start;
    while (now - start < ns) {
        KIT_CHECK(tcp_send(fd, buf, t->bytes, t->poll));
        KIT_CHECK(tcp_recv(fd, buf, t->bytes, t->poll));
        now = kit_ns();
        kit_trips_add(trips, now - before);
        before = now;
    }
}

int main(int argc, char **argv)
{
    struct kit_trips trips;
    struct sockaddr_in at;
    if (argc != 3 || (strcmp(argv[1], "poll") != 0 && strcmp(argv[1], "block") != 0)) {
        fprintf(stderr, "usage: raw_pingpong poll|block BYTES\n");
        return 2;
    }
    struct test t = {
        .listener = tcp_listen(&at),
        .bytes = kit_number(argv[2]),
        .poll = argv[1][0] == 'p',
    };
    kit_start(serve, &t);
    kit_trips_init(&trips);
    int fd = tcp_connect(&at);
    round_trips(&t, fd, &trips, kit_duration() / 5);
    trips.n = 0;
    round_trips(&t, fd, &trips, kit_duration());
    kit_trips_print(&trips);
    return 0;
}
