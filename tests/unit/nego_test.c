/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/nego.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define W MPA_RTR_WRITE
#define D MPA_RTR_READ
#define B MPA_RTR_SEND

static const struct mpa_conf plain = {.rev = 2, .rtr = W | D, .ird = 4, .ord = 4};

/** A start frame from flags, revision and the bytes behind the length. */
static size_t frame(uint8_t *p, bool reply, uint8_t flags, uint8_t rev, const void *body, size_t n)
{
    memcpy(p, reply ? "MPA ID Rep Frame" : "MPA ID Req Frame", 16);
    p[16] = flags;
    p[17] = rev;
    p[18] = n >> 8;
    p[19] = n;
    memcpy(p + 20, body, n);
    return 20 + n;
}

/** An enhanced frame with the two words of its block. */
static size_t frame2(uint8_t *p, bool reply, uint8_t flags, uint16_t w0, uint16_t w1)
{
    uint8_t block[] = {w0 >> 8, w0, w1 >> 8, w1};
    return frame(p, reply, flags | MPA_FLAG_S, 2, block, 4);
}

static uint16_t word(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static bool same_result(const struct mpa_result *a, const struct mpa_result *b)
{
    return a->rev == b->rev && a->enhanced == b->enhanced && a->crc == b->crc &&
           a->tx_markers == b->tx_markers && a->ext == b->ext && a->shm == b->shm &&
           a->p2p == b->p2p && a->rtr == b->rtr && a->ird == b->ird && a->ord == b->ord &&
           a->peer_qpn == b->peer_qpn;
}

/* ---- the states ---- */

#define STATES (MPA_NEGO_FAILED + 1)

enum input { REQUEST, REPLY, REPLY_R, JUNK, ACCEPT, REJECT, CLOSED, TIMEOUT, INPUTS };

static void bring(struct mpa_nego *n, enum mpa_nego_state s)
{
    uint8_t f[64];

    memset(n, 0, sizeof(*n));
    if (s == MPA_NEGO_WAIT_REPLY) {
        assert_int_equal(mpa_nego_connect(n, &plain, NULL, 0), 0);
    } else if (s != MPA_NEGO_IDLE) {
        mpa_nego_listen(n, &plain);
        if (s != MPA_NEGO_WAIT_REQUEST)
            mpa_nego_input(n, f, frame2(f, false, 0, 1, 1));
        if (s == MPA_NEGO_AGREED)
            mpa_nego_accept(n, 1, 1, NULL, 0);
        if (s == MPA_NEGO_REJECTED)
            mpa_nego_reject(n, NULL, 0);
        if (s == MPA_NEGO_FAILED)
            mpa_nego_closed(n);
    }
    assert_int_equal(n->state, s);
}

/** Does @p in; returns what the call returned. */
static long apply(struct mpa_nego *n, enum input in)
{
    uint8_t f[64];

    switch (in) {
    case REQUEST:
        return mpa_nego_input(n, f, frame2(f, false, 0, 1, 1));
    case REPLY:
        return mpa_nego_input(n, f, frame2(f, true, 0, 1, 1));
    case REPLY_R:
        return mpa_nego_input(n, f, frame2(f, true, MPA_FLAG_R, 1, 1));
    case JUNK:
        return mpa_nego_input(n, (const uint8_t *)"GET / HTTP/1.1\r\n", 16);
    case ACCEPT:
        return mpa_nego_accept(n, 1, 1, NULL, 0);
    case REJECT:
        return mpa_nego_reject(n, NULL, 0);
    case CLOSED:
        mpa_nego_closed(n);
        return 0;
    default:
        mpa_nego_timeout(n);
        return 0;
    }
}

#define BAD                                                                                        \
    {                                                                                              \
        MPA_NEGO_FAILED, -1, IW_ERR_START_FRAME                                                    \
    }
#define GONE                                                                                       \
    {                                                                                              \
        MPA_NEGO_FAILED, 0, IW_ERR_LLP_CLOSED                                                      \
    }
#define SAME(s, r)                                                                                 \
    {                                                                                              \
        MPA_NEGO_##s, r, IW_OK                                                                     \
    }
#define NO(s) SAME(s, -EINVAL)
#define END(s)                                                                                     \
    {                                                                                              \
        SAME(s, 0), SAME(s, 0), SAME(s, 0), SAME(s, 0), NO(s), NO(s), SAME(s, 0), SAME(s, 0)       \
    }

/* State, result (-1: all bytes used, the frame has 24), error. */
static const struct {
    enum mpa_nego_state next;
    long result;
    enum iw_err error;
} grid[STATES][INPUTS] = {
    [MPA_NEGO_IDLE] = {SAME(IDLE, 0), SAME(IDLE, 0), SAME(IDLE, 0), SAME(IDLE, 0), NO(IDLE),
                       NO(IDLE), GONE, GONE},
    [MPA_NEGO_WAIT_REPLY] = {BAD, SAME(AGREED, -1), SAME(REJECTED, -1), BAD, NO(WAIT_REPLY),
                             NO(WAIT_REPLY), GONE, GONE},
    [MPA_NEGO_WAIT_REQUEST] = {SAME(WAIT_DECISION, -1), BAD, BAD, BAD, NO(WAIT_REQUEST),
                               NO(WAIT_REQUEST), GONE, GONE},
    [MPA_NEGO_WAIT_DECISION] = {BAD, BAD, BAD, BAD, SAME(AGREED, 0), SAME(REJECTED, 0), GONE, GONE},
    [MPA_NEGO_AGREED] = END(AGREED),
    [MPA_NEGO_REJECTED] = END(REJECTED),
    [MPA_NEGO_FAILED] = END(FAILED),
};

static void every_state_and_input(void **ctx)
{
    (void)ctx;
    for (int s = 0; s < STATES; s++) {
        for (int i = 0; i < INPUTS; i++) {
            struct mpa_nego n;
            bring(&n, s);
            enum iw_err before = n.error;
            long r = apply(&n, i);
            assert_string_equal(mpa_nego_state_name(n.state), mpa_nego_state_name(grid[s][i].next));
            assert_int_equal(r,
                             grid[s][i].result == -1 ? (i == JUNK ? 16 : 24) : grid[s][i].result);
            assert_int_equal(n.error, s == MPA_NEGO_FAILED ? before : grid[s][i].error);
            assert_int_equal(n.timed_out,
                             i == TIMEOUT && n.state == MPA_NEGO_FAILED && s != MPA_NEGO_FAILED);
        }
    }
}

static void timeout_is_remembered(void **ctx)
{
    struct mpa_nego n;
    (void)ctx;
    bring(&n, MPA_NEGO_WAIT_REPLY);
    mpa_nego_timeout(&n);
    mpa_nego_timeout(&n);
    mpa_nego_closed(&n);
    assert_true(n.timed_out);
    assert_int_equal(n.error, IW_ERR_LLP_CLOSED);
}

/* ---- Requests ---- */

static void requests(void **ctx)
{
    static const struct {
        struct mpa_conf conf;
        uint8_t flags;
        uint16_t w0, w1;
    } t[] = {
        {{.rev = 2, .ird = 1, .ord = 1}, 0x10, 1, 1},
        {{.rev = 2, .crc = true, .ird = 128, .ord = 7}, 0x50, 128, 7},
        {{.rev = 2, .ext = true}, 0x16, 0, 0},
        {{.rev = 2, .p2p = true, .rtr = W | D, .ird = 1, .ord = 1}, 0x10, 0x8001, 0xc001},
        {{.rev = 2, .p2p = true, .rtr = W | D | B, .ord = 0}, 0x10, 0x8000, 0x8000},
        {{.rev = 2, .p2p = true, .rtr = D, .ord = 3}, 0x10, 0x8000, 0x4003},
        {{.rev = 2, .p2p = true, .rtr = D, .ord = 0}, 0x10, 0, 0},
        {{.rev = 2, .ird = 0x3fff, .ord = 0x3fff}, 0x10, 0x3fff, 0x3fff},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct mpa_nego n;
        uint8_t want[24];
        assert_int_equal(mpa_nego_connect(&n, &t[i].conf, NULL, 0), 0);
        frame2(want, false, t[i].flags, t[i].w0, t[i].w1);
        assert_int_equal(n.out_len, 24);
        assert_memory_equal(n.out, want, 24);
        assert_false(mpa_nego_heard(&n));
    }
}

static void request_of_revision_1(void **ctx)
{
    struct mpa_conf conf = {.rev = 1, .crc = true, .p2p = true, .rtr = W, .ird = 4, .ord = 4};
    struct mpa_nego n;
    uint8_t want[32], f[32];
    (void)ctx;

    assert_int_equal(mpa_nego_connect(&n, &conf, "abc", 3), 0);
    assert_int_equal(n.out_len, frame(want, false, MPA_FLAG_C, 1, "abc", 3));
    assert_memory_equal(n.out, want, 23);
    mpa_nego_input(&n, f, frame(f, true, 0, 1, "xyzzy", 5));
    assert_int_equal(n.state, MPA_NEGO_AGREED);
    assert_true(n.result.crc);
    assert_false(n.result.enhanced || n.result.p2p || n.result.rtr);
    assert_int_equal(n.result.rev, 1);
    assert_int_equal(n.result.ord, 4);
    assert_int_equal(n.peer.pd_len, 5);
    assert_memory_equal(n.peer.pd, "xyzzy", 5);
}

static void limits(void **ctx)
{
    static const uint8_t pd[600];
    struct mpa_conf v2 = plain, v1 = plain, deep = plain;
    struct mpa_nego n;
    (void)ctx;

    v1.rev = 1;
    assert_int_equal(mpa_nego_connect(&n, &v2, pd, 508), 0);
    assert_int_equal(n.out_len, 532);
    assert_int_equal(mpa_nego_connect(&n, &v2, pd, 509), -EINVAL);
    assert_int_equal(mpa_nego_connect(&n, &v1, pd, 512), 0);
    assert_int_equal(mpa_nego_connect(&n, &v1, pd, 513), -EINVAL);
    deep.ird = 0x4000;
    assert_int_equal(mpa_nego_connect(&n, &deep, NULL, 0), -EINVAL);
    deep.ird = 0;
    deep.ord = 0x4000;
    assert_int_equal(mpa_nego_connect(&n, &deep, NULL, 0), -EINVAL);
    deep.rev = 1;
    assert_int_equal(mpa_nego_connect(&n, &deep, NULL, 0), -EINVAL);

    bring(&n, MPA_NEGO_WAIT_DECISION);
    assert_int_equal(mpa_nego_accept(&n, 0x4000, 0, NULL, 0), -EINVAL);
    assert_int_equal(mpa_nego_accept(&n, 0, 0x4000, NULL, 0), -EINVAL);
    assert_int_equal(mpa_nego_accept(&n, 1, 1, pd, 509), -EINVAL);
    assert_int_equal(mpa_nego_reject(&n, pd, 509), -EINVAL);
    assert_int_equal(n.state, MPA_NEGO_WAIT_DECISION);
    assert_int_equal(n.out_len, 0);
    assert_int_equal(mpa_nego_accept(&n, 1, 1, pd, 508), 0);
}

/* ---- the responder's answers ---- */

static void answers(void **ctx)
{
    /* clang-format off */
    static const struct {
        const char *what;
        struct mpa_conf conf;
        uint8_t flags; /* of the Request */
        uint16_t w0, w1;
        uint16_t ird, ord; /* of the program */
        uint8_t reply_flags;
        uint16_t reply_w0, reply_w1;
        struct mpa_result r;
    } t[] = {
        {"siw's default", {.rtr = W | D}, 0x00, 1, 1, 1, 1, 0x10, 1, 1,
         {.rev = 2, .enhanced = true, .ird = 1, .ord = 1}},
        {"peer wants CRC", {.rtr = W | D}, 0x40, 0, 0, 0, 0, 0x50, 0, 0,
         {.rev = 2, .enhanced = true, .crc = true}},
        {"we want CRC", {.crc = true, .rtr = W | D}, 0x00, 0, 0, 0, 0, 0x50, 0, 0,
         {.rev = 2, .enhanced = true, .crc = true}},
        {"markers wanted", {.rtr = W | D}, 0x80, 0, 0, 0, 0, 0x10, 0, 0,
         {.rev = 2, .enhanced = true, .tx_markers = true}},
        {"reserved bits are not echoed", {.rtr = W | D}, 0x2f, 0, 0, 0, 0, 0x10, 0, 0,
         {.rev = 2, .enhanced = true}},
        {"extension", {.ext = true, .rtr = W | D}, 0x02, 0, 0, 0, 0, 0x14, 0, 0,
         {.rev = 2, .enhanced = true, .ext = true}},
        {"extension, a number that we have not", {.ext = true, .rtr = W | D}, 0x06, 0, 0, 0, 0,
         0x14, 0, 0, {.rev = 2, .enhanced = true, .ext = true}},
        {"extension not asked for", {.ext = true, .rtr = W | D, .qpn = 5}, 0x04, 0, 0, 0, 0, 0x10,
         0, 0, {.rev = 2, .enhanced = true}},
        {"number not asked for", {.ext = true, .rtr = W | D, .qpn = 5}, 0x02, 0, 0, 0, 0, 0x14, 0,
         0, {.rev = 2, .enhanced = true, .ext = true}},
        {"extension switched off", {.rtr = W | D, .qpn = 5}, 0x06, 0, 0, 0, 0, 0x10, 0, 0,
         {.rev = 2, .enhanced = true}},
        {"rings switched off", {.ext = true, .rtr = W | D}, 0x03, 0, 0, 0, 0, 0x14, 0, 0,
         {.rev = 2, .enhanced = true, .ext = true}},
        {"rings not asked for", {.ext = true, .shm = true, .rtr = W | D}, 0x02, 0, 0, 0, 0, 0x14,
         0, 0, {.rev = 2, .enhanced = true, .ext = true}},
        {"rings of who is no anywarp", {.ext = true, .shm = true, .rtr = W | D}, 0x01, 0, 0, 0, 0,
         0x10, 0, 0, {.rev = 2, .enhanced = true}},
        {"rings and CRC", {.ext = true, .shm = true, .rtr = W | D}, 0x43, 0, 0, 0, 0, 0x54, 0, 0,
         {.rev = 2, .enhanced = true, .ext = true, .crc = true}},
        {"rings and markers", {.ext = true, .shm = true, .rtr = W | D}, 0x83, 0, 0, 0, 0, 0x14, 0,
         0, {.rev = 2, .enhanced = true, .ext = true, .tx_markers = true}},
        {"ord lowered, ird kept", {.rtr = W | D}, 0, 2, 9, 4, 16, 0x10, 4, 2,
         {.rev = 2, .enhanced = true, .ird = 4, .ord = 2}},
        {"no automatic negotiation", {.rtr = W | D}, 0, 0x3fff, 0x3fff, 4, 16, 0x10, 0x3fff,
         0x3fff, {.rev = 2, .enhanced = true, .ird = 4, .ord = 16}},
        {"p2p, Write preferred", {.rtr = W | D}, 0, 0x8001, 0xc001, 1, 1, 0x10, 0x8001, 0x8001,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = W, .ird = 1, .ord = 1}},
        {"p2p, Read only (cxgb4)", {.rtr = W | D}, 0, 0x8001, 0x4001, 1, 1, 0x10, 0x8001, 0x4001,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = D, .ird = 1, .ord = 1}},
        {"p2p, Read needs one IRD", {.rtr = W | D}, 0, 0x8000, 0x4001, 0, 0, 0x10, 0x8001, 0x4000,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = D, .ird = 1, .ord = 0}},
        {"p2p, Send only: we say Write", {.rtr = W | D}, 0, 0xc000, 0, 0, 0, 0x10, 0x8000, 0x8000,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = W}},
        {"p2p, nothing offered", {.rtr = D}, 0, 0x8000, 0, 3, 0, 0x10, 0x8003, 0x4000,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = D, .ird = 3}},
        {"no p2p: RTR bits ignored", {.rtr = W | D}, 0, 0x4000, 0xc000, 0, 0, 0x10, 0, 0,
         {.rev = 2, .enhanced = true}},
    };
    /* clang-format on */
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        for (int accept = 0; accept < 2; accept++) {
            struct mpa_nego n;
            struct mpa_conf conf = t[i].conf;
            uint8_t f[64], want[64];
            size_t len = frame2(f, false, t[i].flags, t[i].w0, t[i].w1);

            conf.ird = t[i].ird;
            conf.ord = t[i].ord;
            mpa_nego_listen(&n, &conf);
            for (size_t k = 0; k < len; k++)
                assert_int_equal(mpa_nego_input(&n, f + k, 1), 1);
            assert_int_equal(n.state, MPA_NEGO_WAIT_DECISION);
            uint8_t reply_flags = t[i].reply_flags | (accept ? 0 : MPA_FLAG_R);
            len = frame2(want, true, reply_flags, t[i].reply_w0, t[i].reply_w1);
            want[19] = 7; /* length */
            memcpy(want + len, "yes", 3);
            if (accept)
                assert_int_equal(mpa_nego_accept(&n, t[i].ird, t[i].ord, "yes", 3), 0);
            else
                assert_int_equal(mpa_nego_reject(&n, "yes", 3), 0);
            assert_int_equal(n.out_len, 27);
            if (memcmp(n.out, want, 27) || !same_result(&n.result, &t[i].r))
                fail_msg("%s: flags %02x words %04x %04x, result %d%d%d%d%d%d rtr %d depth %d %d",
                         t[i].what, n.out[16], word(n.out + 20), word(n.out + 22), n.result.rev,
                         n.result.enhanced, n.result.crc, n.result.tx_markers, n.result.ext,
                         n.result.p2p, n.result.rtr, n.result.ird, n.result.ord);
        }
    }
}

/* What a request for rings looks like, and a yes. */
static void asks_for_rings(void **ctx)
{
    struct mpa_nego a, b;
    struct mpa_conf conf = {.rev = 2, .ext = true, .shm = true, .rtr = W, .qpn = 77};
    static uint8_t much[MPA_START_PD_MAX];
    (void)ctx;
    memset(conf.offer, 0x5a, sizeof(conf.offer));
    assert_int_equal(mpa_nego_connect(&a, &conf, "hi", 2), 0);
    assert_int_equal(a.out[16],
                     MPA_FLAG_S | MPA_FLAG_EXT_REQUEST | MPA_FLAG_QPN_REQUEST | MPA_FLAG_SHM);
    mpa_nego_listen(&b, &conf);
    mpa_nego_input(&b, a.out, a.out_len);
    assert_int_equal(mpa_nego_accept(&b, 0, 0, "ho", 2), 0);
    assert_int_equal(b.out[16],
                     MPA_FLAG_S | MPA_FLAG_EXT_REPLY | MPA_FLAG_QPN_REPLY | MPA_FLAG_SHM);
    mpa_nego_input(&a, b.out, b.out_len);
    assert_true(a.result.shm && b.result.shm);
    assert_int_equal(a.peer.pd_len, 2);
    assert_memory_equal(a.peer.pd, "ho", 2);
    assert_memory_equal(a.result.offer, conf.offer, sizeof(conf.offer));
    assert_int_equal(a.result.peer_qpn, 77);
    /* With as much private data there is no room for it. */
    assert_int_equal(mpa_nego_connect(&a, &conf, "hi", 2), 0);
    mpa_nego_listen(&b, &conf);
    mpa_nego_input(&b, a.out, a.out_len);
    assert_int_equal(mpa_nego_accept(&b, 0, 0, much, 480), 0);
    mpa_nego_input(&a, b.out, b.out_len);
    assert_false(a.result.shm || b.result.shm);
    assert_int_equal(a.peer.pd_len, 480);
    conf.ext = false;
    assert_int_equal(mpa_nego_connect(&a, &conf, "hi", 2), 0);
    assert_int_equal(a.out[16], MPA_FLAG_S);
}

/* Revision 1, and revision 2 without S, are answered in kind, without a block. */
static void answers_without_block(void **ctx)
{
    (void)ctx;
    for (uint8_t rev = 1; rev <= 2; rev++) {
        for (int accept = 0; accept < 2; accept++) {
            struct mpa_nego n;
            uint8_t f[64], want[64];

            mpa_nego_listen(&n, &plain);
            mpa_nego_input(&n, f, frame(f, false, MPA_FLAG_C, rev, "\x80\x01\xc0\x01!", 5));
            assert_int_equal(n.state, MPA_NEGO_WAIT_DECISION);
            assert_int_equal(n.peer.pd_len, 5);
            if (accept)
                assert_int_equal(mpa_nego_accept(&n, 3, 5, "ok", 2), 0);
            else
                assert_int_equal(mpa_nego_reject(&n, "ok", 2), 0);
            assert_int_equal(
                n.out_len, frame(want, true, MPA_FLAG_C | (accept ? 0 : MPA_FLAG_R), rev, "ok", 2));
            assert_memory_equal(n.out, want, n.out_len);
            assert_int_equal(n.result.rev, rev);
            assert_false(n.result.enhanced || n.result.p2p);
            if (accept) {
                assert_int_equal(n.result.ird, 3);
                assert_int_equal(n.result.ord, 5);
            }
        }
    }
}

/* ---- what the initiator makes of a Reply ---- */

static void replies(void **ctx)
{
    /* clang-format off */
    static const struct {
        const char *what;
        struct mpa_conf conf;
        uint8_t flags;
        uint16_t w0, w1;
        enum mpa_nego_state state;
        enum iw_err error;
        struct mpa_result r;
    } t[] = {
        {"plain", {.rev = 2, .ird = 4, .ord = 4}, 0, 4, 4, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ird = 4, .ord = 4}},
        {"ord lowered, ird kept", {.rev = 2, .ird = 4, .ord = 9}, 0, 2, 1, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ird = 4, .ord = 2}},
        {"ord is not raised", {.rev = 2, .ird = 4, .ord = 1}, 0, 16, 4, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ird = 4, .ord = 1}},
        {"ird short", {.rev = 2, .ird = 4, .ord = 4}, MPA_FLAG_C, 4, 5, MPA_NEGO_FAILED,
         IW_ERR_IRD_SHORT, {.rev = 2, .enhanced = true, .crc = true, .ird = 4, .ord = 4}},
        {"no automatic negotiation", {.rev = 2, .ird = 4, .ord = 4}, 0, 0x3fff, 0x3fff,
         MPA_NEGO_AGREED, IW_OK, {.rev = 2, .enhanced = true, .ird = 4, .ord = 4}},
        {"peer wants CRC", {.rev = 2}, MPA_FLAG_C, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .crc = true}},
        {"we want CRC", {.rev = 2, .crc = true}, 0, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .crc = true}},
        {"markers wanted", {.rev = 2}, MPA_FLAG_M, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .tx_markers = true}},
        {"extension", {.rev = 2, .ext = true}, 0x04, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ext = true}},
        {"an echo is no extension", {.rev = 2, .ext = true}, 0x02, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true}},
        {"nor are both bits", {.rev = 2, .ext = true}, 0x06, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true}},
        {"extension not asked for", {.rev = 2}, 0x04, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true}},
        {"rings without an offer", {.rev = 2, .ext = true, .shm = true}, 0x05, 0, 0,
         MPA_NEGO_AGREED, IW_OK, {.rev = 2, .enhanced = true, .ext = true}},
        {"rings refused", {.rev = 2, .ext = true, .shm = true}, 0x04, 0, 0, MPA_NEGO_AGREED,
         IW_OK, {.rev = 2, .enhanced = true, .ext = true}},
        {"rings not asked for", {.rev = 2, .ext = true}, 0x05, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ext = true}},
        {"an echo is no ring", {.rev = 2, .ext = true, .shm = true}, 0x03, 0, 0, MPA_NEGO_AGREED,
         IW_OK, {.rev = 2, .enhanced = true}},
        {"rings and CRC", {.rev = 2, .ext = true, .shm = true}, 0x45, 0, 0, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .ext = true, .crc = true}},
        {"rings and markers", {.rev = 2, .ext = true, .shm = true}, 0x85, 0, 0, MPA_NEGO_AGREED,
         IW_OK, {.rev = 2, .enhanced = true, .ext = true, .tx_markers = true}},
        {"p2p, Write of both", {.rev = 2, .p2p = true, .rtr = W | D, .ird = 1, .ord = 1}, 0,
         0x8001, 0xc001, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = W, .ird = 1, .ord = 1}},
        {"p2p, Read", {.rev = 2, .p2p = true, .rtr = W | D, .ird = 1, .ord = 1}, 0, 0x8001,
         0x4001, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true, .p2p = true, .rtr = D, .ird = 1, .ord = 1}},
        {"p2p, Read with no IRD", {.rev = 2, .p2p = true, .rtr = W | D, .ird = 1, .ord = 1}, 0,
         0x8000, 0x4001, MPA_NEGO_FAILED, IW_ERR_NO_RTR,
         {.rev = 2, .enhanced = true, .p2p = true, .ird = 1, .ord = 0}},
        {"p2p, Read with no ORD", {.rev = 2, .p2p = true, .rtr = W | D}, 0, 0x8001, 0x4000,
         MPA_NEGO_FAILED, IW_ERR_NO_RTR, {.rev = 2, .enhanced = true, .p2p = true}},
        {"p2p, Send only", {.rev = 2, .p2p = true, .rtr = W | D}, 0, 0xc000, 0, MPA_NEGO_FAILED,
         IW_ERR_NO_RTR, {.rev = 2, .enhanced = true, .p2p = true}},
        {"peer without p2p", {.rev = 2, .p2p = true, .rtr = W | D}, 0, 0, 0, MPA_NEGO_AGREED,
         IW_OK, {.rev = 2, .enhanced = true}},
        {"p2p not asked for", {.rev = 2, .rtr = W | D}, 0, 0x8000, 0x8000, MPA_NEGO_AGREED, IW_OK,
         {.rev = 2, .enhanced = true}},
        {"refused", {.rev = 2}, MPA_FLAG_R, 0, 5, MPA_NEGO_REJECTED, IW_OK,
         {.rev = 2, .enhanced = true}},
    };
    /* clang-format on */
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct mpa_nego n;
        uint8_t f[64];
        size_t len = frame2(f, true, t[i].flags, t[i].w0, t[i].w1);

        assert_int_equal(mpa_nego_connect(&n, &t[i].conf, NULL, 0), 0);
        f[len] = 0xee; /* the start of the FPDU stream is left alone */
        assert_int_equal(mpa_nego_input(&n, f, len + 1), len);
        assert_int_equal(n.in_len, len);
        if (n.state != t[i].state || n.error != t[i].error || !same_result(&n.result, &t[i].r))
            fail_msg("%s: %s error %d, result %d%d%d%d%d%d rtr %d depth %d %d", t[i].what,
                     mpa_nego_state_name(n.state), n.error, n.result.rev, n.result.enhanced,
                     n.result.crc, n.result.tx_markers, n.result.ext, n.result.p2p, n.result.rtr,
                     n.result.ird, n.result.ord);
        assert_int_equal(n.peer.ord, t[i].w1 & 0x3fff);
    }
}

static void reply_revisions(void **ctx)
{
    static const struct {
        uint8_t asked, rev, flags;
        enum mpa_nego_state state;
    } t[] = {
        {2, 1, 0, MPA_NEGO_AGREED},          {2, 1, MPA_FLAG_R, MPA_NEGO_REJECTED},
        {1, 1, 0, MPA_NEGO_AGREED},          {1, 2, 0, MPA_NEGO_FAILED},
        {1, 2, MPA_FLAG_R, MPA_NEGO_FAILED}, {2, 0, 0, MPA_NEGO_FAILED},
        {2, 3, 0, MPA_NEGO_FAILED},          {2, 2, 0, MPA_NEGO_AGREED},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct mpa_conf conf = plain;
        struct mpa_nego n;
        uint8_t f[32];

        conf.rev = t[i].asked;
        conf.p2p = true;
        assert_int_equal(mpa_nego_connect(&n, &conf, NULL, 0), 0);
        mpa_nego_input(&n, f, frame(f, true, t[i].flags, t[i].rev, "why", 3));
        assert_int_equal(n.state, t[i].state);
        if (n.state == MPA_NEGO_FAILED) {
            assert_int_equal(n.error, IW_ERR_START_FRAME);
        } else {
            assert_int_equal(n.result.rev, t[i].rev);
            assert_false(n.result.enhanced || n.result.p2p);
            assert_int_equal(n.peer.pd_len, 3);
            assert_memory_equal(n.peer.pd, "why", 3);
        }
    }
}

/* ---- the number of the queue pair ---- */

/* Both ends are ours; a rejection does not tell it, nor does a Reply that has no room for it. */
static void number_between_our_own(void **ctx)
{
    static const uint8_t data[508];
    static const struct {
        bool theirs, ours, accept;
        uint16_t len;
        bool told;
    } t[] = {
        {true, true, true, 0, true},   {true, true, true, 7, true},
        {true, true, true, 504, true}, {true, true, true, 508, false},
        {true, true, false, 7, false}, {true, false, true, 7, false},
        {false, true, true, 7, false},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct mpa_conf conf = plain;
        struct mpa_nego a, b;
        conf.ext = t[i].theirs;
        assert_int_equal(mpa_nego_connect(&a, &conf, NULL, 0), 0);
        conf.ext = t[i].ours;
        mpa_nego_listen(&b, &conf);
        assert_int_equal(mpa_nego_input(&b, a.out, a.out_len), a.out_len);
        b.conf.qpn = 0x123456;
        if (t[i].accept)
            assert_int_equal(mpa_nego_accept(&b, 4, 4, data, t[i].len), 0);
        else
            assert_int_equal(mpa_nego_reject(&b, data, t[i].len), 0);
        assert_int_equal(b.out_len, 24 + t[i].len + (t[i].told ? 4 : 0));
        assert_int_equal(mpa_nego_input(&a, b.out, b.out_len), b.out_len);
        assert_int_equal(a.state, t[i].accept ? MPA_NEGO_AGREED : MPA_NEGO_REJECTED);
        assert_int_equal(a.result.peer_qpn, t[i].told ? 0x123456 : 0);
        assert_int_equal(a.peer.pd_len, t[i].len);
        assert_memory_equal(a.peer.pd, data, t[i].len);
        assert_int_equal(b.result.peer_qpn, 0);
    }
}

/* Only our own say that it was the backlog, and only of a rejection. */
static void a_full_backlog(void **ctx)
{
    (void)ctx;
    for (unsigned i = 0; i < 16; i++) {
        bool theirs = i & 1, ours = i & 2, full = i & 4, accept = i & 8;
        struct mpa_conf conf = plain;
        struct mpa_nego a, b;
        conf.ext = theirs;
        assert_int_equal(mpa_nego_connect(&a, &conf, NULL, 0), 0);
        conf.ext = ours;
        conf.full = full;
        mpa_nego_listen(&b, &conf);
        assert_int_equal(mpa_nego_input(&b, a.out, a.out_len), a.out_len);
        assert_int_equal(accept ? mpa_nego_accept(&b, 4, 4, NULL, 0) : mpa_nego_reject(&b, NULL, 0),
                         0);
        assert_int_equal(mpa_nego_input(&a, b.out, b.out_len), b.out_len);
        assert_int_equal(a.state, accept ? MPA_NEGO_AGREED : MPA_NEGO_REJECTED);
        assert_int_equal(a.result.full, theirs && ours && full && !accept);
    }
}

/* Private data of any other peer are the program's, whatever the reserved bits say. */
static void data_of_others_are_whole(void **ctx)
{
    static const struct {
        bool ext;
        uint8_t flags;
        uint32_t number;
    } t[] = {
        {true, 0x0c, 0x616d65}, {true, 0x04, 0}, {true, 0x0e, 0},  {true, 0x0a, 0},
        {true, 0x08, 0},        {true, 0x06, 0}, {false, 0x0c, 0}, {false, 0x0f, 0},
    };
    (void)ctx;
    for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
        struct mpa_conf conf = plain;
        struct mpa_nego n;
        uint8_t f[64];
        conf.ext = t[i].ext;
        assert_int_equal(mpa_nego_connect(&n, &conf, NULL, 0), 0);
        size_t len = frame(f, true, MPA_FLAG_S | t[i].flags, 2, "\0\4\0\4my\0ame", 10);
        assert_int_equal(mpa_nego_input(&n, f, len), len);
        assert_int_equal(n.state, MPA_NEGO_AGREED);
        assert_int_equal(n.result.peer_qpn, t[i].number);
        assert_int_equal(n.peer.pd_len, t[i].number ? 2 : 6);
        assert_memory_equal(n.peer.pd, "my\0ame", n.peer.pd_len);
    }
}

/* ---- bytes ---- */

/* Both roles, the longest frames, cut in two at every place. */
static void split_everywhere(void **ctx)
{
    uint8_t pd[508];
    struct mpa_conf conf = {
        .rev = 2, .crc = true, .ext = true, .p2p = true, .rtr = W | D, .ird = 4, .ord = 4};
    (void)ctx;

    for (size_t i = 0; i < sizeof(pd); i++)
        pd[i] = i * 7;
    for (size_t cut = 0; cut <= 532; cut++) {
        struct mpa_nego a, b;
        assert_int_equal(mpa_nego_connect(&a, &conf, pd, 508), 0);
        mpa_nego_listen(&b, &conf);
        assert_int_equal(mpa_nego_input(&b, a.out, cut), cut);
        assert_int_equal(b.state, cut < 532 ? MPA_NEGO_WAIT_REQUEST : MPA_NEGO_WAIT_DECISION);
        if (cut < 532)
            assert_int_equal(mpa_nego_input(&b, a.out + cut, 532 - cut), 532 - cut);
        assert_int_equal(b.state, MPA_NEGO_WAIT_DECISION);
        assert_memory_equal(b.peer.pd, pd, 508);
        assert_int_equal(mpa_nego_accept(&b, 4, 4, pd, 508), 0);
        assert_int_equal(mpa_nego_input(&a, b.out, cut), cut);
        assert_int_equal(mpa_nego_heard(&a), cut > 0);
        if (cut < 532) {
            assert_int_equal(a.state, MPA_NEGO_WAIT_REPLY);
            assert_int_equal(mpa_nego_input(&a, b.out + cut, 532 - cut), 532 - cut);
        }
        assert_int_equal(a.state, MPA_NEGO_AGREED);
        assert_memory_equal(a.peer.pd, pd, 508);
        assert_true(same_result(&a.result, &b.result));
        assert_true(a.result.ext && a.result.crc && a.result.p2p);
    }
}

/* RFC 5044 section 7.1.2 rule 3: nothing may follow the Request. */
static void surplus_behind_the_request(void **ctx)
{
    static const uint8_t pd[508];
    struct mpa_nego a, n;
    uint8_t f[600];
    (void)ctx;

    for (int full = 0; full < 2; full++) {
        assert_int_equal(mpa_nego_connect(&a, &plain, pd, full ? 508 : 0), 0);
        memcpy(f, a.out, a.out_len);
        mpa_nego_listen(&n, &plain);
        assert_int_equal(mpa_nego_input(&n, f, a.out_len + 1), a.out_len + 1);
        assert_int_equal(n.state, MPA_NEGO_FAILED);
        assert_int_equal(n.error, IW_ERR_START_FRAME);
    }
}

/* Behind the Reply, an FPDU stream of any length may wait in the same buffer. */
static void surplus_behind_the_reply(void **ctx)
{
    static const uint8_t pd[508];
    static uint8_t f[2000];
    struct mpa_nego a, b;
    (void)ctx;

    for (size_t cut = 0; cut < 532; cut++) {
        assert_int_equal(mpa_nego_connect(&a, &plain, NULL, 0), 0);
        mpa_nego_listen(&b, &plain);
        mpa_nego_input(&b, a.out, a.out_len);
        assert_int_equal(mpa_nego_accept(&b, 4, 4, pd, 508), 0);
        memcpy(f, b.out, b.out_len);
        assert_int_equal(mpa_nego_input(&a, f, cut), cut);
        assert_int_equal(mpa_nego_input(&a, f + cut, sizeof(f) - cut), 532 - cut);
        assert_int_equal(a.state, MPA_NEGO_AGREED);
        assert_int_equal(mpa_nego_input(&a, f, sizeof(f)), 0);
    }
}

/* A peer of another protocol is refused at its first byte that is none of ours. */
static void other_protocols(void **ctx)
{
    struct mpa_nego n;
    uint8_t f[600];
    (void)ctx;

    mpa_nego_listen(&n, &plain);
    mpa_nego_input(&n, (const uint8_t *)"S", 1);
    assert_int_equal(n.state, MPA_NEGO_FAILED);

    mpa_nego_listen(&n, &plain); /* two initiators */
    mpa_nego_input(&n, f, frame2(f, true, 0, 0, 0));
    assert_int_equal(n.state, MPA_NEGO_FAILED);

    mpa_nego_listen(&n, &plain); /* 513 bytes of private data */
    frame(f, false, 0, 1, "", 0);
    f[18] = 2;
    f[19] = 1;
    mpa_nego_input(&n, f, 20);
    assert_int_equal(n.state, MPA_NEGO_FAILED);
    assert_int_equal(n.error, IW_ERR_START_FRAME);

    mpa_nego_listen(&n, &plain); /* a block of which half is missing */
    mpa_nego_input(&n, f, frame(f, false, MPA_FLAG_S, 2, "\0\0", 2));
    assert_int_equal(n.state, MPA_NEGO_FAILED);
}

static void nothing_is_no_input(void **ctx)
{
    struct mpa_nego n;
    (void)ctx;
    bring(&n, MPA_NEGO_WAIT_DECISION);
    assert_int_equal(mpa_nego_input(&n, NULL, 0), 0);
    assert_int_equal(n.state, MPA_NEGO_WAIT_DECISION);
    bring(&n, MPA_NEGO_WAIT_REPLY);
    assert_int_equal(mpa_nego_input(&n, NULL, 0), 0);
    assert_int_equal(n.state, MPA_NEGO_WAIT_REPLY);
}

/** What it offers itself it agrees to, without a frame. */
static void with_itself(void **state)
{
    struct mpa_nego n;
    const struct mpa_conf conf = {
        .rev = 2, .crc = true, .ext = true, .p2p = true, .rtr = MPA_RTR_WRITE, .ird = 3, .ord = 7};
    (void)state;
    assert_int_equal(mpa_nego_with_itself(&n, &conf), 0);
    assert_int_equal(n.state, MPA_NEGO_AGREED);
    assert_int_equal(n.out_len, 0);
    assert_true(n.result.crc && n.result.ext);
    assert_int_equal(n.result.rtr, 0);
    assert_int_equal(n.result.ird, 3);
    assert_int_equal(n.result.ord, 3);
    struct mpa_conf deep = conf;
    deep.ird = MPA_DEPTH_MAX + 1;
    assert_int_equal(mpa_nego_with_itself(&n, &deep), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_and_input),
        cmocka_unit_test(timeout_is_remembered),
        cmocka_unit_test(requests),
        cmocka_unit_test(request_of_revision_1),
        cmocka_unit_test(limits),
        cmocka_unit_test(answers),
        cmocka_unit_test(asks_for_rings),
        cmocka_unit_test(answers_without_block),
        cmocka_unit_test(replies),
        cmocka_unit_test(reply_revisions),
        cmocka_unit_test(number_between_our_own),
        cmocka_unit_test(a_full_backlog),
        cmocka_unit_test(data_of_others_are_whole),
        cmocka_unit_test(split_everywhere),
        cmocka_unit_test(surplus_behind_the_request),
        cmocka_unit_test(surplus_behind_the_reply),
        cmocka_unit_test(other_protocols),
        cmocka_unit_test(nothing_is_no_input),
        cmocka_unit_test(with_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
