/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: completion channels and completion queues. */
#ifndef ANYWARP_UVERBS_CQ_H
#define ANYWARP_UVERBS_CQ_H

#include "uverbs/command.h"

int uv_create_comp_channel(struct uv_call *call);
int uv_create_cq(struct uv_call *call);
int uv_resize_cq(struct uv_call *call);
int uv_destroy_cq(struct uv_call *call);

#endif
