/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast is for datagrams, which iWARP has not: arguments are checked, then ENOSYS. */
#include "cma.h"

#define JOIN "rdma_join_multicast"

static int join(struct rdma_cm_id *id, const struct sockaddr *addr)
{
    if (!addr || !addr_len(addr) || id->qp_type == IBV_QPT_RC)
        return cma_fail(iw_refuse(JOIN, VALUE, "no address, or an id for connections"));
    return cma_fail(iw_refuse(JOIN, ABSENT));
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    (void)context;
    return id ? join(id, addr) : cma_no_handle(__func__);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                           void *context)
{
    const uint32_t known = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    (void)context;
    if (!id || !attr)
        return cma_no_handle(__func__);
    if (attr->comp_mask & ~known)
        return cma_fail(iw_refuse(__func__, ATTRIBUTE, "comp_mask and join_flags"));
    if ((attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) &&
        attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return cma_fail(iw_refuse(__func__, ATTRIBUTE, "comp_mask and join_flags"));
    if (!(attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS))
        return cma_fail(iw_refuse(__func__, VALUE, "no address in comp_mask"));
    return join(id, attr->addr);
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    if (!id)
        return cma_no_handle(__func__);
    if (!addr || !addr_len(addr))
        return cma_fail(iw_refuse(__func__, ARGUMENT));
    return cma_fail(EADDRNOTAVAIL);
}
