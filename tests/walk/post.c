/* SPDX-License-Identifier: BSD-2-Clause */
/* What is posted: any work request that is legal now, with its effect on the model. */
#include "walk/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRIES      8
#define LIST_MAX   4
#define QUIET_MAX  8 /* unsignaled ones in a row */
#define LONG_BYTES 16384
#define GRANT_MIN  64
#define RIGHTS     (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define ALL        (MEMORY_READERS | MEMORY_WRITERS)

/** Mostly short. */
static uint32_t random_length(struct walk *w, uint32_t most)
{
    uint32_t n = walk_random(w, 8) ? walk_random(w, 128) : walk_random(w, LONG_BYTES);
    return n <= most ? n : walk_random(w, most + 1);
}

/** A place in @p within, of which nobody in @p keep_out has a byte. @return false if none is found
 */
static bool find_place(struct walk *w, const struct range *within, uint32_t len, uint32_t align,
                       unsigned keep_out, struct range *r)
{
    if (len > within->len)
        return false;
    for (int i = 0; i < TRIES; i++) {
        uint32_t at = within->at + walk_random(w, within->len - len + 1);
        at -= at % align;
        *r = (struct range){.memory = within->memory, .at = at, .len = len};
        if (at >= within->at && memory_is_free_of(r, keep_out))
            return true;
    }
    return false;
}

static struct range all_of(struct memory *m)
{
    return (struct range){.memory = m, .len = MEMORY_BYTES};
}

/* ---- local memory ---- */

static void drop_locals(struct walk_op *op, enum memory_user user)
{
    while (op->nlocal > 0)
        memory_leave(&op->local[--op->nlocal], user);
}

/** Takes up to WALK_SGE pieces for @p len bytes. @return false if there is no place */
static bool take_locals(struct walk_side *s, struct walk_op *op, uint32_t len,
                        enum memory_user user, unsigned keep_out)
{
    struct walk *w = s->walk;
    struct range whole = all_of(&s->memory);
    unsigned n = len ? 1 + walk_random(w, WALK_SGE) : walk_random(w, 3);
    uint32_t left = len;
    for (unsigned i = 0; i < n; i++) {
        uint32_t piece = i + 1 == n ? left : walk_random(w, left + 1);
        struct range *r = &op->local[i];
        if (!find_place(w, &whole, piece, 1, keep_out, r)) {
            drop_locals(op, user);
            return false;
        }
        memory_use(r, user);
        op->nlocal = i + 1;
        op->sge[i] =
            (struct ibv_sge){(uintptr_t)s->memory.bytes + r->at, piece, s->memory.mr->lkey};
        left -= piece;
    }
    op->wr.num_sge = (int)n;
    op->locals_held = true;
    return true;
}

/** The bytes that a Send or Write takes along. */
static uint8_t *gather(const struct walk_op *op)
{
    uint8_t *data = malloc(op->len + 1), *p = data;
    assert_non_null(data);
    for (unsigned i = 0; i < op->nlocal; i++) {
        memcpy(p, range_image(&op->local[i]), op->local[i].len);
        p += op->local[i].len;
    }
    return data;
}

/** @p bytes come in. */
static void scatter(const struct walk_op *op, const uint8_t *bytes)
{
    for (unsigned i = 0; i < op->nlocal; i++) {
        memcpy(range_image(&op->local[i]), bytes, op->local[i].len);
        bytes += op->local[i].len;
    }
}

/* ---- the peer's memory ---- */

/** Some key of the peer's, and a place that it gives. @return false if there is no place */
static bool take_remote(struct walk_side *s, struct walk_op *op, uint32_t align,
                        enum memory_user user, unsigned keep_out)
{
    struct walk_side *peer = s->peer;
    struct walk_grant *g = &peer->grant[walk_random(s->walk, WALK_GRANTS)];
    bool granted = g->state == GRANT_GIVEN && op->len && walk_random(s->walk, 2);
    struct range within = granted ? g->range : all_of(&peer->memory);
    if (!find_place(s->walk, &within, op->len, align, keep_out, &op->remote))
        return false;
    memory_use(&op->remote, user);
    op->remote_held = true;
    op->grant = granted ? g : NULL;
    if (granted)
        g->used++;
    op->wr.wr.rdma.remote_addr = (uintptr_t)peer->memory.bytes + op->remote.at;
    op->wr.wr.rdma.rkey = granted ? g->key : peer->memory.mr->rkey;
    return true;
}

/* ---- the kinds; each returns false if it cannot be done now ---- */

/** The data of a Send or Write; reads in flight may still change it if there is a fence. */
static bool take_source(struct walk_side *s, struct walk_op *op, uint32_t most)
{
    bool fence = op->wr.send_flags & IBV_SEND_FENCE;
    bool is_inline = !walk_random(s->walk, 4);
    op->len = random_length(s->walk, is_inline ? WALK_INLINE : most);
    unsigned keep_out = MEMORY_WRITERS;
    if (fence && !is_inline)
        keep_out &= ~MEMORY_BIT(MEMORY_SINK);
    if (!take_locals(s, op, op->len, MEMORY_GATHER, keep_out))
        return false;
    op->data = gather(op);
    if (is_inline) { /* it is copied while it is posted */
        op->wr.send_flags |= IBV_SEND_INLINE;
        drop_locals(op, MEMORY_GATHER);
        op->locals_held = false;
    }
    return true;
}

static void give_up_source(struct walk_op *op)
{
    drop_locals(op, MEMORY_GATHER);
    free(op->data);
    op->data = NULL;
}

static bool make_send(struct walk_side *s, struct walk_op *op)
{
    struct walk_grant *g = &s->peer->grant[walk_random(s->walk, WALK_GRANTS)];
    op->wr.opcode = IBV_WR_SEND;
    if (s->walk->ext && !walk_random(s->walk, 3)) {
        op->wr.opcode = IBV_WR_SEND_WITH_IMM;
        op->wr.imm_data = walk_random(s->walk, UINT32_MAX);
    } else if (g->window && g->state == GRANT_GIVEN && !walk_random(s->walk, 3)) {
        op->wr.opcode = IBV_WR_SEND_WITH_INV;
        op->wr.invalidate_rkey = g->key;
        op->wr.send_flags |= IBV_SEND_FENCE; /* reads in flight use the key */
    }
    if (!take_source(s, op, WALK_MESSAGE))
        return false;
    if (op->wr.opcode == IBV_WR_SEND_WITH_INV) {
        op->grant = g;
        g->state = GRANT_GOING;
    }
    return true;
}

/** A Write may overtake a read in flight, unless there is a fence, and other Writes. */
static bool make_write(struct walk_side *s, struct walk_op *op)
{
    bool fence = op->wr.send_flags & IBV_SEND_FENCE;
    op->wr.opcode = walk_random(s->walk, 3) ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
    op->wr.imm_data = walk_random(s->walk, UINT32_MAX);
    if (!take_source(s, op, LONG_BYTES))
        return false;
    if (!take_remote(s, op, 1, MEMORY_REMOTE,
                     fence ? ALL & ~MEMORY_BIT(MEMORY_REMOTE_READ) : ALL)) {
        give_up_source(op);
        return false;
    }
    memcpy(range_image(&op->remote), op->data, op->len);
    free(op->data);
    op->data = NULL;
    return true;
}

/** A read sees what Writes and atomics before it have written. */
static bool make_read(struct walk_side *s, struct walk_op *op)
{
    op->wr.opcode = IBV_WR_RDMA_READ;
    op->len = random_length(s->walk, LONG_BYTES);
    if (!take_locals(s, op, op->len, MEMORY_SINK, ALL))
        return false;
    if (!take_remote(s, op, 1, MEMORY_REMOTE_READ,
                     MEMORY_BIT(MEMORY_SINK) | MEMORY_BIT(MEMORY_RECV))) {
        drop_locals(op, MEMORY_SINK);
        return false;
    }
    scatter(op, range_image(&op->remote));
    return true;
}

/** So does an atomic; but a read in flight may see what it leaves, unless there is a fence. */
static bool make_atomic(struct walk_side *s, struct walk_op *op)
{
    bool fence = op->wr.send_flags & IBV_SEND_FENCE;
    unsigned keep_out = ALL & ~MEMORY_BIT(MEMORY_REMOTE);
    uint64_t old, new;
    op->len = sizeof(old);
    if (fence)
        keep_out &= ~MEMORY_BIT(MEMORY_REMOTE_READ);
    if (!take_locals(s, op, op->len, MEMORY_SINK, ALL))
        return false;
    if (!take_remote(s, op, sizeof(old), MEMORY_REMOTE, keep_out)) {
        drop_locals(op, MEMORY_SINK);
        return false;
    }
    struct ibv_send_wr *wr = &op->wr;
    uint32_t key = wr->wr.rdma.rkey; /* the union's other arm has it elsewhere */
    memcpy(&old, range_image(&op->remote), sizeof(old));
    new = walk_random(s->walk, UINT32_MAX) * 0x100000001u;
    wr->opcode = walk_random(s->walk, 2) ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    wr->wr.atomic.remote_addr = (uintptr_t)op->remote.memory->bytes + op->remote.at;
    wr->wr.atomic.rkey = key;
    if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr->wr.atomic.compare_add = new;
        new += old;
    } else {
        bool meets = walk_random(s->walk, 2);
        wr->wr.atomic.compare_add = meets ? old : ~old;
        wr->wr.atomic.swap = new;
        new = meets ? new : old;
    }
    scatter(op, (uint8_t *)&old);
    memcpy(range_image(&op->remote), &new, sizeof(new));
    return true;
}

/** Gives the peer a key, or takes one that nobody uses away. */
static bool make_local(struct walk_side *s, struct walk_op *op)
{
    struct walk *w = s->walk;
    struct walk_grant *g = &s->grant[walk_random(w, WALK_GRANTS)];
    struct range whole = all_of(&s->memory);
    if (g->state == GRANT_GIVEN && g->used == 0) {
        op->wr.opcode = IBV_WR_LOCAL_INV;
        op->wr.invalidate_rkey = g->key;
        op->grant = g;
        g->state = GRANT_GOING;
        return true;
    }
    if (g->state != GRANT_NONE)
        return false;
    find_place(w, &whole, GRANT_MIN + walk_random(w, LONG_BYTES), 8, 0, &g->range);
    uint8_t *start = s->memory.bytes + g->range.at;
    if (!g->window) {
        g->mr = ibv_reg_mr(s->memory.mr->pd, start, g->range.len, RIGHTS | IBV_ACCESS_LOCAL_WRITE);
        walk_check(w, g->mr);
        g->key = g->mr->rkey;
        g->state = GRANT_GIVEN;
        return false; /* nothing is to be posted */
    }
    g->key = ibv_inc_rkey(g->key);
    g->state = GRANT_COMING;
    op->grant = g;
    op->wr.opcode = IBV_WR_BIND_MW;
    op->wr.bind_mw.mw = g->window;
    op->wr.bind_mw.rkey = g->key;
    op->wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = s->memory.mr,
                                                         .addr = (uintptr_t)start,
                                                         .length = g->range.len,
                                                         .mw_access_flags = RIGHTS};
    return true;
}

/* ---- posting ---- */

static struct walk_op *begin_op(struct walk_side *s)
{
    if (s->next - s->done >= WALK_SEND_WR || s->next - s->over >= WALK_OPS)
        return NULL;
    struct walk_op *op = walk_op(s, s->next);
    memset(op, 0, sizeof(*op));
    op->wr.wr_id = s->next;
    op->wr.sg_list = op->sge;
    return op;
}

static void finish_op(struct walk_side *s, struct walk_op *op, bool signaled)
{
    if (signaled)
        op->wr.send_flags |= IBV_SEND_SIGNALED;
    s->unsignaled = signaled ? 0 : s->unsignaled + 1;
    op->unheard = walk_is_message(op->wr.opcode);
    s->next++;
    s->walk->requests++;
}

static bool make_any(struct walk_side *s, struct walk_op *op)
{
    struct walk *w = s->walk;
    if (!walk_random(w, 4))
        op->wr.send_flags |= IBV_SEND_FENCE;
    if (!walk_random(w, 4))
        op->wr.send_flags |= IBV_SEND_SOLICITED;
    switch (walk_random(w, 10)) {
    case 0:
    case 1:
    case 2:
        return make_send(s, op);
    case 3:
    case 4:
    case 5:
        return make_write(s, op);
    case 6:
    case 7:
        return make_read(s, op);
    case 8:
        return make_atomic(s, op);
    default:
        return make_local(s, op);
    }
}

void walk_post_send(struct walk_side *s)
{
    struct walk *w = s->walk;
    struct ibv_send_wr *first = NULL, **link = &first, *bad = NULL;
    for (uint32_t n = 1 + walk_random(w, LIST_MAX); n > 0; n--) {
        struct walk_op *op = begin_op(s);
        if (!op)
            break;
        if (!make_any(s, op))
            continue;
        finish_op(s, op, s->unsignaled >= QUIET_MAX || walk_random(w, 3));
        *link = &op->wr;
        link = &op->wr.next;
    }
    walk_check(w, !first || ibv_post_send(s->qp, first, &bad) == 0);
}

void walk_post_barrier(struct walk_side *s)
{
    struct ibv_send_wr *bad = NULL;
    struct walk_op *op = begin_op(s);
    if (!op)
        return;
    op->wr.opcode = IBV_WR_SEND;
    finish_op(s, op, true);
    walk_check(s->walk, ibv_post_send(s->qp, &op->wr, &bad) == 0);
}

/** Room for WALK_MESSAGE bytes and maybe some more. @return false if there is no place */
static bool take_room(struct walk *w, struct walk_queue *q, struct walk_recv *r,
                      struct ibv_sge *sge)
{
    struct range whole = all_of(q->memory);
    uint32_t left = WALK_MESSAGE + walk_random(w, 64);
    unsigned n = 1 + walk_random(w, WALK_SGE);
    for (r->n = 0; r->n < n; r->n++) {
        uint32_t piece = r->n + 1 == n ? left : walk_random(w, left + 1);
        struct range *place = &r->range[r->n];
        if (!find_place(w, &whole, piece, 1, ALL, place)) {
            while (r->n > 0)
                memory_leave(&r->range[--r->n], MEMORY_RECV);
            return false;
        }
        memory_use(place, MEMORY_RECV);
        sge[r->n] =
            (struct ibv_sge){(uintptr_t)q->memory->bytes + place->at, piece, q->memory->mr->lkey};
        left -= piece;
    }
    return true;
}

void walk_post_recv(struct walk_side *s)
{
    struct walk_queue *q = s->queue;
    struct walk_recv *r = &q->recv[q->posted % WALK_RECV_WR];
    struct ibv_sge sge[WALK_SGE];
    struct ibv_recv_wr wr = {.wr_id = q->posted, .sg_list = sge}, *bad = NULL;
    if (r->posted || !take_room(s->walk, q, r, sge))
        return;
    wr.num_sge = (int)r->n;
    r->posted = true;
    q->posted++;
    walk_check(s->walk, (q->srq ? ibv_post_srq_recv(q->srq, &wr, &bad)
                                : ibv_post_recv(s->qp, &wr, &bad)) == 0);
}
