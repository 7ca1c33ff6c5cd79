/* SPDX-License-Identifier: BSD-2-Clause */
/* <infiniband/verbs.h> under the name it has on AIX, with the XRC calls that AIX lists. */
#ifndef RDMA_AIX_NAME_VERBS_H
#define RDMA_AIX_NAME_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/xrc.h>

#endif
