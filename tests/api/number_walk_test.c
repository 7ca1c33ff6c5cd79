/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk over queue pairs that are connected by GID and number: what has completed is in the
 * peer's memory. Between its rounds some of them are reset, and connected again: after everything
 * has finished, or in the midst of it.
 */
#include "by_number.h"
#include "walk/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define STEPS   20000
#define ROUND   2500 /* steps */
#define IDLE_NS 200000

/** Now and then nobody polls, and the engine is alone. */
static void move(struct walk *w, void *arg)
{
    (void)arg;
    if (walk_random(w, 200) == 0)
        nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
}

static struct end end_of(struct walk_side *s)
{
    return (struct end){.qp = s->qp};
}

static void connect_to_peer(struct walk_side *s)
{
    struct end x = end_of(s), y = end_of(s->peer);
    ends_connect(&x, &y);
}

static void add_link(struct walk *w, unsigned link)
{
    for (int s = 0; s < 2; s++) {
        struct ibv_qp_init_attr attr = walk_qp_attr(w, link, s);
        walk_add_qp(w, link, s, ibv_create_qp(w->end[s].pd, &attr));
    }
    connect_to_peer(&w->side[link][0]);
}

static void move_link(struct walk *w, unsigned link, enum ibv_qp_state state)
{
    unsigned first = walk_random(w, 2);
    for (unsigned s = 0; s < 2; s++) {
        struct end e = end_of(&w->side[link][s ^ first]);
        end_move(&e, state);
    }
}

/** Resets it at once, or by way of ERR, where everything has its completion. */
static void cut_side(struct walk_side *s)
{
    struct end e = end_of(s);
    if (s->queue->srq || walk_random(s->walk, 2)) {
        end_move(&e, IBV_QPS_ERR);
        walk_drain(s);
    } else {
        walk_purge(s);
    }
    end_move(&e, IBV_QPS_RESET);
}

static void begin(struct walk_side *s)
{
    struct end e = end_of(s);
    end_init(&e);
    end_rtr(&e, s->peer->qp->qp_num);
    end_rts(&e, 7);
}

/** In the midst of its work; the first side may be new before the other is reset. */
static void cut_link(struct walk *w, unsigned link)
{
    unsigned first = walk_random(w, 2);
    struct walk_side *a = &w->side[link][first], *b = a->peer;
    bool early = walk_random(w, 2);
    walk_ending(w, link);
    cut_side(a);
    if (early)
        begin(a);
    cut_side(b);
    walk_renew(w, link);
    if (early)
        begin(b);
    else
        connect_to_peer(a);
}

static void cut_some(struct walk *w)
{
    for (unsigned i = 0; i < w->links; i++)
        if (walk_random(w, 2))
            cut_link(w, i);
}

static void reset_some(struct walk *w)
{
    walk_settle(w);
    for (unsigned i = 0; i < w->links; i++) {
        if (walk_random(w, 2))
            continue;
        move_link(w, i, IBV_QPS_RESET);
        walk_renew(w, i);
        connect_to_peer(&w->side[i][0]);
    }
}

/** @p settled: everything has its end before the connections have. */
static void walk(bool settled)
{
    uint64_t steps;
    struct walk *w = walk_new(STEPS, &steps);
    w->move = move;
    w->ext = w->acknowledged = true;
    walk_open(w, ctx, ctx);
    for (unsigned i = 0; i < w->links; i++)
        add_link(w, i);
    for (uint64_t done = 0; done < steps; done += ROUND) {
        walk_run(w, ROUND);
        if (walk_random(w, 2))
            cut_some(w);
        else
            reset_some(w);
    }
    walk_run(w, ROUND);
    if (settled)
        walk_settle(w);
    walk_say(w);
    for (unsigned i = 0; i < w->links; i++)
        move_link(w, i, IBV_QPS_ERR);
    walk_end(w);
    for (unsigned i = 0; i < w->links; i++)
        for (int s = 0; s < 2; s++)
            assert_int_equal(ibv_destroy_qp(w->side[i][s].qp), 0);
    walk_close(w);
}

static void to_the_end(void **state)
{
    (void)state;
    walk(true);
}

static void cut_short(void **state)
{
    (void)state;
    walk(false);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(cut_short),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(void)
{
    return ends_run(tests);
}
