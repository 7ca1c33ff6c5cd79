/* SPDX-License-Identifier: BSD-2-Clause */
/* Event channels: the descriptor, several readers, signals, cancellation, destruction. */
#include "cm_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#define READERS 4
#define EVENTS  64
#define ROUNDS  200

static struct rdma_event_channel *open_channel(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    assert_non_null(channel);
    return channel;
}

/** A new id with an event in the channel. */
static struct rdma_cm_id *new_event(struct rdma_event_channel *channel)
{
    struct sockaddr_storage to;
    struct rdma_cm_id *id;
    cm_address(&to, "127.0.0.1", htons(9));
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000), 0);
    return id;
}

static int readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0);
}

static void set_nonblocking(const struct rdma_event_channel *channel, bool on)
{
    int flags = fcntl(channel->fd, F_GETFL);
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    assert_int_equal(fcntl(channel->fd, F_SETFL, flags), 0);
}

static void expect_none(struct rdma_event_channel *channel)
{
    struct rdma_cm_event *ev;
    set_nonblocking(channel, true);
    errno = 0;
    assert_int_equal(rdma_get_cm_event(channel, &ev), -1);
    assert_int_equal(errno, EAGAIN);
    set_nonblocking(channel, false);
}

/* ---- the descriptor ---- */

static int watch(int fd, uint32_t events)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ev = {.events = events};
    assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev), 0);
    return set;
}

static int ready(int set)
{
    struct epoll_event ev;
    return epoll_wait(set, &ev, 1, 0);
}

static void readable_while_an_event_waits(void **state)
{
    struct rdma_event_channel *channel = open_channel();
    int level = watch(channel->fd, EPOLLIN), edge = watch(channel->fd, EPOLLIN | EPOLLET);
    (void)state;
    assert_true(fcntl(channel->fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(readable(channel->fd), 0);
    assert_int_equal(ready(level) + ready(edge), 0);
    struct rdma_cm_id *a = new_event(channel);
    assert_int_equal(ready(edge), 1);
    assert_int_equal(ready(edge), 0);
    struct rdma_cm_id *b = new_event(channel);
    assert_int_equal(ready(edge), 1); /* once an event, though none was taken */
    assert_int_equal(ready(edge), 0);
    for (int left = 2; left > 0; left--) {
        assert_int_equal(readable(channel->fd), 1);
        assert_int_equal(ready(level), 1);
        assert_int_equal(cm_expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    }
    assert_int_equal(readable(channel->fd), 0);
    assert_int_equal(ready(level) + ready(edge), 0);
    expect_none(channel);
    assert_int_equal(rdma_resolve_route(a, 1000), 0);
    assert_int_equal(ready(edge), 1);
    rdma_destroy_id(a); /* its event goes with it */
    assert_int_equal(readable(channel->fd), 0);
    assert_int_equal(ready(level), 0);
    rdma_destroy_id(b);
    close(level);
    close(edge);
    rdma_destroy_event_channel(channel);
}

/* ---- readers ---- */

struct readers {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id[EVENTS];
    atomic_int taken[EVENTS], all;
};

static void *read_events(void *arg)
{
    struct readers *r = arg;
    struct rdma_cm_event *ev;
    while (rdma_get_cm_event(r->channel, &ev) == 0) {
        for (int i = 0; i < EVENTS; i++)
            r->taken[i] += r->id[i] == ev->id;
        rdma_ack_cm_event(ev);
        r->all++;
    }
    return NULL;
}

/** The readers are ended as rping ends its threads: cancelled where they wait. */
static void each_event_has_one_reader(void **state)
{
    static struct readers r;
    pthread_t thread[READERS];
    void *result;
    (void)state;
    r.channel = open_channel();
    for (int i = 0; i < EVENTS; i++) {
        struct rdma_cm_id *id = new_event(r.channel);
        r.id[i] = id;
        assert_int_equal(cm_expect(r.channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    }
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_events, &r), 0);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(rdma_resolve_route(r.id[i], 1000), 0);
    for (int ms = 0; r.all < EVENTS && ms < 10000; ms++)
        usleep(1000);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(pthread_cancel(thread[i]), 0);
        assert_int_equal(pthread_join(thread[i], &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
    for (int i = 0; i < EVENTS; i++) {
        assert_int_equal(r.taken[i], 1);
        assert_int_equal(rdma_destroy_id(r.id[i]), 0);
    }
    expect_none(r.channel); /* no lock is held by those that are gone */
    rdma_destroy_event_channel(r.channel);
}

struct reader {
    struct rdma_event_channel *channel;
    struct rdma_cm_event *event;
};

static void *read_one(void *arg)
{
    struct reader *r = arg;
    rdma_get_cm_event(r->channel, &r->event);
    return NULL;
}

/** An event that comes as its reader is cancelled is with the reader, or still in the channel. */
static void cancellation_loses_nothing(void **state)
{
    struct rdma_event_channel *channel = open_channel();
    int with_reader = 0;
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct reader r = {.channel = channel};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, read_one, &r), 0);
        if (i % 3)
            usleep((useconds_t)(i % 7) * 20);
        struct rdma_cm_id *id = new_event(channel);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        if (!r.event)
            r.event = cm_next(channel);
        else
            with_reader++;
        assert_ptr_equal(r.event->id, id);
        rdma_ack_cm_event(r.event);
        expect_none(channel);
        assert_int_equal(rdma_destroy_id(id), 0);
    }
    print_message("%d of %d were taken first\n", with_reader, ROUNDS);
    rdma_destroy_event_channel(channel);
}

/* ---- signals ---- */

static atomic_int caught;

static void catch_signal(int sig)
{
    (void)sig;
    caught++;
}

static void *read_errno(void *arg)
{
    struct reader *r = arg;
    return (void *)(intptr_t)(rdma_get_cm_event(r->channel, &r->event) ? errno : 0);
}

/** Signals a thread that waits, until the handler ran and, if @p until_end, the thread ended. */
static int interrupt(int flags, bool until_end, struct rdma_event_channel *channel)
{
    struct reader r = {.channel = channel};
    struct sigaction sa = {.sa_handler = catch_signal, .sa_flags = flags};
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_errno, &r), 0);
    if (until_end) {
        /* One that comes before the thread waits has no effect on the wait. */
        while (pthread_tryjoin_np(thread, &result) == EBUSY) {
            pthread_kill(thread, SIGUSR1);
            usleep(1000);
        }
        return (int)(intptr_t)result;
    }
    for (int i = 0; i < 20; i++) {
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    }
    struct rdma_cm_id *id = new_event(channel);
    pthread_join(thread, &result);
    if (r.event)
        rdma_ack_cm_event(r.event);
    rdma_destroy_id(id);
    return (int)(intptr_t)result;
}

static void signals_end_the_wait_unless_they_restart(void **state)
{
    struct rdma_event_channel *channel = open_channel();
    struct sigaction none = {.sa_handler = SIG_DFL};
    (void)state;
    assert_int_equal(interrupt(0, true, channel), EINTR);
    assert_int_equal(interrupt(SA_RESTART, false, channel), 0);
    assert_true(caught > 0);
    sigaction(SIGUSR1, &none, NULL);
    expect_none(channel);
    rdma_destroy_event_channel(channel);
}

/* ---- the end ---- */

static void a_channel_goes_before_its_ids(void **state)
{
    (void)state;
    struct rdma_event_channel *channel = open_channel();
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *queued = new_event(channel);
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    assert_int_equal(rdma_migrate_id(b, channel), 0);
    rdma_destroy_event_channel(channel);
    assert_null(queued->channel);
    assert_null(b->channel);
    /* What the ids go through is not told any more; they are there, and end. */
    assert_int_equal(rdma_disconnect(a), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_DISCONNECTED), 0);
    assert_int_equal(rdma_destroy_id(queued), 0);
    cm_drop(b);
    cm_drop(a);
    cm_close(&s);
}

/** The stack of a cancelled thread stays poisoned; the sanitizer would trip over it at its end. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readable_while_an_event_waits),
        cmocka_unit_test(each_event_has_one_reader),
        cmocka_unit_test(cancellation_loses_nothing),
        cmocka_unit_test(signals_end_the_wait_unless_they_restart),
        cmocka_unit_test(a_channel_goes_before_its_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
