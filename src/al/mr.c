/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/mr.h"

#include "al/access.h"
#include "al/pd.h"
#include "al/status.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    struct al_mr *mr = container_of(o, struct al_mr, o);
    if (mr->verbs)
        ibv_dereg_mr(mr->verbs);
    al_shared_put(&mr->shared);
    pthread_mutex_destroy(&mr->lock);
}

const struct al_kind al_mr_kind = {
    .type = AL_MR,
    .invalid = IB_INVALID_MR_HANDLE,
    .anywhere = true,
    .release = release,
};

/* Where the program wants the results; none of them NULL. */
struct results {
    net32_t *lkey, *rkey;
    ib_mr_handle_t *handle;
};

static void tell_keys(const struct ibv_mr *mr, const struct results *to)
{
    *to->lkey = CL_HTON32(mr->lkey);
    *to->rkey = CL_HTON32(mr->rkey);
}

/* ---- register ---- */

/* One that has a handle and no keys, and two references. */
static ib_api_status_t new_mr(struct al_pd *pd, ib_access_t access, struct al_mr **mr)
{
    ib_api_status_t status = al_access_check(access);
    if (status != IB_SUCCESS)
        return status;
    struct al_mr *new = calloc(1, sizeof *new);
    if (new) {
        new->access = access;
        new->shared.fd = -1;
        pthread_mutex_init(&new->lock, NULL);
    }
    *mr = new;
    return al_add(new ? &new->o : NULL, &al_mr_kind, &pd->o, NULL);
}

/* The keys of a new one. The caller's reference is gone afterwards; without success, so is it. */
static ib_api_status_t register_it(struct al_mr *mr, struct al_pd *pd, void *addr, uint64_t length,
                                   const struct results *to)
{
    struct ibv_mr *verbs = ibv_reg_mr(pd->verbs, addr, length, al_access_to_verbs(mr->access));
    if (!verbs) {
        ib_api_status_t status = al_status(errno, IB_INVALID_PARAMETER);
        al_fail(&mr->o);
        return status;
    }
    mr->verbs = verbs;
    tell_keys(verbs, to);
    *to->handle = mr->o.handle;
    al_put(&mr->o);
    return IB_SUCCESS;
}

static ib_api_status_t reg_mem(struct al_pd *pd, const ib_mr_create_t *how,
                               const struct results *to)
{
    if (!how || !to->lkey || !to->rkey || !to->handle)
        return IB_INVALID_PARAMETER;
    struct al_mr *mr;
    ib_api_status_t status = new_mr(pd, how->access_ctrl, &mr);
    return status == IB_SUCCESS ? register_it(mr, pd, how->vaddr, how->length, to) : status;
}

ib_api_status_t ib_reg_mem(const ib_pd_handle_t h_pd, const ib_mr_create_t *const p_mr_create,
                           net32_t *const p_lkey, net32_t *const p_rkey,
                           ib_mr_handle_t *const ph_mr)
{
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    struct results to = {p_lkey, p_rkey, ph_mr};
    ib_api_status_t status = reg_mem(pd, p_mr_create, &to);
    al_put(&pd->o);
    return status;
}

static ib_api_status_t reg_shared(struct al_mr *origin, struct al_pd *pd, ib_access_t access,
                                  uint64_t *vaddr, const struct results *to)
{
    if (!vaddr || !to->lkey || !to->rkey || !to->handle)
        return IB_INVALID_PARAMETER;
    struct al_mr *mr;
    ib_api_status_t status = new_mr(pd, access, &mr);
    if (status != IB_SUCCESS)
        return status;
    if (!al_share(&mr->o, &origin->o)) {
        al_fail(&mr->o);
        return IB_INVALID_MR_HANDLE;
    }
    pthread_mutex_lock(&origin->lock);
    void *addr = origin->verbs->addr;
    uint64_t length = origin->verbs->length;
    pthread_mutex_unlock(&origin->lock);
    status = register_it(mr, pd, addr, length, to);
    if (status == IB_SUCCESS)
        *vaddr = (uintptr_t)addr;
    return status;
}

ib_api_status_t ib_reg_shared(const ib_mr_handle_t h_mr, const ib_pd_handle_t h_pd,
                              const ib_access_t access_ctrl, uint64_t *const p_vaddr,
                              net32_t *const p_lkey, net32_t *const p_rkey,
                              ib_mr_handle_t *const ph_mr)
{
    struct al_mr *origin = al_get(&al_mr_kind, h_mr);
    if (!origin)
        return IB_INVALID_MR_HANDLE;
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    struct results to = {p_lkey, p_rkey, ph_mr};
    ib_api_status_t status =
        pd ? reg_shared(origin, pd, access_ctrl, p_vaddr, &to) : IB_INVALID_PD_HANDLE;
    if (pd)
        al_put(&pd->o);
    al_put(&origin->o);
    return status;
}

static ib_api_status_t reg_shmid(struct al_pd *pd, const uint8_t *shmid, const ib_mr_create_t *how,
                                 uint64_t *vaddr, const struct results *to)
{
    if (!shmid || !how || !vaddr || !to->lkey || !to->rkey || !to->handle || how->length == 0)
        return IB_INVALID_PARAMETER;
    struct al_mr *mr;
    ib_api_status_t status = new_mr(pd, how->access_ctrl, &mr);
    if (status != IB_SUCCESS)
        return status;
    int error = al_shared_get(&mr->shared, shmid, how->length, how->vaddr);
    if (error) {
        al_fail(&mr->o);
        return error == EEXIST ? IB_INVALID_SETTING : al_status(error, IB_INSUFFICIENT_RESOURCES);
    }
    uint64_t addr = (uintptr_t)mr->shared.memory;
    status = register_it(mr, pd, mr->shared.memory, how->length, to);
    if (status == IB_SUCCESS)
        *vaddr = addr;
    return status;
}

ib_api_status_t ib_reg_shmid(const ib_pd_handle_t h_pd, const ib_shmid_t shmid,
                             const ib_mr_create_t *const p_mr_create, uint64_t *const p_vaddr,
                             net32_t *const p_lkey, net32_t *const p_rkey,
                             ib_mr_handle_t *const ph_mr)
{
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    struct results to = {p_lkey, p_rkey, ph_mr};
    ib_api_status_t status = reg_shmid(pd, shmid, p_mr_create, p_vaddr, &to);
    al_put(&pd->o);
    return status;
}

/* A program knows no physical addresses. */
ib_api_status_t ib_reg_phys(const ib_pd_handle_t h_pd, const ib_phys_create_t *const p_phys_create,
                            uint64_t *const p_vaddr, net32_t *const p_lkey, net32_t *const p_rkey,
                            ib_mr_handle_t *const ph_mr)
{
    if (!al_is(&al_pd_kind, h_pd))
        return IB_INVALID_PD_HANDLE;
    return p_phys_create && p_vaddr && p_lkey && p_rkey && ph_mr ? IB_UNSUPPORTED
                                                                 : IB_INVALID_PARAMETER;
}

/* ---- change ---- */

static int rereg_verbs(struct al_mr *mr, const struct al_pd *pd, ib_mr_mod_t mask,
                       const ib_mr_create_t *how)
{
    bool moves = mask & IB_MR_MOD_ADDR, access = mask & IB_MR_MOD_ACCESS;
    int flags = pd ? IBV_REREG_MR_CHANGE_PD : 0;
    flags |= moves ? IBV_REREG_MR_CHANGE_TRANSLATION : 0;
    flags |= access ? IBV_REREG_MR_CHANGE_ACCESS : 0;
    return ibv_rereg_mr(mr->verbs, flags, pd ? pd->verbs : NULL, moves ? how->vaddr : NULL,
                        moves ? how->length : 0, access ? al_access_to_verbs(how->access_ctrl) : 0);
}

static ib_api_status_t rereg_locked(struct al_mr *mr, struct al_pd *pd, ib_mr_mod_t mask,
                                    const ib_mr_create_t *how)
{
    struct al_object *before = mr->o.parent;
    al_hold(before);
    ib_api_status_t status = pd && !al_adopt(&mr->o, &pd->o) ? IB_INVALID_PD_HANDLE : IB_SUCCESS;
    if (status == IB_SUCCESS && rereg_verbs(mr, pd, mask, how) != 0) {
        status = al_status(errno, IB_INVALID_SETTING);
        if (pd)
            al_adopt(&mr->o, before);
    } else if (status == IB_SUCCESS && mask & IB_MR_MOD_ACCESS) {
        mr->access = how->access_ctrl;
    }
    al_put(before);
    return status;
}

static ib_api_status_t rereg(struct al_mr *mr, ib_mr_mod_t mask, const ib_mr_create_t *how,
                             const struct results *to, ib_pd_handle_t h_pd)
{
    const ib_mr_mod_t all = IB_MR_MOD_ADDR | IB_MR_MOD_PD | IB_MR_MOD_ACCESS;
    if (!to->lkey || !to->rkey || !mask || mask & ~all || (!how && mask != IB_MR_MOD_PD))
        return IB_INVALID_PARAMETER;
    ib_api_status_t status =
        mask & IB_MR_MOD_ACCESS ? al_access_check(how->access_ctrl) : IB_SUCCESS;
    if (status != IB_SUCCESS)
        return status;
    struct al_pd *pd = mask & IB_MR_MOD_PD ? al_get(&al_pd_kind, h_pd) : NULL;
    if (mask & IB_MR_MOD_PD && !pd)
        return IB_INVALID_PD_HANDLE;
    pthread_mutex_lock(&mr->lock);
    status = al_has_users(&mr->o) ? IB_RESOURCE_BUSY : rereg_locked(mr, pd, mask, how);
    if (status == IB_SUCCESS)
        tell_keys(mr->verbs, to);
    pthread_mutex_unlock(&mr->lock);
    if (pd)
        al_put(&pd->o);
    return status;
}

ib_api_status_t ib_rereg_mem(const ib_mr_handle_t h_mr, const ib_mr_mod_t mr_mod_mask,
                             const ib_mr_create_t *const p_mr_create, net32_t *const p_lkey,
                             net32_t *const p_rkey, const ib_pd_handle_t h_pd)
{
    struct al_mr *mr = al_get(&al_mr_kind, h_mr);
    if (!mr)
        return IB_INVALID_MR_HANDLE;
    struct results to = {.lkey = p_lkey, .rkey = p_rkey};
    ib_api_status_t status = rereg(mr, mr_mod_mask, p_mr_create, &to, h_pd);
    al_put(&mr->o);
    return status;
}

static ib_api_status_t rereg_phys(struct al_mr *mr, ib_mr_mod_t mask, const ib_phys_create_t *how,
                                  uint64_t *vaddr, const struct results *to, ib_pd_handle_t h_pd)
{
    if (!vaddr || !to->lkey || !to->rkey || !mask || (!how && mask != IB_MR_MOD_PD))
        return IB_INVALID_PARAMETER;
    if (mask != IB_MR_MOD_PD)
        return IB_UNSUPPORTED;
    ib_api_status_t status = rereg(mr, mask, NULL, to, h_pd);
    if (status == IB_SUCCESS) {
        pthread_mutex_lock(&mr->lock);
        *vaddr = (uintptr_t)mr->verbs->addr;
        pthread_mutex_unlock(&mr->lock);
    }
    return status;
}

ib_api_status_t ib_rereg_phys(const ib_mr_handle_t h_mr, const ib_mr_mod_t mr_mod_mask,
                              const ib_phys_create_t *const p_phys_create, uint64_t *const p_vaddr,
                              net32_t *const p_lkey, net32_t *const p_rkey,
                              const ib_pd_handle_t h_pd)
{
    struct al_mr *mr = al_get(&al_mr_kind, h_mr);
    if (!mr)
        return IB_INVALID_MR_HANDLE;
    struct results to = {.lkey = p_lkey, .rkey = p_rkey};
    ib_api_status_t status = rereg_phys(mr, mr_mod_mask, p_phys_create, p_vaddr, &to, h_pd);
    al_put(&mr->o);
    return status;
}

/* ---- ask, and deregister ---- */

static void query(struct al_mr *mr, ib_mr_attr_t *to)
{
    pthread_mutex_lock(&mr->lock);
    uint64_t begin = (uintptr_t)mr->verbs->addr, end = begin + mr->verbs->length;
    bool remote = mr->access & AL_AC_REMOTE;
    *to = (ib_mr_attr_t){
        .h_pd = mr->o.parent->handle,
        .local_lb = begin,
        .local_ub = end,
        .remote_lb = remote ? begin : 0,
        .remote_ub = remote ? end : 0,
        .access_ctrl = mr->access,
        .lkey = CL_HTON32(mr->verbs->lkey),
        .rkey = CL_HTON32(mr->verbs->rkey),
    };
    pthread_mutex_unlock(&mr->lock);
}

ib_api_status_t ib_query_mr(const ib_mr_handle_t h_mr, ib_mr_attr_t *const p_mr_attr)
{
    struct al_mr *mr = al_get(&al_mr_kind, h_mr);
    if (!mr)
        return IB_INVALID_MR_HANDLE;
    if (p_mr_attr)
        query(mr, p_mr_attr);
    al_put(&mr->o);
    return p_mr_attr ? IB_SUCCESS : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_dereg_mr(const ib_mr_handle_t h_mr)
{
    return al_destroy(&al_mr_kind, h_mr, ib_sync_destroy);
}
