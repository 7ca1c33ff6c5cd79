/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that has answered before the thread is back that sent the question: the question completes
 * first all the same, and so does its event.
 */
#include "conn/stream_mem.h"
#include "engine/still.h"
#include "unit/vectors.h"

#include "qp/link.h"

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define BYTES    64
#define WINDOW   4096
#define HELD_US  20000
#define PATIENCE 5 /* s, for what must come */

static struct iwc_stream_mem *pair[2];
static struct iwc_stream_ops ops;
static ssize_t (*mem_send)(struct iwc_stream *, const struct iovec *, unsigned);
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq[2]; /* of what is sent, of what is received; may be one */
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint8_t buf[BYTES];
static sem_t with_peer; /* the peer has the bytes */
static sem_t go_on;     /* the thread that sent them is back */

static ssize_t slow_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    ssize_t taken = mem_send(s, iov, n);
    sem_post(&with_peer);
    while (sem_wait(&go_on))
        ;
    return taken;
}

static void open_with(bool two_queues)
{
    const struct mpa_result terms = {.rev = 2, .ext = true, .ird = 1, .ord = 1};
    still_seed(1);
    sem_init(&with_peer, 0, 0);
    sem_init(&go_on, 0, 0);
    ctx = still_open();
    assert_non_null(ctx);
    pd = ibv_alloc_pd(ctx);
    channel = ibv_create_comp_channel(ctx);
    cq[0] = cq[1] = ibv_create_cq(ctx, 8, NULL, channel, 0);
    if (two_queues)
        cq[1] = ibv_create_cq(ctx, 8, NULL, channel, 0);
    mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = cq[0], .recv_cq = cq[1], .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(iwc_stream_mem_pair(pair, WINDOW, WINDOW), 0);
    struct iwc_stream *s = iwc_stream_mem_stream(pair[0]);
    ops = *s->ops;
    mem_send = ops.send;
    ops.send = slow_send;
    s->ops = &ops;
    still_link(qp, s, &terms, false);
}

static int one_queue(void **state)
{
    (void)state;
    open_with(false);
    return 0;
}

static int two_queues(void **state)
{
    (void)state;
    open_with(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sem_post(&go_on); /* for the Terminate */
    still_unlink(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    if (cq[1] != cq[0])
        assert_int_equal(ibv_destroy_cq(cq[1]), 0);
    assert_int_equal(ibv_destroy_cq(cq[0]), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    iwc_stream_mem_free(pair);
    sem_destroy(&with_peer);
    sem_destroy(&go_on);
    return 0;
}

static void *ask(void *arg)
{
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
    (void)arg;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return (void *)(intptr_t)ibv_post_send(qp, &wr, &bad);
}

static void *receive(void *arg)
{
    (void)arg;
    iw_qp_ready(iw_qp(qp), EPOLLIN);
    return NULL;
}

static void post_receive(void)
{
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static pthread_t start(void *(*run)(void *))
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, run, NULL), 0);
    return t;
}

static void join(pthread_t t)
{
    struct timespec end;
    void *result;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE;
    assert_int_equal(pthread_timedjoin_np(t, &result, &end), 0);
    assert_null(result);
}

static void expect(struct ibv_cq *from, uint64_t wr_id)
{
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(from, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, wr_id);
}

/** The question is with the peer, and the answer is here, but not the thread that asked. */
static pthread_t exchange(pthread_t *receiver)
{
    post_receive();
    pthread_t asker = start(ask);
    assert_int_equal(sem_wait(&with_peer), 0);
    still_empty_send(iwc_stream_mem_stream(pair[1]));
    *receiver = start(receive);
    return asker;
}

static void the_question_completes_first(void **state)
{
    pthread_t receiver, asker = exchange(&receiver);
    struct ibv_wc wc;
    (void)state;
    usleep(HELD_US);
    int early = ibv_poll_cq(cq[1], 1, &wc);
    sem_post(&go_on);
    join(asker);
    join(receiver);
    assert_int_equal(early, 0);
    expect(cq[0], 1);
    expect(cq[1], 2);
}

static void expect_event(struct ibv_cq *of)
{
    struct ibv_cq *from;
    void *context;
    struct pollfd p = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(ibv_get_cq_event(channel, &from, &context), 0);
    assert_ptr_equal(from, of);
    ibv_ack_cq_events(from, 1);
}

static void so_does_its_event(void **state)
{
    pthread_t receiver, asker;
    (void)state;
    assert_int_equal(ibv_req_notify_cq(cq[0], 0), 0);
    assert_int_equal(ibv_req_notify_cq(cq[1], 0), 0);
    asker = exchange(&receiver);
    usleep(HELD_US);
    assert_false(poll(&(struct pollfd){.fd = channel->fd, .events = POLLIN}, 1, 0));
    sem_post(&go_on);
    join(asker);
    join(receiver);
    expect_event(cq[0]);
    expect_event(cq[1]);
    expect(cq[0], 1);
    expect(cq[1], 2);
}

/** A thread that does not come back holds up nobody for long. */
static void the_wait_has_an_end(void **state)
{
    pthread_t receiver, asker = exchange(&receiver);
    (void)state;
    join(receiver);
    expect(cq[1], 2);
    sem_post(&go_on);
    join(asker);
    expect(cq[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_question_completes_first, one_queue, teardown),
        cmocka_unit_test_setup_teardown(the_question_completes_first, two_queues, teardown),
        cmocka_unit_test_setup_teardown(so_does_its_event, two_queues, teardown),
        cmocka_unit_test_setup_teardown(the_wait_has_an_end, one_queue, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
