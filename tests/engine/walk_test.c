/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk over memory streams: two RNICs in one thread that bytes leave and reach in pieces
 * of any size, at any time. The same seed gives the same walk to the last bit.
 */
#include "conn/stream_mem.h"
#include "engine/still.h"
#include "walk/walk.h"

#include "qp/link.h"
#include "qp/rx_direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include <cmocka.h>

#define STEPS  20000
#define ROUNDS 4 /* between settlements */
#define WINDOW 65536
#define AHEAD  65536
#define DEPTH  8

static struct iwc_stream_mem *streams[WALK_LINKS_MAX][2];
static uint8_t new[WALK_LINKS_MAX][2][sizeof(struct iw_qp)]; /* the QPs before they are linked */

static size_t random_chunk(struct walk *w)
{
    return walk_random(w, 3) ? WINDOW : 1 + walk_random(w, 2000);
}

static void run_side(struct walk *w, unsigned link, int s)
{
    still_run(w->side[link][s].qp, EPOLLIN | EPOLLOUT);
}

/** Some QPs get to run, others have to wait. */
static void move(struct walk *w, void *arg)
{
    (void)arg;
    for (uint32_t n = walk_random(w, 5); n > 0; n--) {
        unsigned link = walk_random(w, w->links);
        int s = (int)walk_random(w, 2);
        if (!walk_random(w, 16))
            iwc_stream_mem_chunk(streams[link][s], random_chunk(w));
        run_side(w, link, s);
    }
}

/** Without a P_Key, as rdma_cm does: with one it would listen for QPs that connect by number. */
static void to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                  IBV_ACCESS_REMOTE_ATOMIC};
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), 0);
}

/** What tells nothing of a connection: links to others, positions in rings, hints. */
#define LASTING(X)                                                                                 \
    X(hash_next)                                                                                   \
    X(own_rq.lock)                                                                                 \
    X(own_rq.head)                                                                                 \
    X(own_rq.tail)                                                                                 \
    X(tx.lock)                                                                                     \
    X(tx.sq.head)                                                                                  \
    X(tx.sq.cut)                                                                                   \
    X(tx.sq.tail)                                                                                  \
    X(tx.empty)                                                                                    \
    X(sent)                                                                                        \
    X(tx.deferred)                                                                                 \
    X(life)                                                                                        \
    X(rx.lock)                                                                                     \
    X(build_lock)

/** After RESET nothing is left of the walk, to the last byte. */
static void expect_as_new(struct ibv_qp *q, uint8_t *before)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    assert_int_equal(ibv_modify_qp(q, &attr, IBV_QP_STATE), 0);
    to_init(q);
    const uint8_t *now = (const uint8_t *)iw_qp(q);
    assert_int_equal(iw_qp(q)->tx.sq.head, iw_qp(q)->tx.sq.tail);
    assert_int_equal(iw_qp(q)->own_rq.head, iw_qp(q)->own_rq.tail);
#define X(field)                                                                                   \
    memcpy(before + offsetof(struct iw_qp, field), now + offsetof(struct iw_qp, field),            \
           sizeof(iw_qp(q)->field));
    LASTING(X)
#undef X
    for (size_t i = 0; i < sizeof(struct iw_qp); i++)
        if (now[i] != before[i])
            fail_msg("byte %zu of the QP is 0x%02x, was 0x%02x", i, now[i], before[i]);
}

static struct mpa_result random_terms(struct walk *w, bool ext)
{
    return (struct mpa_result){
        .rev = 2,
        .enhanced = true,
        .crc = walk_random(w, 2),
        .ext = ext,
        .p2p = true,
        .rtr = MPA_RTR_WRITE,
        .ird = DEPTH,
        .ord = 1 + (uint16_t)walk_random(w, DEPTH),
    };
}

static void connect_link(struct walk *w, unsigned link)
{
    struct mpa_result terms = random_terms(w, w->ext);
    assert_int_equal(iwc_stream_mem_pair(streams[link], random_chunk(w), WINDOW), 0);
    for (int s = 0; s < 2; s++) {
        iwc_stream_mem_stream(streams[link][s])->read_ahead = (uint32_t)walk_random(w, 2) * AHEAD;
        struct ibv_qp_init_attr init = walk_qp_attr(w, link, s);
        walk_add_qp(w, link, s, ibv_create_qp(w->end[s].pd, &init));
        struct ibv_qp *qp = w->side[link][s].qp;
        to_init(qp);
        memcpy(new[link][s], iw_qp(qp), sizeof(struct iw_qp));
        still_link(qp, iwc_stream_mem_stream(streams[link][s]), &terms, s == 1);
    }
}

/** Either side first; then both run until their streams are gone. */
static void disconnect_link(struct walk *w, unsigned link, bool abrupt)
{
    int first = (int)walk_random(w, 2);
    struct iw_qp *a = iw_qp(w->side[link][0].qp), *b = iw_qp(w->side[link][1].qp);
    iw_qp_close(iw_qp(w->side[link][first].qp), abrupt);
    for (int i = 0; i < 10000000 && (a->tx.linked || b->tx.linked); i++) {
        run_side(w, link, (int)walk_random(w, 2));
        for (int s = 0; s < 2; s++) { /* a FIN that waits for receives waits for its time */
            struct iw_qp *qp = iw_qp(w->side[link][s].qp);
            if (qp->rx.fin_seen)
                iw_qp_expired(qp, qp->rx.awaits);
        }
    }
    assert_false(a->tx.linked || b->tx.linked);
    still_unlink(&a->pub);
    still_unlink(&b->pub);
}

/** @p settled: everything has its end before the connections have. */
static void walk(bool settled)
{
    uint64_t steps;
    struct walk *w = walk_new(STEPS, &steps);
    still_seed(w->seed);
    w->move = move;
    w->ext = walk_random(w, 4) != 0;
    iw_direct_least = 1 + walk_random(w, 500); /* Sends have no more than 1024 bytes */
    struct ibv_context *ctx[2] = {still_open(), still_open()};
    assert_non_null(ctx[0]);
    assert_non_null(ctx[1]);
    walk_open(w, ctx[0], ctx[1]);
    for (unsigned i = 0; i < w->links; i++)
        connect_link(w, i);
    for (int i = 0; i < ROUNDS; i++) {
        walk_run(w, steps / ROUNDS);
        walk_settle(w);
    }
    if (!settled)
        walk_run(w, steps / ROUNDS / 2);
    walk_say(w);
    for (unsigned i = 0; i < w->links; i++)
        disconnect_link(w, i, !settled && walk_random(w, 2));
    walk_end(w);
    for (unsigned i = 0; i < w->links; i++) {
        expect_as_new(w->side[i][0].qp, new[i][0]);
        expect_as_new(w->side[i][1].qp, new[i][1]);
        assert_int_equal(ibv_destroy_qp(w->side[i][0].qp), 0);
        assert_int_equal(ibv_destroy_qp(w->side[i][1].qp), 0);
        iwc_stream_mem_free(streams[i]);
    }
    walk_close(w);
    assert_int_equal(ibv_close_device(ctx[0]), 0);
    assert_int_equal(ibv_close_device(ctx[1]), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_the_end),
        cmocka_unit_test(cut_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
