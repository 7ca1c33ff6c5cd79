/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/pd.h"

#include "al/ca.h"
#include "al/status.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    const struct al_pd *pd = container_of(o, struct al_pd, o);
    if (pd->verbs)
        ibv_dealloc_pd(pd->verbs);
}

const struct al_kind al_pd_kind = {
    .type = AL_PD,
    .invalid = IB_INVALID_PD_HANDLE,
    .release = release,
};

static ib_api_status_t alloc_pd(struct al_ca *ca, const void *context, ib_pd_handle_t *handle)
{
    struct al_pd *pd = calloc(1, sizeof *pd);
    ib_api_status_t status = al_add(pd ? &pd->o : NULL, &al_pd_kind, &ca->o, context);
    if (status != IB_SUCCESS)
        return status;
    pd->verbs = ibv_alloc_pd(ca->device->verbs);
    if (!pd->verbs) {
        status = al_status(errno, IB_INSUFFICIENT_RESOURCES);
        al_fail(&pd->o);
        return status;
    }
    *handle = pd->o.handle;
    al_put(&pd->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_alloc_pd(const ib_ca_handle_t h_ca, const ib_pd_type_t pd_type,
                            const void *const pd_context, ib_pd_handle_t *const ph_pd)
{
    struct al_ca *ca = al_get(&al_ca_kind, h_ca);
    if (!ca)
        return IB_INVALID_CA_HANDLE;
    ib_api_status_t status =
        ph_pd && pd_type == IB_PDT_NORMAL ? alloc_pd(ca, pd_context, ph_pd) : IB_INVALID_PARAMETER;
    al_put(&ca->o);
    return status;
}

ib_api_status_t ib_dealloc_pd(const ib_pd_handle_t h_pd, const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&al_pd_kind, h_pd, pfn_destroy_cb);
}
