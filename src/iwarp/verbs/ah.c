/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address handles and multicast: for datagrams only, which iWARP does not have. What an address
 * handle would have to be can be told all the same.
 */
#include "device/context.h"
#include "mem/pd.h"
#include "qpn/address.h"
#include "verbs/export.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define CREATE "ibv_create_ah"

/** Whether the device could send there. @return 0 or a positive errno */
static int check(const struct iw_device *dev, const struct ibv_ah_attr *attr)
{
    struct iw_path path;
    if (!dev->roce)
        return iw_refuse(CREATE, OFFERED);
    if (attr->port_num != 1)
        return iw_refuse(CREATE, VALUE, ONE_PORT);
    if (!attr->is_global)
        return iw_refuse(CREATE, NO_GID);
    int r = iw_path_find(dev, attr, &path);
    if (r == EINVAL)
        return iw_refuse(CREATE, GID_INDEX, attr->grh.sgid_index);
    return r ? iw_refuse(CREATE, GID_KIND) : 0;
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    if (!pd || !attr)
        return null_errno(iw_refuse(CREATE, ARGUMENT));
    int r = check(iw_device(pd->context->device), attr);
    struct ibv_ah *ah = r ? NULL : calloc(1, sizeof(*ah));
    if (!ah)
        return null_errno(r ? r : ENOMEM);
    ah->context = pd->context;
    ah->pd = pd;
    atomic_fetch_add(&iw_pd(pd)->users, 1);
    return ah;
}

/** @return the index of @p gid in the table of port 1, or -1 */
static int find_gid(struct ibv_context *context, const union ibv_gid *gid)
{
    const struct iw_device *dev = iw_device(context->device);
    struct ibv_gid_entry e;
    for (unsigned i = 0; i <= UINT8_MAX && iw_device_gid(dev, 1, i, &e) == 0; i++)
        if (memcmp(&e.gid, gid, sizeof(*gid)) == 0)
            return (int)i;
    return -1;
}

/** The way back to whom the completion is from: where it came to is where the answer leaves. */
VERBS_EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                                     struct ibv_wc *wc, struct ibv_grh *grh,
                                     struct ibv_ah_attr *ah_attr)
{
    if (!context || port_num != 1 || !wc || !ah_attr)
        return minus_errno(iw_refuse(__func__, VALUE, "no context, wc or ah_attr, or " ONE_PORT));
    bool global = wc->wc_flags & IBV_WC_GRH;
    int sgid_index = !global ? 0 : grh ? find_gid(context, &grh->dgid) : -1;
    if (sgid_index < 0)
        return minus_errno(iw_refuse(__func__, VALUE, "a GID that is none of the device's"));
    *ah_attr = (struct ibv_ah_attr){
        .dlid = wc->slid,
        .sl = wc->sl,
        .src_path_bits = wc->dlid_path_bits,
        .is_global = global,
        .port_num = port_num,
    };
    if (global) {
        uint32_t word = be32toh(grh->version_tclass_flow);
        ah_attr->grh = (struct ibv_global_route){
            .dgid = grh->sgid,
            .flow_label = word & 0xfffff,
            .sgid_index = (uint8_t)sgid_index,
            .hop_limit = grh->hop_limit,
            .traffic_class = (uint8_t)(word >> 20),
        };
    }
    return 0;
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                                  struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;
    if (!pd)
        return null_errno(iw_refuse(__func__, ARGUMENT));
    if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}

VERBS_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
    if (!ah)
        return iw_refuse(__func__, ARGUMENT);
    atomic_fetch_sub(&iw_pd(ah->pd)->users, 1);
    free(ah);
    return 0;
}

VERBS_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return iw_refuse(__func__, OFFERED);
}

VERBS_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    (void)qp, (void)gid, (void)lid;
    return iw_refuse(__func__, OFFERED);
}
