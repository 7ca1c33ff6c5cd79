/* SPDX-License-Identifier: BSD-2-Clause */
/* What the queues of a program tell of it: each finding, and its neighbours that are none. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "advice/life.h"
#include "advice/loan.h"
#include "advice/placed.h"
#include "advice/shadow.h"

#define DEPTH 4

static char file[] = "/tmp/anywarp-shadow-XXXXXX";
static struct ibv_comp_channel channel;
static struct iw_shadow_cq *cq;
static struct iw_shadow_qp *qp;
static unsigned number = 1; /* each test has a QP of its own name */
static char buffer[100000];

static int open_all(void **state)
{
    struct ibv_cq c = {.cqe = 2 * DEPTH, .channel = &channel};
    struct ibv_qp q = {.qp_num = number++};
    struct ibv_qp_cap cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH};
    (void)state;
    cq = iw_shadow_cq_new(&c);
    qp = iw_shadow_qp_new(&q, &cap, false, cq, cq);
    return cq && qp && truncate(file, 0) == 0 ? 0 : -1;
}

static int close_all(void **state)
{
    (void)state;
    iw_shadow_qp_free(qp);
    iw_shadow_cq_free(cq);
    return 0;
}

/** Whether a finding of this name was written since the test began. */
static bool found(const char *name)
{
    char line[8192];
    bool is = false;
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        is |= !strncmp(line, name, strlen(name)) && line[strlen(name)] == '\t';
    fclose(f);
    return is;
}

static bool nothing(void)
{
    return access(file, F_OK) == 0 && !found("send_changed") && !found("lost_wakeup") &&
           !found("cq_too_small") && !found("never_signals") && !found("post_after_failure");
}

static void send_bytes(uint64_t id, unsigned flags, size_t len, uint64_t heard)
{
    struct ibv_sge sge = {.addr = (uintptr_t)buffer, .length = (uint32_t)len};
    struct ibv_send_wr wr = {
        .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = flags};
    iw_shadow_send(qp, &wr, heard);
}

static void receive(uint64_t id)
{
    struct ibv_recv_wr wr = {.wr_id = id};
    iw_shadow_recv(qp, &wr);
}

static void complete(uint64_t id, enum ibv_wc_opcode opcode, enum ibv_wc_status status,
                     uint64_t heard)
{
    struct ibv_wc wc = {.wr_id = id, .opcode = opcode, .status = status};
    iw_shadow_completed(qp, &wc, heard);
    iw_shadow_polled(cq, 1, 1);
}

static void a_send_buffer_changes(void **state)
{
    (void)state;
    send_bytes(1, IBV_SEND_SIGNALED, 10, 0);
    complete(1, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
    assert_true(nothing()); /* it did not */
    send_bytes(2, IBV_SEND_SIGNALED | IBV_SEND_INLINE, 10, 0);
    buffer[0]++;
    complete(2, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
    assert_true(nothing()); /* it was copied */
    send_bytes(3, IBV_SEND_SIGNALED, 10, 0);
    buffer[0]++;
    complete(3, IBV_WC_SEND, IBV_WC_SUCCESS, 1);
    assert_true(nothing()); /* the peer has answered */
    send_bytes(5, IBV_SEND_SIGNALED, 10, 1);
    iw_placed(buffer, 1);
    buffer[0]++;
    iw_placed(buffer, 1);
    complete(5, IBV_WC_SEND, IBV_WC_SUCCESS, 1);
    assert_true(nothing()); /* a peer has written there */
    send_bytes(6, IBV_SEND_SIGNALED, 10, 1);
    buffer[10]++;
    complete(6, IBV_WC_SEND, IBV_WC_SUCCESS, 1);
    assert_true(nothing()); /* behind it */
    send_bytes(7, 0, 10, 1);
    buffer[9]++;
    send_bytes(8, IBV_SEND_SIGNALED, 5, 1);
    complete(8, IBV_WC_SEND, IBV_WC_SUCCESS, 1);
    assert_true(found("send_changed")); /* covered by the completion of a later one */
}

static void a_buffer_that_was_not_sent(void **state)
{
    (void)state;
    send_bytes(1, IBV_SEND_SIGNALED, 10, 0);
    buffer[0]++;
    complete(1, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, 0);
    assert_true(nothing()); /* it was not sent */
}

static void a_large_send_buffer_changes(void **state)
{
    (void)state;
    send_bytes(1, IBV_SEND_SIGNALED, sizeof(buffer), 0);
    buffer[sizeof(buffer) - 1]++;
    complete(1, IBV_WC_SEND, IBV_WC_SUCCESS, 0);
    assert_true(found("send_changed"));
}

static void more_than_a_cq_holds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DEPTH; i++) {
        send_bytes(i, 0, 0, 0);
        receive(i);
    }
    assert_true(nothing()); /* as many */
    iw_shadow_cq_resized(cq, 2 * DEPTH - 1);
    iw_shadow_unsent(qp);
    receive(DEPTH); /* in the place of the first, which the queue has no room for */
    assert_true(nothing());
    send_bytes(DEPTH, IBV_SEND_SIGNALED, 0, 0);
    assert_true(found("cq_too_small"));
    iw_shadow_qp_free(qp);
    iw_shadow_cq_free(cq);
    qp = NULL;
    cq = NULL;
    assert_false(found("cq_size")); /* the same again */
}

/** What is said of a CQ of @p cqe entries for a QP whose queues hold 2 * DEPTH, and is gone. */
static bool sized(int cqe, struct ibv_srq *srq)
{
    struct ibv_cq c = {.cqe = cqe};
    struct ibv_qp q = {.qp_num = number++, .srq = srq};
    struct ibv_qp_cap cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH};
    struct iw_shadow_cq *of = iw_shadow_cq_new(&c);
    assert_int_equal(truncate(file, 0), 0);
    iw_shadow_qp_free(iw_shadow_qp_new(&q, &cap, false, of, of));
    iw_shadow_qp_free(iw_shadow_qp_new(&q, &cap, false, of, of));
    iw_shadow_cq_free(of);
    return found("cq_size");
}

static void a_cq_of_another_size(void **state)
{
    struct ibv_srq srq = {0};
    (void)state;
    assert_false(sized(2 * DEPTH, NULL)); /* the second came when the first was gone */
    assert_false(sized(1024, NULL));
    assert_false(sized(2000, &srq));
    assert_true(sized(2000, NULL));
    assert_true(sized(2 * DEPTH - 1, NULL));
    iw_shadow_cq_free(iw_shadow_cq_new(&(struct ibv_cq){.cqe = 2000}));
}

static void no_work_request_signals(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DEPTH; i++)
        send_bytes(i, 0, 0, 0);
    assert_true(nothing());
    send_bytes(DEPTH, IBV_SEND_SIGNALED, 0, 0);
    for (unsigned i = 0; i < DEPTH; i++)
        send_bytes(i, 0, 0, 0);
    assert_true(nothing());
    send_bytes(DEPTH, 0, 0, 0);
    assert_true(found("never_signals"));
}

static void a_wakeup_is_lost(void **state)
{
    (void)state;
    iw_shadow_polled(cq, 1, 0);
    iw_shadow_armed(cq);
    iw_shadow_sleeps(&channel);
    assert_true(nothing()); /* nothing is posted */
    receive(1);
    iw_shadow_armed(cq);
    iw_shadow_sleeps(&channel);
    assert_true(nothing()); /* nothing was polled since it was posted */
    iw_shadow_armed(cq);
    iw_shadow_polled(cq, 1, 0);
    iw_shadow_sleeps(&channel);
    assert_true(nothing()); /* polled behind the arm */
    iw_shadow_polled(cq, 1, 1);
    iw_shadow_armed(cq);
    iw_shadow_sleeps(&channel);
    assert_true(nothing()); /* not empty */
    iw_shadow_polled(cq, 2, 1);
    iw_shadow_armed(cq);
    iw_shadow_sleeps(&channel + 1);
    assert_true(nothing()); /* another channel */
    iw_shadow_sleeps(&channel);
    assert_true(found("lost_wakeup"));
}

static void work_after_a_failure(void **state)
{
    (void)state;
    receive(1);
    receive(2);
    complete(1, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
    receive(3);
    assert_true(nothing()); /* it may be at what was polled with the failure */
    complete(2, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
    receive(4);
    assert_true(found("post_after_failure"));
}

static void work_after_a_failure_that_is_meant(void **state)
{
    (void)state;
    receive(1);
    iw_shadow_moved(qp, IBV_QPS_ERR);
    complete(1, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0);
    iw_shadow_polled(cq, 1, 0);
    receive(2);
    iw_shadow_moved(qp, IBV_QPS_RESET);
    receive(3);
    iw_shadow_unreceived(qp);
    assert_true(nothing());
}

static void where_work_is_from(void **state)
{
    (void)state;
    receive(1);
    send_bytes(2, IBV_SEND_SIGNALED, 0, 0);
    assert_non_null(iw_shadow_posted(qp, true, 1));
    assert_non_null(iw_shadow_posted(qp, false, 2));
    assert_null(iw_shadow_posted(qp, true, 2));
    assert_null(iw_shadow_posted(NULL, true, 1));
}

static void an_object_that_is_destroyed(void **state)
{
    void *object = malloc(1), *other = malloc(1);
    (void)state;
    iw_life_begin(object, "QP");
    assert_int_equal(iw_life_over(object, "call"), 0);
    iw_life_end(object);
    assert_int_equal(iw_life_over(object, "call"), EINVAL);
    assert_true(found("destroyed_object"));
    assert_int_equal(iw_life_over(other, "call"), 0);
    iw_life_end(other); /* nobody knew of it */
    for (int i = 0; i < IW_LIFE_KEPT; i++) {
        void *next = malloc(1);
        iw_life_begin(next, "QP");
        iw_life_end(next);
    }
    assert_int_equal(iw_life_over(object, "call"), 0); /* forgotten */
}

static void bytes_that_were_lent(void **state)
{
    struct sigaction own = {.sa_handler = SIG_IGN}, before;
    volatile char *lent = iw_loan("hello", 6), *other = iw_loan("other", 6);
    (void)state;
    assert_null(iw_loan("", 0));
    iw_loan_over(NULL);
    assert_non_null(lent);
    assert_non_null(other);
    assert_int_equal(lent[4], 'o');
    assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
    bool told = before.sa_handler == SIG_DFL; /* else it is a sanitizer's */
    iw_loan_over((void *)lent);
    if (told) {
        assert_false(found("acked_data"));
        assert_int_equal(lent[4], 'o');
        assert_true(found("acked_data"));
        lent[4] = 'x'; /* once */
    } else {
        assert_int_equal(lent[4], 0x5a);
    }
    assert_int_equal(sigaction(SIGSEGV, &own, &before), 0);
    iw_loan_over((void *)other);
    assert_int_equal(other[4], 0x5a); /* by the program's own handler nobody is told */
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    for (int i = 0; i < IW_LOANS_KEPT; i++)
        iw_loan_over(iw_loan("more", 5));
}

static void objects_that_are_left(void **state)
{
    void *cq_left = malloc(1), *pd_left = malloc(1);
    (void)state;
    iw_life_begin(pd_left, "protection domain");
    iw_life_tell_left();
    assert_false(found("left_open"));
    iw_life_begin(cq_left, "CQ");
    iw_life_tell_left();
    assert_true(found("left_open"));
    iw_life_end(cq_left);
    iw_life_end(pd_left);
}

static void regions_at_a_fork(void **state)
{
    void *region = malloc(1);
    (void)state;
    iw_life_fork(FORK_PREPARE);
    iw_life_fork(FORK_PARENT);
    assert_false(found("fork_registered"));
    iw_life_begin(region, "memory region");
    iw_life_fork(FORK_PREPARE);
    iw_life_fork(FORK_PARENT);
    assert_true(found("fork_registered"));
    assert_int_equal(truncate(file, 0), 0);
    iw_life_fork_safe();
    iw_life_fork(FORK_PREPARE);
    iw_life_fork(FORK_PARENT);
    assert_false(found("fork_registered"));
    iw_life_end(region);
}

static void each_finding_once(void **state)
{
    char line[8192];
    int n = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        iw_advise(IW_FINDING_LATE_RECEIVE, "QP", NULL, "sentence %d", 7);
    iw_advise(IW_FINDING_LATE_RECEIVE, "another QP", NULL, "sentence");
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    for (; fgets(line, sizeof(line), f); n++)
        if (n == 0)
            assert_non_null(strstr(line, "\tQP\tsentence 7\t\n"));
    fclose(f);
    assert_int_equal(n, 2);
}

static void names(void **state)
{
    (void)state;
    for (enum iw_finding f = 0; f < IW_FINDINGS; f++)
        assert_int_equal(iw_finding_find(iw_finding_info(f)->name), f);
    assert_int_equal(iw_finding_find("nothing"), IW_FINDINGS);
    assert_string_equal(iw_finding_level(IW_FINDING_NOTE), "note");
}

static void nothing_at_all(void **state)
{
    (void)state;
    iw_shadow_moved(NULL, IBV_QPS_ERR);
    iw_shadow_send(NULL, NULL, 0);
    iw_shadow_recv(NULL, NULL);
    iw_shadow_unsent(NULL);
    iw_shadow_unreceived(NULL);
    iw_shadow_completed(NULL, NULL, 0);
    iw_shadow_polled(NULL, 1, 0);
    iw_shadow_armed(NULL);
    iw_shadow_cq_resized(NULL, 1);
    iw_shadow_cq_free(NULL);
    iw_shadow_qp_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_send_buffer_changes),
        TEST(a_large_send_buffer_changes),
        TEST(a_buffer_that_was_not_sent),
        TEST(more_than_a_cq_holds),
        TEST(a_cq_of_another_size),
        TEST(no_work_request_signals),
        TEST(a_wakeup_is_lost),
        TEST(work_after_a_failure),
        TEST(bytes_that_were_lent),
        TEST(objects_that_are_left),
        TEST(work_after_a_failure_that_is_meant),
        TEST(where_work_is_from),
        TEST(an_object_that_is_destroyed),
        TEST(regions_at_a_fork),
        TEST(each_finding_once),
        TEST(names),
        TEST(nothing_at_all),
    };
    int fd = mkstemp(file);
    if (fd < 0 || setenv("ANYWARP_CHECK", file, 1) != 0)
        return 99;
    close(fd);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(file);
    return failed;
}
