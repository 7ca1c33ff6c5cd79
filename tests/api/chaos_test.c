/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ANYWARP_CHAOS in a program with threads of its own: the same seed gives the same faults, call by
 * call, a log replays them, and what the log says is what the program saw.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define THREADS  4
#define CALLS    2000
#define FAULTS   4096
#define LINE     128
#define SETTINGS "every=20,only=post_recv+reg_mr"

static char folder[] = "/tmp/anywarp-chaos-XXXXXX";

struct worker {
    pthread_t thread;
    struct ibv_pd *pd;
    struct ibv_qp *qp;
    unsigned failed;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    char byte;
    struct ibv_recv_wr wr = {0}, *bad;
    for (int i = 0; i < CALLS; i++) {
        w->failed += ibv_post_recv(w->qp, &wr, &bad) == ENOMEM;
        struct ibv_mr *mr = ibv_reg_mr(w->pd, &byte, 1, 0);
        if (mr)
            ibv_dereg_mr(mr);
    }
    return NULL;
}

/** The program: @return how many receives failed, as its exit status tells modulo 251; 255: no */
static int program(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
    struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 1, NULL, NULL, 0) : NULL;
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct worker w[THREADS] = {0};
    unsigned failed = 0;
    for (int i = 0; cq && i < THREADS; i++) {
        struct ibv_qp_init_attr attr = {.send_cq = cq,
                                        .recv_cq = cq,
                                        .cap = {.max_recv_wr = CALLS, .max_recv_sge = 1},
                                        .qp_type = IBV_QPT_RC};
        w[i].pd = pd;
        w[i].qp = ibv_create_qp(pd, &attr);
        if (!w[i].qp ||
            ibv_modify_qp(w[i].qp, &init,
                          IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS))
            return 255;
    }
    for (int i = 0; cq && i < THREADS; i++)
        if (pthread_create(&w[i].thread, NULL, work, &w[i]))
            return 255;
    for (int i = 0; cq && i < THREADS; i++) {
        pthread_join(w[i].thread, NULL);
        failed += w[i].failed;
        ibv_destroy_qp(w[i].qp);
    }
    if (!cq || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx))
        return 255;
    ibv_free_device_list(list);
    return (int)(failed % 251);
}

static void path_of(char path[100], const char *name)
{
    snprintf(path, 100, "%s/%s", folder, name);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static char lines[2][FAULTS][LINE];

/** The lines of a log but for its head, sorted. @return how many */
static unsigned read_log(const char *path, char into[FAULTS][LINE])
{
    unsigned n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (n < FAULTS && fgets(into[n], LINE, f))
        n++;
    fclose(f);
    qsort(into, n, LINE, by_text);
    return n;
}

/** Runs it with these settings. @return its exit status; the log is in @p into */
static int run(const char *settings, const char *name, char into[FAULTS][LINE], unsigned *n)
{
    char path[100], text[300];
    int status;
    path_of(path, name);
    snprintf(text, sizeof(text), "%s,log=%s", settings, path);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("ANYWARP_CHAOS", text, 1);
        execl("/proc/self/exe", "chaos_test", "program",
              NULL); /* a child would have a name of its own */
        _exit(255);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 255);
    *n = read_log(path, into);
    return WEXITSTATUS(status);
}

static void same(unsigned n, unsigned m)
{
    assert_int_equal(n, m);
    for (unsigned i = 0; i < n; i++)
        assert_string_equal(lines[0][i], lines[1][i]);
}

static void a_seed_decides(void **state)
{
    unsigned n, m;
    (void)state;
    int first = run("seed=5," SETTINGS, "first", lines[0], &n);
    unsigned told = 0;
    for (unsigned i = 0; i < n; i++)
        told += strstr(lines[0][i], " post_recv qp ") != NULL;
    assert_in_range(told, THREADS * CALLS / 40, THREADS * CALLS / 10);
    assert_int_equal(told % 251, first);
    assert_int_equal(run("seed=5," SETTINGS, "second", lines[1], &m), first);
    same(n, m);
    run("seed=6," SETTINGS, "third", lines[1], &m);
    assert_true(n != m || memcmp(lines[0], lines[1], sizeof(lines[0])) != 0);
}

static void a_log_is_replayed(void **state)
{
    unsigned n, m;
    char settings[200], path[100];
    (void)state;
    path_of(path, "first");
    n = read_log(path, lines[0]);
    /* Of what is left when all but some are taken away, exactly those happen. */
    n = n > 7 ? 7 : n;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (unsigned i = 0; i < n; i++)
        fputs(lines[0][i], f);
    fclose(f);
    snprintf(settings, sizeof(settings), "seed=5,replay=%s", path);
    run(settings, "replayed", lines[1], &m);
    same(n, m);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"first", "second", "third", "replayed"};
    char path[100];
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        path_of(path, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1)
        return program();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_decides),
        cmocka_unit_test(a_log_is_replayed),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
