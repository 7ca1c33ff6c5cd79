/* SPDX-License-Identifier: BSD-2-Clause */
/* Which files a capture is written over: in a folder of many users there may be traps. */
#include "observe/pcap_file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CONTENT "what was there"
#define NOBODY  65534

static char dir[] = "/tmp/anywarp-pcap-XXXXXX";
static char path[64], other[64];

static void make(const char *name, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, CONTENT, sizeof(CONTENT)), sizeof(CONTENT));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void is_untouched(const char *name, mode_t mode)
{
    char now[64];
    struct stat st;
    int fd = open(name, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, now, sizeof(now)), sizeof(CONTENT));
    assert_memory_equal(now, CONTENT, sizeof(CONTENT));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, mode);
    close(fd);
}

/** Opens it in a process of its own, as @p user; 0: as this one. @return whether it is captured */
static bool opens(uid_t user)
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("ANYWARP_PCAP", path, 1);
        if (user && seteuid(user))
            _exit(2);
        _exit(!iw_pcap_file_open());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void is_new(void)
{
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size > (off_t)sizeof(CONTENT));
}

static void a_new_one(void **state)
{
    (void)state;
    assert_true(opens(0));
    is_new();
}

/** An old capture; others could read it. */
static void our_own(void **state)
{
    (void)state;
    make(path, 0644);
    assert_true(opens(0));
    is_new();
}

static void a_symbolic_link(void **state)
{
    (void)state;
    make(other, 0640);
    assert_int_equal(symlink(other, path), 0);
    assert_false(opens(0));
    is_untouched(other, 0640);
}

static void a_hard_link(void **state)
{
    (void)state;
    make(other, 0640);
    assert_int_equal(link(other, path), 0);
    assert_false(opens(0));
    is_untouched(other, 0640);
}

static void of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make one */
    make(path, 0666);
    assert_false(opens(NOBODY));
    is_untouched(path, 0666);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_false(opens(0));
    is_untouched(path, 0666);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(dir) || chmod(dir, 0755))
        return -1;
    snprintf(path, sizeof(path), "%s/capture", dir);
    snprintf(other, sizeof(other), "%s/other", dir);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_new_one, clear),
        cmocka_unit_test_teardown(our_own, clear),
        cmocka_unit_test_teardown(a_symbolic_link, clear),
        cmocka_unit_test_teardown(a_hard_link, clear),
        cmocka_unit_test_teardown(of_another_user, clear),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
