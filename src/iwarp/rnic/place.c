/* SPDX-License-Identifier: BSD-2-Clause */
#include "rnic/place.h"

#include "rnic/qp_explain.h"

#include <string.h>

void iw_place(uint8_t *dst, const uint8_t *src, size_t len)
{
    if (len == 0)
        return;
    memcpy(dst, src, len - 1);
    __atomic_store_n(dst + len - 1, src[len - 1], __ATOMIC_RELEASE);
}

enum iw_err iw_scatter(struct iw_qp *qp, enum iw_use use, const struct ibv_sge *sge, uint32_t nsge,
                       uint64_t offset, const uint8_t *src, size_t len)
{
    enum iw_err err = IW_OK;
    iw_copy_begin(iw_region_pd(qp, use));
    for (uint32_t k = 0; k < nsge && len && !err; k++) {
        if (offset >= sge[k].length) {
            offset -= sge[k].length;
            continue;
        }
        size_t n = sge[k].length - offset;
        if (n > len)
            n = len;
        uint8_t *p;
        if (iw_region_check(sge[k].lkey, qp, use, sge[k].addr + offset, n, &p)) {
            err = IW_ERR_LOCAL_SINK;
            iw_qp_explain_sge(qp, err, use, sge, k, nsge, offset, n);
        }
        if (p)
            iw_place(p, src, n);
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
