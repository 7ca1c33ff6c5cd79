/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What we send is stuck in a full window, or what came in waits: streams that end meanwhile, and
 * acknowledgements that fall due.
 */
#include "conn/note.h"
#include "conn/stream_mem.h"
#include "engine/still.h"
#include "unit/vectors.h"

#include "qp/link.h"
#include "wire/bytes.h"
#include "wire/fpdu.h"

#include <errno.h>
#include <sys/epoll.h>

#define WINDOW     1000
#define EARLY      60000 /* bytes of a Send that finds no receive */
#define EARLYS     6     /* are past the bound */
#define BYTES      12000 /* in one segment of ours, gathered where it lies */
#define PUBLIC     0x11
#define SECRET     0xee
#define MANY_READS 100

static struct iwc_stream_mem *pair[2];
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint8_t buf[BYTES];

static int setup(void **state)
{
    const struct mpa_result terms = {.rev = 2, .ext = true, .ird = 1, .ord = 1};
    (void)state;
    still_seed(1);
    memset(buf, PUBLIC, sizeof(buf));
    ctx = still_open();
    assert_non_null(ctx);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, EARLYS, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(iwc_stream_mem_pair(pair, WINDOW, WINDOW), 0);
    still_link(qp, iwc_stream_mem_stream(pair[0]), &terms, false);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    still_unlink(qp);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    if (mr)
        assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    assert_int_equal(ibv_close_device(ctx), 0);
    iwc_stream_mem_free(pair);
    return 0;
}

static void post_send(uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t)buf, sizeof(buf), mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void expect_flush(uint64_t wr_id)
{
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
}

/** Takes all that has been sent: nothing secret. @return bytes, and whether the FIN came */
static size_t drink(bool *fin)
{
    struct iwc_stream *peer = iwc_stream_mem_stream(pair[1]);
    uint8_t bytes[WINDOW];
    size_t total = 0;
    ssize_t n;
    while ((n = peer->ops->recv(peer, bytes, sizeof(bytes))) > 0) {
        assert_null(memchr(bytes, SECRET, (size_t)n));
        total += (size_t)n;
    }
    *fin = n == 0;
    return total;
}

/** Nothing goes out behind the FIN, and the peer's FIN is waited for. */
static void terminate_meets_full_window(void **state)
{
    struct iwc_stream *peer = iwc_stream_mem_stream(pair[1]);
    struct iovec v = {(void *)V16, sizeof(V16)};
    bool fin;
    (void)state;
    post_send(1);
    post_send(2);
    assert_true(iw_qp(qp)->tx.blocked);
    assert_int_equal(peer->ops->send(peer, &v, 1), sizeof(V16));
    still_run(qp, EPOLLIN);
    expect_flush(1);
    expect_flush(2);
    assert_false(iw_qp(qp)->tx.blocked);

    assert_int_equal(drink(&fin), WINDOW);
    assert_true(fin);
    still_run(qp, EPOLLIN | EPOLLOUT);
    post_send(3);
    expect_flush(3);
    assert_int_equal(drink(&fin), 0);
    assert_true(iw_qp(qp)->tx.linked);

    peer->ops->shutdown(peer);
    still_run(qp, EPOLLIN | EPOLLRDHUP);
    assert_false(iw_qp(qp)->tx.linked);
}

/** What was flushed may be freed, and used for something else: only what it was is sent. */
static void flushed_memory_is_free(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    size_t total = 0;
    bool fin = false;
    (void)state;
    post_send(1);
    assert_true(iw_qp(qp)->tx.batch && iw_qp(qp)->tx.batch->gathered);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    expect_flush(1);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = NULL;
    memset(buf, SECRET, sizeof(buf));
    for (int i = 0; i <= 2 * BYTES / WINDOW && !fin; i++) {
        total += drink(&fin);
        still_run(qp, EPOLLOUT);
    }
    assert_true(fin && total > BYTES); /* the Terminate behind it */
}

/** An FPDU whose rest is gone cannot be finished. */
static void deregistered_memory_is_not_sent(void **state)
{
    bool fin;
    (void)state;
    post_send(1);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = NULL;
    memset(buf, SECRET, sizeof(buf));
    assert_int_equal(drink(&fin), WINDOW);
    still_run(qp, EPOLLOUT);
    drink(&fin);
    assert_false(iw_qp(qp)->tx.linked);
}

static int timed_out(struct iwc_stream *s)
{
    (void)s;
    return -ETIMEDOUT;
}

static unsigned reads;

static ssize_t endless(struct iwc_stream *s, void *bytes, size_t len)
{
    (void)s, (void)bytes;
    return ++reads < MANY_READS ? (ssize_t)len : 0;
}

/** A peer that goes on after the end of the connection is not all that the thread has to do. */
static void what_is_dropped_is_dropped_in_turns(void **state)
{
    struct iwc_stream_ops ops = *iwc_stream_mem_stream(pair[0])->ops;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    (void)state;
    reads = 0;
    ops.recv = endless;
    iw_qp(qp)->stream->ops = &ops;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    still_run(qp, EPOLLIN);
    assert_in_range(reads, 1, MANY_READS / 2);
    assert_true(iw_qp(qp)->tx.linked);
    while (iw_qp(qp)->tx.linked && reads < MANY_READS)
        still_run(qp, EPOLLIN);
    assert_false(iw_qp(qp)->tx.linked);
}

/** An FPDU without CRC, through the window. */
static void send_early(uint32_t msn)
{
    static uint8_t fpdu[2 + DDP_UNTAGGED_HDR + EARLY + 4];
    struct iwc_stream *peer = iwc_stream_mem_stream(pair[1]);
    put_be16(fpdu, DDP_UNTAGGED_HDR + EARLY);
    ddp_encode_untagged(fpdu + 2, RDMAP_SEND, true, 0, msn, 0);
    size_t size = (sizeof(fpdu) + 3) / 4 * 4;
    for (size_t at = 0; at < size && !iw_qp(qp)->rx.paused;) {
        size_t n = size - at < WINDOW ? size - at : WINDOW;
        struct iovec v = {fpdu + at, n};
        ssize_t sent = peer->ops->send(peer, &v, 1);
        at += sent > 0 ? (size_t)sent : 0;
        still_run(qp, EPOLLIN);
    }
}

/** The socket is not read, so nothing but its own word says what happened. */
static void a_paused_stream_says_why_it_died(void **state)
{
    struct iwc_stream_ops ops = *iwc_stream_mem_stream(pair[0])->ops;
    (void)state;
    for (uint32_t i = 1; i <= EARLYS && !iw_qp(qp)->rx.paused; i++)
        send_early(i);
    assert_true(iw_qp(qp)->rx.paused);
    ops.error = timed_out;
    iw_qp(qp)->stream->ops = &ops;
    still_run(qp, EPOLLERR | EPOLLHUP);
    assert_false(iw_qp(qp)->tx.linked);
    assert_int_equal(iw_qp(qp)->end.error, IW_ERR_LLP_LOST);
    assert_string_equal(iw_qp(qp)->end.explanation, "ETIMEDOUT, Connection timed out");
}

/** The time limit may be that of an older wait, from before receives came. */
static void a_fin_has_the_time_that_began_last(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= EARLYS && !iw_qp(qp)->rx.paused; i++)
        send_early(i);
    assert_true(iw_qp(qp)->rx.paused);
    unsigned before = iw_qp(qp)->rx.awaits;
    iw_qp_ready(iw_qp(qp), EPOLLRDHUP);
    iw_qp_expired(iw_qp(qp), before);
    assert_int_equal(iw_qp(qp)->end.error, IW_OK);
    iw_qp_expired(iw_qp(qp), iw_qp(qp)->rx.awaits);
    assert_int_equal(iw_qp(qp)->end.error, IW_ERR_LLP_LOST);
}

/** What waits behind messages that wait is taken in, the FIN too: they all are received first. */
static void nothing_before_a_fin_that_was_taken_in_is_lost(void **state)
{
    static uint8_t into[EARLY];
    struct ibv_mr *to = ibv_reg_mr(pd, into, sizeof(into), IBV_ACCESS_LOCAL_WRITE);
    struct iwc_stream *peer = iwc_stream_mem_stream(pair[1]);
    uint32_t sent = 0;
    (void)state;
    while (!iw_qp(qp)->rx.paused)
        send_early(++sent);
    peer->ops->shutdown(peer);
    iw_qp(qp)->rx.stall.since = 1; /* long ago */
    iw_qp_stalled(iw_qp(qp));
    assert_true(iw_qp(qp)->rx.fin_seen);
    for (uint32_t i = 1; i <= sent; i++) {
        struct ibv_sge sge = {(uintptr_t)into, sizeof(into), to->lkey};
        struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
        struct ibv_wc wc;
        assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        still_run(qp, EPOLLIN | EPOLLRDHUP);
    }
    assert_false(iw_qp(qp)->tx.linked);
    assert_int_equal(ibv_dereg_mr(to), 0);
}

/** By number, with nothing else to send: the acknowledgement follows what TCP takes later. */
static void an_acknowledgement_follows_what_was_stuck(void **state)
{
    static uint8_t wire[2 * BYTES];
    struct iwc_stream *peer = iwc_stream_mem_stream(pair[1]);
    struct ibv_recv_wr *bad, wr = {.wr_id = 2};
    struct ddp_seg last = {0};
    struct ibv_wc wc;
    size_t sent = 0, at = 0;
    ssize_t n;
    (void)state;
    iw_qp(qp)->ib = true;
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
    post_send(1);
    assert_true(iw_qp(qp)->tx.blocked);
    still_empty_send(peer);
    still_run(qp, EPOLLIN);
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, 2);
    while ((n = peer->ops->recv(peer, wire + sent, sizeof(wire) - sent)) > 0) {
        sent += (size_t)n;
        still_run(qp, EPOLLOUT);
    }
    assert_int_equal(n, -EAGAIN);
    for (; at < sent; at += fpdu_size(get_be16(wire + at)))
        assert_int_equal(ddp_decode(wire + at + 2, get_be16(wire + at), &last), IW_OK);
    assert_int_equal(at, sent);
    assert_true(last.tagged);
    assert_int_equal(last.stag, IWC_NOTE_ACK);
    assert_int_equal(last.to, STILL_EMPTY_SEND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_acknowledgement_follows_what_was_stuck, setup, teardown),
        cmocka_unit_test_setup_teardown(flushed_memory_is_free, setup, teardown),
        cmocka_unit_test_setup_teardown(deregistered_memory_is_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(terminate_meets_full_window, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_dropped_in_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_fin_has_the_time_that_began_last, setup, teardown),
        cmocka_unit_test_setup_teardown(a_paused_stream_says_why_it_died, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_before_a_fin_that_was_taken_in_is_lost, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
