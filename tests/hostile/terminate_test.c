/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every Terminate that a peer can send: its name in the log, and which of three outstanding work
 * requests has which status.
 */
#include "api/logfile.h"
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define HAS_DDP   0xc0
#define HAS_RDMAP 0x20

/**
 * What the Terminate quotes. The victim's requests have the MSNs 1 and 2. SECOND_BY_SINK has the
 * Read Request header of the second, and in place of its MSN the size, as siw does.
 */
enum quote { NOTHING, FIRST, SECOND, SECOND_WHOLE, SECOND_BY_SINK, THIRD, A_SEND, A_WRITE };

static const char *const about[] = {
    [NOTHING] = "",
    [FIRST] = ", about the RDMA Read Request, QN 1, MSN 1, MO 0",
    [SECOND] = ", about the RDMA Read Request, QN 1, MSN 2, MO 0",
    [SECOND_WHOLE] = (", about the RDMA Read Request, MSN 2, for 16 bytes at 0x1122334455667788, "
                      "key 0x0000cafe"),
    [SECOND_BY_SINK] = ", about the RDMA Read Request, MSN 1, for 1 bytes at 0x*, key 0x*",
    [THIRD] = ", about the RDMA Read Request, QN 1, MSN 3, MO 0",
    [A_SEND] = ", about the Send, QN 0, MSN 1, MO 0",
    [A_WRITE] = ", about the RDMA Write segment at 0x1122334455667788, key 0x0000cafe",
};

static const struct row {
    uint8_t layer, etype, code;
    enum quote quote;
    unsigned blamed; /* wr_id, 0: none */
    enum ibv_wc_status status;
    const char *name;
} rows[] = {
    {0, 1, 0x00, SECOND_WHOLE, 2, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, Invalid STag (0/1/00)"},
    {0, 1, 0x00, SECOND_BY_SINK, 2, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, Invalid STag (0/1/00)"},
    {0, 1, 0x01, FIRST, 1, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, Base or bounds violation (0/1/01)"},
    {0, 1, 0x02, SECOND, 2, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, Access rights violation (0/1/02)"},
    {0, 1, 0x03, NOTHING, 1, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, STag not associated with RDMAP Stream (0/1/03)"},
    {0, 1, 0x04, THIRD, 0, IBV_WC_SUCCESS, "RDMAP, Remote Protection Error, TO wrap (0/1/04)"},
    {0, 1, 0x09, A_SEND, 0, IBV_WC_SUCCESS,
     "RDMAP, Remote Protection Error, STag cannot be Invalidated (0/1/09)"},
    {0, 1, 0xff, SECOND, 2, IBV_WC_REM_ACCESS_ERR,
     "RDMAP, Remote Protection Error, Unspecified Error (0/1/ff)"},
    {0, 2, 0x05, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "RDMAP, Remote Operation Error, Invalid RDMAP version (0/2/05)"},
    {0, 2, 0x06, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "RDMAP, Remote Operation Error, Unexpected OpCode (0/2/06)"},
    {0, 2, 0x07, SECOND, 2, IBV_WC_REM_OP_ERR,
     "RDMAP, Remote Operation Error, Catastrophic error, localized to RDMAP Stream (0/2/07)"},
    {0, 2, 0x08, NOTHING, 1, IBV_WC_REM_OP_ERR,
     "RDMAP, Remote Operation Error, Catastrophic error, global (0/2/08)"},
    {0, 2, 0x09, A_SEND, 0, IBV_WC_SUCCESS,
     "RDMAP, Remote Operation Error, STag cannot be Invalidated (0/2/09)"},
    {0, 2, 0xff, SECOND, 2, IBV_WC_REM_OP_ERR,
     "RDMAP, Remote Operation Error, Unspecified Error (0/2/ff)"},
    {0, 0, 0x00, NOTHING, 0, IBV_WC_SUCCESS, "RDMAP, Local Catastrophic Error (0/0/00)"},
    {1, 0, 0x00, NOTHING, 0, IBV_WC_SUCCESS, "DDP, Local Catastrophic Error (1/0/00)"},
    {1, 1, 0x00, A_WRITE, 0, IBV_WC_SUCCESS, "DDP, Tagged Buffer Error, Invalid STag (1/1/00)"},
    {1, 1, 0x01, A_WRITE, 0, IBV_WC_SUCCESS,
     "DDP, Tagged Buffer Error, Base or bounds violation (1/1/01)"},
    {1, 1, 0x02, A_WRITE, 0, IBV_WC_SUCCESS,
     "DDP, Tagged Buffer Error, STag not associated with DDP Stream (1/1/02)"},
    {1, 1, 0x03, A_WRITE, 0, IBV_WC_SUCCESS, "DDP, Tagged Buffer Error, TO wrap (1/1/03)"},
    {1, 1, 0x04, A_WRITE, 0, IBV_WC_SUCCESS,
     "DDP, Tagged Buffer Error, Invalid DDP version (1/1/04)"},
    {1, 2, 0x01, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "DDP, Untagged Buffer Error, Invalid QN (1/2/01)"},
    {1, 2, 0x02, A_SEND, 0, IBV_WC_SUCCESS,
     "DDP, Untagged Buffer Error, Invalid MSN - no buffer available (1/2/02)"},
    {1, 2, 0x03, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "DDP, Untagged Buffer Error, Invalid MSN - MSN range is not valid (1/2/03)"},
    {1, 2, 0x04, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "DDP, Untagged Buffer Error, Invalid MO (1/2/04)"},
    {1, 2, 0x05, SECOND, 2, IBV_WC_REM_INV_REQ_ERR,
     "DDP, Untagged Buffer Error, DDP Message too long for available buffer (1/2/05)"},
    {1, 2, 0x06, SECOND, 2, IBV_WC_GENERAL_ERR,
     "DDP, Untagged Buffer Error, Invalid DDP version (1/2/06)"},
    {2, 0, 0x01, NOTHING, 0, IBV_WC_SUCCESS,
     "LLP, MPA Error, TCP connection closed, terminated, or lost (2/0/01)"},
    {2, 0, 0x02, NOTHING, 0, IBV_WC_SUCCESS, "LLP, MPA Error, MPA CRC does not match (2/0/02)"},
    {2, 0, 0x03, NOTHING, 0, IBV_WC_SUCCESS,
     "LLP, MPA Error, MPA Marker and ULPDU_Length mismatch (2/0/03)"},
    {2, 0, 0x04, NOTHING, 0, IBV_WC_SUCCESS,
     "LLP, MPA Error, Invalid MPA Request or Reply Frame (2/0/04)"},
    {2, 0, 0x05, NOTHING, 0, IBV_WC_SUCCESS, "LLP, MPA Error, Local Catastrophic Error (2/0/05)"},
    /* Codes of set-up, which is over: siw's 0/2/06 and 0/2/07. */
    {2, 0, 0x06, NOTHING, 1, IBV_WC_REM_INV_REQ_ERR,
     "RDMAP, Remote Operation Error, Unexpected OpCode (0/2/06)"},
    {2, 0, 0x07, NOTHING, 1, IBV_WC_REM_OP_ERR,
     "RDMAP, Remote Operation Error, Catastrophic error, localized to RDMAP Stream (0/2/07)"},
    {0, 3, 0x00, NOTHING, 0, IBV_WC_SUCCESS, "RDMAP, type unknown, code unknown (0/3/00)"},
    {1, 1, 0x77, NOTHING, 0, IBV_WC_SUCCESS, "DDP, Tagged Buffer Error, code unknown (1/1/77)"},
    {9, 9, 0x99, NOTHING, 0, IBV_WC_SUCCESS, "layer unknown, type unknown, code unknown (9/9/99)"},
};

/** Writes the quoted headers. @param second  the victim's request. @return their size */
static size_t quote(enum quote q, const struct peer_seg *second, uint8_t *at)
{
    struct peer_seg s = {.ddp = PEER_LAST | PEER_DDP_V1, .rdmap = PEER_RDMAP_V1};
    uint8_t fpdu[128];
    struct peer no_crc = {0};
    s.rdmap |= q == A_SEND ? PEER_SEND : q == A_WRITE ? PEER_WRITE : PEER_READ_REQUEST;
    s.qn = q != A_SEND;
    s.msn = q == A_SEND || q == FIRST || q == SECOND_BY_SINK ? 1 : q == THIRD ? 3 : 2;
    if (q == A_WRITE)
        s = peer_tagged(PEER_WRITE, 0xcafe, 0x1122334455667788, NULL, 0);
    peer_fpdu(&no_crc, &s, fpdu);
    size_t len = q == A_WRITE ? 14 : 18;
    memcpy(at, fpdu + 2, len);
    if (q == SECOND_WHOLE)
        peer_read_request(at + len, 1, 0, 16, 0xcafe, 0x1122334455667788);
    if (q == SECOND_BY_SINK)
        memcpy(at + len, second->payload, 28);
    return q == SECOND_WHOLE || q == SECOND_BY_SINK ? len + 28 : len;
}

static void terminate(struct peer *p, const struct row *r, const struct peer_seg *second)
{
    bool whole = r->quote == SECOND_WHOLE || r->quote == SECOND_BY_SINK;
    uint8_t t[64] = {(uint8_t)(r->layer << 4 | r->etype), r->code};
    size_t len = 4;
    if (r->quote != NOTHING) {
        t[2] = HAS_DDP | (whole ? HAS_RDMAP : 0);
        peer_put16(t + 4, 46);
        len = 6 + quote(r->quote, second, t + 6);
    }
    struct peer_seg s = peer_untagged(p, PEER_TERMINATE, t, len);
    peer_send_seg(p, &s);
}

/** What the code leaves open: it stands for a key that there is not, and for one without the right.
 */
static const char *hint(const struct row *r)
{
    bool stag = r->layer == 1 && r->etype == 1 && r->code == 0;
    return stag ? "; it has no such key, or that gives no remote write: its log tells" : "";
}

static void run(const struct row *r)
{
    static struct peer p;
    struct peer_seg s;
    char line[512];
    peer_open(&p, &(struct peer_conf){.no_crc = false});
    struct side *v = &p.victim, remote = {.buf = v->buf, .mr = v->mr};
    side_recv(v, 51, 0, 64);
    side_post(v, &remote, IBV_WR_RDMA_READ, 1, 0, 16, 0, 0);
    side_post(v, &remote, IBV_WR_RDMA_READ, 2, 16, 1, 0, 0);
    side_post(v, &remote, IBV_WR_SEND, 3, 0, 16, 0, IBV_SEND_FENCE);
    assert_true(peer_next(&p, &s));
    assert_true(peer_next(&p, &s));
    assert_int_equal(s.msn, 2);
    terminate(&p, r, &s);
    assert_int_equal(peer_terminate(&p), PEER_NO_TERM); /* none answers one */
    for (unsigned i = 1; i <= 3; i++) {
        struct ibv_wc wc = side_poll(v);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, i == r->blamed ? r->status : IBV_WC_WR_FLUSH_ERR);
    }
    assert_int_equal(side_poll(v).wr_id, 51);
    side_event(v, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(async_events(v->id->qp), 1u << IBV_EVENT_QP_FATAL);
    line[0] = 0;
    if (r->blamed)
        snprintf(line, sizeof(line), "RDMA Read, wr_id 0x%x: ", r->blamed);
    snprintf(line + strlen(line), sizeof(line) - strlen(line),
             "peer sent a Terminate message: %s%s%s; %d send and 1 receive work requests flushed",
             r->name, about[r->quote], hint(r), r->blamed ? 2 : 3);
    log_expect(v->id->qp->qp_num, line);
    log_clear();
    peer_close(&p);
}

static void every_terminate(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("  %s\n", rows[i].name);
        run(&rows[i]);
    }
}

static void term_word(struct peer *p, uint8_t first, uint8_t code)
{
    uint8_t t[4] = {first, code};
    struct peer_seg s = peer_untagged(p, PEER_TERMINATE, t, sizeof(t));
    peer_send_seg(p, &s);
    assert_int_equal(peer_terminate(p), PEER_NO_TERM);
}

static void ended(struct peer *p, const char *reason)
{
    struct side *v = &p->victim;
    side_event(v, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(async_events(v->id->qp), 1u << IBV_EVENT_QP_FATAL);
    log_expect(v->id->qp->qp_num, reason);
    log_clear();
    peer_close(p);
}

/**
 * siw, which knows no opcode above 7, says so in its own bit order and quotes nothing. As a
 * responder it may have sent nothing else.
 */
static void unknown_opcode(void **state)
{
    static void (*const open[])(struct peer *, const struct peer_conf *) = {peer_open,
                                                                            peer_open_active};
    (void)state;
    for (size_t i = 0; i < COUNT(open); i++) {
        static struct peer p;
        struct peer_seg s;
        open[i](&p, &(struct peer_conf){.no_crc = false});
        struct side *v = &p.victim, remote = {.buf = v->buf, .mr = v->mr};
        side_post(v, &remote, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 16, 0, 0);
        assert_true(peer_next(&p, &s)); /* the Write */
        assert_true(peer_next(&p, &s)); /* the Immediate Data */
        term_word(&p, 0x20, 0x06);
        assert_int_equal(side_poll(v).status, IBV_WC_SUCCESS);
        ended(&p, "peer sent a Terminate message: RDMAP, Remote Operation Error, Unexpected OpCode "
                  "(0/2/06); sent beyond RFC 5040: Immediate Data; 0 send and 0 receive work "
                  "requests flushed");
    }
}

/** The same bytes as an initiator's first FPDU are a code of RFC 6581. */
static void in_setup(void **state)
{
    static struct peer p;
    (void)state;
    peer_open(&p, &(struct peer_conf){.silent = true});
    term_word(&p, 0x20, 0x06);
    ended(&p, "peer sent a Terminate message: LLP, MPA Error, Insufficient IRD Resources (2/0/06); "
              "0 send and 0 receive work requests flushed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_terminate),
        cmocka_unit_test(unknown_opcode),
        cmocka_unit_test(in_setup),
    };
    return cmocka_run_group_tests(tests, log_setup, log_teardown);
}
