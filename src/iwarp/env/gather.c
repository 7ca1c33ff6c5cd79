/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/gather.h"

#include "env/guard.h"

#include <string.h>

struct copy {
    uint8_t *to;
    size_t skip, len;
    const struct iovec *iov;
};

static void copy(void *arg)
{
    const struct copy *c = arg;
    const struct iovec *v = c->iov;
    size_t part, skip = c->skip;
    while (skip >= v->iov_len)
        skip -= v++->iov_len;
    for (size_t at = 0; at < c->len; at += part, v++, skip = 0) {
        part = v->iov_len - skip < c->len - at ? v->iov_len - skip : c->len - at;
        memcpy(c->to + at, (const uint8_t *)v->iov_base + skip, part);
    }
}

bool iw_gather(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n)
{
    struct copy c = {.to = to, .skip = skip, .len = len, .iov = iov};
    return !len || !iw_guarded(copy, &c, iov, n);
}
