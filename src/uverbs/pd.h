/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands: protection domains, and what needs nothing else: regions and address handles. */
#ifndef ANYWARP_UVERBS_PD_H
#define ANYWARP_UVERBS_PD_H

#include "uverbs/command.h"

int uv_alloc_pd(struct uv_call *call);
int uv_dealloc_pd(struct uv_call *call);
int uv_reg_mr(struct uv_call *call);
int uv_dereg_mr(struct uv_call *call);
int uv_create_ah(struct uv_call *call);
int uv_destroy_ah(struct uv_call *call);

#endif
