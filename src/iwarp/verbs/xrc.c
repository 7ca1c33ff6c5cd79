/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/export.h"

#include <rdma/xrc.h>
#include <stdbool.h>

static int absent(const char *call, bool arguments)
{
    return arguments ? iw_refuse(call, ABSENT) : iw_refuse(call, ARGUMENT);
}

VERBS_EXPORT struct ibv_xrc_domain *ibv_open_xrc_domain(struct ibv_context *context, int fd,
                                                        int oflag)
{
    (void)fd, (void)oflag;
    return null_errno(absent(__func__, context));
}

VERBS_EXPORT int ibv_close_xrc_domain(struct ibv_xrc_domain *d)
{
    return absent(__func__, d);
}

VERBS_EXPORT struct ibv_srq *ibv_create_xrc_srq(struct ibv_pd *pd,
                                                struct ibv_xrc_domain *xrc_domain,
                                                struct ibv_cq *xrc_cq,
                                                struct ibv_srq_init_attr *srq_init_attr)
{
    return null_errno(absent(__func__, pd && xrc_domain && xrc_cq && srq_init_attr));
}

VERBS_EXPORT int ibv_create_xrc_rcv_qp(struct ibv_qp_init_attr *init_attr, uint32_t *xrc_rcv_qpn)
{
    return absent(__func__, init_attr && xrc_rcv_qpn);
}

VERBS_EXPORT int ibv_modify_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
                                       struct ibv_qp_attr *attr, int attr_mask)
{
    (void)xrc_qp_num, (void)attr_mask;
    return absent(__func__, xrc_domain && attr);
}

VERBS_EXPORT int ibv_query_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num,
                                      struct ibv_qp_attr *attr, int attr_mask,
                                      struct ibv_qp_init_attr *init_attr)
{
    (void)xrc_qp_num, (void)attr_mask;
    return absent(__func__, xrc_domain && attr && init_attr);
}

VERBS_EXPORT int ibv_reg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
    (void)xrc_qp_num;
    return absent(__func__, xrc_domain);
}

VERBS_EXPORT int ibv_unreg_xrc_rcv_qp(struct ibv_xrc_domain *xrc_domain, uint32_t xrc_qp_num)
{
    (void)xrc_qp_num;
    return absent(__func__, xrc_domain);
}
