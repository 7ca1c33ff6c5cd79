/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_scatter.h"

#include "advice/placed.h"
#include "common/sanitizer.h"
#include "env/guard.h"
#include "qp/explain.h"

#include <string.h>

struct placing {
    struct iovec dst;
    const uint8_t *src;
};

typedef uint64_t __attribute__((may_alias)) word;
typedef uint32_t __attribute__((may_alias)) half;

#ifdef ANYWARP_TSAN /* to which the last byte, which a program acquires, is not the word's */
#define LARGEST 1
#else
#define LARGEST sizeof(word)
#endif

static bool ends_in(const uint8_t *end, size_t len, size_t size)
{
    return size <= LARGEST && len >= size && (uintptr_t)end % size == 0;
}

/** A program may wait for the last byte, or the counter that it belongs to, by looking at it. */
static void place(void *arg)
{
    const struct placing *p = arg;
    size_t len = p->dst.iov_len;
    uint8_t *end = (uint8_t *)p->dst.iov_base + len;
    const uint8_t *src_end = p->src + len;
    if (ends_in(end, len, sizeof(word))) {
        word w;
        memcpy(end - len, p->src, len - sizeof(w));
        memcpy(&w, src_end - sizeof(w), sizeof(w));
        __atomic_store_n((word *)end - 1, w, __ATOMIC_RELEASE);
    } else if (ends_in(end, len, sizeof(half))) {
        half h;
        memcpy(end - len, p->src, len - sizeof(h));
        memcpy(&h, src_end - sizeof(h), sizeof(h));
        __atomic_store_n((half *)end - 1, h, __ATOMIC_RELEASE);
    } else {
        memcpy(end - len, p->src, len - 1);
        __atomic_store_n(end - 1, src_end[-1], __ATOMIC_RELEASE);
    }
}

bool iw_place(uint8_t *dst, const uint8_t *src, size_t len)
{
    struct placing p = {.dst = {.iov_base = dst, .iov_len = len}, .src = src};
    iw_placed(dst, len);
    bool placed = len == 0 || !iw_guarded(place, &p, &p.dst, 1);
    iw_placed(dst, len);
    return placed;
}

enum iw_err iw_scatter(struct iw_qp *qp, enum iw_use use, const struct ibv_sge *sge, uint32_t nsge,
                       uint64_t offset, const uint8_t *src, size_t len)
{
    enum iw_err err = IW_OK;
    iw_copy_begin(iw_region_pd(&qp->accessor, use));
    for (uint32_t k = 0; k < nsge && len && !err; k++) {
        if (offset >= sge[k].length) {
            offset -= sge[k].length;
            continue;
        }
        size_t n = sge[k].length - offset;
        if (n > len)
            n = len;
        uint8_t *p;
        if (iw_region_check(sge[k].lkey, &qp->accessor, use, sge[k].addr + offset, n, &p)) {
            err = IW_ERR_LOCAL_SINK;
            iw_qp_explain_sge(qp, err, use, sge, k, nsge, offset, n);
        }
        if (p && !iw_place(p, src, n)) {
            err = IW_ERR_LOCAL_GONE;
            iw_qp_explain_sge(qp, err, use, sge, k, nsge, offset, n);
        }
        src += n;
        len -= n;
        offset = 0;
    }
    iw_copy_end();
    return err;
}

uint64_t iw_sge_bytes(const struct ibv_sge *sge, uint32_t nsge)
{
    uint64_t n = 0;
    for (uint32_t k = 0; k < nsge; k++)
        n += sge[k].length;
    return n;
}
