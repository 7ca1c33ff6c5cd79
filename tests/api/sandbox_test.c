/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In a sandbox that refuses a system call or an address family, by a filter: what goes on without,
 * and what is said of the rest. Each case is a process of its own, under its filter from the start.
 */
#include "by_number.h"
#include "cm_kit.h"
#include "fails.h"
#include "logfile.h"
#include "sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED  77
#define QUIET_MS 500
#define BUSY_US  100000 /* of them: more is no pause */

static long used_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

static void the_listener_pauses(void **state)
{
    struct cm_sides s;
    struct rdma_conn_param param = {0};
    (void)state;
    cm_open(&s, NULL);
    struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
    assert_int_equal(rdma_connect(id, &param), 0);
    long before = used_us();
    cm_quiet(s.b, QUIET_MS);
    assert_true(used_us() - before < BUSY_US);
    assert_true(log_has("anywarp: listener pauses: *EPERM*"));
    cm_drop(id);
    cm_close(&s);
}

/* ---- by number ---- */

static void one_send(void **state)
{
    struct end x, y;
    (void)state;
    end_make(&x);
    end_make(&y);
    ends_connect(&x, &y);
    end_send_once(&x, &y, 7);
    end_drop(&x);
    end_drop(&y);
}

static int run_one_send(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_send)};
    return cmocka_run_group_tests_name("by number", tests, NULL, NULL);
}

static void by_number(void **state)
{
    (void)state;
    assert_int_equal(ends_run(run_one_send), 0);
}

/* ---- no sockets of AF_UNIX ---- */

static void no_datagrams(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD};
    (void)state;
    NULL_AND(EPERM, ibv_create_qp(pd, &init));
    assert_true(log_has("anywarp: a QP for datagrams is not made: * AF_UNIX, EPERM*"));
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void no_port_is_claimed(void **state)
{
    struct end x;
    union ibv_gid gid;
    (void)state;
    end_make(&x);
    end_init(&x);
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    assert_int_equal(end_try_rtr(&x, 1, &gid), EINVAL);
    assert_true(log_has("anywarp: no port of ANYWARP_PORTS is taken: * AF_UNIX, EPERM*"));
    end_drop(&x);
}

static int run_no_datagrams(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_datagrams)};
    return cmocka_run_group_tests_name("datagrams", tests, NULL, NULL);
}

static int run_no_claim(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_port_is_claimed)};
    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}

static void no_names(void **state)
{
    (void)state;
    assert_int_equal(ends_run(run_no_datagrams), 0);
}

static void no_names_of_ports(void **state)
{
    (void)state;
    setenv("ANYWARP_PORTS", "20000-20009", 1);
    assert_int_equal(ends_run(run_no_claim), 0);
}

/* ---- */

static void no_eventfd(void **state)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    (void)state;
    NULL_AND(EPERM, ibv_open_device(list[0]));
    assert_true(log_has("anywarp: no device is opened, *eventfd is refused: EPERM*"));
    ibv_free_device_list(list);
}

/* ---- */

static const struct {
    const char *name;
    void (*test)(void **state);
    uint32_t call, family; /* its first argument */
    int error;
} rows[] = {
    {"accept4, EPERM", the_listener_pauses, SYS_accept4, SANDBOX_ANY, EPERM},
    {"eventfd, EPERM", no_eventfd, SYS_eventfd2, SANDBOX_ANY, EPERM},
    {"by number, no AF_UNIX", by_number, SYS_socket, AF_UNIX, EPERM},
    {"datagrams, no AF_UNIX", no_names, SYS_socket, AF_UNIX, EPERM},
    {"ANYWARP_PORTS, no AF_UNIX", no_names_of_ports, SYS_socket, AF_UNIX, EPERM},
    {"no IPv6, EPERM", by_number, SYS_socket, AF_INET6, EPERM},
    {"no IPv6, EACCES", by_number, SYS_socket, AF_INET6, EACCES},
    {"no IPv6, EAFNOSUPPORT", by_number, SYS_socket, AF_INET6, EAFNOSUPPORT},
};

static int play(size_t i)
{
    const struct CMUnitTest tests[] = {{rows[i].name, rows[i].test, NULL, NULL, NULL}};
    if (!sandbox_refuse(rows[i].call, rows[i].family, rows[i].error))
        return SKIPPED;
    return cmocka_run_group_tests_name(rows[i].name, tests, log_setup, log_teardown);
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
