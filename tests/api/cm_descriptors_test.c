/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that is out of descriptors: what fails, what waits, and what goes on. */
#include "cm_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT    100
#define QUIET_MS 250 /* more than the listener pauses, or a look at the host's addresses waits */

static int spare[LIMIT], spares;

/** Also the one that the engine looks at the host's addresses with, soon after the first bind. */
static void use_all(void)
{
    int before, fd;
    do {
        before = spares;
        while ((fd = dup(0)) >= 0)
            spare[spares++] = fd;
        assert_int_equal(errno, EMFILE);
        usleep(QUIET_MS * 1000);
    } while (spares > before);
}

static void give_back(int n)
{
    while (n-- > 0 && spares > 0)
        close(spare[--spares]);
}

static void expect_emfile(int result)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, EMFILE);
}

/** One Write each way. */
static void expect_alive(struct rdma_cm_id *a, struct rdma_cm_id *b)
{
    struct rdma_cm_id *ids[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
        assert_int_equal(ibv_post_send(ids[i]->qp, &wr, &bad), 0);
        assert_int_equal(cm_poll(ids[i]->qp->send_cq).status, IBV_WC_SUCCESS);
    }
}

static void calls_fail_with_their_errno(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *id, *other;
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    assert_int_equal(rdma_create_id(s.a, &id, NULL, RDMA_PS_TCP), 0);
    use_all();
    assert_null(rdma_create_event_channel());
    assert_int_equal(errno, EMFILE);
    assert_null(ibv_create_comp_channel(a->verbs));
    assert_int_equal(errno, EMFILE);
    expect_emfile(rdma_create_id(NULL, &other, NULL, RDMA_PS_TCP));
    expect_emfile(rdma_migrate_id(id, NULL));
    expect_emfile(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s.addr, 1000));
    expect_alive(a, b);
    give_back(spares);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&s.addr, 1000), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    cm_quiet(s.a, 0);
    rdma_destroy_id(id);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

static void the_listener_waits_for_one(void **state)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *late;
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    (void)state;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    late = cm_prepare(s.a, &s.addr);
    use_all();
    assert_int_equal(rdma_connect(late, &param), 0);
    cm_quiet(s.b, QUIET_MS);
    expect_alive(a, b);
    give_back(1);
    struct rdma_cm_id *request = cm_request(s.b);
    give_back(spares);
    cm_add_qp(request);
    assert_int_equal(rdma_accept(request, &param), 0);
    assert_int_equal(cm_expect(s.a, RDMA_CM_EVENT_ESTABLISHED), 0);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_ESTABLISHED), 0);
    expect_alive(late, request);
    expect_alive(a, b);
    cm_drop(a);
    cm_drop(b);
    cm_drop(late);
    cm_drop(request);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_fail_with_their_errno),
        cmocka_unit_test(the_listener_waits_for_one),
    };
    struct rlimit few = {.rlim_cur = LIMIT, .rlim_max = LIMIT};
    if (setrlimit(RLIMIT_NOFILE, &few))
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
