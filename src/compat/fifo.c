/* SPDX-License-Identifier: BSD-2-Clause */
#include "compat/fifo.h"

#include <errno.h>
#include <stdlib.h>

static int grow(struct wc_fifo *f)
{
    uint32_t size = f->size ? f->size * 2 : 16;
    struct ibv_wc *ring = calloc(size, sizeof *ring);
    if (!ring)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->count; i++)
        ring[i] = f->ring[(f->head + i) & (f->size - 1)];
    free(f->ring);
    f->ring = ring;
    f->size = size;
    f->head = 0;
    return 0;
}

int fifo_pull(struct wc_fifo *f, uint32_t until)
{
    while (f->count < until) {
        int n = f->count == f->size ? grow(f) : 0;
        if (n < 0)
            return n;
        uint32_t tail = (f->head + f->count) & (f->size - 1);
        uint32_t room = tail < f->head ? f->head - tail : f->size - tail;
        n = ibv_poll_cq(f->cq, (int)room, &f->ring[tail]);
        if (n <= 0)
            return n < 0 ? n : (int)f->count;
        f->count += (uint32_t)n;
        f->pulled += (uint32_t)n;
    }
    return (int)f->count;
}

int fifo_poll(struct wc_fifo *f, int n, struct ibv_wc *wc)
{
    int done = 0;
    for (; done < n && f->count > 0; done++) {
        wc[done] = f->ring[f->head];
        f->head = (f->head + 1) & (f->size - 1);
        f->count--;
    }
    if (done == n)
        return done;
    int more = ibv_poll_cq(f->cq, n - done, wc + done);
    if (more > 0) {
        f->pulled += (uint32_t)more;
        return done + more;
    }
    return more < 0 && done == 0 ? more : done;
}

void fifo_fini(struct wc_fifo *f)
{
    free(f->ring);
    *f = (struct wc_fifo){0};
}
