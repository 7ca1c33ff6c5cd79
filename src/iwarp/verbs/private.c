/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private interface between rdma-core's libibverbs and its providers. Programs that link
 * provider libraries (perftest, UCX, libfabric) cannot be loaded without its names, and the
 * providers call some of them: they register, they log. No provider ever finds a device here, so
 * whatever would command one refuses. private.names says which name leads to which function.
 */
#include "verbs/private.h"

#include "device/context.h"
#include "env/log.h"
#include "verbs/export.h"

#include <stdarg.h>

void private_log(struct verbs_context *ctx, uint32_t level, const char *fmt, ...)
{
    va_list ap;
    (void)ctx;
    va_start(ap, fmt);
    if (level >= IW_LOG_ERR && level <= IW_LOG_DEBUG && iw_log_on((enum iw_log_level)level))
        iw_vlog((enum iw_log_level)level, fmt, ap);
    va_end(ap);
}

int private_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
                           unsigned *type)
{
    struct ibv_gid_entry e;
    if (!context || !type || port_num != 1 ||
        iw_device_gid(iw_device(context->device), 1, index, &e))
        return minus_errno(EINVAL);
    *type = e.gid_type == IBV_GID_TYPE_ROCE_V2;
    return 0;
}

unsigned private_num_attrs(unsigned num_attrs, void *link)
{
    (void)link;
    return num_attrs;
}

void *private_null(void)
{
    return null_errno(EOPNOTSUPP);
}

int private_minus_one(void)
{
    return minus_errno(EOPNOTSUPP);
}

int private_refuse(void)
{
    return EOPNOTSUPP;
}

void private_nothing(void)
{
}

/* What providers had for this before the nodes above; at a public node. */
VERBS_EXPORT void ibv_register_driver(const char *name, void *(*init)(const char *, int))
{
    (void)name, (void)init;
}
