/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: queue pairs. */
#ifndef ANYWARP_UVERBS_QP_H
#define ANYWARP_UVERBS_QP_H

#include "uverbs/command.h"

int uv_create_qp(struct uv_call *call);
int uv_query_qp(struct uv_call *call);
int uv_modify_qp(struct uv_call *call);
int uv_destroy_qp(struct uv_call *call);
int uv_attach_mcast(struct uv_call *call);
int uv_detach_mcast(struct uv_call *call);

#endif
