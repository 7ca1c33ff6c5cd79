/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices, contexts, and what they say of themselves. */
#include "device/context.h"
#include "env/later.h"
#include "faults/chaos.h"
#include "observe/record.h"
#include "verbs/export.h"
#include "verbs/ops.h"

#include <string.h>

/* What ibv_query_port() itself fills, for programs built before struct ibv_port_attr grew. */
#define OLD_PORT_ATTR offsetof(struct ibv_port_attr, port_cap_flags2)

VERBS_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int n = 0;
    if (iw_chaos(IW_FAULT_GET_DEVICE_LIST, NULL))
        return null_errno(ENOMEM);
    struct ibv_device **list = iw_device_list(&n);
    if (num_devices)
        *num_devices = n;
    return list;
}

VERBS_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    iw_device_list_free(list);
}

VERBS_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device ? device->name : null_errno(iw_refuse(__func__, ARGUMENT));
}

VERBS_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    return device ? iw_device_guid(iw_device(device)) : 0;
}

VERBS_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return device ? iw_device(device)->index : -1;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
    if (!device)
        return null_errno(iw_refuse("ibv_open_device", ARGUMENT));
    if (iw_chaos(IW_FAULT_OPEN_DEVICE, NULL))
        return null_errno(EMFILE);
    struct iw_context *ctx = iw_context_open(iw_device(device), verbs_fill_ops);
    return ctx ? &ctx->vctx.context : NULL;
}

VERBS_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    struct iw_recorded r = iw_record(OPEN_DEVICE, 0);
    struct ibv_context *context = open_device(device);
    iw_record_made(r, context, (uintptr_t)context, errno);
    return context;
}

static int close_device(struct ibv_context *context)
{
    if (!context)
        return iw_refuse("ibv_close_device", ARGUMENT);
    iw_context_close(iw_context(context));
    return 0;
}

VERBS_EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct iw_recorded r = iw_record(CLOSE_DEVICE, (uintptr_t)context);
    return iw_record_end(r, close_device(context));
}

VERBS_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
    (void)cmd_fd;
    return null_errno(iw_refuse(__func__, OFFERED));
}

VERBS_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    if (!context || !attr)
        return iw_refuse(__func__, ARGUMENT);
    if (iw_chaos(IW_FAULT_QUERY_DEVICE, NULL))
        return ENOMEM;
    iw_device_query(iw_device(context->device), attr);
    return 0;
}

int op_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                       struct ibv_device_attr_ex *attr, size_t attr_size)
{
    struct ibv_device_attr_ex full = {
        .completion_timestamp_mask = UINT64_MAX, /* CLOCK_MONOTONIC in ns: cq_ex.c */
        .hca_core_clock = 1000000,               /* kHz */
        .cq_mod_caps = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
        .phys_port_cnt_ex = 1,
    };
    if ((input && input->comp_mask) || attr_size < sizeof(full.orig_attr))
        return iw_refuse("ibv_query_device_ex", VALUE, "a comp_mask, or so short an answer");
    if (iw_chaos(IW_FAULT_QUERY_DEVICE, NULL))
        return ENOMEM;
    iw_device_query(iw_device(context->device), &full.orig_attr);
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    memset(attr, 0, attr_size);
    memcpy(attr, &full, attr_size < sizeof(full) ? attr_size : sizeof(full));
    return 0;
}

int op_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
                  size_t attr_len)
{
    struct ibv_port_attr full;
    int r = iw_device_query_port(iw_device(context->device), port, &full);
    if (r)
        return iw_refuse("ibv_query_port", VALUE, ONE_PORT);
    if (iw_chaos(IW_FAULT_QUERY_PORT, NULL))
        return ENOMEM;
    memset(attr, 0, attr_len);
    memcpy(attr, &full, attr_len < sizeof(full) ? attr_len : sizeof(full));
    return 0;
}

VERBS_EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port_num,
                                      uint64_t *port_speed)
{
    if (!context || !port_speed)
        return iw_refuse(__func__, ARGUMENT);
    if (port_num != 1)
        return iw_refuse(__func__, VALUE, ONE_PORT);
    *port_speed = iw_device_port_speed(iw_device(context->device));
    return 0;
}

VERBS_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                                struct _compat_ibv_port_attr *port_attr)
{
    if (!context || !port_attr)
        return iw_refuse(__func__, ARGUMENT);
    return op_query_port(context, port_num, (struct ibv_port_attr *)port_attr, OLD_PORT_ATTR);
}
