/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk itself, and what has to come of it. */
#include "walk/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define STUCK_S 20

/* ---- chance ---- */

/* splitmix64 */
static uint64_t random64(struct walk *w)
{
    uint64_t z = w->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t walk_random(struct walk *w, uint32_t n)
{
    return (uint32_t)(random64(w) % n);
}

struct walk *walk_new(unsigned steps_by_default, uint64_t *steps)
{
    const char *seed = getenv("ANYWARP_WALK_SEED"), *n = getenv("ANYWARP_WALK_STEPS");
    struct timespec now;
    struct walk *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    clock_gettime(CLOCK_REALTIME, &now);
    w->seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
    w->state = w->seed;
    *steps = n ? strtoull(n, NULL, 0) : steps_by_default;
    printf("ANYWARP_WALK_SEED=%llu ANYWARP_WALK_STEPS=%llu\n", (unsigned long long)w->seed,
           (unsigned long long)*steps);
    fflush(stdout);
    w->links = 2 + walk_random(w, WALK_LINKS_MAX - 1);
    w->poll = ibv_poll_cq;
    return w;
}

void walk_say(const struct walk *w)
{
    print_message("%llu work requests, %llu completions, %u links, of which %u came anew\n",
                  (unsigned long long)w->requests, (unsigned long long)w->completions, w->links,
                  w->renewed);
}

/* ---- objects ---- */

static void open_end(struct walk_end *e, struct ibv_context *ctx)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = WALK_RECV_WR, .max_sge = WALK_SGE}};
    int cqe = WALK_LINKS_MAX * (WALK_SEND_WR + WALK_RECV_WR);
    e->ctx = ctx;
    e->pd = ibv_alloc_pd(ctx);
    e->channel = ibv_create_comp_channel(ctx);
    assert_non_null(e->pd);
    assert_non_null(e->channel);
    for (int i = 0; i < 2; i++) {
        e->cq[i] = ibv_create_cq(ctx, cqe, NULL, e->channel, 0);
        assert_non_null(e->cq[i]);
    }
    memory_open(&e->shared_memory, e->pd);
    e->shared.memory = &e->shared_memory;
    e->shared.srq = ibv_create_srq(e->pd, &srq);
    assert_non_null(e->shared.srq);
}

static void open_side(struct walk *w, unsigned link, int s)
{
    struct walk_side *side = &w->side[link][s];
    struct walk_end *e = &w->end[s];
    side->walk = w;
    side->peer = &w->side[link][!s];
    memory_open(&side->memory, e->pd);
    side->own.memory = &side->memory;
    side->queue = walk_random(w, 3) ? &side->own : &e->shared;
    for (int i = 0; i < WALK_GRANTS; i++) {
        struct walk_grant *g = &side->grant[i];
        if (walk_random(w, 3) == 0)
            continue;
        g->window = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2);
        assert_non_null(g->window);
        g->key = g->window->rkey;
    }
}

void walk_open(struct walk *w, struct ibv_context *a, struct ibv_context *b)
{
    open_end(&w->end[0], a);
    open_end(&w->end[1], b);
    for (unsigned i = 0; i < w->links; i++) {
        open_side(w, i, 0);
        open_side(w, i, 1);
    }
}

struct ibv_qp_init_attr walk_qp_attr(struct walk *w, unsigned link, int s)
{
    struct walk_end *e = &w->end[s];
    return (struct ibv_qp_init_attr){
        .send_cq = e->cq[walk_random(w, 2)],
        .recv_cq = e->cq[walk_random(w, 2)],
        .srq = w->side[link][s].queue->srq,
        .cap = {WALK_SEND_WR, WALK_RECV_WR, WALK_SGE, WALK_SGE, WALK_INLINE},
        .qp_type = IBV_QPT_RC,
    };
}

void walk_add_qp(struct walk *w, unsigned link, int s, struct ibv_qp *qp)
{
    assert_non_null(qp);
    w->side[link][s].qp = qp;
    w->side[link][s].qp_num = qp->qp_num;
}

static void close_side(struct walk_side *s)
{
    for (int i = 0; i < WALK_GRANTS; i++) {
        if (s->grant[i].window)
            assert_int_equal(ibv_dealloc_mw(s->grant[i].window), 0);
        if (s->grant[i].mr)
            assert_int_equal(ibv_dereg_mr(s->grant[i].mr), 0);
    }
    for (uint64_t i = s->over; i < s->next; i++)
        free(walk_op(s, i)->data);
    memory_close(&s->memory);
}

void walk_close(struct walk *w)
{
    for (unsigned i = 0; i < w->links; i++) {
        close_side(&w->side[i][0]);
        close_side(&w->side[i][1]);
    }
    for (int i = 0; i < 2; i++) {
        struct walk_end *e = &w->end[i];
        assert_int_equal(ibv_destroy_srq(e->shared.srq), 0);
        memory_close(&e->shared_memory);
        assert_int_equal(ibv_destroy_cq(e->cq[0]), 0);
        assert_int_equal(ibv_destroy_cq(e->cq[1]), 0);
        assert_int_equal(ibv_destroy_comp_channel(e->channel), 0);
        assert_int_equal(ibv_dealloc_pd(e->pd), 0);
    }
    free(w);
}

/* ---- effects that are sure now ---- */

static void release_remote(struct walk_side *s, struct walk_op *op)
{
    bool written = op->wr.opcode != IBV_WR_RDMA_READ;
    if (!op->remote_held)
        return;
    op->remote_held = false;
    memory_leave(&op->remote, written ? MEMORY_REMOTE : MEMORY_REMOTE_READ);
    if (op->grant)
        op->grant->used--;
    if (written && memory_is_free_of(&op->remote, MEMORY_WRITERS))
        walk_check(s->walk, memory_is_right(&op->remote));
}

/** What Writes before @p end have written is there to be seen. */
static void writes_are_placed(struct walk_side *s, uint64_t end)
{
    for (uint64_t i = s->over; i < end; i++)
        if (walk_is_write(walk_op(s, i)->wr.opcode))
            release_remote(s, walk_op(s, i));
}

static void forget(struct walk_side *s)
{
    for (; s->over < s->done; s->over++) {
        const struct walk_op *op = walk_op(s, s->over);
        if (op->remote_held || op->unheard)
            return;
    }
}

void walk_grant_is_gone(struct walk *w, struct walk_grant *g)
{
    g->state = GRANT_NONE;
    walk_check(w, !g->mr || ibv_dereg_mr(g->mr) == 0);
    g->mr = NULL;
}

/** The work request has completed, said or unsaid. */
static void op_is_done(struct walk_side *s, uint64_t i)
{
    struct walk_op *op = walk_op(s, i);
    bool request = walk_is_request(op->wr.opcode);
    s->good = i + 1;
    for (unsigned k = 0; op->locals_held && k < op->nlocal; k++) {
        memory_leave(&op->local[k], request ? MEMORY_SINK : MEMORY_GATHER);
        walk_check(s->walk, !request || memory_is_right(&op->local[k]));
    }
    op->locals_held = false;
    if (s->walk->acknowledged)
        writes_are_placed(s, i + 1);
    if (request) {
        writes_are_placed(s, i);
        release_remote(s, op);
    }
    if (op->wr.opcode == IBV_WR_BIND_MW)
        op->grant->state = GRANT_GIVEN;
    if (op->wr.opcode == IBV_WR_LOCAL_INV)
        walk_grant_is_gone(s->walk, op->grant);
}

/* ---- completions ---- */

static enum ibv_wc_opcode completion_of(enum ibv_wr_opcode op)
{
    switch (op) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
        return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
        return IBV_WC_BIND_MW;
    default:
        return IBV_WC_SEND;
    }
}

/** All that were posted before have completed, the unsignaled ones among them unsaid. */
static void on_send(struct walk_side *s, const struct ibv_wc *wc)
{
    struct walk *w = s->walk;
    bool good = wc->status == IBV_WC_SUCCESS;
    walk_check(w, wc->wr_id >= s->done && wc->wr_id < s->next);
    bool gone = w->acknowledged && !s->failed && wc->status == IBV_WC_RETRY_EXC_ERR;
    walk_check(w, good || (s->ending && (gone || wc->status == IBV_WC_WR_FLUSH_ERR)));
    walk_check(w, !s->failed || (!good && wc->wr_id == s->done));
    s->failed = !good;
    for (; s->done < wc->wr_id; s->done++) {
        walk_check(w, !(walk_op(s, s->done)->wr.send_flags & IBV_SEND_SIGNALED));
        op_is_done(s, s->done);
    }
    const struct walk_op *op = walk_op(s, wc->wr_id);
    s->done++;
    if (good) {
        walk_check(w, op->wr.send_flags & IBV_SEND_SIGNALED);
        walk_check(w, wc->opcode == completion_of(op->wr.opcode) && wc->wc_flags == 0);
        walk_check(w, !walk_is_request(op->wr.opcode) || wc->byte_len == op->len);
        op_is_done(s, wc->wr_id);
    }
    forget(s);
}

/** The peer's next message; what was posted before it has taken effect. */
static struct walk_op *next_message(struct walk_side *peer)
{
    while (peer->heard < peer->next && !walk_is_message(walk_op(peer, peer->heard)->wr.opcode))
        peer->heard++;
    walk_check(peer->walk, peer->heard < peer->next);
    struct walk_op *op = walk_op(peer, peer->heard++);
    writes_are_placed(peer, peer->heard);
    return op;
}

static void check_message(struct walk *w, struct walk_op *op, const struct ibv_wc *wc)
{
    bool inv = op->wr.opcode == IBV_WR_SEND_WITH_INV;
    bool imm = op->wr.opcode == IBV_WR_SEND_WITH_IMM || op->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    walk_check(w, wc->opcode ==
                      (walk_is_write(op->wr.opcode) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV));
    walk_check(w, wc->byte_len == op->len);
    walk_check(w, wc->wc_flags == (imm ? IBV_WC_WITH_IMM : inv ? IBV_WC_WITH_INV : 0u));
    walk_check(w, !imm || wc->imm_data == op->wr.imm_data);
    walk_check(w, !inv || wc->invalidated_rkey == op->wr.invalidate_rkey);
    if (inv)
        walk_grant_is_gone(w, op->grant);
}

static void on_message(struct walk_side *s, struct walk_recv *r, const struct ibv_wc *wc)
{
    struct walk *w = s->walk;
    struct walk_op *op = next_message(s->peer);
    check_message(w, op, wc);
    const uint8_t *p = op->data;
    uint32_t left = p ? op->len : 0;
    for (unsigned i = 0; i < r->n; i++) {
        uint32_t n = left < r->range[i].len ? left : r->range[i].len;
        if (n)
            memcpy(range_image(&r->range[i]), p, n);
        p += n;
        left -= n;
        memory_leave(&r->range[i], MEMORY_RECV);
        walk_check(w, memory_is_right(&r->range[i]));
    }
    free(op->data);
    op->data = NULL;
    op->unheard = false;
    forget(s->peer);
}

static void on_recv(struct walk_side *s, const struct ibv_wc *wc)
{
    struct walk *w = s->walk;
    struct walk_queue *q = s->queue;
    struct walk_recv *r = &q->recv[wc->wr_id % WALK_RECV_WR];
    walk_check(w, wc->wr_id < q->posted && r->posted);
    walk_check(w, q->srq || wc->wr_id == q->taken);
    q->taken++;
    r->posted = false;
    if (wc->status == IBV_WC_SUCCESS) {
        on_message(s, r, wc);
        return;
    }
    walk_check(w, s->ending && wc->status == IBV_WC_WR_FLUSH_ERR);
    for (unsigned i = 0; i < r->n; i++)
        memory_abandon(&r->range[i], MEMORY_RECV);
}

static struct walk_side *side_of(struct walk *w, int end, uint32_t qp_num)
{
    for (unsigned i = 0; i < w->links; i++)
        if (w->side[i][end].qp_num == qp_num)
            return &w->side[i][end];
    walk_check(w, !"a completion of no QP");
    return NULL;
}

static unsigned poll_end(struct walk *w, int end)
{
    struct ibv_wc wc[8];
    unsigned total = 0;
    for (int c = 0; c < 2; c++) {
        int n = w->poll(w->end[end].cq[c], 1 + (int)walk_random(w, 8), wc);
        walk_check(w, n >= 0);
        for (int i = 0; i < n; i++) {
            struct walk_side *s = side_of(w, end, wc[i].qp_num);
            if (wc[i].opcode & IBV_WC_RECV)
                on_recv(s, &wc[i]);
            else
                on_send(s, &wc[i]);
        }
        total += (unsigned)n;
    }
    w->completions += total;
    return total;
}

/* ---- the walk ---- */

void walk_run(struct walk *w, uint64_t steps)
{
    for (uint64_t end = w->step + steps; w->step < end; w->step++) {
        struct walk_side *s = &w->side[walk_random(w, w->links)][walk_random(w, 2)];
        switch (walk_random(w, 8)) {
        case 0:
        case 1:
        case 2:
            if (!s->ending)
                walk_post_send(s);
            break;
        case 3:
        case 4:
            if (!s->ending)
                walk_post_recv(s);
            break;
        case 5:
            break;
        default:
            poll_end(w, (int)walk_random(w, 2));
        }
        w->move(w, w->arg);
    }
}

bool walk_wait_on(struct walk *w, time_t *since)
{
    w->move(w, w->arg);
    bool found = poll_end(w, 0) + poll_end(w, 1) > 0;
    if (found)
        *since = time(NULL);
    walk_check(w, time(NULL) - *since < STUCK_S);
    return found;
}

static bool is_at_rest(const struct walk_side *s)
{
    return s->over == s->next;
}

void walk_settle(struct walk *w)
{
    time_t since = time(NULL);
    for (unsigned i = 0; i < 2 * w->links; i++) {
        struct walk_side *s = &w->side[i / 2][i % 2];
        for (uint64_t before = s->next; s->next == before; walk_wait_on(w, &since)) {
            walk_post_barrier(s);
            walk_post_recv(s->peer);
        }
        while (!is_at_rest(s)) {
            walk_post_recv(s->peer);
            walk_wait_on(w, &since);
        }
    }
    for (unsigned i = 0; i < w->links; i++)
        for (int s = 0; s < 2; s++)
            walk_check(w, memory_is_right_at_rest(&w->side[i][s].memory));
    for (int i = 0; i < 2; i++)
        walk_check(w, memory_is_right_at_rest(&w->end[i].shared_memory));
}
