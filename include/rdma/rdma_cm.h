/* SPDX-License-Identifier: BSD-2-Clause */
/* <rdma/rdma_cma.h> under the other name that it has on AIX. */
#ifndef RDMA_AIX_NAME_RDMA_CM_H
#define RDMA_AIX_NAME_RDMA_CM_H

#include <rdma/rdma_cma.h>

#endif
