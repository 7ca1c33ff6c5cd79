/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that closes all descriptors that it does not know, as some do before they start another
 * or become a daemon: nothing spins, the log says why nothing goes on, and calls say it too.
 *
 * It happens in a process of its own, this program with an argument.
 */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 60
#define WATCHED 1000000 /* us */
#define POLLS   20000
#define BUSY    250000 /* us of CPU time in it that are a spin */

static long cpu_us(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000L + r.ru_utime.tv_usec +
           r.ru_stime.tv_usec;
}

/** What is closed here is still open there: what the engine waits for goes on to wake it. */
static pid_t hold(void)
{
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* the libraries do not see it */
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

static int child(void)
{
    struct ibv_wc wc;
    static struct pair p;
    struct rdma_cm_event *event;
    struct ibv_cq *cq;
    struct rdma_cm_id *id;
    void *context;
    alarm(LIMIT_S);
    pair_open(&p, &(struct pair_conf){0});
    pid_t holder = hold();
    for (int i = 0; i < POLLS; i++) /* the engine's thread looks after who polls, by a timer */
        ibv_poll_cq(p.a.cq, 1, &wc);
    closefrom(3);
    long before = cpu_us();
    usleep(WATCHED);
    assert_true(cpu_us() - before < BUSY);

    errno = 0;
    assert_int_equal(rdma_get_cm_event(p.a.events, &event), -1);
    assert_int_equal(errno, EBADF);
    errno = 0;
    assert_int_equal(ibv_get_cq_event(p.a.channel, &cq, &context), -1);
    assert_int_equal(errno, EBADF);
    errno = 0;
    bool made = rdma_create_id(p.a.events, &id, NULL, RDMA_PS_TCP) == 0;
    assert_true(!made || rdma_listen(id, 1) == -1);
    assert_int_equal(errno, EBADF);

    /* The connection is gone, and nothing that was posted is forgotten. */
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_WR_FLUSH_ERR);
    return kill(holder, SIGKILL);
}

static void ends_with_a_word(void **state)
{
    static char told[8192];
    int out[2], status;
    size_t n = 0;
    (void)state;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        setenv("VERBS_LOG_LEVEL", "2", 1);
        unsetenv("VERBS_LOG_FILE");
        execl("/proc/self/exe", "closed_test", "child", NULL);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t r; n < sizeof(told) - 1; n += (size_t)r)
        if ((r = read(out[0], told + n, sizeof(told) - 1 - n)) <= 0)
            break;
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    const char *line = strstr(told, "has closed descriptors that are not its own");
    if (status || !line || strstr(line + 1, "has closed descriptors"))
        print_error("status 0x%x\n%s", status, told);
    assert_int_equal(status, 0);
    assert_non_null(line);
    assert_null(strstr(line + 1, "has closed descriptors"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_with_a_word),
    };
    (void)argv;
    if (argc > 1)
        return child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
