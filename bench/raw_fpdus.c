/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_fpdus BYTES: messages one way over plain TCP, in the segments that iWARP makes of them: a
 * header and a trailer around at most 64,752 bytes each. The receiver busy-polls, takes a segment a
 * call to its place in the message, and the next header with it. Nothing is looked at. Prints the
 * bandwidth.
 */
#include "kit.h"
#include "tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SEGMENT 64752u /* bytes of a message, at most */
#define HEADER  16u
#define TRAILER 4u
#define AROUND  (HEADER + TRAILER)

struct test {
    int listener;
    size_t bytes;
};

static uint8_t around[AROUND];

static size_t part(size_t bytes, size_t at)
{
    return bytes - at < SEGMENT ? bytes - at : SEGMENT;
}

/** Moves on by @p n bytes in a list of which @p k entries are left. @return the first of those */
static struct iovec *skip(struct iovec *v, size_t *k, size_t n)
{
    for (; *k && n >= v->iov_len; v++, --*k)
        n -= v->iov_len;
    if (*k) {
        v->iov_base = (uint8_t *)v->iov_base + n;
        v->iov_len -= n;
    }
    return v;
}

static void serve(void *arg)
{
    const struct test *t = arg;
    uint8_t *message = kit_pages(t->bytes);
    int fd = tcp_accept(t->listener);
    ssize_t n = recv(fd, around, HEADER, MSG_WAITALL);
    for (size_t at = 0, len; n > 0; at = (at + len) % t->bytes) {
        len = part(t->bytes, at);
        struct iovec list[] = {{message + at, len}, {around, AROUND}}, *v = list;
        size_t k = 2;
        do {
            n = recvmsg(fd, &(struct msghdr){.msg_iov = v, .msg_iovlen = k}, MSG_DONTWAIT);
            KIT_CHECK(n >= 0 || errno == EAGAIN);
            if (n > 0)
                v = skip(v, &k, (size_t)n);
        } while (k && n != 0);
    }
}

static void send_message(int fd, uint8_t *message, size_t bytes, struct iovec *list)
{
    struct iovec *v = list;
    size_t k = 0;
    for (size_t at = 0; at < bytes; at += part(bytes, at)) {
        list[k++] = (struct iovec){around, HEADER};
        list[k++] = (struct iovec){message + at, part(bytes, at)};
        list[k++] = (struct iovec){around + HEADER, TRAILER};
    }
    while (k) {
        ssize_t n = sendmsg(fd, &(struct msghdr){.msg_iov = v, .msg_iovlen = k}, MSG_NOSIGNAL);
        KIT_CHECK(n > 0);
        v = skip(v, &k, (size_t)n);
    }
}

static uint64_t stream(int fd, const struct test *t, uint8_t *message, struct iovec *list,
                       uint64_t ns)
{
    uint64_t messages = 0, start = kit_ns();
    for (; kit_ns() - start < ns; messages++)
        send_message(fd, message, t->bytes, list);
    return messages;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at;
    if (argc != 2) {
        fprintf(stderr, "usage: raw_fpdus BYTES\n");
        return 2;
    }
    struct test t = {.listener = tcp_listen(&at), .bytes = kit_number(argv[1])};
    kit_start(serve, &t);
    int fd = tcp_connect(&at);
    uint8_t *message = kit_pages(t.bytes);
    struct iovec *list = calloc(t.bytes / SEGMENT + 1, 3 * sizeof(*list));
    KIT_CHECK(list);
    stream(fd, &t, message, list, kit_duration() / 5);
    tcp_wait_sent(fd);

    uint64_t start = kit_ns(), messages = stream(fd, &t, message, list, kit_duration());
    tcp_finish(fd);
    printf("bw %.6f GB/s\n", (double)(messages * t.bytes) / (double)(kit_ns() - start));
    free(list);
    return 0;
}
