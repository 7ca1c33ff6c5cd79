/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs that are connected by GID and number, without rdma_cm: whoever is ready first,
 * whoever sends first, after RESET again; and what becomes of one whose peer goes, or never comes.
 */
#include "by_number.h"
#include "logfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static struct end a, b;

static int setup(void **state)
{
    (void)state;
    end_make(&a);
    end_make(&b);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    end_drop(&a);
    end_drop(&b);
    return 0;
}

static void both_ways(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    end_send_once(&a, &b, 1);
    end_send_once(&b, &a, 2);
    assert_int_equal(end_state(&a), IBV_QPS_RTS);
}

/** Neither end has to be spoken to first. */
static void the_other_first(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    end_send_once(&b, &a, 3);
    end_send_once(&a, &b, 4);
}

static void every_opcode(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    a.data[END_HALF / 8] = 9;
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE), 0);
    end_expect(&a, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS);
    assert_int_equal(end_post(&a, &b, IBV_WR_ATOMIC_FETCH_AND_ADD), 0);
    end_expect(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS);
    assert_true(a.data[END_HALF / 8] == 9);
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_READ), 0);
    end_expect(&a, IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
    assert_true(a.data[END_HALF / 8] == 14);
    end_receive(&b);
    end_receive(&b);
    assert_int_equal(end_post(&a, &b, IBV_WR_SEND_WITH_IMM), 0);
    assert_int_equal(end_post(&a, &b, IBV_WR_RDMA_WRITE_WITH_IMM), 0);
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = end_next(&b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
        assert_int_equal(wc.imm_data, 0x1234);
    }
}

/** A peer that is late is waited for: what is posted meanwhile goes out then. */
static void late(struct end *first, struct end *second)
{
    end_init(&a);
    end_init(&b);
    end_rtr(first, second->qp->qp_num);
    end_rts(first, 7);
    end_receive(second);
    first->data[END_HALF / 8] = 6;
    assert_int_equal(end_post(first, second, IBV_WR_SEND_WITH_IMM), 0);
    usleep(100000);
    end_rtr(second, first->qp->qp_num);
    end_expect(second, 77, IBV_WC_SUCCESS); /* it receives in RTR */
    assert_true(second->data[0] == 6);
    end_expect(first, IBV_WR_SEND_WITH_IMM, IBV_WC_SUCCESS);
    end_rts(second, 7);
    end_send_once(second, first, 7);
}

static void late_a(void **state)
{
    (void)state;
    late(&b, &a);
}

static void late_b(void **state)
{
    (void)state;
    late(&a, &b);
}

/** Nothing happens until it sends: then its time runs out, and the send tells. */
static void peer_goes(void **state)
{
    struct ibv_wc wc;
    (void)state;
    ends_connect(&a, &b);
    end_send_once(&a, &b, 8);
    end_receive(&b);
    end_drop_qp(&a);
    usleep(200000);
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
    assert_int_equal(end_post(&b, &a, IBV_WR_SEND), 0);
    end_expect(&b, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    end_expect(&b, 77, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(end_state(&b), IBV_QPS_ERR);
    log_expect(b.qp->qp_num, "Send, wr_id 0x*: TCP connection lost: QP 0x* at *:* has gone; *");
    log_clear();
}

/** One that names a third is not accepted: its sends fail in their time, ours go on. */
static void not_asked_for(void **state)
{
    struct end c;
    (void)state;
    end_make(&c);
    ends_connect(&a, &b);
    end_init(&c);
    end_rtr(&c, b.qp->qp_num);
    end_rts(&c, 7);
    assert_int_equal(end_post(&c, &b, IBV_WR_SEND), 0);
    end_expect(&c, IBV_WR_SEND, IBV_WC_RETRY_EXC_ERR);
    log_expect(c.qp->qp_num, c.qp->qp_num < b.qp->qp_num
                                 ? "Send, *: TCP connection lost: QP 0x* at *:* did not answer; *"
                                 : "Send, *: TCP connection lost: QP 0x* at *:* has not called; *");
    end_send_once(&a, &b, 10);
    end_drop(&c);
}

static void again_after_reset(void **state)
{
    uint32_t number = a.qp->qp_num;
    (void)state;
    for (int round = 0; round < 5; round++) {
        ends_connect(&a, &b);
        end_send_once(&a, &b, 11);
        end_receive(&a); /* forgotten without a completion */
        end_move(&a, IBV_QPS_RESET);
        end_move(&b, IBV_QPS_RESET);
        assert_int_equal(a.qp->qp_num, number);
    }
    ends_connect(&a, &b);
    end_send_once(&b, &a, 12);
}

/** One end is new before the other knows: its hello is kept for the other's next life. */
static void one_before_the_other(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++) {
        struct end *first = round ? &a : &b, *second = round ? &b : &a;
        ends_connect(&a, &b);
        end_send_once(&a, &b, 13);
        end_move(first, IBV_QPS_RESET);
        end_init(first);
        end_rtr(first, second->qp->qp_num);
        end_rts(first, 7);
        usleep(50000);
        end_move(second, IBV_QPS_RESET);
        end_init(second);
        end_rtr(second, first->qp->qp_num);
        end_rts(second, 7);
        end_send_once(first, second, 14);
        end_move(&a, IBV_QPS_RESET);
        end_move(&b, IBV_QPS_RESET);
    }
}

static void to_error(void **state)
{
    (void)state;
    ends_connect(&a, &b);
    end_receive(&a);
    end_move(&a, IBV_QPS_ERR);
    end_expect(&a, 77, IBV_WC_WR_FLUSH_ERR);
    usleep(50000);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
}

/** Nor does it hear that the peer's fails in the midst of it; its next send finds nobody. */
static void to_error_later(void **state)
{
    struct ibv_send_wr wr = {.wr_id = 5, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    (void)state;
    ends_connect(&a, &b);
    end_send_once(&a, &b, 17);
    end_send_once(&b, &a, 18);
    end_move(&a, IBV_QPS_ERR);
    usleep(50000);
    assert_int_equal(end_state(&b), IBV_QPS_RTS);
    assert_int_equal(ibv_post_send(b.qp, &wr, &bad), 0);
    end_expect(&b, 5, IBV_WC_RETRY_EXC_ERR);
    assert_int_equal(end_state(&b), IBV_QPS_ERR);
}

/** What cannot be reached is refused, and changes nothing. */
static void no_way(void **state)
{
    const union ibv_gid four = {.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
                        six = {.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    union ibv_gid own;
    (void)state;
    assert_int_equal(ibv_query_gid(ctx, 1, 1, &own), 0);
    bool is_four = memcmp(&own, &four, 12) == 0;
    end_init(&a);
    end_init(&b);
    assert_int_equal(end_try_rtr(&a, b.qp->qp_num, is_four ? &six : &four), EHOSTUNREACH);
    end_rtr(&a, b.qp->qp_num);
    end_rtr(&b, a.qp->qp_num);
    end_rts(&a, 7);
    end_rts(&b, 7);
    end_send_once(&a, &b, 16);
}

/* ---- the port ---- */

/** A connection to the port of a number. @return its descriptor or a negative errno */
static int call(uint32_t number)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(number >> 8)),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

static void open_from_init_on(void **state)
{
    (void)state;
    assert_true(a.qp->qp_num >> 8 >= 1024);
    assert_int_equal(call(a.qp->qp_num), -ECONNREFUSED);
    end_init(&a);
    int fd = call(a.qp->qp_num);
    assert_true(fd >= 0);
    close(fd);
}

/** Whoever says something else is hung up on. */
static void garbage(void **state)
{
    static const char words[][64] = {"GET / HTTP/1.0\r\n\r\n", "MPA ID Req Frame\x40\x02\0\4abcd"};
    char answer[64];
    (void)state;
    ends_connect(&a, &b);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        int fd = call(a.qp->qp_num);
        assert_true(fd >= 0);
        assert_int_equal(send(fd, words[i], sizeof(words[i]), MSG_NOSIGNAL), sizeof(words[i]));
        ssize_t n;
        while ((n = recv(fd, answer, sizeof(answer), 0)) > 0)
            ;
        close(fd);
    }
    end_send_once(&a, &b, 15);
}

static int tests(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest all[] = {
        T(both_ways), T(the_other_first), T(every_opcode),      T(late_a),
        T(late_b),    T(peer_goes),       T(not_asked_for),     T(again_after_reset),
        T(to_error),  T(garbage),         T(open_from_init_on), T(one_before_the_other),
        T(no_way),    T(to_error_later),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    log_setup(NULL);
    int failed = ends_run(tests);
    log_teardown(NULL);
    return failed;
}
