/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes that land in pieces, in any order, late: who looks at memory for the last byte of a Write
 * finds others missing, who waits for a completion finds all of them.
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LEN    1024
#define WRITES 40
#define WORD   8

static struct pair pair;

static void post(enum ibv_wr_opcode opcode, size_t local, size_t len, unsigned flags)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)pair.a.buf + local, .length = (uint32_t)len, .lkey = pair.a.mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.opcode = opcode, .sg_list = &sge, .num_sge = 1, .send_flags = flags};
    wr.wr.rdma.remote_addr = (uintptr_t)pair.b.buf;
    wr.wr.rdma.rkey = pair.b.mr->rkey;
    assert_int_equal(ibv_post_send(pair.a.id->qp, &wr, &bad), 0);
}

static void post_receive(void)
{
    struct ibv_recv_wr *bad, wr = {0};
    assert_int_equal(ibv_post_recv(pair.b.id->qp, &wr, &bad), 0);
}

/* So programs look that watch their memory: nothing orders that. */
__attribute__((no_sanitize("thread"))) static uint8_t seen(size_t i)
{
    return __atomic_load_n(pair.b.buf + i, __ATOMIC_ACQUIRE);
}

__attribute__((no_sanitize("thread"))) static uint64_t seen_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void await_byte(size_t i, uint8_t value)
{
    time_t end = time(NULL) + 20;
    while (seen(i) != value)
        if (time(NULL) > end)
            fail_msg("byte %zu has not come", i);
}

static unsigned missing(uint8_t value)
{
    unsigned n = 0;
    for (size_t i = 0; i < LEN; i++)
        n += seen(i) != value;
    return n;
}

static void watching_memory_is_caught(void **state)
{
    unsigned caught = 0;
    (void)state;
    for (int i = 1; i <= WRITES; i++) {
        memset(pair.a.buf, i, LEN);
        post(IBV_WR_RDMA_WRITE, 0, LEN, IBV_SEND_SIGNALED);
        await_byte(LEN - 1, (uint8_t)i);
        caught += missing((uint8_t)i) != 0;
        for (size_t k = 0; k < LEN; k++) /* yet all come in the end */
            await_byte(k, (uint8_t)i);
        assert_int_equal(side_poll(&pair.a).status, IBV_WC_SUCCESS);
    }
    assert_true(caught > WRITES / 4);
}

/* A Send, an immediate, or a Read that the peer answers. */
static void completions_tell_the_truth(void **state)
{
    (void)state;
    for (int i = 1; i <= WRITES; i++) {
        uint8_t value = (uint8_t)(100 + i);
        memset(pair.a.buf, value, LEN);
        if (i % 3 != 2)
            post_receive();
        if (i % 3 == 0)
            post(IBV_WR_RDMA_WRITE_WITH_IMM, 0, LEN, IBV_SEND_SIGNALED);
        else
            post(IBV_WR_RDMA_WRITE, 0, LEN, 0);
        if (i % 3 == 1)
            post(IBV_WR_SEND, 0, 0, IBV_SEND_SIGNALED);
        if (i % 3 == 2) {
            post(IBV_WR_RDMA_READ, LEN, LEN, IBV_SEND_SIGNALED);
        } else {
            assert_int_equal(side_poll(&pair.b).status, IBV_WC_SUCCESS);
        }
        if (i % 3 != 2)
            assert_int_equal(missing(value), 0);
        assert_int_equal(side_poll(&pair.a).status, IBV_WC_SUCCESS);
        for (size_t k = 0; i % 3 == 2 && k < LEN; k++)
            assert_int_equal(pair.a.buf[LEN + k], value);
    }
}

#ifdef __SANITIZE_THREAD__
#define WHOLE_WORDS false /* its memcpy() goes byte by byte */
#else
#define WHOLE_WORDS true
#endif

/* Two Writes to the same bytes, and words that stay whole. */
static void what_adapters_keep(void **state)
{
    uint64_t *from = (uint64_t *)pair.a.buf, *to = (uint64_t *)pair.b.buf;
    (void)state;
    for (uint64_t i = 1; i <= WRITES; i++) {
        uint64_t last = i * 0x0101010101010101;
        uint64_t before = seen_word(to), now;
        *from = i * 0x1010101010101010;
        post(IBV_WR_RDMA_WRITE, 0, WORD, IBV_SEND_INLINE);
        uint64_t first = *from;
        *from = last;
        post(IBV_WR_RDMA_WRITE, 0, WORD, IBV_SEND_INLINE | IBV_SEND_SIGNALED);
        while ((now = seen_word(to)) != last)
            assert_true(now == before || now == first || !WHOLE_WORDS);
        assert_int_equal(side_poll(&pair.a).status, IBV_WC_SUCCESS);
    }
}

/* Whoever destroys what bytes are still on the way to, gets none of them. */
static void the_end(void **state)
{
    (void)state;
    memset(pair.a.buf, 255, LEN);
    post(IBV_WR_RDMA_WRITE, 0, LEN, IBV_SEND_SIGNALED);
    await_byte(LEN - 1, 255);
}

static int open_pair(void **state)
{
    struct pair_conf conf = {
        .send_wr = 16, .recv_wr = 16, .sge = 1, .inline_data = WORD, .depth = 4};
    (void)state;
    pair_open(&pair, &conf);
    return 0;
}

static int close_pair(void **state)
{
    (void)state;
    pair_close(&pair, 1);
    return 0;
}

int main(void)
{
    setenv("ANYWARP_CHAOS", "seed=1,placement=on", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watching_memory_is_caught),
        cmocka_unit_test(completions_tell_the_truth),
        cmocka_unit_test(what_adapters_keep),
        cmocka_unit_test(the_end),
    };
    return cmocka_run_group_tests(tests, open_pair, close_pair);
}
