/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions between ibv_poll_cq() and a program that may also ask how many there are, or want to
 * be told when there are so many. The caller locks.
 */
#ifndef ANYWARP_COMPAT_FIFO_H
#define ANYWARP_COMPAT_FIFO_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct wc_fifo {
    struct ibv_cq *cq;
    struct ibv_wc *ring; /* grows, by doubling */
    uint32_t size, head, count;
    uint64_t pulled; /* ever taken from the CQ */
};

/**
 * Moves completions from the CQ until at least `until` are here, or it has no more.
 * @return how many are here; negative errno: -ENOMEM, what ibv_poll_cq() says
 */
int fifo_pull(struct wc_fifo *f, uint32_t until);

/**
 * The oldest completions, first those that are here, then those of the CQ.
 * @return how many; fewer than n: there are no more; negative errno if there is none because the CQ
 * has failed
 */
int fifo_poll(struct wc_fifo *f, int n, struct ibv_wc *wc);

void fifo_fini(struct wc_fifo *f);

#endif
