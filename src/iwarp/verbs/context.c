/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The op slots of a context. No slot is empty: some of the inlines that call them do not look. What
 * this device does not do returns EOPNOTSUPP, or NULL with that errno.
 */
#include "env/conf.h"
#include "env/later.h"
#include "verbs/chaos.h"
#include "verbs/check.h"
#include "verbs/export.h"
#include "verbs/ops.h"
#include "verbs/record.h"

#define NO_INT1(name, A)                                                                           \
    static int no_##name(A a)                                                                      \
    {                                                                                              \
        (void)a;                                                                                   \
        return iw_refuse("ibv_" #name, OFFERED);                                                   \
    }
#define NO_INT2(name, A, B)                                                                        \
    static int no_##name(A a, B b)                                                                 \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return iw_refuse("ibv_" #name, OFFERED);                                                   \
    }
#define NO_INT3(name, A, B, C)                                                                     \
    static int no_##name(A a, B b, C c)                                                            \
    {                                                                                              \
        (void)a, (void)b, (void)c;                                                                 \
        return iw_refuse("ibv_" #name, OFFERED);                                                   \
    }
#define NO_PTR2(name, R, A, B)                                                                     \
    static R no_##name(A a, B b)                                                                   \
    {                                                                                              \
        (void)a, (void)b;                                                                          \
        return null_errno(iw_refuse("ibv_" #name, OFFERED));                                       \
    }

NO_INT3(attach_counters_point_flow, struct ibv_counters *, struct ibv_counter_attach_attr *,
        struct ibv_flow *)
NO_PTR2(create_counters, struct ibv_counters *, struct ibv_context *,
        struct ibv_counters_init_attr *)
NO_INT1(destroy_counters, struct ibv_counters *)
NO_PTR2(alloc_dm, struct ibv_dm *, struct ibv_context *, struct ibv_alloc_dm_attr *)
NO_INT1(free_dm, struct ibv_dm *)
NO_INT2(modify_flow_action_esp, struct ibv_flow_action *, struct ibv_flow_action_esp_attr *)
NO_INT1(destroy_flow_action, struct ibv_flow_action *)
NO_PTR2(create_flow_action_esp, struct ibv_flow_action *, struct ibv_context *,
        struct ibv_flow_action_esp_attr *)
NO_INT2(modify_qp_rate_limit, struct ibv_qp *, struct ibv_qp_rate_limit_attr *)
NO_INT1(destroy_rwq_ind_table, struct ibv_rwq_ind_table *)
NO_PTR2(create_rwq_ind_table, struct ibv_rwq_ind_table *, struct ibv_context *,
        struct ibv_rwq_ind_table_init_attr *)
NO_INT1(destroy_wq, struct ibv_wq *)
NO_INT2(modify_wq, struct ibv_wq *, struct ibv_wq_attr *)
NO_PTR2(create_wq, struct ibv_wq *, struct ibv_context *, struct ibv_wq_init_attr *)
NO_INT1(destroy_flow, struct ibv_flow *)
NO_PTR2(create_flow, struct ibv_flow *, struct ibv_qp *, struct ibv_flow_attr *)
NO_PTR2(open_qp, struct ibv_qp *, struct ibv_context *, struct ibv_qp_open_attr *)
NO_INT2(get_srq_num, struct ibv_srq *, uint32_t *)
NO_PTR2(open_xrcd, struct ibv_xrcd *, struct ibv_context *, struct ibv_xrcd_init_attr *)
NO_INT1(close_xrcd, struct ibv_xrcd *)

static int no_read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t n,
                            uint32_t flags)
{
    (void)counters, (void)values, (void)n, (void)flags;
    return iw_refuse("ibv_read_counters", OFFERED);
}

static struct ibv_mr *no_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset,
                                   size_t length, unsigned access)
{
    (void)pd, (void)dm, (void)offset, (void)length, (void)access;
    return null_errno(iw_refuse("ibv_reg_dm_mr", OFFERED));
}

/** In the slots that only programs of before 2012 call. */
static void *no_compat(void)
{
    return null_errno(EOPNOTSUPP);
}

static void no_placeholder(void)
{
}

static const struct verbs_context slots = {
#ifdef HAVE_IBV_BUF
    .free_buf = ibv_free_buf,
    .alloc_buf = ibv_alloc_buf,
#endif
#ifdef HAVE_DM_EXPORT_DMABUF_FD
    .dm_export_dmabuf_fd = ibv_dm_export_dmabuf_fd,
#endif
#ifdef HAVE_IBV_MR_INIT_ATTR
    .reg_mr_ex = ibv_reg_mr_ex,
    .dealloc_dmah = ibv_dealloc_dmah,
    .alloc_dmah = ibv_alloc_dmah,
#endif
    .query_port = op_query_port,
    .advise_mr = op_advise_mr,
    .alloc_null_mr = op_alloc_null_mr,
    .read_counters = no_read_counters,
    .attach_counters_point_flow = no_attach_counters_point_flow,
    .create_counters = no_create_counters,
    .destroy_counters = no_destroy_counters,
    .reg_dm_mr = no_reg_dm_mr,
    .alloc_dm = no_alloc_dm,
    .free_dm = no_free_dm,
    .modify_flow_action_esp = no_modify_flow_action_esp,
    .destroy_flow_action = no_destroy_flow_action,
    .create_flow_action_esp = no_create_flow_action_esp,
    .modify_qp_rate_limit = no_modify_qp_rate_limit,
    .alloc_parent_domain = op_alloc_parent_domain,
    .dealloc_td = op_dealloc_td,
    .alloc_td = op_alloc_td,
    .modify_cq = op_modify_cq,
    .post_srq_ops = op_post_srq_ops,
    .destroy_rwq_ind_table = no_destroy_rwq_ind_table,
    .create_rwq_ind_table = no_create_rwq_ind_table,
    .destroy_wq = no_destroy_wq,
    .modify_wq = no_modify_wq,
    .create_wq = no_create_wq,
    .query_rt_values = op_query_rt_values,
    .create_cq_ex = op_create_cq_ex,
    .query_device_ex = op_query_device_ex,
    .ibv_destroy_flow = no_destroy_flow,
    .ABI_placeholder2 = no_placeholder,
    .ibv_create_flow = no_create_flow,
    .ABI_placeholder1 = no_placeholder,
    .open_qp = no_open_qp,
    .create_qp_ex = op_create_qp_ex,
    .get_srq_num = no_get_srq_num,
    .create_srq_ex = op_create_srq_ex,
    .open_xrcd = no_open_xrcd,
    .close_xrcd = no_close_xrcd,
    .context.ops =
        {
            ._compat_query_device = ibv_query_device,
            ._compat_query_port = ibv_query_port,
            ._compat_alloc_pd = no_compat,
            ._compat_dealloc_pd = no_compat,
            ._compat_reg_mr = no_compat,
            ._compat_rereg_mr = no_compat,
            ._compat_dereg_mr = no_compat,
            .alloc_mw = op_alloc_mw,
            .bind_mw = op_bind_mw,
            .dealloc_mw = op_dealloc_mw,
            ._compat_create_cq = no_compat,
            .poll_cq = op_poll_cq,
            .req_notify_cq = op_req_notify_cq,
            ._compat_cq_event = no_compat,
            ._compat_resize_cq = no_compat,
            ._compat_destroy_cq = no_compat,
            ._compat_create_srq = no_compat,
            ._compat_modify_srq = no_compat,
            ._compat_query_srq = no_compat,
            ._compat_destroy_srq = no_compat,
            .post_srq_recv = op_post_srq_recv,
            ._compat_create_qp = no_compat,
            ._compat_query_qp = no_compat,
            ._compat_modify_qp = no_compat,
            ._compat_destroy_qp = no_compat,
            .post_send = op_post_send,
            .post_recv = op_post_recv,
            ._compat_create_ah = no_compat,
            ._compat_destroy_ah = no_compat,
            ._compat_attach_mcast = no_compat,
            ._compat_detach_mcast = no_compat,
            ._compat_async_event = no_compat,
        },
};

void verbs_fill_ops(struct verbs_context *v)
{
    *v = slots;
    if (iw_conf()->like)
        v->context.ops.post_send = op_post_send_like;
    verbs_chaos_fill_ops(v);
    verbs_check_fill_ops(v);
    verbs_record_fill_ops(v);
}
