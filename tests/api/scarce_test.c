/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that gets no more memory: QPs that were made do their work. Each case is a process of
 * its own.
 */
#include "by_number.h"
#include "fails.h"
#include "logfile.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77
#define LARGE   (128 * 1024) /* no buffer for bytes in flight is smaller */
#define SENDS   20

/* There if the program is built with a sanitizer, which has allocators and limits of its own. */
void __asan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

/** From here on, nothing of LARGE bytes or more is to be had. @return whether that is so */
static bool exhaust(void)
{
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};
    size_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    bool read = f && fscanf(f, "%zu", &pages) == 1;
    if (f)
        fclose(f);
    limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE);
    if (!read || setrlimit(RLIMIT_AS, &limit))
        return false;
    void *p = mmap(NULL, LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        return false;
    for (unsigned i = 0; i < 100000 && malloc(LARGE); i++)
        ;
    return true;
}

static void a_qp_that_was_made_works(void **state)
{
    struct end x, y;
    (void)state;
    end_make(&x);
    end_make(&y);
    if (!exhaust())
        skip();
    ends_connect(&x, &y);
    for (uint64_t i = 1; i <= SENDS; i++)
        end_send_once(&x, &y, i);
    assert_true(log_has("anywarp: memory is short: *"));
}

static void a_qp_that_could_not_send_is_not_made(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {.max_send_wr = 1}};
    (void)state;
    assert_non_null(cq);
    if (!exhaust())
        skip();
    NULL_AND(ENOMEM, ibv_create_qp(pd, &attr));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_qp_that_was_made_works),
    cmocka_unit_test(a_qp_that_could_not_send_is_not_made),
};
static const struct CMUnitTest *test;

static int run(void)
{
    const struct CMUnitTest one[] = {*test};
    return cmocka_run_group_tests_name(test->name, one, NULL, NULL);
}

int main(void)
{
    int failed;
    if (__asan_init || __tsan_init)
        return SKIPPED;
    mallopt(M_ARENA_MAX, 1); /* those of other threads have room to spare */
    failed = log_setup(NULL) != 0;
    for (test = tests; test < tests + sizeof(tests) / sizeof(tests[0]); test++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            exit(ends_run(run));
        if (waitpid(child, &status, 0) != child || status)
            failed = 1;
    }
    return failed || log_teardown(NULL);
}
