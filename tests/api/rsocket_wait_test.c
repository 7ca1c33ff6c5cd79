/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: who waits, for what, and what ends it. */
#include "rsocket_kit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20
#define ROOM   11000000 /* more than a connection takes while the peer stands still */

#define ROOM_OF_DEFAULT (1 << 17)

struct sleeper {
    pthread_t thread;
    void *(*wait)(void *);
    int fd;
};

static void *sleep_in_rrecv(void *arg)
{
    char c;
    return (void *)(intptr_t)rrecv(*(int *)arg, &c, 1, 0);
}

static void *sleep_in_rpoll(void *arg)
{
    wait_for(*(int *)arg, POLLIN);
    return NULL;
}

static void *sleep_in_raccept(void *arg)
{
    return (void *)(intptr_t)raccept(*(int *)arg, NULL, NULL);
}

static void *sleep_in_a_set(void *arg)
{
    struct epoll_event event = {EPOLLIN, {.u64 = 1}};
    int set = repoll_create(0);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, *(int *)arg, &event), 0);
    assert_int_equal(repoll_wait(set, &event, 1, WAIT_MS), 1);
    assert_int_equal(rclose(set), 0);
    return NULL;
}

static long cpu_ms(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
           (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static void who_waits_sleeps(void **unused)
{
    (void)unused;
    struct ends e[3];
    for (int i = 0; i < 3; i++)
        join(&e[i]);
    struct sleeper sleepers[] = {{0, sleep_in_rrecv, e[0].b},
                                 {0, sleep_in_rpoll, e[1].b},
                                 {0, sleep_in_a_set, e[2].b},
                                 {0, sleep_in_raccept, e[0].listener}};
    for (int i = 0; i < 4; i++)
        pthread_create(&sleepers[i].thread, NULL, sleepers[i].wait, &sleepers[i].fd);
    usleep(100000);
    long before = cpu_ms();
    usleep(1000000);
    assert_in_range(cpu_ms() - before, 0, 100);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rsend(e[i].a, "x", 1, 0), 1);
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    int fd = stream();
    assert_int_equal(rgetsockname(e[0].listener, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(sleepers[i].thread, &result);
        if (i == 3)
            assert_int_equal(rclose((int)(intptr_t)result), 0);
    }
    assert_int_equal(rclose(fd), 0);
    for (int i = 0; i < 3; i++)
        part(&e[i]);
}

static void skip_with_tsan(void)
{
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
}

static void handler(int sig)
{
    (void)sig;
}

static void handle_signals(int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
}

/* Handlers with SA_RESTART end no call, nor do they make one short. */
static void calls_go_on_after_signals(void **unused)
{
    (void)unused;
    static char block[MUCH];
    struct ends e;
    struct sockaddr_in addr;
    socklen_t len = sizeof addr;
    void *result;
    join(&e);
    handle_signals(SA_RESTART);
    struct sleeper sleepers[] = {
        {0, sleep_in_rrecv, e.a}, {0, send_much, e.a}, {0, sleep_in_raccept, e.listener}};
    for (int i = 0; i < 3; i++)
        pthread_create(&sleepers[i].thread, NULL, sleepers[i].wait, &sleepers[i].fd);
    for (int i = 0; i < 300; i++) {
        pthread_kill(sleepers[i % 3].thread, SIGUSR1);
        usleep(1000);
    }
    int fd = stream();
    assert_int_equal(rgetsockname(e.listener, (struct sockaddr *)&addr, &len), 0);
    assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    pthread_join(sleepers[2].thread, &result);
    assert_int_equal(rclose((int)(intptr_t)result), 0);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rrecv(e.b, block, sizeof block, MSG_WAITALL), MUCH);
    pthread_join(sleepers[1].thread, &result);
    assert_int_equal((intptr_t)result, MUCH);
    assert_int_equal(rsend(e.b, "x", 1, 0), 1);
    pthread_join(sleepers[0].thread, &result);
    assert_int_equal((intptr_t)result, 1);
    part(&e);
}

static atomic_int outcome;

static void *note_an_error(void *arg)
{
    char c;
    outcome = rrecv(*(int *)arg, &c, 1, 0) < 0 ? errno : 0;
    return NULL;
}

static void a_signal_ends_a_call(void **unused)
{
    (void)unused;
    struct ends e;
    pthread_t thread;
    join(&e);
    handle_signals(0);
    outcome = -1;
    pthread_create(&thread, NULL, note_an_error, &e.a);
    while (outcome < 0) {
        pthread_kill(thread, SIGUSR1);
        usleep(1000);
    }
    pthread_join(thread, NULL);
    assert_int_equal(outcome, EINTR);
    part(&e);
}

/* Has room for all of it, and sends as much as the peer has room for, but stops before it takes
 * any. @return how much came */
static size_t take_late(int port)
{
    static char block[ROOM_OF_DEFAULT];
    struct sockaddr_in addr = loopback();
    socklen_t len = sizeof addr;
    int listener = stream(), room = ROOM;
    size_t all = 0;
    ssize_t n;
    rsetsockopt(listener, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    rbind(listener, (struct sockaddr *)&addr, sizeof addr);
    rlisten(listener, 1);
    rgetsockname(listener, (struct sockaddr *)&addr, &len);
    if (write(port, &addr, sizeof addr) != sizeof addr)
        return 0;
    int fd = raccept(listener, NULL, NULL);
    if (rsend(fd, block, sizeof block, 0) != sizeof block || read(port, block, 1) != 1)
        return 0;
    raise(SIGSTOP);
    while ((n = rrecv(fd, block, sizeof block, 0)) > 0)
        all += (size_t)n;
    return all;
}

/* @return the child; its listener is at @p addr */
static pid_t start_taker(int pipe_ends[2], struct sockaddr_in *addr)
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pipe_ends), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        size_t came = take_late(pipe_ends[1]);
        _exit(write(pipe_ends[1], &came, sizeof came) != sizeof came);
    }
    assert_int_equal(read(pipe_ends[0], addr, sizeof *addr), sizeof *addr);
    return child;
}

struct stopped {
    pthread_t whom;
    pid_t child;
    int pipe_ends[2], fd;
    size_t sent;
    atomic_bool goes_on;
    bool disturbs;
};

/* To a child that stands still, until nothing more goes. */
static void fill(struct stopped *s)
{
    static char data[ROOM];
    struct sockaddr_in addr;
    int room = ROOM, status;
    s->whom = pthread_self();
    s->child = start_taker(s->pipe_ends, &addr);
    s->fd = stream();
    assert_int_equal(rsetsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
    assert_int_equal(rconnect(s->fd, (struct sockaddr *)&addr, sizeof addr), 0);
    for (ssize_t n = 0; n < ROOM_OF_DEFAULT; n = rrecv(s->fd, data, ROOM_OF_DEFAULT, MSG_PEEK))
        usleep(1000);
    assert_int_equal(write(s->pipe_ends[0], "", 1), 1);
    assert_int_equal(waitpid(s->child, &status, WUNTRACED), s->child);
    assert_true(WIFSTOPPED(status));
    for (ssize_t n; (n = rsend(s->fd, data, ROOM - s->sent, MSG_DONTWAIT)) > 0;)
        s->sent += (size_t)n;
}

static void *let_go_on(void *arg)
{
    struct stopped *s = arg;
    for (int i = 0; i < 200; i++) { /* longer than a QP that is destroyed goes on sending */
        if (s->disturbs)
            pthread_kill(s->whom, SIGUSR1);
        usleep(10000);
    }
    s->goes_on = true;
    kill(s->child, SIGCONT);
    return NULL;
}

static void expect_all(const struct stopped *s)
{
    size_t came = 0;
    int status;
    assert_int_equal(read(s->pipe_ends[0], &came, sizeof came), sizeof came);
    assert_int_equal(came, s->sent);
    assert_int_equal(waitpid(s->child, &status, 0), s->child);
    close(s->pipe_ends[0]);
    close(s->pipe_ends[1]);
}

static void a_signal_does_not_end_rclose(void **unused)
{
    (void)unused;
    struct stopped s = {.disturbs = true};
    pthread_t thread;
    skip_with_tsan();
    fill(&s);
    handle_signals(0);
    pthread_create(&thread, NULL, let_go_on, &s);
    assert_int_equal(rclose(s.fd), 0);
    pthread_join(thread, NULL);
    expect_all(&s);
}

/* Its end comes behind what was sent, without another call, when there is room for it. */
static void rshutdown_need_not_wait(void **unused)
{
    (void)unused;
    static char block[ROOM_OF_DEFAULT];
    struct stopped s = {0};
    pthread_t thread;
    skip_with_tsan();
    fill(&s);
    /* Who takes this tells of new room twice, and has nothing left to tell with. */
    assert_int_equal(rrecv(s.fd, block, sizeof block, MSG_WAITALL), sizeof block);
    assert_int_equal(rfcntl(s.fd, F_SETFL, O_NONBLOCK), 0);
    pthread_create(&thread, NULL, let_go_on, &s);
    assert_int_equal(rshutdown(s.fd, SHUT_WR), 0);
    assert_false(s.goes_on);
    pthread_join(thread, NULL);
    expect_all(&s);
    assert_int_equal(rclose(s.fd), 0);
}

/* Nor is it lost when rclose() follows that. */
static void rclose_waits_behind_rshutdown(void **unused)
{
    (void)unused;
    struct stopped s = {0};
    pthread_t thread;
    skip_with_tsan();
    fill(&s);
    assert_int_equal(rfcntl(s.fd, F_SETFL, O_NONBLOCK), 0);
    pthread_create(&thread, NULL, let_go_on, &s);
    assert_int_equal(rshutdown(s.fd, SHUT_RDWR), 0);
    assert_false(s.goes_on);
    assert_int_equal(rclose(s.fd), 0);
    pthread_join(thread, NULL);
    expect_all(&s);
}

static void *close_without_descriptors(void *arg)
{
    struct stopped *s = arg;
    struct rlimit before, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    int next = dup(s->fd);
    close(next);
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_int_equal(rclose(s->fd), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    return NULL;
}

/* A thread that waits for the first time makes itself a descriptor, if it can. */
static void rclose_waits_without_descriptors(void **unused)
{
    (void)unused;
    struct stopped s = {0};
    pthread_t closer, thread;
    skip_with_tsan();
    fill(&s);
    pthread_create(&thread, NULL, let_go_on, &s);
    pthread_create(&closer, NULL, close_without_descriptors, &s);
    pthread_join(closer, NULL);
    pthread_join(thread, NULL);
    expect_all(&s);
}

static void *note_the_end_of_raccept(void *listener)
{
    outcome = raccept(*(int *)listener, NULL, NULL) < 0 ? errno : 0;
    return NULL;
}

static void a_listener_is_shut(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    int listener = listen_at(&addr, 0), fd = stream();
    pthread_t thread;
    outcome = -1;
    assert_int_equal(rshutdown(listener, SHUT_WR), 0);
    pthread_create(&thread, NULL, note_the_end_of_raccept, &listener);
    usleep(20000);
    assert_int_equal(outcome, -1);
    assert_int_equal(rshutdown(listener, SHUT_RD), 0);
    pthread_join(thread, NULL);
    assert_int_equal(outcome, EINVAL);
    expect_errno(raccept(listener, NULL, NULL), EINVAL);
    wait_for(listener, POLLHUP);
    expect_errno(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    assert_int_equal(rclose(fd), 0);
    assert_int_equal(rclose(listener), 0);
}

static void a_set_tells_of_both_kinds(void **unused)
{
    (void)unused;
    struct ends e;
    struct epoll_event event = {EPOLLIN, {.u64 = 1}}, found[4];
    int pipe_ends[2], set = repoll_create(0);
    char c;
    join(&e);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), 0);
    expect_errno(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), EEXIST);
    event.data.u64 = 2;
    expect_errno(repoll_ctl(set, EPOLL_CTL_MOD, pipe_ends[0], &event), ENOENT);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, pipe_ends[0], &event), 0);
    assert_int_equal(repoll_wait(set, found, 4, 0), 0);
    assert_int_equal(rsend(e.a, "x", 1, 0), 1);
    assert_int_equal(repoll_wait(set, found, 4, WAIT_MS), 1);
    assert_int_equal(found[0].data.u64, 1);
    assert_int_equal(found[0].events, EPOLLIN);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    assert_int_equal(write(pipe_ends[1], "y", 1), 1);
    assert_int_equal(repoll_wait(set, found, 4, WAIT_MS), 1);
    assert_int_equal(found[0].data.u64, 2);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_DEL, pipe_ends[0], NULL), 0);
    assert_int_equal(repoll_wait(set, found, 4, 0), 0);
    expect_errno(repoll_wait(set, found, 0, 0), EINVAL);
    expect_errno(repoll_ctl(set, EPOLL_CTL_ADD, set, &event), EINVAL);
    expect_errno(repoll_ctl(set, EPOLL_CTL_ADD, -1, &event), EBADF);
    expect_errno(repoll_create(1), EINVAL);
    assert_int_equal(rclose(set), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    part(&e);
}

static int shared;
static atomic_int told, over; /* in this round; rounds */

static void add(int fd, uint32_t events)
{
    struct epoll_event event = {events, {.fd = fd}};
    assert_int_equal(repoll_ctl(shared, EPOLL_CTL_ADD, fd, &event), 0);
}

static void *take_one_a_round(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct epoll_event event;
        assert_int_equal(repoll_wait(shared, &event, 1, WAIT_MS), 1);
        atomic_fetch_add(&told, 1);
        while (over <= i)
            usleep(1000);
    }
    return unused;
}

/* Two threads wait, and each is to have one of two new members. */
static void add_and_take(const struct ends *e)
{
    usleep(3000); /* they sleep */
    for (int i = 0; i < 2; i++)
        add(e[i].b, EPOLLIN | EPOLLONESHOT);
    usleep(20000);
    told = 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rsend(e[i].a, "x", 1, 0), 1);
        for (int ms = 0; ms < WAIT_MS && told <= i; ms++)
            usleep(1000);
        assert_int_equal(told, i + 1);
    }
    for (int i = 0; i < 2; i++) {
        char c;
        assert_int_equal(rrecv(e[i].b, &c, 1, 0), 1);
        assert_int_equal(repoll_ctl(shared, EPOLL_CTL_DEL, e[i].b, NULL), 0);
    }
}

/* Not only the one that learns of them first. */
static void all_threads_learn_of_new_members(void **unused)
{
    (void)unused;
    struct ends e[2];
    pthread_t threads[2];
    shared = repoll_create(0);
    for (int i = 0; i < 2; i++) {
        join(&e[i]);
        pthread_create(&threads[i], NULL, take_one_a_round, NULL);
    }
    for (int i = 0; i < ROUNDS; i++) {
        add_and_take(e);
        over++;
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        part(&e[i]);
    }
    assert_int_equal(rclose(shared), 0);
}

static void *take_all(void *last)
{
    struct epoll_event event = {0};
    while (event.data.fd != *(int *)last)
        assert_int_equal(repoll_wait(shared, &event, 1, WAIT_MS), 1);
    return NULL;
}

/* Who waits for a set may be about to look at a socket that was taken out and closed. */
static void sockets_come_and_go(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    pthread_t thread;
    int pipe_ends[2], listener = listen_at(&addr, 0);
    assert_int_equal(pipe(pipe_ends), 0);
    shared = repoll_create(0);
    pthread_create(&thread, NULL, take_all, &pipe_ends[0]);
    for (int i = 0; i < 300; i++) {
        int fd = stream();
        assert_int_equal(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
        int child = raccept(listener, NULL, NULL);
        add(child, EPOLLIN);
        assert_int_equal(rsend(fd, "x", 1, 0), 1);
        assert_int_equal(repoll_ctl(shared, EPOLL_CTL_DEL, child, NULL), 0);
        assert_int_equal(rclose(child), 0);
        assert_int_equal(rclose(fd), 0);
    }
    add(pipe_ends[0], EPOLLIN);
    assert_int_equal(write(pipe_ends[1], "x", 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(rclose(shared), 0);
    assert_int_equal(rclose(listener), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void *wait_and_read(void *arg)
{
    char c = 0;
    wait_for(*(int *)arg, POLLIN);
    rrecv(*(int *)arg, &c, 1, 0);
    return (void *)(intptr_t)c;
}

/* One sleeps for room, the other for data: neither takes the other's wake-up. */
static void two_threads_wait_for_one(void **unused)
{
    (void)unused;
    static char block[MUCH];
    for (int i = 0; i < 20; i++) {
        struct ends e;
        pthread_t sender, reader;
        void *result;
        join(&e);
        pthread_create(&sender, NULL, send_much, &e.a);
        pthread_create(&reader, NULL, wait_and_read, &e.a);
        assert_int_equal(rrecv(e.b, block, sizeof block, MSG_WAITALL), MUCH);
        assert_int_equal(rsend(e.b, "r", 1, 0), 1);
        pthread_join(reader, &result);
        assert_int_equal((intptr_t)result, 'r');
        pthread_join(sender, &result);
        assert_int_equal((intptr_t)result, MUCH);
        part(&e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_sleeps),
        cmocka_unit_test(calls_go_on_after_signals),
        cmocka_unit_test(a_signal_ends_a_call),
        cmocka_unit_test(a_signal_does_not_end_rclose),
        cmocka_unit_test(rshutdown_need_not_wait),
        cmocka_unit_test(rclose_waits_behind_rshutdown),
        cmocka_unit_test(rclose_waits_without_descriptors),
        cmocka_unit_test(a_listener_is_shut),
        cmocka_unit_test(a_set_tells_of_both_kinds),
        cmocka_unit_test(all_threads_learn_of_new_members),
        cmocka_unit_test(sockets_come_and_go),
        cmocka_unit_test(two_threads_wait_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
