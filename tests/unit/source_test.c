/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources under the engine's thread, which is the only one to make passes but where the test says.
 */
#include "engine/source.h"

#include "engine/engine.h"
#include "engine/poller.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct iw_source source;
static int fd;
static atomic_uint calls;
static atomic_bool inside, go, done;

static int setup(void **state)
{
    (void)state;
    source = (struct iw_source){0};
    fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_store(&calls, 0);
    atomic_store(&inside, false);
    atomic_store(&go, false);
    atomic_store(&done, false);
    return fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    atomic_store(&go, true);
    iw_source_del(&source);
    return close(fd);
}

static void make_readable(void)
{
    assert_int_equal(eventfd_write(fd, 1), 0);
}

static bool take(struct iw_source *s, uint32_t events)
{
    eventfd_t value;
    (void)events;
    bool got = eventfd_read(s->fd, &value) == 0;
    if (got)
        atomic_fetch_add(&calls, 1);
    return got;
}

static bool leave(struct iw_source *s, uint32_t events)
{
    (void)events;
    iw_source_del(s); /* inside itself: does not wait */
    atomic_fetch_add(&calls, 1);
    return true;
}

static bool stay(struct iw_source *s, uint32_t events)
{
    atomic_store(&inside, true);
    while (!atomic_load(&go))
        sched_yield();
    return take(s, events);
}

static void wait_for(atomic_bool *flag)
{
    while (!atomic_load(flag))
        sched_yield();
}

static void wait_calls(unsigned n)
{
    while (atomic_load(&calls) < n)
        sched_yield();
}

static void each_readiness_is_served(void **state)
{
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    for (unsigned i = 1; i <= 3; i++) {
        make_readable();
        wait_calls(i);
    }
    assert_int_equal(atomic_load(&calls), 3);
}

static void only_what_is_wanted(void **state)
{
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, 0, take), 0);
    make_readable();
    iw_engine_pass();
    assert_int_equal(atomic_load(&calls), 0);
    iw_source_want(&source, EPOLLIN);
    wait_calls(1);
}

static void one_that_is_gone_is_not_called(void **state)
{
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, leave), 0);
    make_readable(); /* and stays so */
    wait_calls(1);
    iw_engine_pass();
    assert_int_equal(atomic_load(&calls), 1);
    iw_source_del(&source);
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    wait_calls(2);
}

static bool is_idle;

static bool idle(const struct iw_source *s)
{
    assert_ptr_equal(s, &source);
    return is_idle;
}

static void a_poller_leaves_who_is_idle(void **state)
{
    uint64_t key;
    (void)state;
    source.idle = idle;
    assert_int_equal(iw_source_add(&source, fd, 0, take), 0);
    assert_non_null(iw_source_place(&source, &key));
    make_readable();
    is_idle = true;
    assert_false(iw_source_poll(key));
    assert_int_equal(atomic_load(&calls), 0);
    is_idle = false;
    assert_true(iw_source_poll(key));
    assert_int_equal(atomic_load(&calls), 1);
    make_readable();
    is_idle = true;
    assert_true(iw_source_run(key, 0, 0)); /* who looks for what may be there does not ask */
    assert_int_equal(atomic_load(&calls), 2);
    source.idle = NULL;
    assert_false(iw_source_poll(key));
    iw_source_del(&source);
    assert_false(iw_source_poll(key));
    assert_false(iw_source_poll(0));
}

static void *del(void *arg)
{
    iw_source_del(arg);
    atomic_store(&done, true);
    return NULL;
}

static void del_waits(void **state)
{
    pthread_t t;
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, stay), 0);
    make_readable();
    wait_for(&inside);
    assert_int_equal(pthread_create(&t, NULL, del, &source), 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    assert_false(atomic_load(&done));
    atomic_store(&go, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(atomic_load(&calls), 1);
}

/** Who is at the same QP as the engine's thread does not wait for it. */
static void where_the_engine_is(void **state)
{
    (void)state;
    assert_false(iw_source_wait_engine(7));
    source.qp_num = 7;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, stay), 0);
    make_readable();
    wait_for(&inside);
    assert_false(iw_source_wait_engine(7));
    assert_true(iw_source_wait_engine(8)); /* 100 ms: it stays there */
    atomic_store(&go, true);
    wait_calls(1);
    iw_source_del(&source); /* now it is nowhere */
    assert_false(iw_source_wait_engine(8));
}

static atomic_uint at; /* the number of the QP where halt() stays */

static bool halt(struct iw_source *s, uint32_t events)
{
    atomic_store(&at, s->qp_num);
    while (!atomic_load(&done))
        sched_yield();
    return take(s, events);
}

/** Epoll tells nobody else of what it has told the engine's thread of once. */
static void what_the_engine_has_taken(void **state)
{
    struct iw_source two[2] = {{.qp_num = 7}, {.qp_num = 8}};
    int fds[2];
    (void)state;
    source.qp_num = 9;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, stay), 0);
    for (int i = 0; i < 2; i++) {
        fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        assert_int_equal(iw_source_add(&two[i], fds[i], EPOLLIN | EPOLLET, halt), 0);
    }
    make_readable();
    wait_for(&inside);
    for (int i = 0; i < 2; i++) /* one pass finds both */
        assert_int_equal(eventfd_write(fds[i], 1), 0);
    atomic_store(&at, 0);
    atomic_store(&go, true);
    while (!atomic_load(&at))
        sched_yield();
    assert_true(iw_source_wait_engine(atomic_load(&at))); /* the other one is behind it */
    atomic_store(&done, true);
    wait_calls(3);
    for (int i = 0; i < 2; i++) {
        iw_source_del(&two[i]);
        close(fds[i]);
    }
    iw_source_del(&source);
    assert_false(iw_source_wait_engine(7));
}

/** Nothing changes for what is gone meanwhile. */
static void a_quiet_one_counts_for_nothing(void **state)
{
    uint64_t key, none = 0;
    struct iw_shard *s = &iw_shards[0];
    (void)state;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    assert_ptr_equal(iw_source_place(&source, &key), s);
    iw_source_link(&source, 7);
    assert_int_equal(atomic_load(&s->linked), IW_LINKED(7));
    unsigned turns = iw_source_turns();
    iw_source_quiet(key);
    assert_int_equal(atomic_load(&s->linked), none);
    assert_int_not_equal(iw_source_turns(), turns);
    iw_source_quiet(key);
    iw_source_link(&source, 8);
    assert_int_equal(atomic_load(&s->linked), none);
    iw_source_loud(key);
    iw_source_loud(key);
    assert_int_equal(atomic_load(&s->linked), IW_LINKED(8));
    iw_source_quiet(key);
    iw_source_del(&source);
    iw_source_loud(key);
    assert_int_equal(atomic_load(&s->linked), none);
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0); /* as loud as any */
    assert_int_equal(atomic_load(&s->linked), IW_LINKED(8));
    iw_source_quiet(key);
    assert_int_equal(atomic_load(&s->linked), IW_LINKED(8));
}

static void a_key_tells_its_qp(void **state)
{
    uint64_t key;
    (void)state;
    source.qp_num = 7;
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    assert_non_null(iw_source_place(&source, &key));
    assert_true(iw_source_is_of(key, 7));
    assert_false(iw_source_is_of(key, 8));
    iw_source_del(&source);
    assert_false(iw_source_is_of(key, 7));
}

/* Another thread is at it, which the child does not have. */
static void a_child_is_without_what_is_being_removed(void **state)
{
    int status;
    (void)state;
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
    assert_int_equal(iw_source_add(&source, fd, EPOLLIN, take), 0);
    uint32_t slot = source.slot;
    source.slot = 0;
    iw_engine_fork(FORK_PREPARE);
    iw_source_fork(FORK_PREPARE);
    pid_t pid = fork();
    iw_source_fork(pid ? FORK_PARENT : FORK_CHILD);
    iw_engine_fork(pid ? FORK_PARENT : FORK_CHILD);
    if (pid == 0) {
        close(fd);
        _exit(iw_engine_start() != 0);
    }
    source.slot = slot;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_readiness_is_served),
        TEST(only_what_is_wanted),
        TEST(one_that_is_gone_is_not_called),
        TEST(a_poller_leaves_who_is_idle),
        TEST(del_waits),
        TEST(where_the_engine_is),
        TEST(what_the_engine_has_taken),
        TEST(a_quiet_one_counts_for_nothing),
        TEST(a_key_tells_its_qp),
        TEST(a_child_is_without_what_is_being_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
