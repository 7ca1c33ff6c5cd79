/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: shared receive queues. */
#ifndef ANYWARP_UVERBS_SRQ_H
#define ANYWARP_UVERBS_SRQ_H

#include "uverbs/command.h"

int uv_create_srq(struct uv_call *call);
int uv_modify_srq(struct uv_call *call);
int uv_query_srq(struct uv_call *call);
int uv_destroy_srq(struct uv_call *call);

#endif
