/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What there cannot be here: ports that are managed, special queue pairs, MADs, multicast groups.
 * The arguments are checked first, so that a program that is wrong hears that.
 */
#include "al/ca.h"
#include "al/pd.h"
#include "al/qp.h"

#include <infiniband/verbs.h>

ib_api_status_t ib_modify_ca(const ib_ca_handle_t h_ca, const uint8_t port_num,
                             const ib_ca_mod_t ca_mod,
                             const ib_port_attr_mod_t *const p_port_attr_mod)
{
    if (!al_is(&al_ca_kind, h_ca))
        return IB_INVALID_CA_HANDLE;
    if (port_num != AL_PORT)
        return IB_INVALID_PORT;
    if (!p_port_attr_mod || ca_mod == 0 || ca_mod & IB_CA_MOD_RESERVED_MASK)
        return IB_INVALID_PARAMETER;
    return IB_UNSUPPORTED;
}

static bool is_special(ib_qp_type_t type)
{
    return type == IB_QPT_QP0 || type == IB_QPT_QP1 || type == IB_QPT_RAW_IPV6 ||
           type == IB_QPT_RAW_ETHER || type == IB_QPT_QP0_ALIAS || type == IB_QPT_QP1_ALIAS;
}

static ib_api_status_t check_special(const struct al_pd *pd, ib_net64_t port_guid,
                                     const ib_qp_create_t *how, ib_qp_handle_t *handle)
{
    if (!how || !handle)
        return IB_INVALID_PARAMETER;
    if (port_guid != ibv_get_device_guid(pd->verbs->context->device))
        return IB_INVALID_PORT;
    return is_special(how->qp_type) ? IB_UNSUPPORTED : IB_INVALID_SETTING;
}

ib_api_status_t ib_get_spl_qp(const ib_pd_handle_t h_pd, const ib_net64_t port_guid,
                              const ib_qp_create_t *const p_qp_create, const void *const qp_context,
                              const ib_pfn_event_cb_t pfn_qp_event_cb,
                              ib_pool_key_t *const p_pool_key, ib_qp_handle_t *const ph_qp)
{
    (void)qp_context;
    (void)pfn_qp_event_cb;
    (void)p_pool_key;
    struct al_pd *pd = al_get(&al_pd_kind, h_pd);
    if (!pd)
        return IB_INVALID_PD_HANDLE;
    ib_api_status_t status = check_special(pd, port_guid, p_qp_create, ph_qp);
    al_put(&pd->o);
    return status;
}

ib_api_status_t ib_send_mad(const ib_mad_svc_handle_t h_mad_svc,
                            ib_mad_element_t *const p_mad_element_list,
                            ib_mad_element_t **pp_mad_failure)
{
    (void)h_mad_svc;
    if (pp_mad_failure)
        *pp_mad_failure = p_mad_element_list;
    return IB_INVALID_HANDLE;
}

ib_api_status_t ib_cancel_mad(const ib_mad_svc_handle_t h_mad_svc,
                              ib_mad_element_t *const p_mad_element)
{
    (void)h_mad_svc;
    return p_mad_element ? IB_NOT_FOUND : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_join_mcast(const ib_qp_handle_t h_qp, const ib_mcast_req_t *const p_mcast_req)
{
    if (!al_is(&al_qp_kind, h_qp))
        return IB_INVALID_QP_HANDLE;
    return p_mcast_req ? IB_INVALID_SERVICE_TYPE : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_leave_mcast(const ib_mcast_handle_t h_mcast,
                               const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    (void)h_mcast;
    (void)pfn_destroy_cb;
    return IB_INVALID_MCAST_HANDLE;
}

ib_api_status_t ib_local_mad(const ib_ca_handle_t h_ca, const uint8_t port_num,
                             const void *const p_mad_in, void *p_mad_out)
{
    if (!al_is(&al_ca_kind, h_ca))
        return IB_INVALID_CA_HANDLE;
    if (port_num != AL_PORT)
        return IB_INVALID_PORT;
    return p_mad_in && p_mad_out ? IB_UNSUPPORTED : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_cm_lap(const ib_cm_lap_t *const p_cm_lap)
{
    if (!p_cm_lap)
        return IB_INVALID_PARAMETER;
    if (!al_is(&al_qp_kind, p_cm_lap->h_qp))
        return IB_INVALID_QP_HANDLE;
    return IB_UNSUPPORTED;
}
