/* SPDX-License-Identifier: BSD-2-Clause */
/* The cases of refuse_test.c, one for each row of IW_REFUSALS, and what they have in common. */
#ifndef ANYWARP_TESTS_REFUSE_CASES_H
#define ANYWARP_TESTS_REFUSE_CASES_H

#include "env/refuse.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

#define BYTES 4096 /* of world.bytes */

/* What most cases need. The QP is in ERR, where posts are checked, and what is good is flushed. */
struct world {
    struct ibv_context *ctx, *other_ctx;
    struct ibv_pd *pd, *other_pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq, *other_cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp, *fresh; /* fresh is in INIT */
    struct ibv_mr *mr;
    struct rdma_event_channel *events;
    struct rdma_cm_id *id; /* new */
    uint8_t *bytes;
};

extern struct world w;

/** A small QP of w. */
struct ibv_qp_init_attr qp_attr(void);

/** @return 0 or the errno */
int modify(struct ibv_qp *qp, enum ibv_qp_state state);

/** Posts @p n SGEs of @p len bytes. @return 0 or the errno */
int post(struct ibv_qp *qp, enum ibv_wr_opcode op, unsigned flags, int n, uint32_t len);

/** X(row, what provokes it), in verbs.c as far as it is libibverbs, then in ids.c. */
#define CASES(X)                                                                                   \
    X(ARGUMENT, argument)                                                                          \
    X(OFFERED, offered)                                                                            \
    X(ATTRIBUTE, attribute)                                                                        \
    X(ABSENT, absent)                                                                              \
    X(VALUE, value)                                                                                \
    X(IN_USE, in_use)                                                                              \
    X(COUNTED, counted)                                                                            \
    X(NO_SGES, no_sges)                                                                            \
    X(SEND_STATE, send_state)                                                                      \
    X(OPCODE, opcode)                                                                              \
    X(EXTENSION, extension)                                                                        \
    X(FLAGS, flags)                                                                                \
    X(SEND_SGES, send_sges)                                                                        \
    X(SEND_LENGTH, send_length)                                                                    \
    X(ATOMIC_LENGTH, atomic_length)                                                                \
    X(INLINE_READ, inline_read)                                                                    \
    X(INLINE_LENGTH, inline_length)                                                                \
    X(SEND_FULL, send_full)                                                                        \
    X(NO_SENDS, no_sends)                                                                          \
    X(NO_HANDLE, no_handle)                                                                        \
    X(DATAGRAM_LENGTH, datagram_length)                                                            \
    X(NOT_ASKED, not_asked)                                                                        \
    X(NO_WORK, no_work)                                                                            \
    X(RECV_STATE, recv_state)                                                                      \
    X(RECV_SHARED, recv_shared)                                                                    \
    X(RECV_SGES, recv_sges)                                                                        \
    X(RECV_FULL, recv_full)                                                                        \
    X(NO_RECVS, no_recvs)                                                                          \
    X(ACCESS_FLAGS, access_flags)                                                                  \
    X(ACCESS_LOCAL, access_local)                                                                  \
    X(ON_DEMAND, on_demand)                                                                        \
    X(EMPTY, empty)                                                                                \
    X(WRAPS, wraps)                                                                                \
    X(UNMAPPED, unmapped)                                                                          \
    X(IOVA, iova)                                                                                  \
    X(REREG_FLAGS, rereg_flags)                                                                    \
    X(OTHER_CONTEXT, other_context)                                                                \
    X(HAS_WINDOWS, has_windows)                                                                    \
    X(WINDOW_TYPE, window_type)                                                                    \
    X(BIND_TYPE, bind_type)                                                                        \
    X(BIND_KEY, bind_key)                                                                          \
    X(BIND_RANGE, bind_range)                                                                      \
    X(BIND_RIGHTS, bind_rights)                                                                    \
    X(BIND_PD, bind_pd)                                                                            \
    X(PD_USED, pd_used)                                                                            \
    X(CQ_SIZE, cq_size)                                                                            \
    X(CQ_VECTOR, cq_vector)                                                                        \
    X(CQ_SHRINK, cq_shrink)                                                                        \
    X(CQ_OVERRUN, cq_overrun)                                                                      \
    X(CQ_USED, cq_used)                                                                            \
    X(CHANNEL_USED, channel_used)                                                                  \
    X(SRQ_USED, srq_used)                                                                          \
    X(SRQ_SIZE, srq_size)                                                                          \
    X(SRQ_MODIFY, srq_modify)                                                                      \
    X(SRQ_LIMIT, srq_limit)                                                                        \
    X(QP_TYPE, qp_type)                                                                            \
    X(QP_SIZE, qp_size)                                                                            \
    X(QP_CQ, qp_cq)                                                                                \
    X(QP_OPS, qp_ops)                                                                              \
    X(QP_PD, qp_pd)                                                                                \
    X(ATTR_MASK, attr_mask)                                                                        \
    X(ATTR_VALUE, attr_value)                                                                      \
    X(TRANSITION, transition)                                                                      \
    X(NO_GID, no_gid)                                                                              \
    X(NO_NUMBER, no_number)                                                                        \
    X(GID_INDEX, gid_index)                                                                        \
    X(GID_KIND, gid_kind)                                                                          \
    X(GROUP, group)                                                                                \
    X(NO_GROUP, no_group)                                                                          \
    X(NO_CONNECTION, no_connection)                                                                \
    X(STATE, state)                                                                                \
    X(NO_QP, no_qp)                                                                                \
    X(QP_TAKEN, qp_taken)                                                                          \
    X(HAS_QP, has_qp)                                                                              \
    X(OTHER_KIND, other_kind)                                                                      \
    X(NO_DEVICE, no_device)                                                                        \
    X(ID_CQ, id_cq)                                                                                \
    X(PRIVATE_DATA, private_data)                                                                  \
    X(DEPTH, depth)                                                                                \
    X(SERVICE, service)                                                                            \
    X(FAMILY, family)                                                                              \
    X(SCOPE, scope)                                                                                \
    X(NO_ROUTE, no_route)                                                                          \
    X(PORT_TAKEN, port_taken)                                                                      \
    X(PORT_IN_USE, port_in_use)                                                                    \
    X(NOT_LOCAL, not_local)                                                                        \
    X(PORT_SPACE, port_space)                                                                      \
    X(OPTION, option)                                                                              \
    X(OPTION_VALUE, option_value)                                                                  \
    X(LOOKUP, lookup)                                                                              \
    X(NOT_SYNCHRONOUS, not_synchronous)

#define X(name, function) int refused_##function(void);
CASES(X)
#undef X

#endif
