/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The manners of queue pairs that are connected by GID and number are InfiniBand's: when a work
 * request completes, how long a message waits for a receive, and who hears of an error.
 */
#include "by_number.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 20
#define LONG   (1 << 20)

static struct end a, b;

static int setup(void **state)
{
    (void)state;
    end_make(&a);
    end_make(&b);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_drop(&a);
    end_drop(&b);
    return 0;
}

static void connect_with(uint8_t rnr_retry)
{
    end_init(&a);
    end_init(&b);
    end_rtr(&a, b.qp->qp_num);
    end_rtr(&b, a.qp->qp_num);
    end_rts(&a, rnr_retry);
    end_rts(&b, rnr_retry);
}

static uint64_t ms_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/** The events of the device that come within 100 ms of the last, in bits. */
static unsigned events(void)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event e;
    unsigned all = 0;
    while (poll(&p, 1, 100) == 1) {
        assert_int_equal(ibv_get_async_event(ctx, &e), 0);
        all |= 1u << e.event_type;
        ibv_ack_async_event(&e);
    }
    return all;
}

/* ---- completions ---- */

/** Nobody polls at the target: its memory changes before the writer hears that it is done. */
static void a_write_is_done_when_it_is_placed(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    for (uint64_t i = 1; i < 1000; i++) {
        a.data[END_HALF / 8] = i;
        assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
        end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
        assert_int_equal(__atomic_load_n(&b.data[0], __ATOMIC_RELAXED), i);
    }
}

/** A Send is not done before its receive is, and a Write in front of it is. */
static void a_send_is_done_when_it_is_delivered(void **state)
{
    struct ibv_wc wc;
    (void)state;
    ends_connect(&a, &b);
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    usleep(50000);
    assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
    end_receive(&b);
    end_expect(&a, IBV_WR_SEND, IBV_WC_SUCCESS);
    end_expect(&b, END_RECV, IBV_WC_SUCCESS);
}

/* ---- a process that goes ---- */

struct place {
    uint32_t number, rkey;
    uint64_t to;
};

static void say(int fd, const void *p, size_t len)
{
    assert_int_equal(write(fd, p, len), len);
}

static void hear(int fd, void *p, size_t len)
{
    assert_int_equal(recv(fd, p, len, MSG_WAITALL), len);
}

/** Another process: writes, and is no more as soon as that is complete. */
static void write_and_die(int fd)
{
    struct place target;
    static struct end self;
    uint8_t *bytes = malloc(LONG);
    memset(bytes, 0x5a, LONG);
    end_make(&self);
    struct ibv_mr *mr = ibv_reg_mr(pd, bytes, LONG, IBV_ACCESS_LOCAL_WRITE);
    say(fd, &self.qp->qp_num, sizeof(self.qp->qp_num));
    hear(fd, &target, sizeof(target));
    end_init(&self);
    end_rtr(&self, target.number);
    end_rts(&self, 7);
    struct ibv_sge sge = {(uintptr_t)bytes, LONG, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_WRITE,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr = {.rdma = {.remote_addr = target.to, .rkey = target.rkey}}};
    assert_int_equal(ibv_post_send(self.qp, &wr, &bad), 0);
    end_expect(&self, 0, IBV_WC_SUCCESS);
    kill(getpid(), SIGKILL);
}

/** Another process: has what came in, and ends as programs do, without taking anything down. */
static void receive_and_exit(int fd)
{
    struct place source;
    static struct end self;
    end_make(&self);
    say(fd, &self.qp->qp_num, sizeof(self.qp->qp_num));
    hear(fd, &source, sizeof(source));
    end_init(&self);
    end_receive(&self);
    end_rtr(&self, source.number);
    end_rts(&self, 7);
    say(fd, &source, sizeof(source));
    end_expect(&self, END_RECV, IBV_WC_SUCCESS);
    exit(0);
}

/** Not fork(): a child of that has this process's locks and threads to think of. */
static pid_t start(char *role, int *fd)
{
    int pair[2];
    char number[16], *argv[] = {"manners_test", role, number, NULL};
    pid_t pid;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    *fd = pair[0];
    snprintf(number, sizeof(number), "%d", pair[1]);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    close(pair[1]);
    return pid;
}

/** What the engine's thread has stored is in order by way of the other process alone. */
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
static bool
all_are(const uint8_t *bytes, uint8_t value)
{
    for (size_t i = 0; i < LONG; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

static void the_writer_is_killed(void **state)
{
    uint8_t *bytes = malloc(LONG);
    (void)state;
    struct ibv_mr *mr =
        ibv_reg_mr(pd, bytes, LONG, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t number;
        int fd, status;
        end_drop(&b);
        memset(bytes, 0, LONG);
        end_make(&b);
        pid_t pid = start("writer", &fd);
        hear(fd, &number, sizeof(number));
        end_init(&b);
        end_rtr(&b, number);
        struct place target = {b.qp->qp_num, mr->rkey, (uintptr_t)bytes};
        say(fd, &target, sizeof(target));
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(all_are(bytes, 0x5a));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        close(fd);
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
    free(bytes);
}

/** What it received is acknowledged, though it polled no more. */
static void the_receiver_exits(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct place self;
        uint32_t number;
        int fd, status;
        end_drop(&b);
        end_make(&b);
        pid_t pid = start("receiver", &fd);
        hear(fd, &number, sizeof(number));
        end_init(&b);
        end_rtr(&b, number);
        end_rts(&b, 7);
        self = (struct place){.number = b.qp->qp_num};
        say(fd, &self, sizeof(self));
        hear(fd, &self, sizeof(self));
        assert_int_equal(end_post(&b, &b, IBV_WR_SEND), 0);
        end_expect(&b, IBV_WR_SEND, IBV_WC_SUCCESS);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(fd);
    }
}

/* ---- receiver not ready ---- */

/** A Write, a Send and a Write, at once. */
static void post_three(void)
{
    struct ibv_sge sge = {(uintptr_t)a.data + END_HALF, 8, a.mr->lkey};
    struct ibv_send_wr wr[3], *bad;
    for (int i = 0; i < 3; i++) {
        enum ibv_wr_opcode op = i == 1 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
        wr[i] = (struct ibv_send_wr){
            .wr_id = op,
            .next = i < 2 ? &wr[i + 1] : NULL,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = op,
            .send_flags = IBV_SEND_SIGNALED,
            .wr = {.rdma = {.remote_addr = (uintptr_t)b.data, .rkey = b.mr->rkey}}};
    }
    assert_int_equal(ibv_post_send(a.qp, wr, &bad), 0);
}

static void nobody_receives(uint8_t rnr_retry)
{
    struct ibv_wc wc;
    connect_with(rnr_retry);
    end_receive(&a);
    post_three();
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    end_expect(&a, IBV_WR_SEND, IBV_WC_RNR_RETRY_EXC_ERR);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_WR_FLUSH_ERR);
    end_expect(&a, END_RECV, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(end_state(&a), IBV_QPS_ERR);
    end_receive(&b);
    usleep(100000);
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
    assert_int_equal(events(), 0);
}

static void not_once(void **state)
{
    (void)state;
    nobody_receives(0);
}

/** min_rnr_timer is 12 here, 0.64 ms. */
static void not_three_times(void **state)
{
    (void)state;
    nobody_receives(3);
}

static void in_time(void **state)
{
    struct ibv_wc wc;
    (void)state;
    connect_with(7);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    usleep(300000);
    assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
    end_receive(&b);
    end_expect(&b, END_RECV, IBV_WC_SUCCESS);
    end_expect(&a, IBV_WR_SEND, IBV_WC_SUCCESS);
}

/* ---- errors ---- */

/** The responder's QP fails, too, and it alone has an event. */
static void expect_refused(enum ibv_wr_opcode op, enum ibv_wc_status status, unsigned event)
{
    end_expect(&a, op, status);
    assert_int_equal(end_state(&a), IBV_QPS_ERR);
    assert_int_equal(events(), 1u << event);
    assert_int_equal(end_state(&b), IBV_QPS_ERR);
}

static void refused(enum ibv_wr_opcode op)
{
    ends_connect(&a, &b);
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    struct ibv_mr *right = b.mr, wrong = *b.mr;
    wrong.rkey ^= 0x100;
    b.mr = &wrong;
    end_receive(&b);
    assert_int_equal(end_post(&a, &b, op), 0);
    b.mr = right;
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    expect_refused(op, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    end_expect(&b, END_RECV, IBV_WC_WR_FLUSH_ERR);
}

static void a_write_is_refused(void **state)
{
    (void)state;
    refused(IBV_WR_RDMA_WRITE);
}

static void a_read_is_refused(void **state)
{
    (void)state;
    refused(IBV_WR_RDMA_READ);
}

static void an_atomic_is_refused(void **state)
{
    (void)state;
    refused(IBV_WR_ATOMIC_FETCH_AND_ADD);
}

static void receive_into(struct end *e, uint32_t bytes, uint32_t lkey)
{
    struct ibv_sge sge = {(uintptr_t)e->data, bytes, lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = END_RECV, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(e->qp, &wr, &bad), 0);
}

static void a_send_is_too_long(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    receive_into(&b, 4, b.mr->lkey);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    expect_refused(IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    end_expect(&b, END_RECV, IBV_WC_LOC_LEN_ERR);
}

/** The responder's own mistake: its receive tells of it, and no event does. */
static void a_receive_is_bad(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    receive_into(&b, 64, b.mr->lkey ^ 0x100);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    end_expect(&a, IBV_WR_SEND, IBV_WC_REM_OP_ERR);
    end_expect(&b, END_RECV, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(end_state(&b), IBV_QPS_ERR);
    assert_int_equal(events(), 0);
}

/** The requester's own mistake is its own: the peer does not hear of it. */
static void a_send_is_bad(void **state)
{
    struct ibv_wc wc;
    (void)state;
    ends_connect(&a, &b);
    end_receive(&b);
    struct ibv_mr *right = a.mr, wrong = *a.mr;
    wrong.lkey ^= 0x100;
    a.mr = &wrong;
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    a.mr = right;
    end_expect(&a, IBV_WR_SEND, IBV_WC_LOC_PROT_ERR);
    usleep(100000);
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
    assert_int_equal(events(), 0);
}

/** What is not acknowledged when the peer goes fails when its time is over, and not before. */
static void the_peer_goes_with_work_undone(void **state)
{
    struct ibv_wc wc;
    (void)state;
    ends_connect(&a, &b);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    usleep(50000);
    uint64_t before = ms_now();
    end_drop_qp(&b);
    assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
    end_expect(&a, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    assert_in_range(ms_now() - before, 450, 20000);
}

/** The time may be changed later, and counts for what is posted then. */
static void the_time_is_changed(void **state)
{
    (void)state;
    connect_with(7);
    end_set_timeout(&a, 17); /* 0.54 s, twice */
    end_drop_qp(&b);
    usleep(50000);
    uint64_t before = ms_now();
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_RETRY_EXC_ERR);
    assert_in_range(ms_now() - before, 1000, 20000);
}

static void data_come_in_rtr(void **state)
{
    (void)state;
    end_init(&a);
    end_init(&b);
    end_receive(&b);
    end_rtr(&a, b.qp->qp_num);
    end_rtr(&b, a.qp->qp_num);
    end_rts(&a, 7);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
    end_expect(&b, END_RECV, IBV_WC_SUCCESS);
    assert_int_equal(events(), 1u << IBV_EVENT_COMM_EST);
    end_rts(&b, 7);
}

/** RESET takes back what was not polled of this QP, and of no other. */
static void reset_purges(void **state)
{
    struct ibv_wc wc;
    struct end c;
    (void)state;
    ends_connect(&a, &b);
    end_make(&c);
    struct ibv_qp_init_attr init = {
        .send_cq = c.cq, .recv_cq = b.cq, .cap = {8, 8, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    end_drop_qp(&c);
    c.qp = ibv_create_qp(pd, &init);
    struct end d;
    end_make(&d);
    ends_connect(&c, &d);
    for (int i = 0; i < 3; i++) {
        end_receive(&b);
        end_receive(&c);
        assert_int_equal(end_post(&a, &b, IBV_WR_SEND), 0);
        end_expect(&a, IBV_WR_SEND, IBV_WC_SUCCESS);
        assert_int_equal(end_post(&d, &c, IBV_WR_SEND), 0);
        end_expect(&d, IBV_WR_SEND, IBV_WC_SUCCESS);
    }
    end_move(&b, IBV_QPS_RESET);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 1);
        assert_int_equal(wc.qp_num, c.qp->qp_num);
    }
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    end_drop_qp(&c);
    end_drop(&d);
    end_drop(&c);
}

static int tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest all[] = {
        T(a_write_is_done_when_it_is_placed),
        T(a_send_is_done_when_it_is_delivered),
        T(the_writer_is_killed),
        T(the_receiver_exits),
        T(not_once),
        T(not_three_times),
        T(in_time),
        T(a_write_is_refused),
        T(a_read_is_refused),
        T(an_atomic_is_refused),
        T(a_send_is_too_long),
        T(a_receive_is_bad),
        T(a_send_is_bad),
        T(the_peer_goes_with_work_undone),
        T(the_time_is_changed),
        T(data_come_in_rtr),
        T(reset_purges),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

static int child_fd;

static int writer(void)
{
    write_and_die(child_fd);
    return 1;
}

static int receiver(void)
{
    receive_and_exit(child_fd);
    return 1;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return ends_run(tests);
    child_fd = atoi(argv[2]);
    return ends_run(strcmp(argv[1], "writer") == 0 ? writer : receiver);
}
