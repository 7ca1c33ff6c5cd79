/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A receiver that posts no receives: early messages are held up to the bound, then the socket is
 * not read. How the peer's end is noticed all the same, and what becomes of the messages.
 */
#include "witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MESSAGE  8192
#define EARLY    40 /* messages: more than the bound of 256 KB */
#define LATE     4  /* behind the stall: they stay in the socket */
#define ALL      (EARLY + LATE)
#define TOO_MANY 1024 /* for the sockets to hold */
#define PAUSE_MS 300  /* between two receives; the limit for the next one is a second */
#define SETTLE   50   /* ms for the victim to read what it is going to read */

static void send_message(struct peer *p, uint8_t fill)
{
    static uint8_t bytes[MESSAGE];
    memset(bytes, fill, sizeof(bytes));
    struct peer_seg s = peer_untagged(p, PEER_SEND, bytes, sizeof(bytes));
    peer_send_seg(p, &s);
}

/** The bound is passed, and the socket has unread bytes. */
static void stall(struct peer *p)
{
    peer_open(p, &(struct peer_conf){.no_crc = true, .side = {.recv_wr = ALL}});
    for (int i = 0; i < EARLY; i++)
        send_message(p, (uint8_t)i);
    witness_sleeps(SETTLE);
    for (int i = EARLY; i < ALL; i++)
        send_message(p, (uint8_t)i);
    witness_goes_on();
}

static void receive(struct peer *p, unsigned i)
{
    side_recv(&p->victim, i, (size_t)i * MESSAGE, MESSAGE);
    struct ibv_wc wc = side_poll(&p->victim);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, i);
    assert_int_equal(wc.byte_len, MESSAGE);
    assert_int_equal(p->victim.buf[(size_t)i * MESSAGE], i);
    assert_int_equal(p->victim.buf[(size_t)(i + 1) * MESSAGE - 1], i);
}

/** @return whether an event comes within @p ms */
static bool event_within(struct peer *p, int ms)
{
    struct pollfd f = {.fd = p->victim.events->fd, .events = POLLIN};
    return poll(&f, 1, ms) == 1;
}

static void a_fin_behind_unread_bytes(void **state)
{
    static struct peer p;
    (void)state;
    stall(&p);
    assert_int_equal(shutdown(p.fd, SHUT_WR), 0);
    witness_sleeps(PAUSE_MS);
    assert_false(event_within(&p, 0)); /* receives may still come */
    witness_end(&p, 0, "TCP connection lost: the peer closed it, no receive came for its messages");
    assert_int_equal(peer_terminate(&p), PEER_NO_TERM);
    assert_false(p.reset);
    peer_close(&p);
}

/** The time is that from one receive to the next: nothing that a graceful peer sent is lost. */
static void receives_in_time_get_all(void **state)
{
    static struct peer p;
    unsigned i = 0;
    (void)state;
    stall(&p);
    peer_hang_up(&p, false);
    for (; i < 5; i++) {
        witness_sleeps(PAUSE_MS);
        receive(&p, i);
    }
    for (; i < ALL; i++) {
        assert_false(event_within(&p, 0));
        receive(&p, i);
    }
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    log_expect(p.victim.id->qp->qp_num, NULL);
    assert_false(event_within(&p, SETTLE));
    peer_close(&p);
}

/** The same when all of it is held, and the FIN is read: one receive in time is good for more. */
static void held_messages_after_a_fin(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        static struct peer p;
        peer_open(&p, &(struct peer_conf){.no_crc = true, .side = {.recv_wr = ALL}});
        for (int i = 0; i < 8; i++)
            send_message(&p, (uint8_t)i);
        peer_hang_up(&p, false);
        for (unsigned i = 0; i < 5; i++) {
            witness_sleeps(PAUSE_MS);
            receive(&p, i);
        }
        for (unsigned i = 5; all && i < 8; i++)
            receive(&p, i);
        if (all)
            side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        else
            witness_end(
                &p, 0, "TCP connection lost: the peer closed it, no receive came for its messages");
        assert_false(event_within(&p, SETTLE));
        peer_close(&p);
    }
}

/** The victim's own first message still waits for the peer to settle when the end comes. */
static void a_fin_right_behind_reply_and_message(void **state)
{
    static struct peer p;
    uint8_t bytes[512];
    (void)state;
    peer_listen(&p, &(struct peer_conf){.no_crc = true});
    peer_called(&p);
    peer_take_request(&p);
    size_t n = peer_reply(&p, bytes);
    struct peer_seg s = peer_untagged(&p, PEER_SEND, NULL, 100);
    n += peer_fpdu(&p, &s, bytes + n);
    peer_send(&p, bytes, n);
    assert_int_equal(shutdown(p.fd, SHUT_WR), 0);
    side_event(&p.victim, RDMA_CM_EVENT_ESTABLISHED);
    witness_end(&p, 0, "TCP connection lost: the peer closed it, no receive came for its messages");
    peer_close(&p);
}

static void a_reset(void **state)
{
    static struct peer p;
    (void)state;
    stall(&p);
    peer_hang_up(&p, true);
    witness_end(&p, 0, "TCP connection lost: ECONNRESET, Connection reset by peer");
    peer_close(&p);
}

/** It reads again, and drops: unread bytes would make the end a reset, and keep the peer waiting.
 */
static void the_victim_leaves(void **state)
{
    (void)state;
    for (int error = 0; error < 2; error++) {
        static struct peer p;
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
        stall(&p);
        if (error)
            assert_int_equal(ibv_modify_qp(p.victim.id->qp, &attr, IBV_QP_STATE), 0);
        else
            assert_int_equal(rdma_disconnect(p.victim.id), 0);
        assert_int_equal(peer_terminate(&p), error ? PEER_TERM(0, 0, 0x00) : PEER_NO_TERM);
        assert_false(p.reset);
        for (int i = 0; i < TOO_MANY; i++)
            send_message(&p, 0);
        peer_hang_up(&p, false);
        side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        assert_false(event_within(&p, SETTLE));
        peer_close(&p);
    }
}

/* ---- what was held, and is wrong ---- */

static void bad_read(struct peer *p)
{
    uint8_t request[28];
    peer_read_request(request, 1, 0, 16, 0xbad, 0);
    struct peer_seg s = peer_untagged(p, PEER_READ_REQUEST, request, sizeof(request));
    peer_send_seg(p, &s);
}

static void bad_atomic(struct peer *p)
{
    uint8_t request[52];
    peer_atomic_request(request, 0, 1, p->victim.mr->rkey, (uintptr_t)p->victim.buf + 1);
    struct peer_seg s = peer_untagged(p, PEER_ATOMIC_REQUEST, request, sizeof(request));
    peer_send_seg(p, &s);
}

static void long_send(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, MESSAGE + 1);
    peer_send_seg(p, &s);
}

static void bad_invalidate(struct peer *p)
{
    struct peer_seg s = peer_untagged(p, PEER_SEND_INV, NULL, 4);
    s.inval = 0xbad;
    peer_send_seg(p, &s);
}

/** Another message is held behind the one at fault: that one is quoted. */
static void what_is_held_is_quoted(void **state)
{
    static const struct {
        void (*act)(struct peer *p);
        unsigned terminate;
    } rows[] = {
        {bad_read, PEER_TERM(0, 1, 0x00)},
        {bad_atomic, PEER_TERM(0, 2, 0x07)},
        {long_send, PEER_TERM(1, 2, 0x05)},
        {bad_invalidate, PEER_TERM(0, 2, 0x09)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        static struct peer p;
        peer_open(&p, &(struct peer_conf){.no_crc = true});
        send_message(&p, 0);
        int fault = (int)p.nsent;
        rows[i].act(&p);
        send_message(&p, 1);
        side_poll_none(&p.victim, SETTLE);
        receive(&p, 0);
        side_recv(&p.victim, 1, MESSAGE, MESSAGE);
        assert_int_equal(peer_terminate(&p), rows[i].terminate);
        assert_int_equal(p.quoted, fault);
        side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        witness_goes_on();
        peer_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fin_behind_unread_bytes),
        cmocka_unit_test(receives_in_time_get_all),
        cmocka_unit_test(held_messages_after_a_fin),
        cmocka_unit_test(a_fin_right_behind_reply_and_message),
        cmocka_unit_test(a_reset),
        cmocka_unit_test(the_victim_leaves),
        cmocka_unit_test(what_is_held_is_quoted),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
