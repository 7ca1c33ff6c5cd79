/* SPDX-License-Identifier: BSD-2-Clause */
/* The transitions of queue pairs that connections need. */
#ifndef ANYWARP_AL_QP_MODIFY_H
#define ANYWARP_AL_QP_MODIFY_H

#include "al/qp.h"

#include <rdma/rdma_cma.h>

/**
 * From RESET to INIT, so that it can be connected; in INIT all is well.
 * @return IB_SUCCESS, IB_INVALID_QP_STATE, what ib_modify_qp() says
 */
ib_api_status_t al_qp_prepare(struct al_qp *qp);

/** The rights of the peer, whatever the state; 0: as they are. */
ib_api_status_t al_qp_allow(struct al_qp *qp, ib_access_t access);

/** Whether the transport moves it with its connection, as that of an RNIC does. */
bool al_qp_is_moved(const struct al_qp *qp);

/** To RTR and RTS, as an id says that knows the peer. @return 0, or errno */
int al_qp_connect(struct al_qp *qp, struct rdma_cm_id *id);

/** Its connection is over: to ERROR, unless the transport does that. */
void al_qp_disconnect(struct al_qp *qp);

#endif
