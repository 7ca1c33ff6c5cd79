/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment is read once a process: every case runs in a child of its own. */
#include "env/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/**
 * Runs @p body in a child with the environment given; what it writes to standard error comes back,
 * one read() for each of its write() calls.
 */
static int in_child(const char *level, const char *file, int (*body)(void), int *err)
{
    int fds[2], status;
    assert_int_equal(pipe2(fds, O_DIRECT | O_CLOEXEC | O_NONBLOCK), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        level ? setenv("VERBS_LOG_LEVEL", level, 1) : unsetenv("VERBS_LOG_LEVEL");
        file ? setenv("VERBS_LOG_FILE", file, 1) : unsetenv("VERBS_LOG_FILE");
        alarm(20);
        _exit(body());
    }
    close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    *err = fds[0];
    return status;
}

static void expect_packet(int fd, const char *text)
{
    char buf[4096];
    ssize_t n = read(fd, buf, sizeof(buf) - 1);
    assert_true(n >= 0);
    buf[n] = '\0';
    assert_string_equal(buf, text);
}

static int all_levels(void)
{
    int on = 0;
    for (int l = IW_LOG_ERR; l <= IW_LOG_DEBUG; l++) {
        iw_log(l, "level %d", l);
        on |= iw_log_on(l) << l;
    }
    return on;
}

static void levels(void **state)
{
    static const struct {
        const char *level;
        int last;
        const char *told; /* at any level */
    } rows[] = {
        {NULL, 0, NULL},
        {"0", 0, NULL},
        {"1", 1, NULL},
        {"2", 2, NULL},
        {"3", 3, NULL},
        {"4", 4, NULL},
        {"", 0, NULL},
        {"99", 4, "anywarp: VERBS_LOG_LEVEL=99 is more than 4: 4 is taken\n"},
        {"99999999999999999999", 4,
         "anywarp: VERBS_LOG_LEVEL=99999999999999999999 is more than 4: 4 is taken\n"},
        {"-1", 0, "anywarp: VERBS_LOG_LEVEL=-1 is not understood (0 to 4): 0 is taken\n"},
        {"x", 0, "anywarp: VERBS_LOG_LEVEL=x is not understood (0 to 4): 0 is taken\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd, status = in_child(rows[i].level, NULL, all_levels, &fd);
        int bits = 0;
        if (rows[i].told)
            expect_packet(fd, rows[i].told);
        for (int l = 1; l <= rows[i].last; l++) {
            char line[64];
            snprintf(line, sizeof(line), "anywarp: level %d\n", l);
            expect_packet(fd, line);
            bits |= 1 << l;
        }
        expect_packet(fd, "");
        assert_int_equal(status, bits << 8);
        close(fd);
    }
}

static int long_line(void)
{
    errno = EXDEV;
    iw_log(IW_LOG_ERR, "%05000d", 7);
    return errno != EXDEV;
}

static void long_line_is_cut(void **state)
{
    char buf[8192];
    int fd;
    (void)state;
    assert_int_equal(in_child("1", NULL, long_line, &fd), 0);
    ssize_t n = read(fd, buf, sizeof(buf));
    assert_int_equal(n, 1024);
    assert_int_equal(buf[n - 1], '\n');
    assert_int_equal(buf[n - 2], '0');
    expect_packet(fd, "");
    close(fd);
}

static int one_line(void)
{
    errno = EXDEV;
    iw_log(IW_LOG_ERR, "one");
    return errno != EXDEV;
}

static void to_a_file(void **state)
{
    char name[] = "log_test.XXXXXX", buf[128] = "";
    int fd, tmp = mkstemp(name);
    (void)state;
    assert_true(tmp >= 0);
    assert_int_equal(in_child("1", name, one_line, &fd), 0);
    expect_packet(fd, "");
    close(fd);
    assert_int_equal(in_child("1", name, one_line, &fd), 0);
    close(fd);
    unlink(name);
    ssize_t n = read(tmp, buf, sizeof(buf) - 1);
    close(tmp);
    assert_int_equal(n, strlen("anywarp: one\n") * 2);
    assert_string_equal(buf, "anywarp: one\nanywarp: one\n");
}

static void a_new_file_is_as_the_umask_says(void **state)
{
    static const mode_t masks[] = {022, 027, 077};
    char name[64];
    struct stat st;
    int fd;
    (void)state;
    snprintf(name, sizeof(name), "log_test.%d", (int)getpid());
    for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
        mode_t old = umask(masks[i]);
        assert_int_equal(in_child("1", name, one_line, &fd), 0);
        umask(old);
        close(fd);
        assert_int_equal(stat(name, &st), 0);
        unlink(name);
        assert_int_equal(st.st_mode & 0777, 0644 & ~masks[i]);
    }
}

static void to_stderr_if_the_file_cannot_be_written(void **state)
{
    static const char *const files[] = {"/nonexistent/directory/log", "/dev/full"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        int fd;
        char told[256];
        snprintf(told, sizeof(told),
                 "anywarp: VERBS_LOG_FILE=%s cannot be written: the log comes here\n", files[i]);
        assert_int_equal(in_child("1", files[i], one_line, &fd), 0);
        expect_packet(fd, told);
        expect_packet(fd, "anywarp: one\n");
        close(fd);
    }
}

/** With a file that may not grow, in the child alone. */
static int one_line_too_many(void)
{
    const struct rlimit limit = {4, 4};
    sigset_t set;
    if (setrlimit(RLIMIT_FSIZE, &limit) || one_line())
        return 1;
    return sigpending(&set) || sigismember(&set, SIGXFSZ) ||
           pthread_sigmask(SIG_BLOCK, NULL, &set) || sigismember(&set, SIGXFSZ);
}

static int one_line_too_many_on_stderr(void)
{
    int file = open(getenv("VERBS_LOG_FILE"), O_WRONLY | O_APPEND);
    return dup2(file, STDERR_FILENO) < 0 || one_line_too_many();
}

static void at_the_largest_size_of_a_file(void **state)
{
    char name[] = "log_test.XXXXXX", told[256], full[8];
    int fd, tmp = mkstemp(name);
    (void)state;
    assert_int_equal(write(tmp, "full", 4), 4);
    snprintf(told, sizeof(told),
             "anywarp: VERBS_LOG_FILE=%s cannot be written: the log comes here\n", name);
    assert_int_equal(in_child("1", name, one_line_too_many, &fd), 0);
    expect_packet(fd, told);
    expect_packet(fd, "anywarp: one\n");
    close(fd);
    assert_int_equal(in_child("1", name, one_line_too_many_on_stderr, &fd), 0);
    close(fd);
    assert_int_equal(pread(tmp, full, sizeof(full), 0), 4);
    close(tmp);
    unlink(name);
}

static void *log_one(void *arg)
{
    iw_log(IW_LOG_ERR, "one");
    return arg;
}

static int while_stderr_is_locked(void)
{
    pthread_t t;
    flockfile(stderr);
    if (pthread_create(&t, NULL, log_one, NULL))
        return 1;
    return pthread_join(t, NULL);
}

static void needs_no_lock_of_stdio(void **state)
{
    int fd;
    (void)state;
    assert_int_equal(in_child("1", NULL, while_stderr_is_locked, &fd), 0);
    expect_packet(fd, "anywarp: one\n");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels),
        cmocka_unit_test(long_line_is_cut),
        cmocka_unit_test(to_a_file),
        cmocka_unit_test(a_new_file_is_as_the_umask_says),
        cmocka_unit_test(to_stderr_if_the_file_cannot_be_written),
        cmocka_unit_test(at_the_largest_size_of_a_file),
        cmocka_unit_test(needs_no_lock_of_stdio),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
