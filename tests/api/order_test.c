/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer wrote over one connection stands in memory when its later message over another one
 * completes, whoever received what.
 */
#include "hostile/peer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS   200
#define PINGS    2000 /* so many that the source of a ping-pong is adopted */
#define SLEEPS   50
#define SLEEP_US 2000
#define LARGE    60000
#define BYTES    65536
#define POSTS    16 /* of BYTES: four looks of the poster */
#define WRS      64
#define CROWD    40 /* connections with data, more than one pass finds */
#define MANY     5000
#define AHEAD    3                /* of them: a window of TCP has room for ten packets */
#define INBOX    (SIDE_BYTES / 2) /* in the victim's memory: for messages */

/** "data" is written over, "word" brings messages. */
static struct peer data[CROWD], word;

/** What is sent first has to arrive first: some kinds of TCP give packets times. */
static void open_one(struct peer *p, const struct pair_conf *side)
{
    struct peer_conf conf = {.no_crc = true, .side = *side};
    conf.side.send_wr = conf.side.recv_wr = WRS;
    peer_open(p, &conf);
    assert_int_equal(setsockopt(p->fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4), 0);
}

static void open_some(unsigned n, const struct pair_conf *side)
{
    for (unsigned i = 0; i < n; i++)
        open_one(&data[i], side);
    open_one(&word, side);
}

static void close_some(unsigned n)
{
    peer_close(&word);
    for (unsigned i = 0; i < n; i++)
        peer_close(&data[i]);
}

static int open_two(void **state)
{
    (void)state;
    open_some(1, &(struct pair_conf){0});
    return 0;
}

static int open_extended(void **state)
{
    (void)state;
    open_some(1, &(struct pair_conf){.ex = true});
    return 0;
}

/** Both receive into the queue of data. */
static int open_on_one_queue(void **state)
{
    (void)state;
    open_one(data, &(struct pair_conf){0});
    open_one(&word, &(struct pair_conf){.recv_cq = data->victim.cq});
    return 0;
}

static int close_two(void **state)
{
    (void)state;
    close_some(1);
    return 0;
}

static int open_crowd(void **state)
{
    (void)state;
    open_some(CROWD, &(struct pair_conf){0});
    return 0;
}

static int close_crowd(void **state)
{
    (void)state;
    close_some(CROWD);
    return 0;
}

/** Writes @p len bytes of @p fill at @p offset. */
static void write_at(struct peer *p, size_t offset, uint8_t fill, uint32_t len)
{
    static uint8_t bytes[LARGE];
    memset(bytes, fill, len);
    struct peer_seg s =
        peer_tagged(PEER_WRITE, p->victim.mr->rkey, (uintptr_t)p->victim.buf + offset, bytes, len);
    peer_send_seg(p, &s);
}

static uint8_t byte_at(const struct peer *p, size_t offset)
{
    return __atomic_load_n(p->victim.buf + offset, __ATOMIC_ACQUIRE);
}

static void send_over(struct peer *p)
{
    side_recv(&p->victim, 0, INBOX, 1);
    struct peer_seg s = peer_untagged(p, PEER_SEND, "w", 1);
    peer_send_seg(p, &s);
}

static void take_from(struct peer *p)
{
    assert_int_equal(side_poll(&p->victim).status, IBV_WC_SUCCESS);
}

static void for_a_poller(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        write_at(data, 0, (uint8_t)i, 1);
        send_over(&word);
        take_from(&word);
        assert_int_equal(byte_at(data, 0), (uint8_t)i);
    }
}

static void for_an_extended_poller(void **state)
{
    struct ibv_poll_cq_attr attr = {0};
    (void)state;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        struct ibv_cq_ex *cq = (struct ibv_cq_ex *)word.victim.cq;
        write_at(data, 0, (uint8_t)i, 1);
        send_over(&word);
        while (ibv_start_poll(cq, &attr) == ENOENT)
            ;
        assert_int_equal(byte_at(data, 0), (uint8_t)i);
        ibv_end_poll(cq);
    }
}

/** Over either of the connections. */
static void after_a_ping_pong(void **state)
{
    struct peer *over[] = {&word, data};
    (void)state;
    for (unsigned i = 1; i <= 2 * 2; i++) {
        for (unsigned k = 0; k < PINGS; k++) {
            send_over(over[i % 2]);
            take_from(over[i % 2]);
        }
        write_at(data, 0, (uint8_t)i, 1);
        send_over(&word);
        take_from(&word);
        assert_int_equal(byte_at(data, 0), (uint8_t)i);
    }
}

/** The engine's thread begins with what arrives, and the poller comes to it. */
static void beside_the_engine(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= SLEEPS; i++) {
        usleep(SLEEP_US);
        write_at(data, 0, (uint8_t)i, LARGE);
        send_over(&word);
        take_from(&word);
        assert_int_equal(byte_at(data, LARGE - 1), (uint8_t)i);
    }
}

static void for_a_getter(void **state)
{
    struct ibv_cq *cq;
    void *context;
    (void)state;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        assert_int_equal(ibv_req_notify_cq(word.victim.cq, 0), 0);
        write_at(data, 0, (uint8_t)i, 1);
        send_over(&word);
        assert_int_equal(ibv_get_cq_event(word.victim.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        take_from(&word);
        assert_int_equal(byte_at(data, 0), (uint8_t)i);
    }
}

static void among_many(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        for (unsigned k = 0; k < CROWD; k++)
            write_at(&data[k], 0, (uint8_t)i, 1);
        send_over(&word);
        take_from(&word);
        for (unsigned k = 0; k < CROWD; k++)
            assert_int_equal(byte_at(&data[k], 0), (uint8_t)i);
    }
}

static atomic_uint taken;

/** Each processor has a queue of packets. */
static void stay_here(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    assert_int_equal(pthread_setaffinity_np(pthread_self(), sizeof(here), &here), 0);
}

/**
 * The peer's program: writes and tells of it, AHEAD of what is taken; if @p arg is not NULL, each
 * time with a message in front of the data, too.
 */
static void *tell_all(void *arg)
{
    bool over_data = arg;
    stay_here();
    for (unsigned i = 0; i < MANY; i++) {
        while (i - taken > AHEAD)
            sched_yield();
        if (over_data) {
            struct peer_seg first = peer_untagged(data, PEER_SEND, "d", 1);
            peer_send_seg(data, &first);
        }
        write_at(data, i, 1, 1);
        struct peer_seg s = peer_untagged(&word, PEER_SEND, "w", 1);
        peer_send_seg(&word, &s);
    }
    return NULL;
}

static void while_more_comes(void **state)
{
    pthread_t teller;
    (void)state;
    taken = 0;
    for (unsigned i = 0; i < WRS; i++)
        side_recv(&word.victim, 0, INBOX, 1);
    assert_int_equal(pthread_create(&teller, NULL, tell_all, NULL), 0);
    for (unsigned i = 0; i < MANY; i++) {
        take_from(&word);
        if (byte_at(data, i) != 1)
            fail_msg("message %u came first", i);
        taken = i + 1;
        side_recv(&word.victim, 0, INBOX, 1);
    }
    assert_int_equal(pthread_join(teller, NULL), 0);
}

static void on_one_queue(void **state)
{
    pthread_t teller;
    (void)state;
    taken = 0;
    for (unsigned i = 0; i < WRS; i++) {
        side_recv(&data->victim, 0, INBOX, 1);
        side_recv(&word.victim, 0, INBOX, 1);
    }
    assert_int_equal(pthread_create(&teller, NULL, tell_all, data), 0);
    for (unsigned i = 0; i < MANY;) {
        struct ibv_wc wc = side_poll(&data->victim);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        if (wc.qp_num == data->victim.id->qp->qp_num) {
            side_recv(&data->victim, 0, INBOX, 1);
            continue;
        }
        if (byte_at(data, i) != 1)
            fail_msg("message %u came first", i);
        taken = ++i;
        side_recv(&word.victim, 0, INBOX, 1);
    }
    assert_int_equal(pthread_join(teller, NULL), 0);
}

/** The peer's program: takes everything. */
static void *take_all(void *arg)
{
    static char bytes[BYTES];
    (void)arg;
    while (recv(word.fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

/** Posts once, if there is room. */
static void post(void)
{
    struct side *s = &word.victim;
    struct ibv_sge sge = {(uintptr_t)s->buf + BYTES, BYTES, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    (void)ibv_post_send(s->id->qp, &wr, &bad);
}

/** Who posts without a break receives for the QP that it posts to. */
static void for_a_poster(void **state)
{
    pthread_t taker;
    (void)state;
    assert_int_equal(pthread_create(&taker, NULL, take_all, NULL), 0);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        write_at(data, 0, (uint8_t)i, 1);
        send_over(&word);
        for (int k = 0; k < POSTS; k++)
            post();
        take_from(&word);
        assert_int_equal(byte_at(data, 0), (uint8_t)i);
    }
    shutdown(word.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(taker, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(for_a_poller, open_two, close_two),
        cmocka_unit_test_setup_teardown(for_an_extended_poller, open_extended, close_two),
        cmocka_unit_test_setup_teardown(after_a_ping_pong, open_two, close_two),
        cmocka_unit_test_setup_teardown(beside_the_engine, open_two, close_two),
        cmocka_unit_test_setup_teardown(for_a_getter, open_two, close_two),
        cmocka_unit_test_setup_teardown(among_many, open_crowd, close_crowd),
        cmocka_unit_test_setup_teardown(while_more_comes, open_two, close_two),
        cmocka_unit_test_setup_teardown(on_one_queue, open_on_one_queue, close_two),
        cmocka_unit_test_setup_teardown(for_a_poster, open_two, close_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
