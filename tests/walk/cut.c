/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections that end, and links that begin anew. */
#include "walk/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

void walk_ending(struct walk *w, unsigned link)
{
    w->side[link][0].ending = w->side[link][1].ending = true;
}

/** Whether the receive of a Send that has completed is in a CQ still, or in a thread's hand. */
static bool owes_a_receive(struct walk_side *sender)
{
    for (uint64_t i = sender->over; i < sender->good && !sender->peer->purged; i++)
        if (walk_op(sender, i)->unheard)
            return sender->walk->acknowledged;
    return false;
}

void walk_drain(struct walk_side *s)
{
    struct walk *w = s->walk;
    time_t since = time(NULL);
    /* The last ones may be unsignaled, and a success. */
    for (uint64_t before = s->next; s->next == before; walk_wait_on(w, &since))
        walk_post_barrier(s);
    while (s->done < s->next || s->own.taken < s->own.posted)
        walk_wait_on(w, &since);
    /* What it had of a SRQ. */
    while (walk_wait_on(w, &since) || owes_a_receive(s) || owes_a_receive(s->peer))
        ;
}

void walk_purge(struct walk_side *s)
{
    walk_check(s->walk, !s->queue->srq);
    s->purged = true;
}

void walk_end(struct walk *w)
{
    for (unsigned i = 0; i < w->links; i++)
        walk_ending(w, i);
    for (unsigned i = 0; i < 2 * w->links; i++)
        walk_drain(&w->side[i / 2][i % 2]);
    for (unsigned i = 0; i < w->links; i++)
        for (int s = 0; s < 2; s++)
            walk_check(w, memory_is_right_at_rest(&w->side[i][s].memory));
}

/* ---- anew ---- */

static void abandon_op(struct walk_op *op)
{
    bool request = walk_is_request(op->wr.opcode), read = op->wr.opcode == IBV_WR_RDMA_READ;
    for (unsigned k = 0; op->locals_held && k < op->nlocal; k++) {
        if (request)
            memory_abandon(&op->local[k], MEMORY_SINK);
        else
            memory_leave(&op->local[k], MEMORY_GATHER);
    }
    if (op->remote_held && read)
        memory_leave(&op->remote, MEMORY_REMOTE_READ);
    else if (op->remote_held)
        memory_abandon(&op->remote, MEMORY_REMOTE);
    if (op->remote_held && op->grant)
        op->grant->used--;
    free(op->data);
    op->data = NULL;
}

static void abandon_ops(struct walk_side *s)
{
    struct walk *w = s->walk;
    for (uint64_t i = s->over; i < s->next; i++) {
        struct walk_op *op = walk_op(s, i);
        bool heard = !op->unheard || s->peer->purged;
        walk_check(w, !w->acknowledged || i >= s->good || heard);
        abandon_op(op);
    }
    s->done = s->over = s->heard = s->good = s->next;
    s->unsignaled = 0;
    s->failed = false;
}

static void abandon_receives(struct walk_side *s)
{
    struct walk_queue *q = &s->own;
    for (int i = 0; i < WALK_RECV_WR; i++) {
        for (unsigned k = 0; q->recv[i].posted && k < q->recv[i].n; k++) {
            if (s->ending)
                memory_abandon(&q->recv[i].range[k], MEMORY_RECV);
            else
                memory_leave(&q->recv[i].range[k], MEMORY_RECV);
        }
        q->recv[i].posted = false;
    }
    q->taken = q->posted;
}

/** Of keys of regions those that were being taken away, of windows all. */
static void abandon_grants(struct walk_side *s)
{
    for (int i = 0; i < WALK_GRANTS; i++) {
        struct walk_grant *g = &s->grant[i];
        walk_check(s->walk, g->used == 0);
        if (g->state == GRANT_GOING || (g->window && g->state != GRANT_NONE))
            walk_grant_is_gone(s->walk, g);
    }
}

void walk_renew(struct walk *w, unsigned link)
{
    w->renewed++;
    for (int s = 0; s < 2; s++)
        abandon_ops(&w->side[link][s]);
    for (int s = 0; s < 2; s++) {
        struct walk_side *side = &w->side[link][s];
        abandon_receives(side);
        abandon_grants(side);
        side->ending = side->purged = false;
    }
}
