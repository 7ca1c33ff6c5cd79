/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of sockets that cancels its threads, at once and at whatever point they are, as iperf3
 * does; for rspreload.sh. Its connections go on and are closed as if the threads had returned.
 */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS  20
#define LIMIT_S 100

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s, %s\n", __FILE__, __LINE__, #what, strerror(errno));        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int listener, ends[2];
static struct sockaddr_in address;
static atomic_int began, received, late;

static void *call(void *unused)
{
    CHECK((ends[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(connect(ends[0], (struct sockaddr *)&address, sizeof(address)) == 0);
    return unused;
}

static void open_ends(void)
{
    pthread_t caller;
    CHECK(pthread_create(&caller, NULL, call, NULL) == 0);
    CHECK((ends[1] = accept(listener, NULL, NULL)) >= 0);
    CHECK(pthread_join(caller, NULL) == 0);
}

/** A byte goes each way. */
static void close_ends(void)
{
    char c = 'x';
    for (int i = 0; i < 2; i++) {
        CHECK(send(ends[i], &c, 1, 0) == 1);
        CHECK(recv(ends[!i], &c, 1, 0) == 1);
    }
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void begin(int type)
{
    CHECK(pthread_setcanceltype(type, NULL) == 0);
    atomic_fetch_add(&began, 1);
}

static void *receive_at_once(void *fd)
{
    char bytes[4096];
    begin(PTHREAD_CANCEL_ASYNCHRONOUS);
    while (recv(*(int *)fd, bytes, sizeof(bytes), 0) > 0)
        atomic_fetch_add(&received, 1);
    return NULL;
}

static void *receive(void *fd)
{
    char bytes[4096];
    begin(PTHREAD_CANCEL_DEFERRED);
    while (recv(*(int *)fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

static void *transmit_at_once(void *fd)
{
    static const char bytes[4096];
    begin(PTHREAD_CANCEL_ASYNCHRONOUS);
    while (send(*(int *)fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

/** Is cancelled before its first call. */
static void *come_late(void *fd)
{
    begin(PTHREAD_CANCEL_DEFERRED);
    while (!atomic_load(&late))
        ;
    return receive(fd);
}

/** Waits for a byte whoever cancels it. */
static void *stay(void *fd)
{
    char c;
    int state;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state) == 0);
    begin(PTHREAD_CANCEL_DEFERRED);
    CHECK(recv(*(int *)fd, &c, 1, 0) == 1);
    return &ends;
}

static pthread_t thread_of(void *(*body)(void *), int *fd)
{
    pthread_t thread;
    int before = atomic_load(&began);
    CHECK(pthread_create(&thread, NULL, body, fd) == 0);
    while (atomic_load(&began) == before)
        usleep(1000);
    return thread;
}

static void end(pthread_t thread)
{
    void *result;
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
}

static void who_waits(void *(*body)(void *))
{
    open_ends();
    pthread_t thread = thread_of(body, &ends[1]);
    usleep(20000);
    end(thread);
    close_ends();
}

/** Both are cancelled in the middle; what was not received is in the way of no other connection. */
static void who_works(unsigned round)
{
    open_ends();
    int before = atomic_load(&received);
    pthread_t receiver = thread_of(receive_at_once, &ends[1]),
              sender = thread_of(transmit_at_once, &ends[0]);
    while (atomic_load(&received) == before)
        usleep(100);
    usleep(round * 137);
    end(round % 2 ? receiver : sender);
    end(round % 2 ? sender : receiver);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void who_comes_late(void)
{
    void *result;
    open_ends();
    pthread_t thread = thread_of(come_late, &ends[1]);
    CHECK(pthread_cancel(thread) == 0);
    atomic_store(&late, 1);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    close_ends();
}

static void who_does_not_want_to(void)
{
    void *result;
    open_ends();
    pthread_t thread = thread_of(stay, &ends[1]);
    usleep(20000);
    CHECK(pthread_cancel(thread) == 0);
    usleep(20000);
    CHECK(send(ends[0], "x", 1, 0) == 1);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == &ends);
    close_ends();
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    alarm(LIMIT_S);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(listener, 1) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        who_waits(receive_at_once);
        who_waits(receive);
        who_works(round);
    }
    who_comes_late();
    who_does_not_want_to();
    CHECK(close(listener) == 0);
    puts("ok");
    return 0;
}
