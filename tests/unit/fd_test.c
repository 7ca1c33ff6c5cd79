/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where our descriptors go, under each limit: every row in a process of its own. And what is still
 * one of ours.
 */
#include "env/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct {
    rlim_t soft, hard;
    bool high;
    rlim_t then; /* the soft limit behind it */
    bool more;   /* there is another step */
} rows[] = {
    {256, 4096, true, 2048, true},   {1024, 4096, true, 2048, true},
    {2048, 4096, true, 2048, true},  {1024, 1500, true, 1500, false},
    {256, 1024, false, 1024, false}, {512, 512, false, 512, false},
};

/** @return 0, or the line where it went wrong */
static int play(int i)
{
    struct rlimit lim = {.rlim_cur = rows[i].soft, .rlim_max = rows[i].hard};
    if (setrlimit(RLIMIT_NOFILE, &lim))
        return __LINE__;
    int fd = open("/dev/null", O_RDONLY);
    errno = 0;
    int to = iw_fd_high(fd);
    if (fd < 0 || rows[i].high != (to >= 1024) || (!rows[i].high && to != fd))
        return __LINE__;
    if (fcntl(to, F_GETFD) < 0)
        return __LINE__;
    if (rows[i].high && (!(fcntl(to, F_GETFD) & FD_CLOEXEC) || fcntl(fd, F_GETFD) != -1))
        return __LINE__;
    if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur != rows[i].then)
        return __LINE__;
    return iw_fd_more() == rows[i].more ? 0 : __LINE__;
}

/** What the program has closed is not ours to take. @return 0, or the line where it went wrong */
static int play_standard(int i)
{
    struct rlimit lim = {.rlim_cur = rows[i].soft, .rlim_max = rows[i].hard};
    if (setrlimit(RLIMIT_NOFILE, &lim))
        return __LINE__;
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        close(fd);
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        int to = iw_fd_high(open("/dev/null", O_RDONLY));
        if (to <= STDERR_FILENO || !(fcntl(to, F_GETFD) & FD_CLOEXEC))
            return __LINE__;
        if (fcntl(0, F_GETFD) != -1)
            return __LINE__;
    }
    return 0;
}

static void expect_all(int (*row)(int))
{
    for (int i = 0; i < (int)(sizeof(rows) / sizeof(rows[0])); i++) {
        int status;
        pid_t child = fork();
        if (child == 0)
            _exit(row(i));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status)
            fail_msg("row %d: line %d", i, WEXITSTATUS(status));
    }
}

static void above_1023_where_the_limit_allows(void **state)
{
    (void)state;
    expect_all(play);
}

static void above_standard_error(void **state)
{
    (void)state;
    expect_all(play_standard);
}

static void a_number_tells_what_it_is(void **state)
{
    int anonymous = eventfd(0, EFD_CLOEXEC), pipes[2];
    int socket = iw_fd_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_true(iw_fd_is_anonymous(anonymous) && !iw_fd_is_socket(anonymous));
    assert_true(iw_fd_is_socket(socket) && !iw_fd_is_anonymous(socket));
    assert_false(iw_fd_is_anonymous(pipes[0]) || iw_fd_is_socket(pipes[0]));
    assert_false(iw_fd_is_anonymous(-1) || iw_fd_is_socket(-1));
    assert_true(iw_fd_file(socket) && iw_fd_file(socket) != iw_fd_file(pipes[0]));
    iw_fd_leave_socket(anonymous);
    iw_fd_leave_anonymous(socket);
    assert_true(iw_fd_is_anonymous(anonymous) && iw_fd_is_socket(socket));
    iw_fd_leave_anonymous(anonymous);
    iw_fd_leave_socket(socket);
    assert_false(iw_fd_file(anonymous) || iw_fd_file(socket));
    close(pipes[0]);
    close(pipes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(above_1023_where_the_limit_allows),
        cmocka_unit_test(above_standard_error),
        cmocka_unit_test(a_number_tells_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
