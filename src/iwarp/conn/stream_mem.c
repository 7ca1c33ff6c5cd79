/* SPDX-License-Identifier: BSD-2-Clause */
/* Two byte streams joined in memory, for tests. */
#include "conn/stream_mem.h"
#include "common/list.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define EMSS 1460

/** What one end sends: a ring that the other end reads. */
struct iwc_stream_mem {
    struct iwc_stream base;
    struct iwc_stream_mem *peer;
    size_t chunk, window;
    size_t used, head; /* bytes in the ring, place of the oldest */
    uint64_t sent;     /* stream offset of the next byte */
    uint64_t corrupt_at;
    uint8_t corrupt_mask;
    bool fin;    /* nothing follows */
    bool closed; /* this end is gone */
    bool reset;  /* ... and told its peer so */
    uint8_t ring[];
};

static struct iwc_stream_mem *mem_of(struct iwc_stream *s)
{
    return container_of(s, struct iwc_stream_mem, base);
}

static ssize_t mem_recvv(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct iwc_stream_mem *m = mem_of(s), *from = m->peer;
    size_t given = 0;

    if (from->reset)
        return -ECONNRESET;
    for (unsigned i = 0; i < n; i++) {
        uint8_t *p = iov[i].iov_base;
        for (size_t j = 0; j < iov[i].iov_len && given < from->chunk && from->used > 0; j++) {
            p[j] = from->ring[from->head];
            from->head = (from->head + 1) % from->window;
            from->used--;
            given++;
        }
    }
    return given > 0 || from->fin ? (ssize_t)given : -EAGAIN;
}

static ssize_t mem_recv(struct iwc_stream *s, void *buf, size_t len)
{
    return mem_recvv(s, &(struct iovec){.iov_base = buf, .iov_len = len}, 1);
}

static ssize_t mem_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct iwc_stream_mem *m = mem_of(s);
    size_t taken = 0;

    if (m->peer->reset)
        return -ECONNRESET;
    if (m->fin || m->peer->closed)
        return -EPIPE;
    for (unsigned i = 0; i < n; i++) {
        const uint8_t *p = iov[i].iov_base;
        for (size_t j = 0; j < iov[i].iov_len; j++) {
            if (taken == m->chunk || m->used == m->window)
                return taken > 0 ? (ssize_t)taken : -EAGAIN;
            uint8_t flip = m->sent == m->corrupt_at ? m->corrupt_mask : 0;
            m->ring[(m->head + m->used) % m->window] = p[j] ^ flip;
            m->used++;
            m->sent++;
            taken++;
        }
    }
    return taken;
}

static void mem_shutdown(struct iwc_stream *s)
{
    mem_of(s)->fin = true;
}

static void mem_close(struct iwc_stream *s, int reset)
{
    struct iwc_stream_mem *m = mem_of(s);
    m->fin = m->closed = true;
    m->reset = reset;
}

static int mem_error(struct iwc_stream *s)
{
    return mem_of(s)->peer->reset ? -ECONNRESET : 0;
}

static uint32_t mem_emss(struct iwc_stream *s)
{
    (void)s;
    return EMSS;
}

static const struct iwc_stream_ops mem_ops = {
    .recv = mem_recv,
    .recvv = mem_recvv,
    .send = mem_send,
    .shutdown = mem_shutdown,
    .close = mem_close,
    .error = mem_error,
    .emss = mem_emss,
};

int iwc_stream_mem_pair(struct iwc_stream_mem *pair[2], size_t chunk, size_t window)
{
    for (int i = 0; i < 2; i++) {
        pair[i] = calloc(1, sizeof(*pair[i]) + window);
        if (!pair[i]) {
            if (i == 1)
                free(pair[0]);
            return -ENOMEM;
        }
        pair[i]->base.ops = &mem_ops;
        pair[i]->chunk = chunk;
        pair[i]->window = window;
    }
    pair[0]->peer = pair[1];
    pair[1]->peer = pair[0];
    return 0;
}

void iwc_stream_mem_free(struct iwc_stream_mem *pair[2])
{
    free(pair[0]);
    free(pair[1]);
}

struct iwc_stream *iwc_stream_mem_stream(struct iwc_stream_mem *s)
{
    return &s->base;
}

void iwc_stream_mem_chunk(struct iwc_stream_mem *s, size_t chunk)
{
    s->chunk = chunk;
}

void iwc_stream_mem_corrupt(struct iwc_stream_mem *s, uint64_t at, uint8_t mask)
{
    s->corrupt_at = at;
    s->corrupt_mask = mask;
}
