/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private interface between rdma-core's libibverbs and its providers, node IBVERBS_PRIVATE_34.
 * Programs that link provider libraries (perftest, UCX, libfabric) cannot be loaded without these
 * names, and the providers call some of them: they register, they log. No provider ever finds a
 * device here, so whatever would command one refuses. ibv_query_gid_type() is in gid.c.
 */
#include "rnic/log.h"
#include "verbs/export.h"
#include "verbs/sysfs.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct verbs_device_ops;

VERBS_EXPORT bool verbs_allow_disassociate_destroy;

VERBS_EXPORT void verbs_register_driver_34(const struct verbs_device_ops *ops)
{
    (void)ops;
}

/** Levels are numbered as ours. */
VERBS_EXPORT void __attribute__((format(printf, 3, 4)))
__verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
    va_list ap;
    (void)ctx;
    va_start(ap, fmt);
    if (level >= IW_LOG_ERR && level <= IW_LOG_DEBUG && iw_log_on((enum iw_log_level)level))
        iw_vlog((enum iw_log_level)level, fmt, ap);
    va_end(ap);
}

VERBS_EXPORT void *_verbs_init_and_alloc_context(void)
{
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT void *verbs_open_device(void)
{
    return null_errno(EOPNOTSUPP);
}

VERBS_EXPORT void verbs_uninit_context(void)
{
}

VERBS_EXPORT void verbs_set_ops(void)
{
}

VERBS_EXPORT void verbs_init_cq(void)
{
}

VERBS_EXPORT unsigned __ioctl_final_num_attrs(unsigned num_attrs, void *link)
{
    (void)link;
    return num_attrs;
}

VERBS_EXPORT int ibv_read_ibdev_sysfs_file(void)
{
    return minus_errno(EOPNOTSUPP);
}

/* Commands to the kernel. Each takes its own arguments and looks at none of them. */
#define REFUSE(name)                                                                               \
    VERBS_EXPORT int name(void);                                                                   \
    int name(void)                                                                                 \
    {                                                                                              \
        return EOPNOTSUPP;                                                                         \
    }

/* clang-format off */
REFUSE(execute_ioctl)
REFUSE(ibv_cmd_advise_mr)
REFUSE(ibv_cmd_alloc_dm)
REFUSE(ibv_cmd_alloc_mw)
REFUSE(ibv_cmd_alloc_pd)
REFUSE(ibv_cmd_attach_mcast)
REFUSE(ibv_cmd_close_xrcd)
REFUSE(ibv_cmd_create_ah)
REFUSE(ibv_cmd_create_counters)
REFUSE(ibv_cmd_create_cq)
REFUSE(ibv_cmd_create_cq_ex)
REFUSE(ibv_cmd_create_flow)
REFUSE(ibv_cmd_create_flow_action_esp)
REFUSE(ibv_cmd_create_qp)
REFUSE(ibv_cmd_create_qp_ex2)
REFUSE(ibv_cmd_create_qp_ex)
REFUSE(ibv_cmd_create_rwq_ind_table)
REFUSE(ibv_cmd_create_srq)
REFUSE(ibv_cmd_create_srq_ex)
REFUSE(ibv_cmd_create_wq)
REFUSE(ibv_cmd_dealloc_mw)
REFUSE(ibv_cmd_dealloc_pd)
REFUSE(ibv_cmd_dereg_mr)
REFUSE(ibv_cmd_destroy_ah)
REFUSE(ibv_cmd_destroy_counters)
REFUSE(ibv_cmd_destroy_cq)
REFUSE(ibv_cmd_destroy_flow)
REFUSE(ibv_cmd_destroy_flow_action)
REFUSE(ibv_cmd_destroy_qp)
REFUSE(ibv_cmd_destroy_rwq_ind_table)
REFUSE(ibv_cmd_destroy_srq)
REFUSE(ibv_cmd_destroy_wq)
REFUSE(ibv_cmd_detach_mcast)
REFUSE(ibv_cmd_free_dm)
REFUSE(ibv_cmd_get_context)
REFUSE(ibv_cmd_modify_cq)
REFUSE(ibv_cmd_modify_flow_action_esp)
REFUSE(ibv_cmd_modify_qp)
REFUSE(ibv_cmd_modify_qp_ex)
REFUSE(ibv_cmd_modify_srq)
REFUSE(ibv_cmd_modify_wq)
REFUSE(ibv_cmd_open_qp)
REFUSE(ibv_cmd_open_xrcd)
REFUSE(ibv_cmd_poll_cq)
REFUSE(ibv_cmd_post_recv)
REFUSE(ibv_cmd_post_send)
REFUSE(ibv_cmd_post_srq_recv)
REFUSE(ibv_cmd_query_context)
REFUSE(ibv_cmd_query_device_any)
REFUSE(ibv_cmd_query_mr)
REFUSE(ibv_cmd_query_port)
REFUSE(ibv_cmd_query_qp)
REFUSE(ibv_cmd_query_srq)
REFUSE(ibv_cmd_read_counters)
REFUSE(ibv_cmd_reg_dm_mr)
REFUSE(ibv_cmd_reg_dmabuf_mr)
REFUSE(ibv_cmd_reg_mr)
REFUSE(ibv_cmd_req_notify_cq)
REFUSE(ibv_cmd_rereg_mr)
REFUSE(ibv_cmd_resize_cq)
/* clang-format on */
