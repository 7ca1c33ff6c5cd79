/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An end that stands behind a closed window. A peer dies while its data wait for a receiver that
 * posts no receives: its FIN comes behind them all, and is heard nevertheless. Nothing of a peer
 * whose messages are received after all is lost.
 */
#include "witness.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#define MESSAGE    60000
#define SLOTS      8  /* receives that are posted at a time */
#define FULL_MS    50 /* without room: the window is closed, and both buffers are full */
#define HEARD_MS   2000
#define RECEIVE_MS 300 /* between two receives, where the limit is a second */
#define MB         (1024 * 1024)
#define CONN_MB    16 /* taken in for a connection that stalls */
#define PROCESS_MB 64
#define PEERS      8  /* more than the process has room for */
#define SLACK_MB   48 /* a sanitizer keeps more */

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/** @return whether an event comes within @p ms */
static bool event_within(struct peer *p, int ms)
{
    struct pollfd f = {.fd = p->victim.events->fd, .events = POLLIN};
    return poll(&f, 1, ms) == 1;
}

/** Sends what there is room for within @p ms. @return bytes */
static size_t send_some(struct peer *p, const uint8_t *bytes, size_t len, int ms)
{
    struct pollfd f = {.fd = p->fd, .events = POLLOUT};
    size_t at = 0;
    while (at < len && poll(&f, 1, ms) == 1) {
        ssize_t n = send(p->fd, bytes + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        assert_true(n > 0 || errno == EAGAIN);
        at += n > 0 ? (size_t)n : 0;
    }
    return at;
}

/**
 * Sends messages, each filled with the low byte of its number, until nothing more goes for @p ms,
 * or @p most bytes are out.
 * @return how many went whole
 */
static unsigned fill(struct peer *p, int ms, size_t most)
{
    static uint8_t payload[MESSAGE], bytes[PEER_FPDU_MAX];
    unsigned n = 0;
    for (size_t sent = 0; sent < most; n++) {
        memset(payload, (int)n, sizeof(payload));
        struct peer_seg s = peer_untagged(p, PEER_SEND, payload, sizeof(payload));
        size_t len = peer_fpdu(p, &s, bytes), part = send_some(p, bytes, len, ms);
        sent += part;
        if (part < len)
            break;
    }
    return n;
}

static void open_stalled(struct peer *p)
{
    peer_open(p, &(struct peer_conf){.no_crc = true, .side = {.recv_wr = SLOTS}});
}

static void receive(struct peer *p, unsigned i)
{
    side_recv(&p->victim, i, 0, MESSAGE);
    struct ibv_wc wc = side_poll(&p->victim);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, MESSAGE);
    assert_int_equal(p->victim.buf[0], (uint8_t)i);
    assert_int_equal(p->victim.buf[MESSAGE - 1], (uint8_t)i);
}

/** The peer's process has died; its TCP has data that nobody takes, and the FIN behind them. */
static void the_end_is_heard(void **state)
{
    static const char line[] =
        "TCP connection lost: the peer closed it, no receive came for its messages";
    (void)state;
    for (int stalled_ms = 0; stalled_ms <= HEARD_MS; stalled_ms += HEARD_MS) {
        static struct peer p;
        open_stalled(&p);
        assert_true(fill(&p, FULL_MS, SIZE_MAX) > 20);
        if (stalled_ms)
            witness_sleeps(stalled_ms);
        long start = now_ms();
        peer_hang_up(&p, false);
        assert_true(event_within(&p, HEARD_MS));
        assert_true(now_ms() - start <= HEARD_MS);
        witness_end(&p, 0, line);
        peer_close(&p);
    }
}

/** What was taken in is received in order, and then what TCP has, and then comes the end. */
static void nothing_is_lost(void **state)
{
    static const struct {
        unsigned late; /* receives that are posted each just before the second is over */
        int fill_ms;   /* longer: the peer goes on while the victim takes in */
    } rows[] = {{0, FULL_MS}, {4, FULL_MS}, {4, HEARD_MS}};
    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        static struct peer p;
        unsigned i = 0;
        open_stalled(&p);
        unsigned n = fill(&p, rows[row].fill_ms, SIZE_MAX);
        shutdown(p.fd, SHUT_WR);
        for (; i < rows[row].late; i++) {
            witness_sleeps(RECEIVE_MS);
            receive(&p, i);
        }
        for (; i < n; i++)
            receive(&p, i);
        assert_true(event_within(&p, HEARD_MS)); /* with a part of a message behind them */
        side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p);
    }
}

/** The victim goes on with other work meanwhile, and has no use for the messages in the end. */
static void the_victim_leaves(void **state)
{
    static struct peer p;
    (void)state;
    open_stalled(&p);
    fill(&p, HEARD_MS, SIZE_MAX);
    witness_goes_on();
    assert_int_equal(rdma_disconnect(p.victim.id), 0);
    assert_int_equal(peer_terminate(&p), PEER_NO_TERM);
    peer_hang_up(&p, false);
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    peer_close(&p);
}

/** Peers that never end take no more than the bound of a connection, and that of the process. */
static void there_is_a_bound(void **state)
{
    static struct peer p[PEERS];
    size_t before = witness_memory();
    (void)state;
    for (int i = 0; i < PEERS; i++) {
        open_stalled(&p[i]);
        assert_true(fill(&p[i], HEARD_MS / 2, SIZE_MAX) * (size_t)MESSAGE >
                    (i < 3 ? CONN_MB * (size_t)MB : 0));
        size_t most =
            (size_t)(i + 1) * CONN_MB < PROCESS_MB ? (size_t)(i + 1) * CONN_MB : PROCESS_MB;
        assert_in_range(witness_memory(), 0, before + (most + SLACK_MB) * MB);
    }
    witness_sleeps(RECEIVE_MS);
    witness_goes_on();
    for (int i = 0; i < PEERS; i++) {
        peer_hang_up(&p[i], true);
        side_event(&p[i].victim, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(&p[i]);
    }
    the_end_is_heard(state); /* there is room again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_is_heard),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(the_victim_leaves),
        cmocka_unit_test(there_is_a_bound),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
