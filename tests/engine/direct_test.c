/* SPDX-License-Identifier: BSD-2-Clause */
/* Direct placement: what of a large segment is where, and when, and how it ends that cannot be. */
#include "conn/stream_mem.h"
#include "engine/still.h"
#include "unit/vectors.h"

#include "qp/rx_direct.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/terminate.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define WINDOW 262144
#define LEN    32768 /* of a segment */
#define MOST   64    /* of its bytes may wait for the last one */

static struct iwc_stream_mem *pair[2];
static struct iwc_stream_ops ops;
static struct iwc_stream *peer;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint8_t memory[3 * LEN], payload[LEN];
static uint8_t fpdu[FPDU_MAX];
static size_t fpdu_len, given;
static uint32_t msn;

static void open_with(bool crc)
{
    const struct mpa_result terms = {.rev = 2, .crc = crc, .ext = true, .ird = 1, .ord = 1};
    still_seed(1);
    ctx = still_open();
    assert_non_null(ctx);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
    memset(memory, 0, sizeof(memory));
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {4, 4, 2, 2, 0}, .qp_type = IBV_QPT_RC};
    qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(iwc_stream_mem_pair(pair, WINDOW, WINDOW), 0);
    still_link(qp, iwc_stream_mem_stream(pair[0]), &terms, false);
    peer = iwc_stream_mem_stream(pair[1]);
    for (size_t i = 0; i < LEN; i++)
        payload[i] = (uint8_t)(still_random() | 1);
    msn = 1;
}

static int setup(void **state)
{
    (void)state;
    open_with(false);
    return 0;
}

static int setup_crc(void **state)
{
    (void)state;
    open_with(true);
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

/* ---- the peer ---- */

/** Puts the rest of an FPDU behind its DDP header of @p hdr bytes. */
static void finish(size_t hdr, size_t len)
{
    uint32_t ulpdu = (uint32_t)(hdr + len);
    size_t covered = FPDU_LEN_FIELD + ulpdu + fpdu_pad(ulpdu);
    put_be16(fpdu, (uint16_t)ulpdu);
    memcpy(fpdu + FPDU_LEN_FIELD + hdr, payload, len);
    memset(fpdu + FPDU_LEN_FIELD + ulpdu, 0, fpdu_pad(ulpdu));
    put_le32(fpdu + covered, crc32c_done(crc32c_add(CRC32C_INIT, fpdu, covered)));
    fpdu_len = covered + FPDU_CRC_FIELD;
    given = 0;
}

static void tagged(uint8_t opcode, uint32_t stag, const uint8_t *to, size_t len, bool last)
{
    ddp_encode_tagged(fpdu + FPDU_LEN_FIELD, opcode, last, stag, (uintptr_t)to);
    finish(DDP_TAGGED_HDR, len);
}

static void untagged(uint32_t mo, size_t len, bool last)
{
    ddp_encode_untagged(fpdu + FPDU_LEN_FIELD, RDMAP_SEND, last, 0, msn, mo);
    finish(DDP_UNTAGGED_HDR, len);
    msn += last;
}

/** Sends the FPDU up to its byte @p to. */
static void put(size_t to)
{
    struct iovec v = {fpdu + given, to - given};
    assert_int_equal(peer->ops->send(peer, &v, 1), v.iov_len);
    given = to;
}

/** Sends it, and has it received. */
static void give(size_t to)
{
    put(to);
    for (int i = 0; i < 4; i++) /* one for each read */
        still_run(qp, EPOLLIN);
}

static void give_rest(void)
{
    give(fpdu_len);
}

/** The layer, type and code of the Terminate that the peer got, behind what it was told before. */
static unsigned terminate_got(void)
{
    static uint8_t in[4096];
    ssize_t n = peer->ops->recv(peer, in, sizeof(in));
    for (ssize_t at = 0; at + FPDU_LEN_FIELD < n; at += fpdu_size(get_be16(in + at))) {
        struct ddp_seg seg;
        if (ddp_decode(in + at + FPDU_LEN_FIELD, get_be16(in + at), &seg) == IW_OK &&
            seg.opcode == RDMAP_TERMINATE)
            return get_be16(seg.payload);
    }
    return 0;
}

/* ---- the program ---- */

static void post_recv(uint64_t id, uint8_t *a, uint32_t a_len, uint8_t *b, uint32_t b_len)
{
    struct ibv_sge sge[] = {{(uintptr_t)a, a_len, mr->lkey}, {(uintptr_t)b, b_len, mr->lkey}};
    struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = sge, .num_sge = b ? 2 : 1};
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void expect(uint64_t id, enum ibv_wc_status status, uint32_t len)
{
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    assert_int_equal(wc.wr_id, id);
    assert_int_equal(wc.status, status);
    if (status == IBV_WC_SUCCESS)
        assert_int_equal(wc.byte_len, len);
}

/** A Send of nothing: whoever gets it reads FPDUs where they begin. */
static void still_in_step(void)
{
    post_recv(99, memory, 1, NULL, 0);
    untagged(0, 0, true);
    give_rest();
    expect(99, IBV_WC_SUCCESS, 0);
}

static size_t landed(const uint8_t *at)
{
    size_t n = 0;
    while (n < LEN && at[n] == payload[n])
        n++;
    return n;
}

/* ---- tests ---- */

static void a_write_lands_as_it_comes(void **state)
{
    const size_t header = FPDU_LEN_FIELD + DDP_TAGGED_HDR;
    (void)state;
    tagged(RDMAP_WRITE, mr->rkey, memory, LEN, true);
    give(header + 100);
    for (size_t n = 1000; n < LEN; n += 1000) {
        give(header + n);
        assert_in_range(landed(memory), n - MOST, n);
    }
    give(header + LEN);
    assert_in_range(landed(memory), LEN - MOST, LEN - 1); /* the last byte waits for the FPDU */
    assert_int_equal(iw_qp(qp)->rx.half.offset, 0);       /* which alone is acknowledged */
    give_rest();
    assert_int_equal(landed(memory), LEN);
    assert_int_equal(iw_qp(qp)->rx.half.offset, fpdu_len);
    assert_int_equal(memory[LEN], 0);
    still_in_step();
}

static void with_a_crc_it_does_not(void **state)
{
    (void)state;
    tagged(RDMAP_WRITE, mr->rkey, memory, LEN, true);
    give(100);
    give(LEN);
    assert_int_equal(landed(memory), 0);
    give_rest();
    assert_int_equal(landed(memory), LEN);
    still_in_step();
}

/** In three parts, cut near the header, in the middle and near the end; of lengths with any pad. */
static void cut_anywhere(void **state)
{
    (void)state;
    for (size_t len = LEN - 3; len <= LEN; len++) {
        for (size_t i = 0; i < 600; i++) {
            memset(memory, 0, LEN);
            tagged(RDMAP_WRITE, mr->rkey, memory, len, true);
            give(i < 300 ? 1 + i : 30 + i % 7);
            give(i < 300 ? LEN / 2 + i : fpdu_len + 300 - i - 1);
            give_rest();
            assert_memory_equal(memory, payload, len);
            assert_int_equal(memory[len], 0);
        }
        still_in_step();
    }
}

static void a_key_that_is_taken_away(void **state)
{
    (void)state;
    tagged(RDMAP_WRITE, mr->rkey, memory, LEN, true);
    give(100);
    give(LEN / 2);
    size_t before = landed(memory);
    assert_in_range(before, LEN / 2 - 2 * MOST, LEN / 2);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = NULL;
    give(LEN / 2 + 1000);
    assert_int_equal(landed(memory), before);
    assert_int_equal(terminate_got(), 0x1100); /* DDP, tagged buffer: invalid STag */
}

/** What is refused at its end is so from the start. */
static void beyond_the_end(void **state)
{
    (void)state;
    tagged(RDMAP_WRITE, mr->rkey, memory + sizeof(memory) - LEN + 1, LEN, true);
    give(100);
    give(LEN);
    assert_int_equal(landed(memory + sizeof(memory) - LEN + 1), 0);
    give_rest();
    assert_int_equal(landed(memory + sizeof(memory) - LEN + 1), 0);
    assert_int_equal(terminate_got(), 0x1101); /* base or bounds */
}

static ssize_t none(struct iwc_stream *s, void *buf, size_t len)
{
    (void)s;
    (void)buf;
    (void)len;
    return -EAGAIN;
}

/** Whole FPDUs behind the one that lands as it comes are staged in the same call, and used. */
static void with_what_is_behind(void **state)
{
    struct iwc_stream *s = iwc_stream_mem_stream(pair[0]);
    (void)state;
    s->read_ahead = 2 * LEN;
    ops = *s->ops;
    ops.recv = none;
    tagged(RDMAP_WRITE, mr->rkey, memory, LEN, true);
    give(100);
    put(fpdu_len);
    for (unsigned i = 1; i < 3; i++) {
        tagged(RDMAP_WRITE, mr->rkey, memory + i * LEN, LEN, true);
        put(i == 1 ? fpdu_len : 200);
    }
    s->ops = &ops;
    still_run(qp, EPOLLIN);
    assert_int_equal(landed(memory), LEN);
    assert_int_equal(landed(memory + LEN), LEN);
    assert_int_equal(iw_qp(qp)->rx.staged, 200);
    s->ops = peer->ops;
    give_rest();
    assert_int_equal(landed(memory + 2 * LEN), LEN);
    still_in_step();
}

static ssize_t unmapped(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    (void)s;
    (void)iov;
    (void)n;
    return -EFAULT;
}

static void memory_that_is_gone(void **state)
{
    (void)state;
    struct iwc_stream *s = iwc_stream_mem_stream(pair[0]);
    ops = *s->ops;
    ops.recvv = unmapped;
    s->ops = &ops;
    tagged(RDMAP_WRITE, mr->rkey, memory, LEN, true);
    give(100);
    give(LEN);
    assert_int_not_equal(terminate_got(), 0);
    assert_true(atomic_load(&iw_qp(qp)->end.over));
}

static void a_send_lands_as_it_comes(void **state)
{
    const size_t header = FPDU_LEN_FIELD + DDP_UNTAGGED_HDR;
    struct ibv_wc wc;
    (void)state;
    post_recv(1, memory, 2 * LEN, NULL, 0);
    for (unsigned part = 0; part < 2; part++) {
        untagged(part * LEN, LEN, part);
        give(header + 10);
        give(header + LEN / 2);
        assert_in_range(landed(memory + part * LEN), LEN / 2 - MOST, LEN / 2);
        give(fpdu_len - 1);
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
        give_rest();
        assert_int_equal(landed(memory + part * LEN), LEN);
    }
    expect(1, IBV_WC_SUCCESS, 2 * LEN);
    still_in_step();
}

/** Pieces of a list are filled as if they were one, whatever the way. */
static void a_send_into_pieces(void **state)
{
    (void)state;
    for (uint32_t first = 100; first <= LEN; first += 4667) {
        memset(memory, 0, sizeof(memory));
        post_recv(1, memory, first, memory + LEN, LEN);
        untagged(0, LEN, true);
        give(50);
        give(LEN / 2);
        give_rest();
        expect(1, IBV_WC_SUCCESS, LEN);
        assert_memory_equal(memory, payload, first);
        assert_memory_equal(memory + LEN, payload + first, LEN - first);
    }
    still_in_step();
}

static void a_send_that_waits_for_its_receive(void **state)
{
    (void)state;
    untagged(0, LEN, true);
    give(50);
    give(LEN / 2);
    post_recv(1, memory, LEN, NULL, 0);
    give_rest();
    expect(1, IBV_WC_SUCCESS, LEN);
    assert_int_equal(landed(memory), LEN);
    untagged(0, LEN, true);
    give(50);
    give_rest();
    post_recv(2, memory + LEN, LEN, NULL, 0);
    still_run(qp, EPOLLIN);
    expect(2, IBV_WC_SUCCESS, LEN);
    assert_int_equal(landed(memory + LEN), LEN);
    still_in_step();
}

static void a_send_that_is_too_long(void **state)
{
    (void)state;
    post_recv(1, memory, LEN - 1, NULL, 0);
    untagged(0, LEN, true);
    give(50);
    give(LEN / 2);
    assert_int_equal(landed(memory), 0);
    give_rest();
    assert_int_equal(terminate_got(), 0x1205); /* DDP, untagged buffer: message too long */
    expect(1, IBV_WC_LOC_LEN_ERR, 0);
}

static void a_receive_whose_key_is_taken_away(void **state)
{
    (void)state;
    post_recv(1, memory, LEN, NULL, 0);
    untagged(0, LEN, true);
    give(50);
    give(LEN / 2);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = NULL;
    give(LEN / 2 + 1000);
    assert_true(atomic_load(&iw_qp(qp)->end.over));
    expect(1, IBV_WC_LOC_PROT_ERR, 0);
}

static void post_read(void)
{
    struct ibv_sge sge = {(uintptr_t)memory, LEN, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1};
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = 0x1000;
    wr.wr.rdma.rkey = 0x2000;
    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
    still_run(qp, EPOLLOUT);
}

static void a_response_lands_as_it_comes(void **state)
{
    const size_t header = FPDU_LEN_FIELD + DDP_TAGGED_HDR;
    (void)state;
    post_read();
    tagged(RDMAP_READ_RESPONSE, mr->lkey, memory, LEN, true);
    give(header + 10);
    give(header + LEN / 2);
    assert_in_range(landed(memory), LEN / 2 - MOST, LEN / 2);
    give_rest();
    assert_int_equal(landed(memory), LEN);
    expect(5, IBV_WC_SUCCESS, LEN);
    still_in_step();
}

static void a_response_that_nobody_asked_for(void **state)
{
    (void)state;
    tagged(RDMAP_READ_RESPONSE, mr->lkey, memory, LEN, true);
    give(100);
    give(LEN / 2);
    assert_int_equal(landed(memory), 0);
    give_rest();
    assert_int_equal(landed(memory), 0);
    assert_true(atomic_load(&iw_qp(qp)->end.over));
}

static void a_sink_that_is_taken_away(void **state)
{
    (void)state;
    post_read();
    tagged(RDMAP_READ_RESPONSE, mr->lkey, memory, LEN, true);
    give(100);
    give(LEN / 2);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    mr = NULL;
    give(LEN / 2 + 1000);
    assert_true(atomic_load(&iw_qp(qp)->end.over));
    expect(5, IBV_WC_LOC_PROT_ERR, 0);
}

/** A program that flushes its Read has its memory back. */
static void a_read_that_is_flushed(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    (void)state;
    post_read();
    tagged(RDMAP_READ_RESPONSE, mr->lkey, memory, LEN, true);
    give(100);
    give(LEN / 2);
    size_t before = landed(memory);
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    expect(5, IBV_WC_WR_FLUSH_ERR, 0);
    give_rest();
    assert_int_equal(landed(memory), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_write_lands_as_it_comes),
        cmocka_unit_test_setup_teardown(with_a_crc_it_does_not, setup_crc, teardown),
        TEST(with_what_is_behind),
        TEST(cut_anywhere),
        TEST(a_key_that_is_taken_away),
        TEST(beyond_the_end),
        TEST(memory_that_is_gone),
        TEST(a_send_lands_as_it_comes),
        TEST(a_send_into_pieces),
        TEST(a_send_that_waits_for_its_receive),
        TEST(a_send_that_is_too_long),
        TEST(a_receive_whose_key_is_taken_away),
        TEST(a_response_lands_as_it_comes),
        TEST(a_response_that_nobody_asked_for),
        TEST(a_sink_that_is_taken_away),
        TEST(a_read_that_is_flushed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
