/* SPDX-License-Identifier: BSD-2-Clause */
/* Which element of a struct ibv_async_event its type says is there. */
#ifndef ANYWARP_COMPAT_ELEMENT_H
#define ANYWARP_COMPAT_ELEMENT_H

#include <infiniband/verbs.h>

enum event_element { ELEMENT_CQ, ELEMENT_QP, ELEMENT_SRQ, ELEMENT_PORT };

/** ELEMENT_PORT: or the device's, which has none */
static inline enum event_element event_element(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return ELEMENT_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return ELEMENT_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return ELEMENT_SRQ;
    default:
        return ELEMENT_PORT;
    }
}

#endif
