/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait for events, and which of them is at the sockets. */
#include "engine/waiter.h"

#include "engine/engine.h"
#include "engine/source.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define WAITERS 3

/** A thread that waits until its event is there. */
struct waiter {
    pthread_t thread;
    int fd; /* of its event */
    int result;
};

static struct waiter waiters[WAITERS];
static struct iw_source source;
static int socket_fd;
static atomic_uint runs;
static _Atomic pthread_t runner;

/** How often it was run as epoll had told of it, and how often without that. */
static atomic_uint told, untold;
static atomic_bool stop;

static bool take(struct iw_source *s, uint32_t events)
{
    eventfd_t value;
    if (eventfd_read(s->fd, &value))
        return false;
    atomic_fetch_add(events ? &told : &untold, 1);
    atomic_store(&runner, pthread_self());
    atomic_fetch_add(&runs, 1);
    return true;
}

static int setup(void **state)
{
    (void)state;
    socket_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = (struct waiter){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .result = -1};
    return iw_source_add(&source, socket_fd, EPOLLIN, take);
}

static int teardown(void **state)
{
    (void)state;
    iw_source_del(&source);
    for (int i = 0; i < WAITERS; i++)
        close(waiters[i].fd);
    return close(socket_fd);
}

static bool is_there(const struct waiter *w)
{
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void *wait_for_event(void *arg)
{
    struct waiter *w = arg;
    do
        w->result = iw_engine_wait(w->fd);
    while (!w->result && !is_there(w));
    return NULL;
}

/** Returns when it leads. */
static void begin(struct waiter *w)
{
    struct iw_poller *before = atomic_load(&iw_shards[0].leader);
    assert_int_equal(pthread_create(&w->thread, NULL, wait_for_event, w), 0);
    while (atomic_load(&iw_shards[0].leader) == before)
        sched_yield();
}

static void end(struct waiter *w)
{
    assert_int_equal(eventfd_write(w->fd, 1), 0);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    assert_int_equal(w->result, 0);
}

static void cancel(struct waiter *w)
{
    void *result;
    assert_int_equal(pthread_cancel(w->thread), 0);
    assert_int_equal(pthread_join(w->thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
}

/** Makes the source ready and waits until somebody has run it. @return who */
static pthread_t serve(void)
{
    unsigned before = atomic_load(&runs);
    assert_int_equal(eventfd_write(socket_fd, 1), 0);
    while (atomic_load(&runs) == before)
        sched_yield();
    return atomic_load(&runner);
}

static void the_last_leads(void **state)
{
    (void)state;
    for (int i = 0; i < WAITERS; i++)
        begin(&waiters[i]);
    assert_true(pthread_equal(serve(), waiters[WAITERS - 1].thread));
    end(&waiters[0]); /* of those that are led each is woken by its own event */
    end(&waiters[1]);
    while (!atomic_load(&iw_shards[0].leader)) /* it looks for its event between two waits */
        sched_yield();
    end(&waiters[2]);
    assert_null(atomic_load(&iw_shards[0].leader));
}

static void the_engine_serves_those_whose_leader_left(void **state)
{
    (void)state;
    begin(&waiters[0]);
    begin(&waiters[1]);
    end(&waiters[1]);
    for (int i = 0; i < 10; i++)
        assert_true(pthread_equal(serve(), iw_engine.thread));
    end(&waiters[0]);
}

static void a_leader_is_cancelled(void **state)
{
    (void)state;
#ifdef ANYWARP_TSAN /* it does not see the locks that are taken after a call was cancelled */
    skip();
#endif
    begin(&waiters[0]);
    begin(&waiters[1]);
    cancel(&waiters[1]);
    assert_true(pthread_equal(serve(), iw_engine.thread));
    cancel(&waiters[0]);
    assert_null(atomic_load(&iw_shards[0].leader));
    serve();
}

static void leaders_come_and_go(void **state)
{
    (void)state;
    begin(&waiters[0]);
    for (int i = 0; i < 1000; i++) { /* so often that the sockets stay off in between */
        begin(&waiters[1]);
        end(&waiters[1]);
        eventfd_t value;
        assert_int_equal(eventfd_read(waiters[1].fd, &value), 0);
    }
    serve();
    end(&waiters[0]);
}

/** What it waits for is what the source brings. */
static bool take_and_tell(struct iw_source *s, uint32_t events)
{
    bool moved = take(s, events);
    if (moved)
        iw_engine_hears(waiters[0].fd);
    return moved;
}

static void *wait_again(void *arg)
{
    struct waiter *w = arg;
    while (!atomic_load(&stop))
        w->result = iw_engine_wait(w->fd);
    return NULL;
}

static void the_likely_source_is_run_ahead(void **state)
{
    (void)state;
    struct iw_source other = {0};
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    iw_source_del(&source);
    assert_int_equal(iw_source_add(&source, socket_fd, EPOLLIN, take_and_tell), 0);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&waiters[0].thread, NULL, wait_again, &waiters[0]), 0);
    atomic_store(&untold, 0);
    while (atomic_load(&untold) < 100) /* it comes back so soon that it asks later */
        serve();
    assert_int_equal(iw_source_add(&other, fd, EPOLLIN, take), 0);
    atomic_store(&told, 0);
    assert_int_equal(eventfd_write(fd, 1), 0);
    for (int i = 0; i < 100; i++)
        serve();
    eventfd_t value;
    assert_int_equal(eventfd_read(fd, &value), -1); /* the other had its turn */
    assert_true(atomic_load(&told) >= 100 / 16);    /* as one in eight wake-ups asks */
    atomic_store(&stop, true);
    serve();
    end(&waiters[0]);
    iw_source_del(&other);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_leads, setup, teardown),
        cmocka_unit_test_setup_teardown(the_engine_serves_those_whose_leader_left, setup, teardown),
        cmocka_unit_test_setup_teardown(a_leader_is_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(leaders_come_and_go, setup, teardown),
        cmocka_unit_test_setup_teardown(the_likely_source_is_run_ahead, setup, teardown),
    };
    setenv("ANYWARP_SPIN_US", "0", 1); /* who spins looks at the sockets, too */
    alarm(120);
    return cmocka_run_group_tests_name("waiter", tests, NULL, NULL);
}
