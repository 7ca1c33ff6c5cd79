/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/batch.h"

#include "conn/tx.h"

#include <assert.h>
#include <string.h>

void iwc_batch_init(struct iwc_batch *b, size_t limit)
{
    b->limit = limit;
    b->first = b->niov = 0;
    b->unsent = b->copied = 0;
    b->gathered = false;
}

void iwc_batch_push(struct iwc_batch *b, const void *p, size_t len)
{
    struct iovec *end = &b->iov[b->niov];

    b->unsent += len;
    if (b->niov > b->first && (const char *)end[-1].iov_base + end[-1].iov_len == p) {
        end[-1].iov_len += len;
    } else {
        *end = (struct iovec){.iov_base = (void *)p, .iov_len = len};
        b->niov++;
    }
}

void iwc_batch_copy(struct iwc_batch *b, const struct iwc_batch *from)
{
    assert(from->unsent <= sizeof(b->copy)); /* IWC_BATCH_LIMIT and one FPDU */
    iwc_batch_init(b, from->limit);
    for (unsigned i = from->first; i < from->niov; i++) {
        const struct iovec *v = &from->iov[i];
        uint8_t *dst = b->copy + b->copied;
        memcpy(dst, v->iov_base, v->iov_len);
        iwc_batch_push(b, dst, v->iov_len);
        b->copied += v->iov_len;
    }
}

/** Drops the @p n bytes that the stream took. */
static void consume(struct iwc_batch *b, size_t n)
{
    b->unsent -= n;
    while (n > 0 && n >= b->iov[b->first].iov_len)
        n -= b->iov[b->first++].iov_len;
    if (n > 0) {
        struct iovec *v = &b->iov[b->first];
        v->iov_base = (char *)v->iov_base + n;
        v->iov_len -= n;
    }
}

int iwc_tx_send(struct iwc_tx *tx, struct iwc_batch *b, struct iwc_stream *s)
{
    while (b->unsent > 0) {
        ssize_t n = s->ops->send(s, b->iov + b->first, b->niov - b->first);
        if (n < 0)
            return n;
        tx->sent_pos += n;
        consume(b, n);
    }
    iwc_batch_init(b, b->limit);
    return 0;
}
