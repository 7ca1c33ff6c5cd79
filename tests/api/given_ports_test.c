/* SPDX-License-Identifier: BSD-2-Clause */
/* ANYWARP_PORTS with one port: what it has room for, whom it belongs to, and who comes too late. */
#include "by_number.h"
#include "cm_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM 256
#define ENDS 2

static unsigned port;
static struct ibv_cq *cq;

static unsigned any_free_port(void)
{
    struct sockaddr_storage addr;
    close(cm_listen_plain(&addr, 1));
    return ntohs(((struct sockaddr_in *)&addr)->sin_port);
}

static struct ibv_qp *make(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    return qp;
}

static void cannot_be_dialled(struct ibv_qp *qp)
{
    struct end e = {.qp = qp};
    union ibv_gid gid;
    assert_in_range(qp->qp_num, 2, (1024 << 8) - 1);
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &gid), 0);
    end_init(&e);
    assert_int_equal(end_try_rtr(&e, port << 8, &gid), EINVAL);
}

/** Nobody listens yet. */
static void one_too_many(void **state)
{
    struct ibv_qp *qp[ROOM + 1];
    (void)state;
    cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    for (int i = 0; i < ROOM; i++) {
        qp[i] = make();
        assert_int_equal(qp[i]->qp_num >> 8, port);
    }
    qp[ROOM] = make();
    cannot_be_dialled(qp[ROOM]);
    for (int i = 0; i <= ROOM; i++)
        assert_int_equal(ibv_destroy_qp(qp[i]), 0);
    ibv_destroy_cq(cq);
}

/** As long as this process has a queue pair, though it does not listen, it has the port. */
static void another_process(void **state)
{
    static struct end end[ENDS];
    int status;
    (void)state;
    end_make(&end[0]);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "given_ports_test", "late", (char *)NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    end_make(&end[1]);
    ends_connect(&end[0], &end[1]);
    end_send_once(&end[0], &end[1], 1);
    for (int i = 0; i < ENDS; i++)
        end_drop(&end[i]);
}

/** What lingers of earlier connections is not in the way. */
static void again_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        static struct end a, b;
        end_make(&a);
        end_make(&b);
        assert_int_equal(a.qp->qp_num >> 8, port);
        ends_connect(&a, &b);
        end_send_once(&a, &b, 2);
        end_drop(&a);
        end_drop(&b);
    }
}

static int late(void)
{
    cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
    struct ibv_qp *qp = make();
    cannot_be_dialled(qp);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    return 0;
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(one_too_many),
        cmocka_unit_test(another_process),
        cmocka_unit_test(again_at_once),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
    char text[8];
    (void)argv;
    if (argc > 1) {
        port = (unsigned)atoi(getenv("ANYWARP_PORTS"));
        return ends_run(late);
    }
    port = any_free_port();
    snprintf(text, sizeof(text), "%u", port);
    setenv("ANYWARP_PORTS", text, 1);
    return ends_run(tests);
}
