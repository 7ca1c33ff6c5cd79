/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A random walk through the verbs. Two ends with some connected QPs each post whatever is legal,
 * and a model says what has to come of it: each completion with its fields and in its order, each
 * byte of memory, and what has to be visible when. The model forbids what the standards leave open,
 * and nothing else: see memory.h, and what post.c keeps apart.
 *
 * The public API only; how QPs are connected and what moves them is the test's business. A seed
 * gives the same walk again as far as the moves are the same. ANYWARP_WALK_SEED and
 * ANYWARP_WALK_STEPS are for that, and for longer walks.
 */
#ifndef ANYWARP_TESTS_WALK_H
#define ANYWARP_TESTS_WALK_H

#include "walk/memory.h"

#include <time.h>

#define WALK_LINKS_MAX 6
#define WALK_SEND_WR   48
#define WALK_RECV_WR   16
#define WALK_SGE       4
#define WALK_INLINE    200
#define WALK_MESSAGE   1024 /* bytes of the longest Send; every receive has room for it */
#define WALK_OPS       1024 /* places for work requests that are not over in every respect */
#define WALK_GRANTS    3

/** A key for a part of a side's memory, given to the peer and taken away again. */
struct walk_grant {
    enum { GRANT_NONE, GRANT_COMING, GRANT_GIVEN, GRANT_GOING } state;
    struct ibv_mw *window; /* bound by a work request; NULL: a region of its own */
    struct ibv_mr *mr;
    uint32_t key;
    struct range range;
    unsigned used; /* work requests of the peer that may still use it */
};

/** A work request for the send queue. */
struct walk_op {
    struct ibv_send_wr wr;
    struct ibv_sge sge[WALK_SGE];
    struct range local[WALK_SGE], remote;
    unsigned nlocal;
    bool locals_held, remote_held; /* in use still */
    bool unheard;                  /* a message that was not received yet */
    struct walk_grant *grant;      /* whose key it uses, binds, or takes away */
    uint8_t *data;                 /* of a message, until it is received */
    uint32_t len;
};

struct walk_recv {
    bool posted;
    unsigned n;
    struct range range[WALK_SGE];
};

/** Receives, in the order of posting: of one QP or of an SRQ. */
struct walk_queue {
    struct memory *memory;
    struct ibv_srq *srq;
    struct walk_recv recv[WALK_RECV_WR];
    unsigned posted, taken; /* so far; an SRQ's may complete out of order */
};

/** One QP of a link. */
struct walk_side {
    struct walk *walk;
    struct ibv_qp *qp;
    uint32_t qp_num; /* what is told of it may come behind its end */
    struct walk_side *peer;
    struct memory memory;
    struct walk_queue own, *queue;
    struct walk_grant grant[WALK_GRANTS];
    struct walk_op op[WALK_OPS];
    uint64_t next, done, over; /* next to post; oldest not completed; oldest that is not over */
    uint64_t heard;            /* the next that may be the message that the peer hears of */
    unsigned unsignaled;       /* in a row */
    uint64_t good;             /* all before it were a success */
    bool failed;               /* a completion was not a success */
    bool ending;               /* completions may be flushed, and nothing is posted */
    bool purged;               /* reset with completions that nobody had polled */
};

struct walk_end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq[2];
    struct memory shared_memory;
    struct walk_queue shared;
};

struct walk {
    uint64_t seed, state, step;
    uint64_t requests, completions; /* posted to send queues; polled */
    unsigned links, renewed;        /* how often one was connected again */
    bool ext;                       /* Sends may have immediates */
    bool acknowledged;              /* a Write that has completed is placed, as on InfiniBand */
    struct walk_end end[2];
    struct walk_side side[WALK_LINKS_MAX][2];
    void (*move)(struct walk *w, void *arg); /* called again and again: lets things happen */
    int (*poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc); /* ibv_poll_cq(), or instead of it */
    void *arg;
};

/** Seed and steps from the environment, or a seed of the clock; says which. */
struct walk *walk_new(unsigned steps_by_default, uint64_t *steps);

/** Prints how much it was. */
void walk_say(const struct walk *w);

/** 0 to n - 1. */
uint32_t walk_random(struct walk *w, uint32_t n);

/** Makes the ends' objects. */
void walk_open(struct walk *w, struct ibv_context *a, struct ibv_context *b);
/** What to create the QP of side @p s on link @p link with. */
struct ibv_qp_init_attr walk_qp_attr(struct walk *w, unsigned link, int s);
void walk_add_qp(struct walk *w, unsigned link, int s, struct ibv_qp *qp);

/** All QPs are there and connected: walks so many steps. */
void walk_run(struct walk *w, uint64_t steps);
/** Lets everything finish, then checks all memory. */
void walk_settle(struct walk *w);

/** The connection of a link is about to end, whatever is under way: nothing is posted any more. */
void walk_ending(struct walk *w, unsigned link);
/** The QP is in ERR, or on its way: every work request has completed, or does now. */
void walk_drain(struct walk_side *s);
/** Its completions are gone with it. Not with a SRQ: nobody knows which receives it has taken. */
void walk_purge(struct walk_side *s);
/**
 * The QPs of a link are reset, or others instead: receives and windows are gone, and what had not
 * completed, which may have happened, in part, too.
 */
void walk_renew(struct walk *w, unsigned link);

/** All connections are ending: drains. */
void walk_end(struct walk *w);
/** Destroys what walk_open() made; the QPs are gone. Frees @p w. */
void walk_close(struct walk *w);

/* ---- between post.c, walk.c and cut.c ---- */

/** Posts a few work requests, if they can be. */
void walk_post_send(struct walk_side *s);
/** Posts a message that must be received, and be completed: nothing before it is left undone. */
void walk_post_barrier(struct walk_side *s);
void walk_post_recv(struct walk_side *s);

/** Moves and polls; fails if nothing completes for long. @return whether something did */
bool walk_wait_on(struct walk *w, time_t *since);
void walk_grant_is_gone(struct walk *w, struct walk_grant *g);

static inline struct walk_op *walk_op(struct walk_side *s, uint64_t i)
{
    return &s->op[i % WALK_OPS];
}

static inline bool walk_is_message(enum ibv_wr_opcode op)
{
    return op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV ||
           op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static inline bool walk_is_request(enum ibv_wr_opcode op)
{
    return op == IBV_WR_RDMA_READ || op == IBV_WR_ATOMIC_CMP_AND_SWP ||
           op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool walk_is_write(enum ibv_wr_opcode op)
{
    return op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;
}

#define walk_check(w, cond)                                                                        \
    do {                                                                                           \
        if (!(cond))                                                                               \
            fail_msg("ANYWARP_WALK_SEED=%llu, step %llu: not true: %s",                            \
                     (unsigned long long)(w)->seed, (unsigned long long)(w)->step, #cond);         \
    } while (0)

#endif
