/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * <infiniband/verbs.h> under the name it has on AIX, with the XRC calls of OFED 1.x. With
 * RDMA_AIX_ERRORS defined the rules for errors are those of <rdma/rdma_aix_verbs.h>.
 */
#ifndef RDMA_AIX_NAME_VERBS_H
#define RDMA_AIX_NAME_VERBS_H

#include <infiniband/verbs.h>
#include <rdma/xrc.h>

#endif
