/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of many segments, each of which would fit, that are too long as a whole: nothing is
 * written behind the buffer (RFC 5042 section 6.2.1).
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FILL   0x5a
#define DATA   0xee
#define BUFFER 1000 /* of the victim's */
#define PIECE  400  /* the third is too much */
#define READ   1
#define RECV   51

static uint8_t piece[SIDE_BYTES];

static void send_untagged(struct peer *p, enum peer_op op, unsigned pieces)
{
    struct peer_seg s = peer_untagged(p, op, piece, PIECE);
    s.ddp ^= PEER_LAST;
    for (unsigned i = 0; i < pieces; i++) {
        s.mo = i * PIECE;
        peer_send_seg(p, &s);
    }
}

static void send_tagged(struct peer *p, enum peer_op op, uint32_t stag, uint64_t to,
                        unsigned pieces)
{
    for (unsigned i = 0; i < pieces; i++) {
        struct peer_seg s = peer_tagged(op, stag, to + (uint64_t)i * PIECE, piece, PIECE);
        s.ddp ^= PEER_LAST;
        peer_send_seg(p, &s);
    }
}

/** Empty segments make no progress, and no harm. */
static void send_nothing(struct peer *p, uint32_t stag, uint64_t to)
{
    for (int i = 0; i < 100; i++) {
        struct peer_seg s = peer_tagged(PEER_READ_RESPONSE, stag, to, NULL, 0);
        s.ddp ^= PEER_LAST;
        peer_send_seg(p, &s);
    }
}

static void a_send(struct peer *p)
{
    send_untagged(p, PEER_SEND, 3);
}

static void a_send_in_many_pieces(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, piece, 1);
    s.ddp ^= PEER_LAST;
    for (; s.mo <= BUFFER; s.mo++)
        peer_send_seg(p, &s);
}

static struct peer_seg take_request(struct peer *p)
{
    struct peer_seg request;
    assert_true(peer_next(p, &request));
    assert_int_equal(request.rdmap, PEER_RDMAP_V1 | PEER_READ_REQUEST);
    return request;
}

static void a_response(struct peer *p)
{
    struct peer_seg r = take_request(p);
    send_tagged(p, PEER_READ_RESPONSE, peer_get32(r.payload),
                peer_get64((const uint8_t *)r.payload + 4), 3);
}

static void a_response_between_empty_segments(struct peer *p)
{
    struct peer_seg r = take_request(p);
    uint32_t stag = peer_get32(r.payload);
    uint64_t to = peer_get64((const uint8_t *)r.payload + 4);
    send_nothing(p, stag, to);
    send_tagged(p, PEER_READ_RESPONSE, stag, to, 2);
    send_nothing(p, stag, to + 2ull * PIECE);
    struct peer_seg s = peer_tagged(PEER_READ_RESPONSE, stag, to + 2ull * PIECE, piece, PIECE);
    peer_send_seg(p, &s);
}

static void a_write(struct peer *p)
{
    uint64_t end = (uintptr_t)p->victim.buf + SIDE_BYTES;
    send_tagged(p, PEER_WRITE, p->victim.mr->rkey, end - BUFFER, 3);
}

static const struct row {
    const char *name;
    void (*act)(struct peer *p);
    unsigned terminate;
    bool reads;
    enum ibv_wc_status status; /* of the read, or of the receive */
    const char *line;
} rows[] = {
    {"Send", a_send, PEER_TERM(1, 2, 0x05), false, IBV_WC_LOC_LEN_ERR,
     "receive, wr_id 0x33: untagged message longer than its receive buffer: Send of more than 1200 "
     "bytes, receive of 1000"},
    {"Send, byte by byte", a_send_in_many_pieces, PEER_TERM(1, 2, 0x05), false, IBV_WC_LOC_LEN_ERR,
     "receive, wr_id 0x33: untagged message longer than its receive buffer: Send of more than 1001 "
     "bytes, receive of 1000"},
    {"Read Response", a_response, PEER_TERM(1, 1, 0x01), true, IBV_WC_BAD_RESP_ERR,
     "RDMA Read, wr_id 0x1: read response outside its sink buffer*: 400 bytes at *(due: 200 *"},
    {"Read Response, empty segments", a_response_between_empty_segments, PEER_TERM(1, 1, 0x01),
     true, IBV_WC_BAD_RESP_ERR,
     "RDMA Read, wr_id 0x1: read response outside its sink buffer*: 400 bytes, last at *(due: 200 "
     "*"},
    {"Write", a_write, PEER_TERM(1, 1, 0x01), false, IBV_WC_WR_FLUSH_ERR,
     "tagged message outside the bounds of its STag: RDMA Write of 400 bytes at *"},
};

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

/** The first BUFFER bytes at @p at may have data; nothing else. */
static void check_memory(const struct peer *p, size_t at)
{
    for (size_t i = 0; i < SIDE_BYTES; i++)
        if ((i < at || i >= at + BUFFER) && p->victim.buf[i] != FILL)
            fail_msg("byte %zu was written", i);
}

static void run(const struct row *r)
{
    static struct peer p;
    struct side *v = &p.victim;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    memset(v->buf, FILL, SIDE_BYTES);
    witness_goes_on(); /* so that ThreadSanitizer sees this come before what the peer sends */
    side_recv(v, RECV, 0, BUFFER);
    if (r->reads)
        side_post(v, &(struct side){.buf = v->buf, .mr = v->mr}, IBV_WR_RDMA_READ, READ, 0, BUFFER,
                  0, 0);
    r->act(&p);
    assert_int_equal(peer_terminate(&p), r->terminate);
    assert_int_equal(p.quoted, (int)p.nsent - 1);
    if (r->reads)
        expect(v, READ, r->status);
    expect(v, RECV, r->reads ? IBV_WC_WR_FLUSH_ERR : r->status);
    witness_end(&p, 0, r->line);
    check_memory(&p, r->act == a_write ? SIDE_BYTES - BUFFER : 0);
    peer_close(&p);
}

static void many_that_fit_are_too_many(void **state)
{
    (void)state;
    memset(piece, DATA, sizeof(piece));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        print_message("  %s\n", rows[i].name);
        run(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_that_fit_are_too_many),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
