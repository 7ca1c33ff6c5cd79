/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side that a fuzzer's bytes hit: a QP with registered memory of every kind, and a program that
 * posts what the input says. It knows which bytes may change and how often each work request may
 * complete, and checks it.
 */
#ifndef ANYWARP_TESTS_VICTIM_H
#define ANYWARP_TESTS_VICTIM_H

#include "engine/still.h"
#include "fuzz/fuzz.h"

enum victim_region {
    VICTIM_ALL,     /* every right */
    VICTIM_LOCAL,   /* no remote right */
    VICTIM_READ,    /* remote read only */
    VICTIM_WRITE,   /* remote write only; zero-based */
    VICTIM_FOREIGN, /* every right, in another protection domain */
    VICTIM_GONE,    /* had every right, is deregistered */
    VICTIM_BELOW,   /* no remote right; a window is bound to a part of it */
    VICTIM_TOP,     /* ends where the tagged offset does */
    VICTIM_REGIONS,
    VICTIM_WINDOW = VICTIM_REGIONS,
    VICTIM_KEYS /* and from here on no key at all */
};

#define VICTIM_BYTES  6000 /* of a region: more than is gathered in place */
#define VICTIM_PAGE   8192
#define VICTIM_ARENA  ((VICTIM_REGIONS + 1) * VICTIM_PAGE)
#define VICTIM_SECRET 0xee /* fills what nobody may read */
#define VICTIM_WRS    32   /* each way */

struct victim {
    struct ibv_pd *pd, *other;
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* NULL: receives go to the QP */
    struct ibv_qp *qp;
    struct ibv_mr *mr[VICTIM_REGIONS];
    uint32_t key[VICTIM_KEYS];
    uint64_t base[VICTIM_KEYS]; /* tagged offset of the first byte */
    struct ibv_mw *mw;
    struct {
        unsigned posted;
        uint8_t done[256];
        bool signaled[256];
        int last;    /* the newest that completed */
        bool failed; /* one did not succeed: no later one may */
    } sends, recvs;
    uint8_t may_change[VICTIM_ARENA]; /* true or false */
    uint8_t expect[VICTIM_ARENA];     /* where it may not */
};

void victim_open(struct victim *v, bool shared_receives);

/** The key that the low bits of @p which mean, and the base that goes with it. */
uint32_t victim_key(const struct victim *v, uint8_t which, uint64_t *base);

/* What the program does, each with arguments from the input. */
void victim_recv(struct victim *v, struct fuzz_in *in);
void victim_send(struct victim *v, struct fuzz_in *in);
void victim_dereg(struct victim *v, uint8_t which);

/** Takes what has completed. */
void victim_poll(struct victim *v);

/** The QP has no stream any more: checks all promises and destroys everything. */
void victim_close(struct victim *v);

#endif
