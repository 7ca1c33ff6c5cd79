/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that close what they do not know, as daemons do: what gets those numbers then is theirs,
 * and a child that has nothing of its parent starts anew.
 */
#include "child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LIMIT_S 60
#define NUMBERS 2048 /* all that may be open here */
#define FILES   24

static void close_all(void)
{
    for (int fd = 3; fd < NUMBERS; fd++)
        close(fd);
}

static struct ibv_context *open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    CHECK(list && list[0]);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    CHECK(ctx);
    ibv_free_device_list(list);
    return ctx;
}

/** A QP of @p ctx in INIT, for which the engine has to run. */
static void make_qp(struct ibv_context *ctx)
{
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    CHECK(pd && cq);
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    CHECK(qp);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    CHECK(!ibv_modify_qp(qp, &init,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
}

static void listen_once(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_cm_id *id;
    CHECK(ch && !rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&any));
    CHECK(!rdma_listen(id, 1));
    CHECK(!rdma_destroy_id(id));
    rdma_destroy_event_channel(ch);
}

/** In a process of its own, which CHECK() may end. */
static void apart(void (*body)(void))
{
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(LIMIT_S);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status)
        fail_msg("child: status 0x%x", status);
}

/* ---- files under numbers that were ours ---- */

static struct {
    int fd;
    struct stat was;
} files[FILES];

static void open_files(void)
{
    char name[] = "/tmp/anywarp-daemon-XXXXXX";
    for (int i = 0; i < FILES; i++) {
        memcpy(name + sizeof(name) - 7, "XXXXXX", 6);
        files[i].fd = mkstemp(name);
        CHECK(files[i].fd >= 0 && !unlink(name) && !fstat(files[i].fd, &files[i].was));
    }
}

static void expect_files_as_before(void)
{
    for (int i = 0; i < FILES; i++) {
        struct stat is;
        CHECK(!fstat(files[i].fd, &is));
        CHECK(is.st_ino == files[i].was.st_ino && is.st_dev == files[i].was.st_dev);
        CHECK(is.st_size == 0);
    }
}

/** @param limit  where there is no number above 1023, ours are among the program's */
static void use_numbers_again(rlim_t limit)
{
    CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){limit, limit}));
    struct ibv_context *ctx = open_device();
    CHECK(ibv_create_comp_channel(ctx));
    make_qp(ctx);
    close_all();
    open_files();
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    expect_files_as_before();
    if (pid == 0)
        _exit(0);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    expect_files_as_before();
}

static void with_few_numbers(void)
{
    use_numbers_again(512);
}

static void with_many_numbers(void)
{
    use_numbers_again(NUMBERS);
}

static void fork_leaves_the_programs_files_alone(void **state)
{
    (void)state;
    apart(with_few_numbers);
    apart(with_many_numbers);
}

/* ---- a daemon ---- */

static void probe_and_become_a_daemon(void)
{
    struct ibv_context *ctx = open_device();
    make_qp(ctx);
    CHECK(!ibv_close_device(ctx));
    listen_once();
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) {
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
        return;
    }
    alarm(LIMIT_S);
    close_all();
    make_qp(open_device());
    listen_once();
    _exit(0);
}

static void keep_a_device_and_become_a_daemon(void)
{
    open_device();
    probe_and_become_a_daemon();
}

static void a_daemon_that_closes_all_starts_anew(void **state)
{
    (void)state;
    apart(probe_and_become_a_daemon);
    apart(keep_a_device_and_become_a_daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_leaves_the_programs_files_alone),
        cmocka_unit_test(a_daemon_that_closes_all_starts_anew),
    };
#ifdef __SANITIZE_THREAD__
    return 77; /* it starts no thread in a child of a process with threads */
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
