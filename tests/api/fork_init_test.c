/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_fork_init() and its relatives. Memory is not pinned, so a child's copy-on-write is no danger
 * and nothing has to be asked for: every answer is the same before and after, with and without the
 * variables that ask for protection. Those are read when a program starts: the test runs itself
 * once for each.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define PAGES 4

static void expect_unneeded(void)
{
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

static void test_sequence(void **state)
{
    const size_t size = (size_t)sysconf(_SC_PAGESIZE) * PAGES;
    (void)state;
    expect_unneeded();
    assert_int_equal(ibv_fork_init(), 0);
    expect_unneeded();
    assert_int_equal(ibv_fork_init(), 0);

    struct ibv_device **list = ibv_get_device_list(NULL);
    assert_non_null(list);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    char *buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(buf != MAP_FAILED);
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, size, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(ibv_fork_init(), 0); /* with memory registered: too late for others */
    expect_unneeded();

    /* The child has the pages, and what it writes there stays with it. */
    memset(buf, 'p', size);
    pid_t child = fork();
    if (child == 0) {
        int ok = buf[0] == 'p' && buf[size - 1] == 'p';
        memset(buf, 'c', size);
        _exit(ok ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(buf[0], 'p');
    assert_int_equal(buf[size - 1], 'p');

    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(munmap(buf, size), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

static const struct {
    const char *name, *value;
} variables[] = {
    {"NONE_OF_THEM", "1"},    {"RDMAV_FORK_SAFE", "1"}, {"RDMAV_FORK_SAFE", ""},
    {"RDMAV_FORK_SAFE", "0"}, {"IBV_FORK_SAFE", "1"},   {"RDMAV_HUGEPAGES_SAFE", "1"},
};

/** @return whether the sequence passes in a new process with the variable set */
static int passes_with(const char *name, const char *value)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        setenv(name, value, 1);
        execl("/proc/self/exe", "fork_init_test", name, (char *)NULL);
        _exit(99);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

static void test_variables(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        if (!passes_with(variables[i].name, variables[i].value))
            fail_msg("%s=%s", variables[i].name, variables[i].value);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {cmocka_unit_test(test_variables)};
    const struct CMUnitTest one[] = {cmocka_unit_test(test_sequence)};
    if (argc > 1)
        return cmocka_run_group_tests_name(argv[1], one, NULL, NULL);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i].name);
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    return cmocka_run_group_tests(all, NULL, NULL);
}
