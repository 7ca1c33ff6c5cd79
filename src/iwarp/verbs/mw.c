/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows. Those of type 2 are bound by posting: qp/tx_queue.c, qp_ex.c. */
#include "mem/mw.h"
#include "advice/life.h"
#include "faults/chaos.h"
#include "faults/like.h"
#include "qp/qp.h"
#include "verbs/export.h"
#include "verbs/ops.h"

struct ibv_mw *op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    int r = iw_like_mw();
    if (r)
        return null_errno(r);
    if (iw_chaos(IW_FAULT_ALLOC_MW, NULL))
        return null_errno(ENOMEM);
    struct iw_mw *mw = iw_mw_alloc(iw_pd(pd), type);
    if (!mw)
        return NULL;
    iw_life_begin(&mw->pub, "memory window");
    return &mw->pub;
}

int op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    if (iw_chaos(IW_FAULT_BIND_MW, NULL))
        return ENOMEM;
    return iw_post_bind(iw_qp(qp), iw_mw(mw), bind);
}

int op_dealloc_mw(struct ibv_mw *mw)
{
    int r = iw_life_over(mw, "ibv_dealloc_mw");
    if (!r)
        iw_mw_dealloc(iw_mw(mw));
    return r;
}
