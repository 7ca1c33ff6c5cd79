/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams where a sandbox refuses to have several go in one system call: they go one by one. */
#include "sandbox.h"
#include "ud_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77
#define SOME    8

static void all_arrive(void **state)
{
    struct ibv_send_wr wr, *bad;
    struct ibv_sge sge;
    (void)state;
    for (unsigned i = 0; i < SOME; i++)
        receive(&b, i, 256);
    for (unsigned i = 0; i < SOME; i++) {
        wr = request(&a, &b, &sge, 64);
        assert_int_equal(ibv_post_send(a.qp, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < SOME; i++)
        sent(&a);
    for (unsigned i = 0; i < SOME; i++)
        assert_int_equal(received(&b, i).byte_len, GRH + 64);
    pass(&b, &a, 5);
}

static const struct {
    uint32_t call;
    int error;
} rows[] = {
    {SYS_sendmmsg, EPERM},
    {SYS_sendmmsg, ENOSYS},
    {SYS_recvmmsg, EPERM},
    {SYS_recvmmsg, ENOSYS},
};

static int play(size_t i)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_arrive, setup, teardown)};
    if (!sandbox_refuse(rows[i].call, SANDBOX_ANY, rows[i].error))
        return SKIPPED;
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    open_device("r0", 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    close_device();
    return failed;
}

int main(void)
{
    int result = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            exit(play(i));
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
            return 1;
        if (WEXITSTATUS(status) && result != 1)
            result = WEXITSTATUS(status) == SKIPPED ? SKIPPED : 1;
    }
    return result;
}
