/* SPDX-License-Identifier: BSD-2-Clause */
/* exit() with a queue pair that is connected by number: threads that go on polling hear nothing of
 * it. */
#include "by_number.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HEARD 9

static struct end a, b;

static void *poll_on(void *arg)
{
    struct ibv_wc wc;
    (void)arg;
    while (ibv_poll_cq(a.cq, 1, &wc) == 0 && ibv_poll_cq(b.cq, 1, &wc) == 0)
        ;
    _exit(HEARD);
}

static int run(void)
{
    pthread_t thread;
    end_make(&a);
    end_make(&b);
    ends_connect(&a, &b);
    end_send_once(&a, &b, 5);
    end_send_once(&b, &a, 6);
    end_receive(&a);
    end_receive(&b);
    pthread_create(&thread, NULL, poll_on, NULL);
    usleep(10000);
    exit(0);
}

static void nothing_is_flushed(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(ends_run(run));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_flushed)};
    unsetenv("IBV_CONFIG_DIR");
    unsetenv("ANYWARP_DEVICES");
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
