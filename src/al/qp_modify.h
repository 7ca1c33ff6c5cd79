/* SPDX-License-Identifier: BSD-2-Clause */
/* The transitions of queue pairs that connections need. */
#ifndef ANYWARP_AL_QP_MODIFY_H
#define ANYWARP_AL_QP_MODIFY_H

#include "al/qp.h"

/**
 * From RESET to INIT, so that it can be connected; in INIT all is well.
 * @return IB_SUCCESS, IB_INVALID_QP_STATE, what ib_modify_qp() says
 */
ib_api_status_t al_qp_prepare(struct al_qp *qp);

/** The rights of the peer, whatever the state; 0: as they are. */
ib_api_status_t al_qp_allow(struct al_qp *qp, ib_access_t access);

#endif
