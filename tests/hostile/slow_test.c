/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peers that are slow or stand still, in every direction: what they cost is bounded memory and no
 * processor time, and others do not notice.
 */
#include "api/cm_kit.h"
#include "witness.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_MS   200
#define BYTE_MS   20
#define MB        (1 << 20)
#define COST      (4 * MB) /* bytes of memory that one peer may cost; a sanitizer keeps more */
#define WRS       64
#define PEERS     16
#define READS     4            /* more than TCP takes */
#define KEPT      (16 * MB)    /* for one that owes an answer */
#define TAKEN_IN  (16 * MB)    /* in case it stalls for long */
#define TURN      (256 * 1024) /* of a peer that takes little */
#define STAGING   (160 * 1024)
#define HALF_OPEN 512
#define HALF_COST 16384 /* bytes of memory that one of them may cost */
#define DRIBBLED  16

/** Data for a peer that takes none: it stays where the program has it. */
static void never_reading(void **state)
{
    static struct peer p;
    (void)state;
    peer_open(&p, &(struct peer_conf){.small_window = true, .side = {.send_wr = WRS}});
    struct side remote = {.buf = p.victim.buf, .mr = p.victim.mr};
    memset(p.victim.buf, 1, SIDE_BYTES);
    size_t before = witness_memory();
    for (int i = 0; i < WRS; i++)
        side_post(&p.victim, &remote, IBV_WR_RDMA_WRITE, 1, 0, SIDE_BYTES, 0, 0);
    witness_sleeps(LOOK_MS);
    assert_in_range(witness_memory(), 0, before + COST);
    witness_goes_on();
    peer_hang_up(&p, true);
    peer_close(&p);
}

/** As much as TCP takes, without a receive. @return bytes */
static size_t flood(struct peer *p)
{
    static uint8_t bytes[PEER_FPDU_MAX];
    size_t total = 0;
    for (int idle = 0; idle < 5;) {
        struct peer_seg s = peer_untagged(p, PEER_SEND, NULL, 60000);
        size_t len = peer_fpdu(p, &s, bytes);
        for (size_t at = 0; at < len && idle < 5;) {
            ssize_t n = send(p->fd, bytes + at, len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno == EAGAIN) {
                usleep(BYTE_MS * 1000);
                idle++;
                continue;
            }
            assert_true(n > 0);
            idle = 0;
            at += (size_t)n;
            total += (size_t)n;
        }
    }
    return total;
}

static void sending_to_nobody(void **state)
{
    static struct peer p;
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    size_t before = witness_memory();
    size_t sent = flood(&p);
    assert_in_range(sent, 256 * 1024, 64 * MB);
    assert_in_range(witness_memory(), 0, before + COST);
    witness_sleeps(LOOK_MS);
    witness_goes_on();
    peer_hang_up(&p, true);
    peer_close(&p);
}

/** Messages that it needs for an answer may be behind others: more of them are kept. */
static void sending_instead_of_answering(void **state)
{
    static struct peer p;
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    struct side remote = {.buf = p.victim.buf, .mr = p.victim.mr};
    assert_int_equal(side_post(&p.victim, &remote, IBV_WR_RDMA_READ, 1, 0, 8, 0, 0), 0);
    size_t before = witness_memory();
    flood(&p);
    size_t after = witness_memory();
    if (after) /* it can be told */
        assert_in_range(after, before + KEPT - COST, before + KEPT + TAKEN_IN + COST);
    witness_sleeps(LOOK_MS);
    witness_goes_on();
    peer_hang_up(&p, true);
    peer_close(&p);
}

/** Answers with a CRC are copied: one turn of each, not what was asked for. */
static void asking_and_not_reading(void **state)
{
    static struct peer p[PEERS];
    uint8_t hdr[28];
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* its own memory cannot be told from ours, and it copies for long */
#endif
    for (int i = 0; i < PEERS; i++) {
        peer_open(&p[i], &(struct peer_conf){.small_window = true});
        memset(p[i].victim.buf, 1, SIDE_BYTES);
    }
    size_t before = witness_memory();
    for (int i = 0; i < PEERS * READS; i++) {
        struct peer *asks = &p[i % PEERS];
        struct side *v = &asks->victim;
        peer_read_request(hdr, 1, 0, SIDE_BYTES, v->mr->rkey, (uintptr_t)v->buf);
        struct peer_seg s = peer_untagged(asks, PEER_READ_REQUEST, hdr, sizeof(hdr));
        peer_send_seg(asks, &s);
    }
    /* What was asked for takes its time on a busy machine: from then on all sleep. */
    struct timespec work = {.tv_nsec = 800000000};
    nanosleep(&work, NULL);
    witness_sleeps(LOOK_MS);
    assert_in_range(witness_memory(), 0, before + PEERS * (TURN + PEER_FPDU_MAX) + COST);
    witness_goes_on();
    for (int i = 0; i < PEERS; i++) {
        peer_hang_up(&p[i], true);
        peer_close(&p[i]);
    }
}

/** A message that comes byte by byte is a message all the same. */
static void byte_by_byte(void **state)
{
    static struct peer p;
    uint8_t bytes[128];
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = false});
    side_recv(&p.victim, 1, 0, 64);
    struct peer_seg s = peer_untagged(&p, PEER_SEND, "slowly", 6);
    size_t len = peer_fpdu(&p, &s, bytes);
    for (size_t i = 0; i < DRIBBLED; i++) {
        peer_send(&p, bytes + i, 1);
        witness_sleeps(BYTE_MS);
        witness_goes_on();
    }
    peer_send(&p, bytes + DRIBBLED, len - DRIBBLED);
    assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.victim.buf, "slowly", 6);
    peer_close(&p);
}

/** Half an FPDU each, of the longest, on many connections. */
static void half_a_message(void **state)
{
    static struct peer p[PEERS];
    static uint8_t bytes[PEER_FPDU_MAX];
    (void)state;
    for (int i = 0; i < PEERS; i++)
        peer_open(&p[i], &(struct peer_conf){.no_crc = true});
    size_t before = witness_memory();
    for (int i = 0; i < PEERS; i++) {
        struct peer_seg s = peer_untagged(&p[i], PEER_SEND, NULL, 60000);
        size_t len = peer_fpdu(&p[i], &s, bytes);
        peer_send(&p[i], bytes, len / 2);
    }
    witness_sleeps(LOOK_MS);
    assert_in_range(witness_memory(), 0, before + PEERS * STAGING + COST);
    witness_goes_on();
    for (int i = 0; i < PEERS; i++) {
        peer_hang_up(&p[i], false);
        witness_end(&p[i], 0, "TCP connection lost: the peer closed it * bytes into an FPDU");
        peer_close(&p[i]);
    }
}

static void half_a_handshake(void **state)
{
    static const char half[] = "MPA ID Req Frame\x10\x02";
    static int fd[HALF_OPEN];
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    size_t before = witness_memory();
    for (int i = 0; i < HALF_OPEN; i++) {
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_return_code(fd[i], errno);
        assert_return_code(
            connect(fd[i], (const struct sockaddr *)&s.addr, sizeof(struct sockaddr_in)), errno);
        assert_int_equal(send(fd[i], half, (size_t)i % sizeof(half), MSG_NOSIGNAL),
                         (size_t)i % sizeof(half));
    }
    witness_sleeps(LOOK_MS);
    assert_in_range(witness_memory(), 0, before + HALF_OPEN * HALF_COST);
    witness_goes_on();
    for (int i = 0; i < HALF_OPEN; i++)
        close(fd[i]);
    cm_quiet(s.b, 0);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_reading),
        cmocka_unit_test(asking_and_not_reading),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(half_a_message),
        cmocka_unit_test(half_a_handshake),
        /* last, as malloc() keeps for itself what these have freed */
        cmocka_unit_test(sending_to_nobody),
        cmocka_unit_test(sending_instead_of_answering),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
