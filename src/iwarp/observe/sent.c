/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/sent.h"

#include "env/guard.h"

struct sent {
    const struct iovec *iov;
    size_t len;
    void (*see)(void *arg, const uint8_t *p, size_t len);
    void *arg;
};

static void show(void *arg)
{
    const struct sent *s = arg;
    const struct iovec *v = s->iov;
    for (size_t left = s->len; left > 0; v++) {
        size_t part = v->iov_len < left ? v->iov_len : left;
        s->see(s->arg, v->iov_base, part);
        left -= part;
    }
}

bool iw_sent_show(const struct iovec *iov, unsigned n, size_t len,
                  void (*see)(void *arg, const uint8_t *p, size_t len), void *arg)
{
    struct sent s = {.iov = iov, .len = len, .see = see, .arg = arg};
    return !iw_guarded(show, &s, iov, n);
}
