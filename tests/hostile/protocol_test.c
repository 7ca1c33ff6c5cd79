/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One violation of MPA, DDP or RDMAP after another: the Terminate that answers it, the event, the
 * line in the log with the field that was wrong, and that nothing was written.
 */
#include "api/logfile.h"
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define FILL     0x5a
#define BYTES    32 /* of the read that the victim has outstanding */

#define FATAL  (1u << IBV_EVENT_QP_FATAL)
#define ACCESS (1u << IBV_EVENT_QP_ACCESS_ERR)

/* ---- what the peer does ---- */

static void wrong_crc(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.crc_xor = 1;
    peer_send_seg(p, &s);
}

static void length(struct peer *p, uint16_t ulpdu_len)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.lie_len = true;
    s.ulpdu_len = ulpdu_len;
    peer_send_seg(p, &s);
}

static void length_below(struct peer *p)
{
    length(p, 13);
}

static void length_above(struct peer *p)
{
    length(p, PEER_ULPDU_MAX + 1);
}

static void length_in_header(struct peer *p)
{
    length(p, 17);
}

static void rdmap_header_cut(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_READ_REQUEST, NULL, 27);
    peer_send_seg(p, &s);
}

static void tagged_version(struct peer *p)
{
    struct peer_seg s = peer_tagged(PEER_WRITE, 1, 0, NULL, 0);
    s.ddp ^= PEER_DDP_V1;
    peer_send_seg(p, &s);
}

static void untagged_version(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.ddp ^= PEER_DDP_V1 | 2;
    peer_send_seg(p, &s);
}

static void rdmap_version(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.rdmap ^= PEER_RDMAP_V1 | 0x80;
    peer_send_seg(p, &s);
}

static void opcode(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, 0xc, NULL, 16);
    peer_send_seg(p, &s);
}

static void tagged_send(struct peer *p)
{
    struct peer_seg s = peer_tagged(PEER_SEND, 1, 0, NULL, 16);
    peer_send_seg(p, &s);
}

static void extension(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND_IMM, NULL, 16);
    peer_send_seg(p, &s);
}

static void changed_opcode(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 0);
    s.ddp ^= PEER_LAST;
    peer_send_seg(p, &s);
    s.ddp ^= PEER_LAST;
    s.rdmap = PEER_RDMAP_V1 | PEER_SEND_INV;
    peer_send_seg(p, &s);
}

static void queue(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.qn = 1;
    peer_send_seg(p, &s);
}

static void queue_out_of_range(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.qn = UINT32_MAX;
    peer_send_seg(p, &s);
}

static void skipped_msn(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.msn = 2;
    peer_send_seg(p, &s);
}

static void offset(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    s.mo = 4;
    peer_send_seg(p, &s);
}

static void request_in_pieces(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_READ_REQUEST, NULL, 28);
    s.ddp ^= PEER_LAST;
    peer_send_seg(p, &s);
}

static void request_too_long(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_READ_REQUEST, NULL, 29);
    peer_send_seg(p, &s);
}

static void atomic_code(struct peer *p)
{
    uint8_t request[52];
    peer_atomic_request(request, 7, 1, p->victim.mr->rkey, (uintptr_t)p->victim.buf);
    struct peer_seg s = peer_untagged(p, PEER_ATOMIC_REQUEST, request, sizeof(request));
    peer_send_seg(p, &s);
}

static void too_many_reads(struct peer *p)
{
    uint8_t request[28];
    peer_read_request(request, 1, 0, SIDE_BYTES, p->victim.mr->rkey, (uintptr_t)p->victim.buf);
    for (int i = 0; i < 64; i++) {
        struct peer_seg s = peer_untagged(p, PEER_READ_REQUEST, request, sizeof(request));
        peer_send_seg(p, &s);
    }
}

static void response_to_nothing(struct peer *p)
{
    struct peer_seg s = peer_tagged(PEER_READ_RESPONSE, 1, 0, NULL, BYTES);
    peer_send_seg(p, &s);
}

static void atomic_response_to_nothing(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_ATOMIC_RESPONSE, NULL, 12);
    peer_send_seg(p, &s);
}

/* Answers to the victim's read. */

static struct ibv_mr *sink;

/** Waits for it: from then on it is outstanding. */
static struct peer_seg await_request(struct peer *p)
{
    struct peer_seg request;
    assert_true(peer_next(p, &request));
    assert_int_equal(request.rdmap, PEER_RDMAP_V1 | PEER_READ_REQUEST);
    return request;
}

static void respond(struct peer *p, const struct peer_seg *request, uint32_t key_xor,
                    uint64_t ahead, size_t len)
{
    uint32_t stag = peer_get32(request->payload);
    uint64_t to = peer_get64((const uint8_t *)request->payload + 4);
    struct peer_seg s = peer_tagged(PEER_READ_RESPONSE, stag ^ key_xor, to + ahead, NULL, len);
    peer_send_seg(p, &s);
}

static void response_to_another_key(struct peer *p)
{
    struct peer_seg request = await_request(p);
    respond(p, &request, 1, 0, BYTES);
}

static void response_elsewhere(struct peer *p)
{
    struct peer_seg request = await_request(p);
    respond(p, &request, 0, 1, BYTES);
}

static void response_too_long(struct peer *p)
{
    struct peer_seg request = await_request(p);
    respond(p, &request, 0, 0, BYTES + 1);
}

static void response_too_short(struct peer *p)
{
    struct peer_seg request = await_request(p);
    respond(p, &request, 0, 0, 0);
}

static void sink_deregistered(struct peer *p)
{
    struct peer_seg request = await_request(p);
    assert_int_equal(ibv_dereg_mr(sink), 0);
    sink = NULL;
    respond(p, &request, 0, 0, BYTES);
}

static void reset(struct peer *p)
{
    peer_hang_up(p, true);
}

static void fin_inside_an_fpdu(struct peer *p)
{
    uint8_t bytes[PEER_FPDU_MAX];
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 16);
    peer_fpdu(p, &s, bytes);
    peer_send(p, bytes, 10);
    peer_hang_up(p, false);
}

static void fin(struct peer *p)
{
    peer_hang_up(p, false);
}

static void fin_before_the_response(struct peer *p)
{
    await_request(p); /* unread bytes would make it a reset */
    fin(p);
}

/* ---- what comes of it ---- */

static const struct row {
    const char *name;
    void (*act)(struct peer *p);
    unsigned terminate;
    unsigned events;
    const char *line; /* up to the counts; NULL: none */
    bool reading;     /* the victim has a read outstanding */
    bool no_crc;
    enum ibv_wc_status status; /* of that read, 0: it is flushed */
} rows[] = {
    {"CRC", wrong_crc, PEER_TERM(2, 0, 0x02), FATAL,
     .line = "received CRC does not match: FPDU 2, ULPDU length 34, CRC 0x* (computed: 0x*)"},
    {"length below", length_below, PEER_TERM(2, 0, 0x03), FATAL,
     .line = "FPDU length and headers disagree: FPDU 2, ULPDU length 13"},
    {"length above", length_above, PEER_TERM(2, 0, 0x03), FATAL,
     .line = "FPDU length and headers disagree: FPDU 2, ULPDU length 64769"},
    {"length in header", length_in_header, PEER_TERM(2, 0, 0x03), FATAL,
     .line = "FPDU length and headers disagree: FPDU 2, ULPDU length 17", .no_crc = true},
    {"RDMAP header cut", rdmap_header_cut, PEER_TERM(2, 0, 0x03), FATAL,
     .line = "FPDU length and headers disagree: FPDU 2, ULPDU length 45, *, opcode 0x1 RDMA Read "
             "Request*"},
    {"tagged DDP version", tagged_version, PEER_TERM(1, 1, 0x04), FATAL,
     .line = "DDP version of a tagged segment is not 1: FPDU 2, ULPDU length 14, DDP version 0, *"},
    {"untagged DDP version", untagged_version, PEER_TERM(1, 2, 0x06), FATAL,
     .line = "DDP version of an untagged segment is not 1: *, DDP version 2, *"},
    {"RDMAP version", rdmap_version, PEER_TERM(0, 2, 0x05), FATAL,
     .line = "RDMAP version is not 1: *, RDMAP version 2, *"},
    {"opcode", opcode, PEER_TERM(0, 2, 0x06), FATAL,
     .line = "unexpected RDMAP opcode: *, opcode 0xc unassigned, *"},
    {"tagged Send", tagged_send, PEER_TERM(0, 2, 0x06), FATAL,
     .line = "unexpected RDMAP opcode: *, opcode 0x3 Send, STag *"},
    {"extension", extension, PEER_TERM(0, 2, 0x06), FATAL,
     .line = "unexpected RDMAP opcode: *, opcode 0xf Send with Immediate, *"},
    {"changed opcode", changed_opcode, PEER_TERM(0, 2, 0x06), FATAL,
     .line = "unexpected RDMAP opcode: *, opcode 0x4 Send with Invalidate, *, inside a Send"},
    {"queue", queue, PEER_TERM(1, 2, 0x01), FATAL,
     .line = "invalid DDP queue number: *, QN 1 (due: 0), *"},
    {"queue out of range", queue_out_of_range, PEER_TERM(1, 2, 0x01), FATAL,
     .line = "invalid DDP queue number: *, QN 4294967295 (due: 0), *"},
    {"MSN", skipped_msn, PEER_TERM(1, 2, 0x03), FATAL,
     .line = "message sequence number out of range: *, MSN 2 (due: 1), *"},
    {"offset", offset, PEER_TERM(1, 2, 0x04), FATAL,
     .line = "invalid message offset: *, MO 4 (due: 0), last"},
    {"request in pieces", request_in_pieces, PEER_TERM(1, 2, 0x04), FATAL,
     .line = "invalid message offset: *, MO 0, not last (due: last)"},
    {"request too long", request_too_long, PEER_TERM(1, 2, 0x05), FATAL,
     .line = "untagged message longer than its receive buffer: *, ULPDU length 47, *"},
    {"atomic operation", atomic_code, PEER_TERM(0, 2, 0x06), FATAL,
     .line = "unexpected RDMAP opcode: atomic operation code 7"},
    {"too many reads", too_many_reads, PEER_TERM(0, 2, 0x07), FATAL,
     .line = "more reads and atomics outstanding than the agreed IRD: * are outstanding, 4 were "
             "agreed"},
    {"response to nothing", response_to_nothing, PEER_TERM(1, 1, 0x00), ACCESS,
     .line = "read response does not match the oldest outstanding read: *, STag 0x00000001, TO "
             "0x0, last"},
    {"atomic response to nothing", atomic_response_to_nothing, PEER_TERM(1, 2, 0x03), FATAL,
     .line =
         "atomic response does not match the oldest outstanding atomic: request identifier 0x0"},
    {"response to another key", response_to_another_key, PEER_TERM(1, 1, 0x00), ACCESS,
     .line = "RDMA Read, wr_id 0x1: read response does not match the oldest outstanding read: 32 "
             "bytes, "
             "last at 0x*, key 0x* (due: 32 at 0x*, key 0x*)",
     .reading = true, .status = IBV_WC_BAD_RESP_ERR},
    {"response elsewhere", response_elsewhere, PEER_TERM(1, 1, 0x01), ACCESS,
     .line = "RDMA Read, wr_id 0x1: read response outside *: 32 bytes, last at *1, key * (due: 32 "
             "at *)",
     .reading = true, .status = IBV_WC_BAD_RESP_ERR},
    {"response too long", response_too_long, PEER_TERM(1, 1, 0x01), ACCESS,
     .line = "RDMA Read, wr_id 0x1: read response outside *: 33 bytes, last at 0x*, key * (due: 32 "
             "at *)",
     .reading = true, .status = IBV_WC_BAD_RESP_ERR},
    {"response too short", response_too_short, PEER_TERM(1, 1, 0x01), ACCESS,
     .line = "RDMA Read, wr_id 0x1: read response outside *: 0 bytes, last at 0x*, key * (due: 32 "
             "at *)",
     .reading = true, .status = IBV_WC_BAD_RESP_ERR},
    {"atomic response to a read", atomic_response_to_nothing, PEER_TERM(1, 2, 0x03), FATAL,
     .line = "atomic response does not match the oldest outstanding atomic: request identifier 0x0",
     .reading = true},
    {"sink deregistered", sink_deregistered, PEER_TERM(0, 0, 0x00), ACCESS,
     .line =
         "RDMA Read, wr_id 0x1: receive buffer *: entry 1 of 1, local sink of 32 bytes at 0x*, key "
         "0x*: no such key any more: it was deregistered lately",
     .reading = true, .status = IBV_WC_LOC_PROT_ERR},
    {"reset", reset, PEER_NO_TERM, 0,
     .line = "TCP connection lost: ECONNRESET, Connection reset by peer"},
    {"FIN inside an FPDU", fin_inside_an_fpdu, PEER_NO_TERM, 0,
     .line = "TCP connection lost: the peer closed it 10 bytes into an FPDU"},
    {"FIN before the response", fin_before_the_response, PEER_NO_TERM, 0,
     .line = "TCP connection lost: the peer closed it, work is not done", .reading = true},
    {"FIN", fin, PEER_NO_TERM, 0, .line = NULL},
};

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.wr_id, wr_id);
    if (wc.status != status)
        print_error("got %s, wanted %s\n", ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.qp_num, s->id->qp->qp_num);
    assert_int_not_equal(wc.vendor_err, 0);
}

static void read_something(struct side *s)
{
    struct side remote = {.buf = s->buf, .mr = s->mr}, local = *s;
    sink = ibv_reg_mr(s->pd, s->buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(sink);
    local.mr = sink;
    assert_int_equal(side_post(&local, &remote, IBV_WR_RDMA_READ, 1, 0, BYTES, 0, 0), 0);
}

/** Errors of DDP, and of RDMAP but for local ones (RFC 5040 figure 10). */
static bool quotes(unsigned terminate)
{
    return terminate >> 12 == 1 || (terminate >> 12 == 0 && terminate >> 8);
}

static void run(const struct row *r)
{
    static struct peer p;
    char line[512];
    peer_open(&p, &(struct peer_conf){.no_crc = r->no_crc});
    struct side *s = &p.victim;
    memset(s->buf, FILL, SIDE_BYTES);
    /* What a raw peer asks for comes after that: ThreadSanitizer sees it by the QP's locks. */
    ibv_query_qp(s->id->qp, &(struct ibv_qp_attr){0}, IBV_QP_STATE, &(struct ibv_qp_init_attr){0});
    side_recv(s, 51, 0, 64);
    side_recv(s, 52, 64, 64);
    if (r->reading)
        read_something(s);
    r->act(&p);
    unsigned got = p.fd < 0 ? PEER_NO_TERM : peer_terminate(&p);
    if (got != r->terminate)
        fail_msg("Terminate 0x%04x, wanted 0x%04x", got, r->terminate);
    if (quotes(got) != (p.quoted >= 0))
        fail_msg("the headers are%s quoted", p.quoted >= 0 ? "" : " not");
    if (r->reading)
        expect(s, 1, r->status ? r->status : IBV_WC_WR_FLUSH_ERR);
    expect(s, 51, IBV_WC_WR_FLUSH_ERR);
    expect(s, 52, IBV_WC_WR_FLUSH_ERR);
    side_event(s, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(s, 1);
    assert_int_equal(s->id->qp->state, IBV_QPS_ERR);
    assert_int_equal(async_events(s->id->qp), r->events);
    if (r->line)
        snprintf(line, sizeof(line), "%s; %d send and 2 receive work requests flushed", r->line,
                 r->reading && !r->status);
    log_expect(s->id->qp->qp_num, r->line ? line : NULL);
    log_clear();
    for (size_t i = 0; i < SIDE_BYTES; i++)
        assert_int_equal(s->buf[i], FILL);
    if (sink)
        assert_int_equal(ibv_dereg_mr(sink), 0);
    sink = NULL;
    peer_close(&p);
}

static void every_violation(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("  %s\n", rows[i].name);
        run(&rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_violation),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}
