/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows and the file of statistics, and their reader on files that nobody should believe. */
#include "observe/stats.h"
#include "tools/stats.h"
#include "tools/tool.h"
#include "wire/error.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
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

static char dir[] = "/tmp/anywarp-stats-XXXXXX";

/* In place of the tool's own. */
void tool_die(int status, const char *fmt, ...)
{
    (void)fmt;
    _exit(status);
}

/** Only this process has a file there. */
static struct stats read_own(void)
{
    struct stats_set set;
    struct stats_choice choice = {.pid = (uint32_t)getpid()};
    stats_read_all(&set, &choice);
    assert_int_equal(set.n, 1);
    struct stats s = set.process[0];
    free(set.process);
    return s;
}

static void drop(struct stats *s)
{
    struct stats_set set = {.process = malloc(sizeof(*s)), .n = 1};
    set.process[0] = *s;
    stats_free(&set);
}

static unsigned files(void)
{
    unsigned n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *f; (f = readdir(d));)
        n += f->d_name[0] != '.';
    closedir(d);
    return n;
}

/* ---- the layout, which the tool of another build depends on ---- */

static void layout(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct iwc_flow), 96);
    assert_int_equal(sizeof(struct stats_error), 512);
    assert_int_equal(offsetof(struct stats_page, errors), 4096);
    assert_int_equal(offsetof(struct stats_page, cqs), 20480);
    assert_int_equal(offsetof(struct stats_page, listeners), 53248);
    assert_int_equal(offsetof(struct stats_page, qps), 57344);
    assert_int_equal(offsetof(struct stats_qp, in), 160);
    assert_int_equal(offsetof(struct stats_head, gauge), 648);
}

/* ---- writer and reader ---- */

static void what_is_written_is_read(void **state)
{
    (void)state;
    static struct stats_cq own;
    struct stats_cq *cq = iw_stats_cq_take(&own, 127);
    struct stats_qp *qp = iw_stats_qp_take(0x123456, cq, NULL);
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(1)};
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6, .sin6_port = htons(2)};
    const struct tls_peer_name tls = {.cipher = "C", .identity = "CN=x"};
    inet_pton(AF_INET, "10.1.2.3", &local.sin_addr);
    inet_pton(AF_INET6, "fe80::1", &peer.sin6_addr);
    iw_stats_set(&cq->tail, 10);
    iw_stats_set(&cq->head, 3);
    iw_stats_qp_link(qp, &(struct iw_stats_link){.local = (struct sockaddr *)&local,
                                                 .peer = (struct sockaddr *)&peer,
                                                 .flags = STATS_CRC,
                                                 .rev = 2,
                                                 .ird = 3,
                                                 .ord = 4,
                                                 .tls = &tls});
    iw_stats_set(&qp->state, IBV_QPS_RTS);
    iwc_flow_segment(&qp->in, RDMAP_SEND_SE_INV, false, 1000);
    iwc_flow_segment(&qp->in, RDMAP_SEND_SE_INV, true, 24);
    iwc_flow_segment(&qp->out, RDMAP_IMM, true, 0);
    iw_stats_error(qp, 0x123456, "it fell down");

    struct stats s = read_own();
    assert_int_equal(s.life, STATS_ALIVE);
    assert_int_equal(s.ncqs, 1);
    assert_int_equal(s.cqs[0].tail - s.cqs[0].head, 7);
    assert_int_equal(s.cqs[0].cqe, 127);
    assert_int_equal(s.nqps, 1);
    assert_int_equal(s.qps[0].qp_num, 0x123456);
    assert_int_equal(s.qps[0].send_cq, s.cqs[0].id);
    assert_int_equal(s.qps[0].recv_cq, 0);
    assert_int_equal(s.qps[0].state, IBV_QPS_RTS);
    assert_int_equal(s.qps[0].flags, STATS_LINKED | STATS_CRC | STATS_IPV6);
    assert_memory_equal(s.qps[0].local, &local.sin_addr, 4);
    assert_memory_equal(s.qps[0].peer, &peer.sin6_addr, 16);
    assert_int_equal(s.qps[0].peer_port, 2);
    assert_string_equal(s.qps[0].tls.cipher, "C");
    assert_string_equal(s.qps[0].tls.identity, "CN=x");
    assert_int_equal(s.in.bytes[IWC_KIND_SEND], 1024);
    assert_int_equal(s.in.messages[IWC_KIND_SEND], 1);
    assert_int_equal(s.in.invalidates, 1);
    assert_int_equal(s.in.fpdus, 2);
    assert_int_equal(s.out.messages[IWC_KIND_IMMEDIATE], 1);
    assert_int_equal(s.nerrors, 1);
    assert_string_equal(s.errors[0].text, "it fell down");
    assert_int_equal(s.head.gauge[STATS_errors], 1);
    drop(&s);

    iw_stats_qp_release(qp); /* what it carried stays */
    iw_stats_cq_release(cq);
    s = read_own();
    assert_int_equal(s.nqps + s.ncqs, 0);
    assert_int_equal(s.in.bytes[IWC_KIND_SEND], 1024);
    assert_int_equal(s.head.gauge[STATS_qp], 0);
    drop(&s);
}

static void listeners_are_shown(void **state)
{
    static struct stats_listener *rows[STATS_LISTENERS + 2];
    struct sockaddr_in local = {.sin_family = AF_INET};
    (void)state;
    for (unsigned i = 0; i < STATS_LISTENERS + 2; i++) {
        local.sin_port = htons((uint16_t)(i + 1));
        rows[i] = iw_stats_listener_take((struct sockaddr *)&local, i);
        iw_stats_set(&rows[i]->waiting, 3);
    }
    struct stats s = read_own();
    assert_int_equal(s.nlisteners, STATS_LISTENERS);
    for (unsigned i = 0; i < STATS_LISTENERS; i++) {
        assert_int_equal(s.listeners[i].local_port, i + 1);
        assert_int_equal(s.listeners[i].backlog, i);
        assert_int_equal(s.listeners[i].waiting, 3);
    }
    drop(&s);
    for (unsigned i = 0; i < STATS_LISTENERS + 2; i++)
        iw_stats_listener_release(rows[i]);
    s = read_own();
    assert_int_equal(s.nlisteners, 0);
    drop(&s);
}

static void rows_are_used_again(void **state)
{
    static struct stats_qp *rows[STATS_QPS + 10];
    struct stats s;
    (void)state;
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < STATS_QPS + 10; i++)
            rows[i] = iw_stats_qp_take(i + 1, NULL, NULL);
        assert_ptr_equal(rows[STATS_QPS], rows[STATS_QPS + 9]); /* beyond the table */
        s = read_own();
        assert_int_equal(s.nqps, STATS_QPS);
        assert_int_equal(s.head.gauge[STATS_qp], STATS_QPS + 10);
        drop(&s);
        for (unsigned i = 0; i < STATS_QPS + 10; i++)
            iw_stats_qp_release(rows[i]);
    }
    s = read_own();
    assert_int_equal(s.nqps, 0);
    drop(&s);
}

static void only_the_newest_errors_are_kept(void **state)
{
    char text[32];
    struct stats_qp qp = {0};
    (void)state;
    for (unsigned i = 0; i < 3 * STATS_ERRORS; i++) {
        snprintf(text, sizeof(text), "error %u", i);
        iw_stats_error(&qp, i, text);
    }
    struct stats s = read_own();
    assert_int_equal(s.nerrors, STATS_ERRORS);
    for (unsigned i = 0; i < STATS_ERRORS; i++)
        assert_int_equal(s.errors[i].qp_num, 2 * STATS_ERRORS + i);
    drop(&s);
}

static int child_status(int (*body)(void))
{
    int status;
    iw_stats_fork(
        FORK_PREPARE); /* nothing in this program calls the handlers of process/atfork.c */
    pid_t pid = fork();
    iw_stats_fork(pid ? FORK_PARENT : FORK_CHILD);
    if (pid == 0)
        _exit(body());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/** From now on the process cannot map a page more than it has. */
static void take_all_room(void)
{
    unsigned long pages;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1 || fclose(f))
        _exit(1);
    rlim_t all = pages * (rlim_t)getpagesize();
    if (setrlimit(RLIMIT_AS, &(struct rlimit){all, all}))
        _exit(1);
}

static void a_child_needs_no_room(void **state)
{
    int status;
    (void)state;
    iw_stats_publish();
    iw_stats_fork(FORK_PREPARE);
    pid_t pid = fork();
    if (pid == 0)
        take_all_room();
    iw_stats_fork(pid ? FORK_PARENT : FORK_CHILD);
    if (pid == 0) {
        iw_stats_gauge(STATS_mr, 1);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(iw_stats_gauge_of(STATS_mr), 0);
}

static void cqs_beyond_the_table_share_nothing(void **state)
{
    static struct stats_cq own[STATS_CQS + 2], *rows[STATS_CQS + 2];
    (void)state;
    for (unsigned i = 0; i < STATS_CQS + 2; i++)
        rows[i] = iw_stats_cq_take(&own[i], 1);
    for (unsigned i = 0; i < STATS_CQS; i++)
        assert_ptr_not_equal(rows[i], &own[i]);
    for (unsigned i = STATS_CQS; i < STATS_CQS + 2; i++)
        assert_ptr_equal(rows[i], &own[i]);
    struct stats s = read_own();
    assert_int_equal(s.ncqs, STATS_CQS);
    assert_int_equal(s.head.gauge[STATS_cq], STATS_CQS + 2);
    drop(&s);
    for (unsigned i = 0; i < STATS_CQS + 2; i++)
        iw_stats_cq_release(rows[i]);
}

static void *count(void *arg)
{
    for (unsigned i = 0; i < 10000; i++)
        iw_stats_gauge(STATS_mr, 1);
    return arg;
}

static void nothing_counted_is_lost(void **state)
{
    pthread_t t[3];
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
    iw_stats_publish(); /* meanwhile their memory becomes a file's */
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    struct stats s = read_own();
    assert_int_equal(s.head.gauge[STATS_mr], 30000);
    drop(&s);
    iw_stats_gauge(STATS_mr, -30000);
}

static struct stats_qp *shared; /* with a child, if it were so */

static int use_parents_row(void)
{
    struct stats_set set;
    struct stats_choice choice = {.pid = (uint32_t)getpid()};
    iwc_flow_segment(&shared->out, RDMAP_WRITE, true, 7);
    stats_read_all(&set, &choice);
    if (set.n)
        return 1; /* it has no file yet */
    static struct stats_cq own;
    iw_stats_cq_take(&own, 1);
    stats_read_all(&set, &choice);
    return set.n != 1 || set.process[0].out.bytes[IWC_KIND_WRITE] != 7 ||
           set.process[0].ncqs != 1 || set.process[0].nqps != 1 || set.process[0].nerrors;
}

static void a_child_has_its_own(void **state)
{
    (void)state;
    shared = iw_stats_qp_take(5, NULL, NULL);
    iwc_flow_segment(&shared->out, RDMAP_WRITE, true, 100);
    assert_int_equal(child_status(use_parents_row), 0);
    struct stats s = read_own();
    assert_int_equal(s.qps[0].out.bytes[IWC_KIND_WRITE], 100);
    drop(&s);
    iw_stats_qp_release(shared);
    assert_int_equal(stats_remove_ended(), 1); /* of the child, which called _exit() */
    assert_int_equal(files(), 1);
}

/** When the process began, in ticks after boot. */
static unsigned long long start_in(const char *path)
{
    unsigned long long start = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int fields = fscanf(f,
                        "%*d (%*[^)]) %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %*s %*s %*s %*s %llu",
                        &start);
    fclose(f);
    assert_int_equal(fields, 1);
    return start;
}

static unsigned long long own_start;

static int is_start_of_parent(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", getppid());
    return start_in(path) == own_start;
}

/** Skips where a process and others are told different times, as by QEMU's user mode. */
static void need_one_start(void)
{
    own_start = start_in("/proc/self/stat");
    if (child_status(is_start_of_parent))
        return;
    print_message("/proc/self/stat and /proc/PID/stat tell of different starts of a process\n");
    skip();
}

static int make_file(void)
{
    static struct stats_cq own;
    iw_stats_cq_take(&own, 1);
    return 0;
}

static void few_files_of_the_dead_are_kept(void **state)
{
    (void)state;
    need_one_start();
    for (unsigned i = 0; i < STATS_KEEP + 5; i++)
        assert_int_equal(child_status(make_file), 0);
    /* The last one came after the last look. */
    assert_int_equal(files(), STATS_KEEP + 2);
    assert_int_equal(stats_remove_ended(), STATS_KEEP + 1);
    assert_int_equal(files(), 1);
}

/* ---- hostile files ---- */

static const struct stats_owner nobody = {.pid = 1, .start = 1, .ns = 1};

static void put(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

/** Reads it, whatever it is, in a child: nothing may crash, and no string may run on. */
static bool readable(const char *path)
{
    struct stats s;
    bool ok = stats_read(&s, AT_FDCWD, path, &nobody);
    if (!ok)
        return false;
    assert_true(strlen(s.head.command) < sizeof(s.head.command));
    assert_true(strlen(s.head.devices) < sizeof(s.head.devices));
    assert_true(s.nqps <= STATS_QPS && s.ncqs <= STATS_CQS && s.nlisteners <= STATS_LISTENERS &&
                s.nerrors <= STATS_ERRORS);
    for (size_t i = 0; i < s.nerrors; i++)
        assert_true(strlen(s.errors[i].text) < sizeof(s.errors[i].text));
    for (size_t i = 0; i < s.nqps; i++)
        assert_true(s.qps[i].error < IW_ERR_COUNT);
    drop(&s);
    return true;
}

static void hostile_files(void **state)
{
    char path[64], other[64];
    struct stats_page *page = malloc(sizeof(*page));
    (void)state;
    snprintf(path, sizeof(path), "%s/1-1-1", dir);
    snprintf(other, sizeof(other), "%s/other", dir);

    assert_false(readable(path)); /* none at all */
    put(path, "", 0);
    assert_false(readable(path));
    memset(page, 0xff, sizeof(*page));
    put(path, page, sizeof(*page));
    assert_false(readable(path)); /* no magic */
    memcpy(page->head.magic, STATS_MAGIC, sizeof(page->head.magic));
    put(path, page, sizeof(*page));
    assert_false(readable(path)); /* another version */
    page->head.version = STATS_VERSION;
    put(path, page, sizeof(*page));
    assert_true(readable(path)); /* every seq is odd, no string ends */
    for (unsigned i = 0; i < STATS_QPS; i++)
        page->qps[i].seq = 2;
    for (unsigned i = 0; i < STATS_CQS; i++)
        page->cqs[i].seq = 2;
    for (unsigned i = 0; i < STATS_LISTENERS; i++)
        page->listeners[i].seq = 2;
    for (unsigned i = 0; i < STATS_ERRORS; i++)
        page->errors[i].seq = 2;
    put(path, page, sizeof(*page));
    assert_true(readable(path));
    for (size_t len = 0; len < 100000; len += len < 5000 ? 331 : 9973) {
        put(path, page, len);
        assert_int_equal(readable(path), len >= sizeof(page->head));
    }
    srand(1);
    for (int round = 0; round < 20; round++) {
        for (size_t i = sizeof(page->head.magic) + 4; i < 100000; i++)
            ((uint8_t *)page)[i] = (uint8_t)rand();
        put(path, page, 100000);
        assert_true(readable(path));
    }
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_false(readable(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(readable(path));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(readable(path));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(unlink(other), 0);
    free(page);
}

static void names(void **state)
{
    static const char *const bad[] = {"",          "1",        "1-2",    "1-2-3x",
                                      "1-2-3-4",   " 1-2-3",   "+1-2-3", "01-2-3",
                                      "1-2-3.tmp", "../1-2-3", "-1-2-3"};
    struct stats_owner o;
    (void)state;
    assert_true(stats_name_parse("4294967295-18446744073709551615-4026531836", &o));
    assert_int_equal(o.pid, UINT32_MAX);
    assert_int_equal(o.ns, 4026531836);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(stats_name_parse(bad[i], &o));
}

static void directories(void **state)
{
    char d[STATS_PATH_MAX], shm[STATS_PATH_MAX];
    (void)state;
    snprintf(shm, sizeof(shm), "/dev/shm/anywarp-%u", (unsigned)geteuid());
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    assert_true(stats_dir(NULL, 0, d));
    assert_string_equal(d, "/run/user/7/anywarp");
    assert_true(stats_dir("on", 1, d));
    assert_string_equal(d, shm);
    assert_false(stats_dir(NULL, 2, d));
    assert_true(stats_dir("/here", 0, d));
    assert_string_equal(d, "/here");
    assert_false(stats_dir("/here", 1, d));
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    assert_true(stats_dir(NULL, 0, d));
    assert_string_equal(d, shm);
    assert_false(stats_dir(NULL, 1, d));

    int fd = stats_dir_open(dir);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(chmod(dir, 0710), 0);
    assert_int_equal(stats_dir_open(dir), -EPERM);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(stats_dir_open("/tmp"), -EPERM);
    assert_int_equal(stats_dir_open("/nowhere"), -ENOENT);
    assert_int_equal(stats_dir_open("/dev/null"), -ENOTDIR);
}

/** What is found by the path later is another's: the descriptor is still ours. */
static void a_directory_that_is_swapped(void **state)
{
    char was[64], name[STATS_NAME_MAX], path[160];
    struct stats_owner ended = {.pid = 1, .start = 1, .ns = stats_self().ns};
    (void)state;
    snprintf(was, sizeof(was), "%s-was", dir);
    stats_name(name, &ended);
    int fd = stats_dir_open(dir);
    assert_true(fd >= 0);
    assert_int_equal(rename(dir, was), 0);
    assert_int_equal(symlink(was, dir), 0);
    assert_true(stats_dir_open(dir) < 0);
    snprintf(path, sizeof(path), "%s/%s", was, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fclose(f);
    unsigned gone = stats_evict(fd, 0), again = stats_evict(fd, 0);
    close(fd);
    assert_int_equal(unlink(dir), 0);
    assert_int_equal(rename(was, dir), 0);
    assert_int_equal(gone, 1);
    assert_int_equal(again, 0);
}

static int setup(void **state)
{
    (void)state;
    return !mkdtemp(dir) || setenv("ANYWARP_STATS", dir, 1);
}

/** At the end of the process its file goes: then the directory is empty. */
static int teardown(void **state)
{
    struct stats_owner self = stats_self();
    char name[STATS_NAME_MAX], path[128];
    (void)state;
    stats_name(name, &self);
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return unlink(path) || rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(listeners_are_shown),
        cmocka_unit_test(rows_are_used_again),
        cmocka_unit_test(a_child_needs_no_room),
        cmocka_unit_test(cqs_beyond_the_table_share_nothing),
        cmocka_unit_test(nothing_counted_is_lost),
        cmocka_unit_test(only_the_newest_errors_are_kept),
        cmocka_unit_test(a_child_has_its_own),
        cmocka_unit_test(few_files_of_the_dead_are_kept),
        cmocka_unit_test(hostile_files),
        cmocka_unit_test(names),
        cmocka_unit_test(directories),
        cmocka_unit_test(a_directory_that_is_swapped),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
