/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs commands that come by ioctl(): method INVOKE_WRITE of <rdma/ib_user_ioctl_cmds.h>. */
#ifndef ANYWARP_UVERBS_INVOKE_H
#define ANYWARP_UVERBS_INVOKE_H

#include "uverbs/file.h"

/**
 * Executes the command that the attributes of a struct ib_uverbs_ioctl_hdr describe.
 *
 * @return 0, or a negative errno: -ENOTTY (another request), -EPROTONOSUPPORT (another method, or
 * an attribute that has to be understood and is not), -ENOSPC (struct or response too short), else
 * as uv_command()
 */
int uv_ioctl(struct uv_file *f, unsigned long request, void *argument);

#endif
