/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands of the data path. */
#ifndef ANYWARP_UVERBS_POST_H
#define ANYWARP_UVERBS_POST_H

#include "uverbs/command.h"

int uv_post_send(struct uv_call *call);
int uv_post_recv(struct uv_call *call);
int uv_post_srq_recv(struct uv_call *call);
int uv_poll_cq(struct uv_call *call);
int uv_req_notify_cq(struct uv_call *call);

#endif
