/* SPDX-License-Identifier: BSD-2-Clause */
#include "kverbs/ah.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kverbs/census.h"
#include "kverbs/pd.h"

struct ibv_ah_attr kv_ah_to_verb(const struct rdma_ah_attr *a)
{
    struct ibv_ah_attr v = {
        .grh = {.flow_label = a->grh.flow_label,
                .sgid_index = a->grh.sgid_index,
                .hop_limit = a->grh.hop_limit,
                .traffic_class = a->grh.traffic_class},
        .dlid = a->ib.dlid,
        .sl = a->sl,
        .src_path_bits = a->ib.src_path_bits,
        .static_rate = a->static_rate,
        .is_global = a->ah_flags & IB_AH_GRH ? 1 : 0,
        .port_num = a->port_num,
    };
    memcpy(v.grh.dgid.raw, a->grh.dgid.raw, sizeof v.grh.dgid.raw);
    return v;
}

struct rdma_ah_attr kv_ah_from_verb(const struct ibv_ah_attr *v)
{
    struct rdma_ah_attr a = {
        .grh = {.flow_label = v->grh.flow_label,
                .sgid_index = v->grh.sgid_index,
                .hop_limit = v->grh.hop_limit,
                .traffic_class = v->grh.traffic_class},
        .sl = v->sl,
        .static_rate = v->static_rate,
        .port_num = v->port_num,
        .ah_flags = v->is_global ? IB_AH_GRH : 0,
        .type = RDMA_AH_ATTR_TYPE_ROCE,
        .ib = {.dlid = v->dlid, .src_path_bits = v->src_path_bits},
    };
    memcpy(a.grh.dgid.raw, v->grh.dgid.raw, sizeof a.grh.dgid.raw);
    return a;
}

struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *attr)
{
    struct kv_ah *ah = calloc(1, sizeof *ah);
    if (!ah)
        return ERR_PTR(-ENOMEM);
    struct ibv_ah_attr v = kv_ah_to_verb(attr);
    ah->verb = ibv_create_ah(kv_pd(pd)->verb, &v);
    if (!ah->verb) {
        free(ah);
        return ERR_PTR(-errno);
    }
    ah->ib.device = pd->device;
    ah->ib.pd = pd;
    ah->attr = *attr;
    kv_pd_use(pd, 1);
    kv_count(KV_AH, 1);
    return &ah->ib;
}

/* No verb changes one. */
int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
    (void)ah;
    (void)attr;
    return -EOPNOTSUPP;
}

int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
    *attr = kv_ah(ah)->attr;
    return 0;
}

int rdma_destroy_ah(struct ib_ah *ib)
{
    struct kv_ah *ah = kv_ah(ib);
    int e = ibv_destroy_ah(ah->verb);
    if (e)
        return -e;
    kv_pd_use(ib->pd, -1);
    free(ah);
    kv_count(KV_AH, -1);
    return 0;
}

int ib_init_ah_from_wc(struct ib_device *device, u8 port_num, const struct ib_wc *wc,
                       const struct ib_grh *grh, struct rdma_ah_attr *attr)
{
    struct ibv_wc from = {
        .src_qp = wc->src_qp,
        .slid = (uint16_t)wc->slid,
        .sl = wc->sl,
        .dlid_path_bits = wc->dlid_path_bits,
        .wc_flags = wc->wc_flags & IB_WC_GRH ? IBV_WC_GRH : 0,
    };
    struct ibv_grh header = {0};
    if (from.wc_flags) {
        _Static_assert(sizeof header == sizeof *grh, "the same 40 bytes");
        memcpy(&header, grh, sizeof header);
    }
    struct ibv_ah_attr v = {0};
    if (ibv_init_ah_from_wc(kv_device(device)->verbs, port_num, &from, &header, &v) != 0)
        return errno ? -errno : -EINVAL;
    *attr = kv_ah_from_verb(&v);
    return 0;
}

struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
                                   const struct ib_grh *grh, u8 port_num)
{
    struct rdma_ah_attr attr;
    int ret = ib_init_ah_from_wc(pd->device, port_num, wc, grh, &attr);
    return ret ? ERR_PTR(ret) : rdma_create_ah(pd, &attr);
}
