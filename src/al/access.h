/* SPDX-License-Identifier: BSD-2-Clause */
/* Access rights, in the words of both. */
#ifndef ANYWARP_AL_ACCESS_H
#define ANYWARP_AL_ACCESS_H

#include <iba/ib_types.h>

#define AL_AC_REMOTE (IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC)

/**
 * @return IB_SUCCESS; IB_UNSUPPORTED: there are others among them; IB_INVALID_PERMISSION: a peer
 * would write what we may not
 */
ib_api_status_t al_access_check(ib_access_t access);

/** As enum ibv_access_flags. */
int al_access_to_verbs(ib_access_t access);
ib_access_t al_access_of_verbs(unsigned flags);

#endif
