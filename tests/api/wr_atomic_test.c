/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics through the public API: atomic across QPs and towards the program, aligned only. */
#include "pair.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define QPS    4
#define DEPTH  8
#define ROUNDS 250
#define ADDS   (DEPTH * ROUNDS)

static uint64_t word[8] __attribute__((aligned(64)));
static atomic_uint working;

struct worker {
    struct pair p;
    struct ibv_mr *mr; /* of the word, in the responder's domain */
    enum ibv_wr_opcode op;
    pthread_t thread;
    uint64_t swaps; /* that found what they compared with */
};

static void post(struct worker *w, unsigned slot, uint64_t compare_add, uint64_t swap)
{
    struct ibv_sge sge = {(uintptr_t)w->p.a.buf + 8 * slot, 8, w->p.a.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = slot,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = w->op,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.atomic = {.remote_addr = (uintptr_t)word,
                                                 .rkey = w->mr->rkey,
                                                 .compare_add = compare_add,
                                                 .swap = swap}};
    assert_int_equal(ibv_post_send(w->p.a.id->qp, &wr, &bad), 0);
}

static uint64_t answer(struct worker *w, unsigned slot)
{
    uint64_t v;
    struct ibv_wc wc = side_poll(&w->p.a);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, slot);
    memcpy(&v, w->p.a.buf + 8 * slot, sizeof(v));
    return v;
}

/** Adds 1 ADDS times; what comes back grows. */
static void *add(void *arg)
{
    struct worker *w = arg;
    uint64_t last = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        for (unsigned k = 0; k < DEPTH; k++)
            post(w, k, 1, 0);
        for (unsigned k = 0; k < DEPTH; k++) {
            uint64_t v = answer(w, k);
            assert_true((i == 0 && k == 0) || v > last);
            last = v;
        }
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

/** Adds 1 by compare and swap; counts what came through. */
static void *swap(void *arg)
{
    struct worker *w = arg;
    uint64_t guess = 0;
    for (unsigned i = 0; i < ADDS; i++) {
        post(w, 0, guess, guess + 1);
        uint64_t v = answer(w, 0);
        w->swaps += v == guess;
        guess = v == guess ? guess + 1 : v;
    }
    atomic_fetch_sub(&working, 1);
    return NULL;
}

static void no_addition_is_lost(void **state)
{
    static struct worker w[QPS];
    uint64_t sum = 0;
    (void)state;
    word[0] = 0;
    atomic_store(&working, QPS);
    for (unsigned i = 0; i < QPS; i++) {
        pair_open(&w[i].p, &(struct pair_conf){.depth = DEPTH});
        w[i].mr = ibv_reg_mr(w[i].p.b.pd, word, sizeof(word),
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
        assert_non_null(w[i].mr);
        w[i].op = i ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
    }
    for (unsigned i = 0; i < QPS; i++)
        assert_int_equal(pthread_create(&w[i].thread, NULL, i ? add : swap, &w[i]), 0);
    for (; atomic_load(&working); sum++) /* the program itself */
        __atomic_fetch_add(&word[0], 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < QPS; i++) {
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
        sum += i ? ADDS : w[i].swaps;
    }
    assert_int_equal(__atomic_load_n(&word[0], __ATOMIC_SEQ_CST), sum);
    for (unsigned i = 1; i < 8; i++)
        assert_int_equal(word[i], 0);
    for (unsigned i = 0; i < QPS; i++) {
        assert_int_equal(ibv_dereg_mr(w[i].mr), 0);
        pair_close(&w[i].p, 1);
    }
}

/** Behind a read that is outstanding, too: the blame is on the atomic. */
static void unaligned_ones_touch_nothing(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_ATOMIC_FETCH_AND_ADD,
                                             IBV_WR_ATOMIC_CMP_AND_SWP};
    struct ibv_async_event ev;
    (void)state;
    for (unsigned i = 0; i < 2 * 7; i++) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        size_t aligned = -(uintptr_t)p.b.buf % 8;
        struct ibv_sge sge = {(uintptr_t)p.a.buf, 8, p.a.mr->lkey};
        struct ibv_send_wr *bad,
            wr = {.wr_id = 2,
                  .sg_list = &sge,
                  .num_sge = 1,
                  .opcode = ops[i % 2],
                  .send_flags = IBV_SEND_SIGNALED,
                  .wr.atomic = {.remote_addr = (uintptr_t)p.b.buf + aligned + 1 + i / 2,
                                .rkey = p.b.mr->rkey,
                                .compare_add = 0,
                                .swap = 1}};
        memset(p.b.buf, 0, 64);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 1, 1000, 700000, 1000, 0), 0);
        assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 3, 1000, 8, 1000, 0), 0);
        struct ibv_wc wc = side_poll(&p.a);
        assert_int_equal(wc.wr_id, 1);
        assert_true(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
        wc = side_poll(&p.a);
        assert_int_equal(wc.wr_id, 2);
        assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
        wc = side_poll(&p.a);
        assert_int_equal(wc.wr_id, 3);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        for (unsigned k = 0; k < 64; k++)
            assert_int_equal(p.b.buf[k], 0);
        side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
        side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), 0);
            bool responder = ev.element.qp == p.b.id->qp;
            assert_int_equal(ev.event_type,
                             responder ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_FATAL);
            ibv_ack_async_event(&ev);
        }
        pair_close(&p, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_addition_is_lost),
        cmocka_unit_test(unaligned_ones_touch_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
