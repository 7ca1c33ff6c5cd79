/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What "anywarp stat" says of a process whose traffic is known: while it runs, after a crash, in a
 * child, and that nothing is left at the end.
 */
#include "pair.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TEXT_MAX (1 << 20)
#define MANY     600
#define WORDS_S  20

static char text[TEXT_MAX];

/** Runs "anywarp stat PID". @return its exit status; what it says is in text */
static int stat_of(pid_t pid)
{
    char command[256];
    const char *tool = getenv("ANYWARP");
    assert_non_null(tool);
    snprintf(command, sizeof(command), "%s stat %d 2>/dev/null", tool, (int)pid);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = 0;
    return WEXITSTATUS(pclose(f));
}

/** The text from the line on that begins with @p start. */
static const char *line(const char *start)
{
    const char *p = text;
    size_t len = strlen(start);
    while (p && strncmp(p, start, len) != 0) {
        p = strchr(p, '\n');
        p += p != NULL;
    }
    if (!p)
        fail_msg("no line \"%s\" in:\n%s", start, text);
    return p;
}

/** The number behind @p key in the lines from @p from on; 0 if it is not in @p lines of them. */
static uint64_t value(const char *from, int lines, const char *key)
{
    char word[64];
    snprintf(word, sizeof(word), " %s ", key);
    const char *end = from;
    for (; lines && (end = strchr(end, '\n')); lines--)
        end++;
    const char *p = strstr(from, word);
    return p && (!end || p < end) ? strtoull(p + strlen(word), NULL, 10) : 0;
}

static void expect(const char *from, int lines, const char *key, uint64_t want)
{
    if (value(from, lines, key) != want)
        fail_msg("%s is %" PRIu64 ", not %" PRIu64 ", in:\n%s", key, value(from, lines, key), want,
                 from);
}

static const char *qp_lines(const struct side *s)
{
    char start[32];
    snprintf(start, sizeof(start), "  qp 0x%06x ", s->id->qp->qp_num);
    return line(start);
}

static void good(struct side *s)
{
    assert_int_equal(side_poll(s).status, IBV_WC_SUCCESS);
}

/** 3 Sends of 100 bytes, 2 Writes of 5000, 1 of 70,000 with immediate, 2 Reads of 300, 1 atomic. */
static void traffic(struct pair *p)
{
    for (unsigned i = 0; i < 4; i++)
        side_recv(&p->b, i, 1024 * i, 1024);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, i, 0, 100, 0, 0), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 0, 5000, 8192, 0), 0);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 70000, 8192, 0), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, i, 0, 300, 8192, 0), 0);
    struct ibv_sge sge = {(uintptr_t)p->a.buf, 8, p->a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.atomic = {.rkey = p->b.mr->rkey, .compare_add = 1}};
    wr.wr.atomic.remote_addr = ((uintptr_t)p->b.buf + 7) & ~(uintptr_t)7;
    assert_int_equal(ibv_post_send(p->a.id->qp, &wr, &bad), 0);
    for (unsigned i = 0; i < 9; i++)
        good(&p->a);
    for (unsigned i = 0; i < 3; i++)
        good(&p->b);
}

/** The empty Write of connection set-up is one more; @p reads were tried beside. */
static void expect_traffic(const char *from, int lines, const char *way, const char *back,
                           unsigned reads)
{
    const struct {
        const char *name;
        uint64_t n;
    } there[] = {{"RdmaSends", 3},         {"RdmaSendBytes", 300},    {"RdmaWrites", 4},
                 {"RdmaReads", 2 + reads}, {"RdmaWriteBytes", 80000}, {"RdmaAtomics", 1},
                 {"RdmaImmediates", 1}},
      here[] = {{"RdmaReadResponses", 2}, {"RdmaReadBytes", 600}, {"RdmaAtomicResponses", 1}};
    char key[64];
    for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
        snprintf(key, sizeof(key), "%s%s", way, there[i].name);
        expect(from, lines, key, there[i].n);
    }
    for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
        snprintf(key, sizeof(key), "%s%s", back, here[i].name);
        expect(from, lines, key, here[i].n);
    }
}

static void known_traffic(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 4});
    traffic(&p);
    assert_int_equal(stat_of(getpid()), 0);
    const char *a = qp_lines(&p.a), *b = qp_lines(&p.b);
    expect_traffic(a, 3, "iwOut", "iwIn", 0);
    expect_traffic(b, 3, "iwIn", "iwOut", 0);
    expect(a, 1, "ird", 4);
    expect(a, 1, "mpa", 2);
    assert_non_null(strstr(a, " state RTS local 127.0.0.1:"));
    assert_non_null(strstr(a, " side active mpa 2 crc off markers off "));
    expect(text, 2, "qp", 2);
    expect(text, 2, "mr", 2);
    expect(text, 2, "mr_bytes", 2 * SIDE_BYTES);
    expect(text, 2, "connects", 1);
    expect(text, 2, "accepts", 1);
    uint64_t depth = 0; /* one receive is not polled */
    for (const char *p = text; (p = strstr(p, "\n  cq ")); p++)
        depth += value(p + 1, 1, "depth");
    assert_int_equal(depth, 1);
    good(&p.b);
    pair_close(&p, 1);

    /* What is gone stays counted. */
    assert_int_equal(stat_of(getpid()), 0);
    const char *process = line("process ");
    expect_traffic(process, 4, "iwOut", "iwIn", 0);
    expect_traffic(process, 4, "iwIn", "iwOut", 0);
    expect(process, 2, "qp", 0);
    expect(process, 2, "mr_bytes", 0);
}

/* ---- children ---- */

static int to_parent[2];

/** Waits for the child's word, then for its end. @return the wait status */
static int end_of(pid_t pid)
{
    char c;
    int status;
    assert_int_equal(read(to_parent[0], &c, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/** Waits until the lines of the QP have @p words, as the process says of itself. */
static void expect_words(const struct side *s, const char *words)
{
    time_t end = time(NULL) + WORDS_S;
    do {
        assert_int_equal(stat_of(getpid()), 0);
    } while (!strstr(qp_lines(s), words) && time(NULL) < end);
    const char *at = strstr(qp_lines(s), words);
    if (!at)
        fail_msg("not \"%s\" in: %s", words, qp_lines(s));
}

/** What is posted, and what waits for a receive. */
static void occupancy(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = 4, .recv_wr = 8});
    expect_words(&p.a, " sq 0/4 rq 0/8\n");
    side_recv(&p.a, 1, 0, 64);
    side_recv(&p.a, 2, 64, 64);
    expect_words(&p.a, " sq 0/4 rq 2/8\n");
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, 1, 0, 64, 0, 0), 0);
    good(&p.a);
    expect_words(&p.b, " sq 0/4 rq 0/8 held 1 (64 bytes)");
    side_recv(&p.b, 3, 0, 64);
    good(&p.b);
    expect_words(&p.b, " sq 0/4 rq 0/8\n");
    pair_close(&p, 1);
}

static pid_t child_of(void (*body)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(getenv("ANYWARP_TEST_EMULATED") ? 600 : 60);
        body();
        if (write(to_parent[1], "", 1) != 1)
            _exit(2);
        exit(0);
    }
    return pid;
}

/** A Read by a wrong key. */
static void fail_qp(void)
{
    struct pair p;
    struct ibv_mr wrong;
    pair_open(&p, &(struct pair_conf){.depth = 4});
    traffic(&p);
    wrong = *p.b.mr;
    wrong.rkey ^= 0x10100;
    struct side peer = {.buf = p.b.buf, .mr = &wrong};
    side_post(&p.a, &peer, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0);
    while (side_poll(&p.a).status == IBV_WC_SUCCESS)
        ;
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
}

static void crash(void)
{
    fail_qp();
    if (write(to_parent[1], "", 1) == 1)
        raise(SIGKILL);
}

__attribute__((unused)) static void after_a_crash(void **state)
{
    (void)state;
    pid_t pid = child_of(crash);
    assert_true(WIFSIGNALED(end_of(pid)));
    assert_int_equal(stat_of(pid), 0);
    const char *process = line("process ");
    assert_non_null(strstr(process, " state ended "));
    expect_traffic(process, 4, "iwOut", "iwIn", 1);
    expect(process, 2, "errors", 2);
    line("    cause read or atomic from an invalid STag");
    assert_non_null(strstr(line("  error "), ": RDMA Read, wr_id 0x1: peer sent a Terminate"));
    assert_non_null(strstr(text, ": read or atomic from an invalid STag: RDMA Read of 8 bytes"));
}

static void make_no_object(void)
{
}

static void make_pair(void)
{
    struct pair p;
    pair_open(&p, &(struct pair_conf){.depth = 4});
    traffic(&p);
    if (stat_of(getpid()) || value(line("process "), 4, "iwOutRdmaSends") != 3)
        _exit(3);
    good(&p.b);
    pair_close(&p, 1);
}

__attribute__((unused)) static void after_a_failure(void **state)
{
    (void)state;
    pid_t pid = child_of(fail_qp);
    assert_int_equal(end_of(pid), 0);
    assert_int_equal(stat_of(pid), 0);
    assert_non_null(strstr(line("process "), " state exited "));
    line("    cause read or atomic from an invalid STag");
    assert_non_null(strstr(line("  error "), ": RDMA Read, wr_id 0x1: peer sent a Terminate"));
}

__attribute__((unused)) static void children_and_their_end(void **state)
{
    void (*const bodies[])(void) = {make_no_object, make_pair};
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 4});
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(stat_of(getpid()), 0);
        uint64_t before = value(line("process "), 4, "iwOutFpdus");
        pid_t pid = child_of(bodies[i]);
        assert_int_equal(end_of(pid), 0);
        assert_int_equal(stat_of(pid), 1); /* exit() has removed it */
        assert_int_equal(stat_of(getpid()), 0);
        assert_int_equal(value(line("process "), 4, "iwOutFpdus"), before);
    }
    pair_close(&p, 1);
}

/** The file grows; a limit on its size ends that, and nothing else. */
static void many_qps(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct ibv_qp *qp[MANY];
    for (unsigned i = 0; i < MANY; i++)
        if (!(qp[i] = ibv_create_qp(pd, &attr)))
            _exit(4);
    if (stat_of(getpid()))
        _exit(5);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    unsigned shown = 0;
    for (const char *p = text; (p = strstr(p, "\n  qp 0x")); p++)
        shown++;
    if (limit.rlim_cur == RLIM_INFINITY ? shown != MANY : shown == 0 || shown == MANY)
        _exit(6);
    for (unsigned i = 0; i < MANY; i++)
        ibv_destroy_qp(qp[i]);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    ibv_free_device_list(list);
}

static void many_qps_in_a_small_file(void)
{
    struct rlimit limit = {.rlim_cur = 128 * 1024, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    many_qps();
}

static void no_file(void)
{
    struct pair p;
    setenv("ANYWARP_STATS", "/proc/nowhere", 1);
    pair_open(&p, &(struct pair_conf){.depth = 4});
    traffic(&p);
    good(&p.b);
    pair_close(&p, 1);
}

/* What reads the environment once is read in these first: they run before everything else. */
static pid_t early[3];

static int teardown(void **state)
{
    char command[256];
    (void)state;
    snprintf(command, sizeof(command), "%s stat --clear >/dev/null", getenv("ANYWARP"));
    return system(command);
}

static void large_and_small_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
        int status;
        assert_int_equal(waitpid(early[i], &status, 0), early[i]);
        assert_int_equal(status, 0);
        assert_int_equal(stat_of(early[i]), 1); /* exit() has removed it */
    }
}

static int setup(void **state)
{
    void (*const bodies[])(void) = {many_qps, many_qps_in_a_small_file, no_file};
    (void)state;
    if (!getenv("ANYWARP") || !getenv("ANYWARP_STATS") || pipe(to_parent))
        return -1;
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
        char c;
        early[i] = child_of(bodies[i]);
        if (read(to_parent[0], &c, 1) != 1)
            return -1;
    }
    return 0;
}

/* What is still in use at exit() is no leak. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_traffic),
#ifndef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
        cmocka_unit_test(after_a_crash),          cmocka_unit_test(after_a_failure),
        cmocka_unit_test(children_and_their_end),
#endif
        cmocka_unit_test(large_and_small_files),  cmocka_unit_test(occupancy),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
