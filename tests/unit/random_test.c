/* SPDX-License-Identifier: BSD-2-Clause */
/* The random numbers of this build; compiled once more with those of the kernel. */
#include "env/random.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT 1000

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/** Numbers that are in the sorted list more than once. */
static unsigned doubles(uint32_t *list, size_t n)
{
    unsigned count = 0;
    qsort(list, n, sizeof(*list), compare);
    for (size_t i = 1; i < n; i++)
        count += list[i] == list[i - 1];
    return count;
}

static void all_bits_change(void **state)
{
    uint32_t list[COUNT], set = 0, clear = 0;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(iw_random32(&list[i]), 0);
        set |= list[i];
        clear |= ~list[i];
    }
    assert_int_equal(set, UINT32_MAX);
    assert_int_equal(clear, UINT32_MAX);
    assert_true(doubles(list, COUNT) <= 2); /* one in 8600 runs has one */
}

static void child_has_its_own(void **state)
{
    uint32_t list[2 * COUNT];
    int ends[2], status;
    (void)state;
    assert_int_equal(iw_random32(list), 0);
    assert_int_equal(pipe(ends), 0);
    iw_random_fork(FORK_PREPARE);
    pid_t child = fork();
    assert_true(child >= 0);
    iw_random_fork(child ? FORK_PARENT : FORK_CHILD);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(iw_random32(&list[i]), 0);
    if (child == 0)
        _exit(write(ends[1], list, sizeof(list) / 2) != sizeof(list) / 2);
    assert_int_equal(read(ends[0], list + COUNT, sizeof(list) / 2), sizeof(list) / 2);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(doubles(list, 2 * COUNT) <= 2);
    close(ends[0]);
    close(ends[1]);
}

#ifdef RANDOM_KERNEL
#define BUFFERED 64

/** From here on the process, which must end soon, has no getrandom(). */
static void forbid_getrandom(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &program))
        _exit(77);
}

/** What is left is given out, and then there is an error, each time. */
static void fails_without_source(void **state)
{
    static const char told[] =
        "anywarp: no random numbers, and so no keys and no queue pairs: Function not implemented\n";
    char text[512];
    uint32_t n;
    int status, out[2];
    (void)state;
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out[1], STDERR_FILENO);
        setenv("VERBS_LOG_LEVEL", "2", 1);
        unsetenv("VERBS_LOG_FILE");
        iw_random_fork(FORK_PREPARE);
        iw_random_fork(FORK_CHILD);
        if (iw_random32(&n))
            _exit(1);
        forbid_getrandom();
        for (int i = 1; i < BUFFERED; i++)
            if (iw_random32(&n))
                _exit(2);
        _exit(iw_random32(&n) != -EIO || iw_random32(&n) != -EIO ? 3 : 0);
    }
    close(out[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    ssize_t len = read(out[0], text, sizeof(text));
    close(out[0]);
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(status, 0);
    assert_int_equal(len, strlen(told));
    assert_memory_equal(text, told, strlen(told));
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bits_change),
        cmocka_unit_test(child_has_its_own),
#ifdef RANDOM_KERNEL
        cmocka_unit_test(fails_without_source),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
