/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: the device, its port, its tables. */
#ifndef ANYWARP_UVERBS_DEVICE_H
#define ANYWARP_UVERBS_DEVICE_H

#include "uverbs/command.h"

int uv_get_context(struct uv_call *call);
int uv_query_device(struct uv_call *call);
int uv_query_port(struct uv_call *call);
int uv_query_gid(struct uv_call *call);
int uv_query_pkey(struct uv_call *call);

#endif
