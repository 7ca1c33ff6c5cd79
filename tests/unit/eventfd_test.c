/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/eventfd.h"

#include "common/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(ANYWARP_ASAN) && __GNUC__ >= 16
#define LAST 63 /* it tells of no handler of 64 */
#else
#define LAST 64
#endif

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void raise_and_drain(void **state)
{
    int fd = iw_eventfd_create();
    (void)state;
    assert_true(fd >= 0);
    assert_false(readable(fd));
    iw_eventfd_raise(fd);
    iw_eventfd_raise(fd);
    assert_true(readable(fd));
    assert_int_equal(iw_eventfd_wait(fd), 0);
    iw_eventfd_drain(fd);
    assert_false(readable(fd));
    iw_eventfd_close(fd);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void follows_o_nonblock(void **state)
{
    int fd = iw_eventfd_create();
    (void)state;
    assert_false(iw_eventfd_nonblocking(fd));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    assert_true(iw_eventfd_nonblocking(fd));
    fcntl(fd, F_SETFL, 0);
    assert_false(iw_eventfd_nonblocking(fd));
    iw_eventfd_close(fd);
}

/*
 * ---- numbers of descriptors ----
 *
 * Limits are the process's: in children.
 */

static int with_limit(rlim_t soft, rlim_t hard)
{
    struct rlimit lim = {soft, hard};
    return setrlimit(RLIMIT_NOFILE, &lim) ? -1000 : iw_eventfd_create_hidden();
}

static rlim_t soft_limit(void)
{
    struct rlimit lim;
    getrlimit(RLIMIT_NOFILE, &lim);
    return lim.rlim_cur;
}

static int limit_allows(void)
{
    int fd = with_limit(256, 4096);
    return !(fd >= 1024 && fcntl(fd, F_GETFD) == FD_CLOEXEC && soft_limit() == 2048);
}

/** What a program sees has the lowest number, also when others of ours are high. */
static int low_for_programs(void)
{
    int hidden = with_limit(256, 4096), lowest = dup(0);
    close(lowest);
    int fd = iw_eventfd_create();
    return !(hidden >= 1024 && fd == lowest && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

/** The program has taken all numbers below the soft limit, and is given one above. */
static int more_for_programs(void)
{
    struct rlimit lim = {64, 4096};
    if (setrlimit(RLIMIT_NOFILE, &lim))
        return 1;
    while (dup(0) >= 0)
        ;
    return !(iw_eventfd_create() == 64 && soft_limit() == 2048);
}

/** The limit grows with what is needed, and no further. */
static int limit_grows(void)
{
    int fd = with_limit(1500, 4096);
    if (fd < 1024 || soft_limit() != 1500)
        return 1;
    for (int i = 1; i < 1500; i++)
        if (iw_eventfd_create_hidden() < 1024)
            return 2;
    return soft_limit() != 3000;
}

/** The program has taken all numbers below the soft limit. */
static int none_below(void)
{
    struct rlimit lim = {64, 4096};
    if (setrlimit(RLIMIT_NOFILE, &lim))
        return 1;
    while (dup(0) >= 0)
        ;
    return !(iw_eventfd_create_hidden() >= 1024 && soft_limit() == 2048);
}

static int limit_forbids(void)
{
    int fd = with_limit(256, 256);
    return !(fd >= 0 && fd < 256 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
}

static int none_left(void)
{
    return with_limit(0, 0) != -EMFILE;
}

static void numbers(void **state)
{
    static int (*const bodies[])(void) = {limit_allows, low_for_programs, more_for_programs,
                                          limit_grows,  none_below,       limit_forbids,
                                          none_left};
    (void)state;
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(bodies[i]());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status)
            fail_msg("case %zu: status 0x%x", i, status);
    }
}

/* ---- waiting ---- */

static void on_signal(int sig)
{
    (void)sig;
}

static void install(int sig, void (*handler)(int), int flags)
{
    struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};
    assert_int_equal(sigaction(sig, &sa, NULL), 0);
}

static void restart_rule(void **state)
{
    static const struct {
        int sig, flags;
        void (*handler)(int);
        bool restarts;
    } rows[] = {
        {SIGUSR1, SA_RESTART, on_signal, true},
        {SIGUSR1, 0, on_signal, false},
        {LAST, 0, on_signal, false},
        {1, 0, on_signal, false},
        {SIGBUS, 0, on_signal, true},
        {SIGUSR1, 0, SIG_IGN, true},
        {SIGUSR1, 0, SIG_DFL, true},
    };
    (void)state;
    assert_true(iw_eventfd_restarts());
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        install(rows[i].sig, rows[i].handler, rows[i].flags);
        bool restarts = iw_eventfd_restarts();
        install(rows[i].sig, SIG_DFL, 0);
        if (restarts != rows[i].restarts)
            fail_msg("row %zu", i);
    }
}

struct waiter {
    pthread_t thread;
    int fd, result;
};

static void *wait_thread(void *arg)
{
    struct waiter *w = arg;
    w->result = iw_eventfd_wait(w->fd);
    return NULL;
}

static void start(struct waiter *w)
{
    *w = (struct waiter){.fd = iw_eventfd_create(), .result = 1};
    assert_int_equal(pthread_create(&w->thread, NULL, wait_thread, w), 0);
}

static bool ends_within(struct waiter *w, int ms, void **result)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += ms % 1000 * 1000000L;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(w->thread, result, &t) == 0;
}

static void interrupted(void **state)
{
    struct waiter w;
    (void)state;
    install(SIGUSR1, on_signal, 0);
    start(&w);
    while (!ends_within(&w, 10, NULL))
        pthread_kill(w.thread, SIGUSR1);
    assert_int_equal(w.result, -EINTR);
    iw_eventfd_close(w.fd);
    install(SIGUSR1, SIG_DFL, 0);
}

static void restarted(void **state)
{
    struct waiter w;
    (void)state;
    install(SIGUSR1, on_signal, SA_RESTART);
    start(&w);
    for (int i = 0; i < 10; i++) {
        pthread_kill(w.thread, SIGUSR1);
        assert_false(ends_within(&w, 10, NULL));
    }
    iw_eventfd_raise(w.fd);
    assert_true(ends_within(&w, 10000, NULL));
    assert_int_equal(w.result, 0);
    iw_eventfd_close(w.fd);
    install(SIGUSR1, SIG_DFL, 0);
}

static void cancelled(void **state)
{
    struct waiter w;
    void *result = NULL;
    (void)state;
    start(&w);
    assert_false(ends_within(&w, 20, NULL));
    pthread_cancel(w.thread);
    assert_true(ends_within(&w, 10000, &result));
    assert_ptr_equal(result, PTHREAD_CANCELED);
    iw_eventfd_close(w.fd);
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
        cmocka_unit_test(numbers),
        cmocka_unit_test(raise_and_drain),
        cmocka_unit_test(follows_o_nonblock),
        cmocka_unit_test(restart_rule),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(restarted),
        cmocka_unit_test(cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
