/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two sides agree on, seen from the other end of the socket: depths with their corner values,
 * the first message of an initiator, CRC, revisions, private data, in both roles. RFC 6581 section
 * 9, RFC 5044 section 7.1.
 */
#include "api/cm_kit.h"
#include "api/cm_net.h"
#include "witness.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define QUIET_MS 20
#define A        0x8000 /* word 0: peer-to-peer */
#define B        0x4000 /* a Send first */
#define C        0x8000 /* word 1: a Write first */
#define D        0x4000 /* a Read first */
#define OPEN     0x3fff /* a depth that is left to the program */
#define LIMIT    128    /* of ours */
#define CRC      0x40
#define REFUSED  0x20
#define S        0x10

static uint8_t frame[1024];

static size_t make_frame(const char *key, uint8_t flags, uint8_t rev, const void *body, size_t n)
{
    memcpy(frame, key, 16);
    frame[16] = flags;
    frame[17] = rev;
    peer_put16(frame + 18, (uint16_t)n);
    memcpy(frame + 20, body, n);
    return 20 + n;
}

static size_t make_enhanced(const char *key, uint8_t flags, uint16_t w0, uint16_t w1,
                            const void *data, size_t n)
{
    uint8_t body[600];
    peer_put16(body, w0);
    peer_put16(body + 2, w1);
    memcpy(body + 4, data, n);
    return make_frame(key, flags | S, 2, body, 4 + n);
}

static void send_slowly(struct peer *p, size_t n)
{
    setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    for (size_t i = 0; i < n; i++)
        peer_send(p, frame + i, 1);
}

/* ---- the victim listens ---- */

static struct cm_sides sides;

static void call(struct peer *p)
{
    struct timeval patience = {.tv_sec = 10};
    *p = (struct peer){.listening = -1, .quoted = -1, .msn = {1, 1, 1, 1}};
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(p->fd, errno);
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_return_code(
        connect(p->fd, (const struct sockaddr *)&sides.addr, sizeof(struct sockaddr_in)), errno);
}

static const struct passive {
    const char *name;
    uint8_t rev, flags;
    uint16_t w0, w1;  /* of the Request */
    uint8_t ird, ord; /* of the program that accepts */
    uint16_t r0, r1;  /* of the Reply */
    uint8_t seen_ird,
        seen_ord; /* by the program in the request: what it may be asked for, and ask */
    uint8_t got_ird, got_ord;
} passive[] = {
    {"equal", 2, S, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {"none", 2, S, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"one way", 2, S, 7, 0, 0, 7, 0, 7, 0, 7, 0, 7},
    {"the peer serves fewer", 2, S, 1, 4, 4, 4, 4, 1, 4, 1, 4, 1},
    {"the peer serves none", 2, S, 0, 4, 4, 4, 4, 0, 4, 0, 4, 0},
    {"the peer asks for more", 2, S, 4, 100, 4, 4, 4, 4, 100, 4, 4, 4},
    {"our limit", 2, S, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT},
    {"over our limit", 2, S, 1000, 1000, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT, LIMIT},
    {"left to the program", 2, S, OPEN, OPEN, 4, 5, OPEN, OPEN, LIMIT, LIMIT, 4, 5},
    {"left, one way", 2, S, OPEN, 3, 4, 5, 4, OPEN, 3, LIMIT, 4, 5},
    {"B, C and D without A", 2, S, B | 4, C | D | 4, 4, 4, 4, 4, 4, 4, 4, 4},
    {"a Write first", 2, S, A | 4, C | 4, 4, 4, A | 4, C | 4, 4, 4, 4, 4},
    {"a Read first", 2, S, A | 4, D | 4, 4, 4, A | 4, D | 4, 4, 4, 4, 4},
    {"a Read first, of no depth", 2, S, A, D | 1, 0, 0, A | 1, D, 1, 0, 1, 0},
    {"either", 2, S, A | 4, C | D | 4, 4, 4, A | 4, C | 4, 4, 4, 4, 4},
    {"a Send, or a Write", 2, S, A | B | 4, C | 4, 4, 4, A | 4, C | 4, 4, 4, 4, 4},
    {"revision 1", 1, 0, 0, 0, 4, 5, 0, 0, LIMIT, LIMIT, 4, 5},
    {"revision 2 without a block", 2, 0, 0, 0, 4, 5, 0, 0, LIMIT, LIMIT, 4, 5},
    {"reserved bits", 2, S | 0x0d, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4},
};

static size_t make_request(const struct passive *r)
{
    if (r->flags & S)
        return make_enhanced("MPA ID Req Frame", r->flags, r->w0, r->w1, "ping", 4);
    return make_frame("MPA ID Req Frame", r->flags, r->rev, "ping", 4);
}

static void expect_reply(struct peer *p, const struct passive *r)
{
    uint8_t got[32];
    size_t want = r->flags & S ? make_enhanced("MPA ID Rep Frame", 0, r->r0, r->r1, "pong", 4)
                               : make_frame("MPA ID Rep Frame", 0, r->rev, "pong", 4);
    assert_int_equal(recv(p->fd, got, want, MSG_WAITALL), want);
    assert_memory_equal(got, frame, want);
}

/** The first message of an initiator, and what answers it. */
static void speak_first(struct peer *p, const struct passive *r)
{
    struct peer_seg s, answer;
    uint8_t nothing[28];
    cm_quiet(sides.b, QUIET_MS); /* not established before it */
    if (r->r1 & C) {
        s = peer_tagged(PEER_WRITE, 1, 0x123456, NULL, 0); /* any key and offset will do */
        peer_send_seg(p, &s);
        return;
    }
    peer_read_request(nothing, 3, 5, 0, 0, 0);
    s = peer_untagged(p, PEER_READ_REQUEST, nothing, sizeof(nothing));
    peer_send_seg(p, &s);
    assert_true(peer_next(p, &answer));
    assert_true(answer.rdmap == (PEER_RDMAP_V1 | PEER_READ_RESPONSE) && answer.len == 0);
    assert_true(answer.stag == 3 && answer.to == 5);
}

static void run_passive(const struct passive *r, bool slowly)
{
    static struct peer p;
    struct rdma_conn_param param = {.private_data = "pong",
                                    .private_data_len = 4,
                                    .initiator_depth = r->ord,
                                    .responder_resources = r->ird};
    call(&p);
    size_t n = make_request(r);
    if (slowly)
        send_slowly(&p, n);
    else
        peer_send(&p, frame, n);
    struct rdma_cm_event *ev = cm_next(sides.b);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_int_equal(ev->param.conn.responder_resources, r->seen_ird);
    assert_int_equal(ev->param.conn.initiator_depth, r->seen_ord);
    assert_int_equal(ev->param.conn.private_data_len, 4);
    assert_memory_equal(ev->param.conn.private_data, "ping", 4);
    struct rdma_cm_id *id = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    cm_add_qp(id);
    assert_int_equal(rdma_accept(id, &param), 0);
    expect_reply(&p, r);
    if (r->r0 & A)
        speak_first(&p, r);
    ev = cm_next(sides.b);
    assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(ev->param.conn.responder_resources, r->got_ird);
    assert_int_equal(ev->param.conn.initiator_depth, r->got_ord);
    assert_int_equal(ev->param.conn.qp_num, 0); /* it is no anywarp */
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    close(p.fd);
    cm_expect(sides.b, RDMA_CM_EVENT_DISCONNECTED);
    cm_drop(id);
}

static void requests(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passive); i++)
        for (int slowly = 0; slowly < 2; slowly++) {
            print_message("  %s%s\n", passive[i].name, slowly ? ", byte by byte" : "");
            run_passive(&passive[i], slowly);
        }
    witness_goes_on();
}

/** A reject has the block if the Request had one. */
static void rejects(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(passive); i++) {
        static struct peer p;
        const struct passive *r = &passive[i];
        uint8_t got[32];
        call(&p);
        peer_send(&p, frame, make_request(r));
        struct rdma_cm_id *id = cm_request(sides.b);
        assert_int_equal(rdma_reject(id, "no", 2), 0);
        size_t want = 20 + (r->flags & S ? 4 : 0) + 2;
        assert_int_equal(recv(p.fd, got, want, MSG_WAITALL), want);
        assert_int_equal(got[16], (r->flags & S) | REFUSED);
        assert_int_equal(got[17], r->rev);
        assert_memory_equal(got + want - 2, "no", 2);
        assert_int_equal(recv(p.fd, got, 1, 0), 0);
        close(p.fd);
        cm_drop(id);
    }
    witness_goes_on();
}

static void private_data_of_every_size(void **state)
{
    static const uint8_t data[512];
    (void)state;
    for (size_t n = 0; n <= 508; n += n < 8 || n > 500 ? 1 : 50) {
        static struct peer p;
        call(&p);
        peer_send(&p, frame, make_enhanced("MPA ID Req Frame", 0, 4, 4, data, n));
        struct rdma_cm_event *ev = cm_next(sides.b);
        assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
        /* The field has 8 bits. */
        assert_int_equal(ev->param.conn.private_data_len, n > 255 ? 255 : n);
        struct rdma_cm_id *id = ev->id;
        assert_int_equal(rdma_ack_cm_event(ev), 0);
        cm_drop(id);
        close(p.fd);
    }
    witness_goes_on();
}

/** Nobody may speak before the Reply (RFC 5044 section 7.1.2, rule 3); and other frames. */
static void what_is_no_request(void **state)
{
    static const struct {
        uint8_t at, byte;
        size_t more;
    } rows[] = {{0, 'm', 0},  {9, 'p', 0}, {15, 'E', 0}, {17, 0, 0}, {17, 3, 0},
                {17, 255, 0}, {18, 2, 0},  {19, 3, 0},   {16, S, 1}, {16, S, 64}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct peer p;
        uint8_t c;
        call(&p);
        size_t n = make_enhanced("MPA ID Req Frame", 0, 4, 4, "", 0);
        frame[rows[i].at] = rows[i].byte;
        memset(frame + n, 0, rows[i].more);
        peer_send(&p, frame, n + rows[i].more);
        ssize_t r = recv(p.fd, &c, 1, 0);
        assert_true(r == 0 || (r < 0 && errno == ECONNRESET));
        close(p.fd);
    }
    cm_quiet(sides.b, 0);
    witness_goes_on();
}

/* ---- the victim connects; it asks for 4 each way, and offers a Write or a Read first ---- */

static const struct active {
    const char *name;
    uint8_t rev, flags;
    uint16_t r0, r1;
    enum peer_op first; /* NO_FIRST: none */
    int ird, ord;       /* -1: it fails */
    unsigned terminate;
} active[] = {
#define NO_FIRST PEER_SEND
    {"equal", 2, S, 4, 4, NO_FIRST, 4, 4, 0},
    {"the peer serves fewer", 2, S, 1, 4, NO_FIRST, 4, 1, 0},
    {"the peer serves none", 2, S, 0, 0, NO_FIRST, 4, 0, 0},
    {"the peer serves more", 2, S, 1000, 4, NO_FIRST, 4, 4, 0},
    {"left to the program", 2, S, OPEN, OPEN, NO_FIRST, 4, 4, 0},
    {"the peer asks for one more", 2, S, 4, 5, NO_FIRST, -1, -1, PEER_TERM(2, 0, 0x06)},
    {"the peer asks for far more", 2, S, 4, OPEN - 1, NO_FIRST, -1, -1, PEER_TERM(2, 0, 0x06)},
    {"a Write first", 2, S, A | 4, C | 4, PEER_WRITE, 4, 4, 0},
    {"a Read first", 2, S, A | 4, D | 4, PEER_READ_REQUEST, 4, 4, 0},
    {"either", 2, S, A | 4, C | D | 4, PEER_WRITE, 4, 4, 0},
    {"either, or a Send", 2, S, A | B | 4, D | 4, PEER_READ_REQUEST, 4, 4, 0},
    {"a Send first", 2, S, A | B | 4, 4, NO_FIRST, -1, -1, PEER_TERM(2, 0, 0x07)},
    {"nothing to begin with", 2, S, A | 4, 4, NO_FIRST, -1, -1, PEER_TERM(2, 0, 0x07)},
    {"a Read first, of no depth", 2, S, A, D | 4, NO_FIRST, -1, -1, PEER_TERM(2, 0, 0x07)},
    {"revision 1", 1, 0, 0, 0, NO_FIRST, 4, 4, 0},
    {"without a block", 2, 0, 0, 0, NO_FIRST, 4, 4, 0},
    {"reserved bits", 2, S | 0x09, 4, 4, NO_FIRST, 4, 4, 0},
};

static void expect_first(struct peer *p, const struct active *r)
{
    struct peer_seg s;
    assert_true(peer_next(p, &s));
    assert_int_equal(s.rdmap & 0xf, r->first);
    if (r->first == PEER_WRITE) {
        assert_true(s.len == 0 && s.stag != 0);
        return;
    }
    assert_int_equal(peer_get32((const uint8_t *)s.payload + 12), 0);
    assert_int_not_equal(peer_get32((const uint8_t *)s.payload + 16), 0);
    s = peer_tagged(PEER_READ_RESPONSE, peer_get32(s.payload), 0, NULL, 0);
    peer_send_seg(p, &s);
}

static void run_active(const struct active *r, bool slowly)
{
    static struct peer p;
    struct rdma_cm_event *ev;
    peer_listen(&p, &(struct peer_conf){.no_crc = true});
    peer_called(&p);
    peer_take_request(&p);
    size_t n = r->flags & S ? make_enhanced("MPA ID Rep Frame", r->flags, r->r0, r->r1, "pong", 4)
                            : make_frame("MPA ID Rep Frame", r->flags, r->rev, "pong", 4);
    if (slowly)
        send_slowly(&p, n);
    else
        peer_send(&p, frame, n);
    if (r->terminate)
        assert_int_equal(peer_terminate(&p), r->terminate);
    assert_int_equal(rdma_get_cm_event(p.victim.events, &ev), 0);
    assert_int_equal(ev->event,
                     r->terminate ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(ev->status, r->terminate ? -EINVAL : 0);
    if (!r->terminate) {
        assert_int_equal(ev->param.conn.responder_resources, r->ird);
        assert_int_equal(ev->param.conn.initiator_depth, r->ord);
        assert_int_equal(ev->param.conn.private_data_len, 4);
        assert_memory_equal(ev->param.conn.private_data, "pong", 4);
        assert_int_equal(ev->param.conn.qp_num, 0);
    }
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    if (r->first != NO_FIRST)
        expect_first(&p, r);
    if (!r->terminate && r->ord) { /* the user's own first read, behind that one */
        struct peer_seg s;
        side_post(&p.victim, &p.victim, IBV_WR_RDMA_READ, 1, 0, 0, 0, 0);
        do /* after 50 ms of silence empty Writes follow the first message */
            assert_true(peer_next(&p, &s));
        while ((s.rdmap & 0xf) == PEER_WRITE && s.len == 0);
        assert_int_equal(s.rdmap & 0xf, PEER_READ_REQUEST);
        assert_int_equal(s.msn, r->first == PEER_READ_REQUEST ? 2 : 1);
    }
    peer_close(&p);
}

static void replies(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(active); i++)
        for (int slowly = 0; slowly < 2; slowly++) {
            print_message("  %s%s\n", active[i].name, slowly ? ", byte by byte" : "");
            run_active(&active[i], slowly);
        }
    witness_goes_on();
}

static void reply_that_refuses(void **state)
{
    (void)state;
    for (int block = 0; block < 2; block++)
        for (size_t len = 0; len < 6; len++) {
            static struct peer p;
            struct rdma_cm_event *ev;
            peer_listen(&p, &(struct peer_conf){.no_crc = true});
            peer_called(&p);
            peer_take_request(&p);
            peer_send(&p, frame,
                      block ? make_enhanced("MPA ID Rep Frame", REFUSED, OPEN, 100, "reason", len)
                            : make_frame("MPA ID Rep Frame", REFUSED, 2, "reason", len));
            assert_int_equal(rdma_get_cm_event(p.victim.events, &ev), 0);
            assert_int_equal(ev->event, RDMA_CM_EVENT_REJECTED);
            assert_int_equal(ev->status, -ECONNREFUSED);
            assert_int_equal(ev->param.conn.private_data_len, len);
            if (len)
                assert_memory_equal(ev->param.conn.private_data, "reason", len);
            assert_int_equal(rdma_ack_cm_event(ev), 0);
            peer_close(&p);
        }
    witness_goes_on();
}

/* ---- the number of the queue pair: what says that it is an anywarp may tell any ---- */

static void numbers_told_to_a_listener(void **state)
{
    static const struct {
        uint32_t stag;
        uint64_t to;
        uint32_t told;
    } rows[] = {{1, 0xffffff, 0xffffff}, {1, 0, 0},       {1, 0x1000000, 0},
                {1, 1ull << 63 | 5, 0},  {0x100, 0x5, 0}, {1, 2, 2}};
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct peer p;
        uint8_t got[32], number[4];
        call(&p);
        peer_send(&p, frame, make_enhanced("MPA ID Req Frame", 0x06, A | 4, C | 4, "ping", 4));
        struct rdma_cm_id *id = cm_request(sides.b);
        cm_add_qp(id);
        struct rdma_conn_param param = {.private_data = "pong", .private_data_len = 4};
        assert_int_equal(rdma_accept(id, &param), 0);
        peer_put32(number, id->qp->qp_num);
        assert_int_equal(recv(p.fd, got, 32, MSG_WAITALL), 32);
        assert_int_equal(got[16], S | 0x0c);
        assert_memory_equal(got + 24, "pong", 4);
        assert_memory_equal(got + 28, number, 4);
        /* Only the first message counts. */
        struct peer_seg s[2] = {peer_tagged(PEER_WRITE, rows[i].stag, rows[i].to, NULL, 0),
                                peer_tagged(PEER_WRITE, 1, 77, NULL, 0)};
        for (int k = 0; k < 2; k++)
            peer_send_seg(&p, &s[k]);
        struct rdma_cm_event *ev = cm_next(sides.b);
        assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
        assert_int_equal(ev->param.conn.qp_num, rows[i].told);
        assert_int_equal(rdma_ack_cm_event(ev), 0);
        close(p.fd);
        cm_expect(sides.b, RDMA_CM_EVENT_DISCONNECTED);
        cm_drop(id);
    }
    witness_goes_on();
}

static void numbers_told_to_a_caller(void **state)
{
    static const struct {
        uint8_t flags;
        const char *data;
        size_t len, left;
        uint32_t told;
    } rows[] = {
        {0x0c, "pong\0\1\2\3", 8, 4, 0x010203},
        {0x0c, "\0\1\2\3", 4, 0, 0x010203},
        {0x0c, "pong\1\0\0\0", 8, 4, 0},
        {0x0c, "pon", 3, 3, 0},
        {0x0c, "", 0, 0, 0},
        {0x04, "pong\0\1\2\3", 8, 8, 0},
        {0x0e, "pong\0\1\2\3", 8, 8, 0},
        {0x08, "pong\0\1\2\3", 8, 8, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct peer p;
        struct rdma_cm_event *ev;
        peer_listen(&p, &(struct peer_conf){.no_crc = true});
        peer_called(&p);
        peer_take_request(&p);
        peer_send(
            &p, frame,
            make_enhanced("MPA ID Rep Frame", rows[i].flags, 4, 4, rows[i].data, rows[i].len));
        assert_int_equal(rdma_get_cm_event(p.victim.events, &ev), 0);
        assert_int_equal(ev->event, RDMA_CM_EVENT_ESTABLISHED);
        assert_int_equal(ev->param.conn.qp_num, rows[i].told);
        assert_int_equal(ev->param.conn.private_data_len, rows[i].left);
        if (rows[i].left)
            assert_memory_equal(ev->param.conn.private_data, rows[i].data, rows[i].left);
        assert_int_equal(rdma_ack_cm_event(ev), 0);
        peer_close(&p);
    }
    witness_goes_on();
}

/* ---- CRC: checked and made if one side asks ---- */

static bool ours; /* ANYWARP_CRC is on */

/** A Send with a wrong CRC, and one with a right one before it. */
static void expect_checked(struct peer *p, bool agreed)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, "right", 5);
    struct side *v = &p->victim;
    assert_int_equal(p->crc, agreed);
    side_recv(v, 1, 0, 64);
    side_recv(v, 2, 64, 64);
    peer_send_seg(p, &s);
    assert_int_equal(side_poll(v).status, IBV_WC_SUCCESS);
    side_post(v, v, IBV_WR_SEND, 3, 0, 5, 0, 0);
    do
        assert_true(peer_next(p, &s)); /* CRC looked at */
    while (s.rdmap != (PEER_RDMAP_V1 | PEER_SEND));
    assert_int_equal(side_poll(v).status, IBV_WC_SUCCESS);
    s = peer_untagged(p, PEER_SEND, "wrong", 5);
    s.crc_xor = 0x80000000;
    peer_send_seg(p, &s);
    if (agreed)
        assert_int_equal(peer_terminate(p), PEER_TERM(2, 0, 0x02));
    assert_int_equal(side_poll(v).status, agreed ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS);
}

static void crc_if_one_side_asks(void **state)
{
    (void)state;
    for (int theirs = 0; theirs < 2; theirs++)
        for (int silent = 0; silent < 3; silent++) {
            static struct peer p;
            const struct peer_conf conf = {.no_crc = !theirs};
            uint8_t reply[PEER_REPLY_MAX];
            if (silent == 0) {
                peer_open(&p, &conf);
            } else {
                peer_listen(&p, &conf);
                peer_called(&p);
                peer_take_request(&p);
                size_t n = peer_reply(&p, reply);
                if (silent == 2 && ours) /* that they asked is enough */
                    reply[16] &= (uint8_t)~CRC;
                peer_send(&p, reply, n);
                side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
            }
            expect_checked(&p, ours || theirs);
            peer_close(&p);
            witness_goes_on();
        }
}

static int setup(void **state)
{
    int r = witness_setup(state);
    cm_open(&sides, NULL);
    return r;
}

static int teardown(void **state)
{
    cm_close(&sides);
    return witness_teardown(state);
}

static int run_tables(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests),
        cmocka_unit_test(rejects),
        cmocka_unit_test(private_data_of_every_size),
        cmocka_unit_test(what_is_no_request),
        cmocka_unit_test(replies),
        cmocka_unit_test(reply_that_refuses),
        cmocka_unit_test(numbers_told_to_a_listener),
        cmocka_unit_test(numbers_told_to_a_caller),
        cmocka_unit_test(crc_if_one_side_asks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

static int run_crc(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_if_one_side_asks),
    };
    ours = true;
    return cmocka_run_group_tests(tests, setup, teardown);
}

int main(int argc, char **argv)
{
    static const struct cm_net_mode modes[] = {
        {"tables", "ANYWARP_CRC", "off", run_tables},
        {"crc", "ANYWARP_CRC", "on", run_crc},
    };
    return cm_net_main(argc, argv, modes, COUNT(modes));
}
