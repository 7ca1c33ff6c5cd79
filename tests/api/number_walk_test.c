/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk over queue pairs that are connected by GID and number: what has completed is in the
 * peer's memory. Between its rounds some of them are reset, and connected again.
 */
#include "by_number.h"
#include "walk/walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define STEPS   20000
#define ROUNDS  8
#define IDLE_NS 200000

/** Now and then nobody polls, and the engine is alone. */
static void move(struct walk *w, void *arg)
{
    (void)arg;
    if (walk_random(w, 200) == 0)
        nanosleep(&(struct timespec){.tv_nsec = IDLE_NS}, NULL);
}

static void connect_link(struct walk *w, unsigned link)
{
    struct end x = {.qp = w->side[link][0].qp}, y = {.qp = w->side[link][1].qp};
    ends_connect(&x, &y);
}

static void add_link(struct walk *w, unsigned link)
{
    for (int s = 0; s < 2; s++) {
        struct ibv_qp_init_attr attr = walk_qp_attr(w, link, s);
        walk_add_qp(w, link, s, ibv_create_qp(w->end[s].pd, &attr));
    }
    connect_link(w, link);
}

static void move_link(struct walk *w, unsigned link, enum ibv_qp_state state)
{
    unsigned first = walk_random(w, 2);
    for (unsigned s = 0; s < 2; s++) {
        struct end e = {.qp = w->side[link][s ^ first].qp};
        end_move(&e, state);
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
    for (int round = 0; round < ROUNDS; round++) {
        walk_run(w, steps / ROUNDS);
        walk_settle(w);
        for (unsigned i = 0; i < w->links; i++) {
            if (walk_random(w, 2))
                continue;
            move_link(w, i, IBV_QPS_RESET);
            walk_reset(w, i);
            connect_link(w, i);
        }
    }
    if (!settled)
        walk_run(w, steps / ROUNDS / 2);
    print_message("%llu completions over %u links\n", (unsigned long long)w->completions, w->links);
    w->ending = true;
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
