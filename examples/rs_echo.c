/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An echo server for any number of clients, and its client, over rsockets: the calls of sockets
 * with an r in front, and no word of verbs. rdma_cm of rdma-core 64 or later has repoll.
 *
 *     cc rs_echo.c $(pkg-config --cflags --libs librdmacm) -o rs_echo
 *     rs_echo [-p PORT] [-c CLIENTS]        the server; it ends when CLIENTS have left
 *     rs_echo [-p PORT] HOST WORD...        the client: sends each word, prints what comes back
 *
 * A client that does not read its echo holds up the others: rsend() waits, as send() would.
 */
#include <rdma/rsocket.h>

#include <err.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BYTES 65536

static struct addrinfo *address(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_flags = host ? 0 : AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *info;
    int r = getaddrinfo(host, port, &hints, &info);
    if (r)
        errx(1, "%s, port %s: %s", host ? host : "any address", port, gai_strerror(r));
    return info;
}

static int send_all(int s, const char *bytes, size_t len)
{
    for (ssize_t n; len; bytes += n, len -= (size_t)n)
        if ((n = rsend(s, bytes, len, 0)) < 0)
            return 0;
    return 1;
}

static void client(const char *port, const char *host, char **words)
{
    char answer[BYTES];
    struct addrinfo *info = address(host, port);
    int s = rsocket(info->ai_family, SOCK_STREAM, 0);
    if (s < 0 || rconnect(s, info->ai_addr, info->ai_addrlen))
        err(1, "%s, port %s", host, port);
    for (; *words; words++) {
        size_t len = strnlen(*words, sizeof(answer));
        if (!send_all(s, *words, len) || rrecv(s, answer, len, MSG_WAITALL) != (ssize_t)len)
            errx(1, "the server has left");
        printf("%.*s\n", (int)len, answer);
    }
    rclose(s);
    freeaddrinfo(info);
}

/** Sends back what has come. @return 0 if the client has left */
static int echo(int s)
{
    char bytes[BYTES];
    ssize_t n = rrecv(s, bytes, sizeof(bytes), MSG_DONTWAIT);
    return n < 0 ? errno == EWOULDBLOCK : n > 0 && send_all(s, bytes, (size_t)n);
}

static void server(const char *port, unsigned long clients)
{
    struct addrinfo *all = address(NULL, port), *info = all;
    while (info->ai_next) /* the last is "::", which is 0.0.0.0 as well */
        info = info->ai_next;
    int set = repoll_create(0), listener = rsocket(info->ai_family, SOCK_STREAM, 0);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = listener};
    if (set < 0 || listener < 0 || rbind(listener, info->ai_addr, info->ai_addrlen) ||
        rlisten(listener, 64) || repoll_ctl(set, EPOLL_CTL_ADD, listener, &ev))
        err(1, "port %s", port);
    for (unsigned long left = 0; !clients || left < clients;) {
        if (repoll_wait(set, &ev, 1, -1) != 1)
            err(1, "repoll_wait");
        int s = ev.data.fd;
        if (s == listener) {
            ev.data.fd = raccept(listener, NULL, NULL);
            if (ev.data.fd >= 0 && repoll_ctl(set, EPOLL_CTL_ADD, ev.data.fd, &ev))
                err(1, "repoll_ctl");
        } else if (!echo(s)) {
            repoll_ctl(set, EPOLL_CTL_DEL, s, NULL);
            rclose(s);
            left++;
        }
    }
    rclose(listener);
    rclose(set);
    freeaddrinfo(all);
}

int main(int argc, char **argv)
{
    const char *port = "7471";
    unsigned long clients = 0;
    for (int o; (o = getopt(argc, argv, "p:c:")) != -1;) {
        if (o == '?') {
            fputs("usage: rs_echo [-p port] [-c clients], or rs_echo [-p port] host word...\n",
                  stderr);
            return 2;
        }
        if (o == 'p')
            port = optarg;
        else
            clients = strtoul(optarg, NULL, 10);
    }
    if (optind < argc)
        client(port, argv[optind], argv + optind + 1);
    else
        server(port, clients);
    return 0;
}
