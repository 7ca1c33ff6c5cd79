/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, of type 1. */
#include "al/access.h"
#include "al/mr.h"
#include "al/pd.h"
#include "al/qp.h"
#include "al/status.h"
#include "al/work.h"

#include <errno.h>
#include <stdlib.h>

struct al_mw {
    struct al_object
        o; /* the parent is a struct al_pd; the one hold is the region it is bound to */
    pthread_mutex_t lock;
    struct ibv_mw *verbs; /* its rkey, the lock */
};

static void release(struct al_object *o)
{
    struct al_mw *mw = container_of(o, struct al_mw, o);
    if (mw->verbs)
        ibv_dealloc_mw(mw->verbs);
    pthread_mutex_destroy(&mw->lock);
}

static const struct al_kind kind = {
    .type = AL_MW,
    .invalid = IB_INVALID_MW_HANDLE,
    .anywhere = true,
    .release = release,
};

static ib_api_status_t create(struct al_pd *pd, net32_t *rkey, ib_mw_handle_t *handle)
{
    if (!rkey || !handle)
        return IB_INVALID_PARAMETER;
    struct al_mw *mw = calloc(1, sizeof *mw);
    if (mw)
        pthread_mutex_init(&mw->lock, NULL);
    ib_api_status_t status = al_add(mw ? &mw->o : NULL, &kind, &pd->o, NULL);
    if (status != IB_SUCCESS)
        return status;
    mw->verbs = ibv_alloc_mw(pd->verbs, IBV_MW_TYPE_1);
    if (!mw->verbs) {
        status = al_status(errno, IB_INSUFFICIENT_RESOURCES);
        al_fail(&mw->o);
        return status;
    }
    *rkey = CL_HTON32(mw->verbs->rkey);
    *handle = mw->o.handle;
    al_put(&mw->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_create_mw(const ib_pd_handle_t h_pd, net32_t *const p_rkey,
                             ib_mw_handle_t *const ph_mw)
{
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    ib_api_status_t status = create(pd, p_rkey, ph_mw);
    al_put(&pd->o);
    return status;
}

ib_api_status_t ib_query_mw(const ib_mw_handle_t h_mw, ib_pd_handle_t *const ph_pd,
                            net32_t *const p_rkey)
{
    struct al_mw *mw = al_get(&kind, h_mw);
    if (!mw)
        return IB_INVALID_MW_HANDLE;
    bool ok = ph_pd && p_rkey;
    if (ok) {
        *ph_pd = mw->o.parent->handle;
        pthread_mutex_lock(&mw->lock);
        *p_rkey = CL_HTON32(mw->verbs->rkey);
        pthread_mutex_unlock(&mw->lock);
    }
    al_put(&mw->o);
    return ok ? IB_SUCCESS : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_destroy_mw(const ib_mw_handle_t h_mw)
{
    return al_destroy(&kind, h_mw, ib_sync_destroy);
}

/* ---- bind ---- */

static ib_api_status_t check_region(struct al_mr *mr, const ib_bind_wr_t *how,
                                    struct ibv_mw_bind *bind)
{
    pthread_mutex_lock(&mr->lock);
    uint64_t begin = (uintptr_t)mr->verbs->addr, length = mr->verbs->length;
    ib_access_t access = mr->access;
    bind->bind_info.mr = mr->verbs;
    pthread_mutex_unlock(&mr->lock);
    if (!(access & IB_AC_MW_BIND) ||
        (how->access_ctrl & (IB_AC_RDMA_WRITE | IB_AC_ATOMIC) && !(access & IB_AC_LOCAL_WRITE)))
        return IB_INVALID_PERMISSION;
    if (how->local_ds.vaddr < begin || how->local_ds.vaddr - begin > length ||
        how->local_ds.length > length - (how->local_ds.vaddr - begin))
        return IB_INVALID_PARAMETER;
    return IB_SUCCESS;
}

static ib_api_status_t bind_locked(struct al_mw *mw, struct al_qp *qp, struct al_mr *mr,
                                   const ib_bind_wr_t *how, net32_t *rkey)
{
    struct ibv_mw_bind bind = {
        .wr_id = how->wr_id,
        .send_flags = al_send_flags(how->send_opt),
        .bind_info =
            {
                .addr = mr ? how->local_ds.vaddr : 0,
                .length = how->local_ds.length,
                .mw_access_flags = mr ? (unsigned)al_access_to_verbs(how->access_ctrl) : 0,
            },
    };
    if (how->current_rkey != CL_HTON32(mw->verbs->rkey))
        return IB_INVALID_RKEY;
    if (how->access_ctrl & ~(ib_access_t)AL_AC_REMOTE)
        return IB_UNSUPPORTED;
    ib_api_status_t status = mr ? check_region(mr, how, &bind) : IB_SUCCESS;
    if (status != IB_SUCCESS)
        return status;
    struct al_object *before = mw->o.holds[0];
    if (before)
        al_hold(before);
    if (!al_depend(&mw->o, 0, mr ? &mr->o : NULL)) {
        status = IB_INVALID_MR_HANDLE;
    } else {
        int error = ibv_bind_mw(qp->verbs, mw->verbs, &bind);
        if (error) {
            status = al_post_status(error, qp);
            al_depend(&mw->o, 0, before);
        } else {
            *rkey = CL_HTON32(mw->verbs->rkey);
        }
    }
    if (before)
        al_put(before);
    return status;
}

/* A length of 0 takes the window from its region. */
static ib_api_status_t bind_with(struct al_mw *mw, struct al_qp *qp, const ib_bind_wr_t *how,
                                 net32_t *rkey)
{
    if (!how || !rkey)
        return IB_INVALID_PARAMETER;
    if (qp->o.parent != mw->o.parent)
        return IB_INVALID_QP_HANDLE;
    struct al_mr *mr = how->local_ds.length ? al_get(&al_mr_kind, how->h_mr) : NULL;
    ib_api_status_t status = IB_SUCCESS;
    if (how->local_ds.length && (!mr || mr->o.parent != mw->o.parent))
        status = IB_INVALID_MR_HANDLE;
    if (status == IB_SUCCESS) {
        pthread_mutex_lock(&mw->lock);
        status = bind_locked(mw, qp, mr, how, rkey);
        pthread_mutex_unlock(&mw->lock);
    }
    if (mr)
        al_put(&mr->o);
    return status;
}

ib_api_status_t ib_bind_mw(const ib_mw_handle_t h_mw, const ib_qp_handle_t h_qp,
                           ib_bind_wr_t *const p_mw_bind, net32_t *const p_rkey)
{
    struct al_mw *mw = al_get(&kind, h_mw);
    if (!mw)
        return IB_INVALID_MW_HANDLE;
    struct al_qp *qp = al_get(&al_qp_kind, h_qp);
    ib_api_status_t status = qp ? bind_with(mw, qp, p_mw_bind, p_rkey) : IB_INVALID_QP_HANDLE;
    if (qp)
        al_put(&qp->o);
    al_put(&mw->o);
    return status;
}
