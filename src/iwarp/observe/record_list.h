/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of event of a record: name, ring, the call, and how its arguments are told. In that
 * text each of these stands for the next argument:
 *
 *     %x hexadecimal    %u decimal                 %q a QP's number        %i enum iw_err
 *     %o enum ibv_wr_opcode    %w enum ibv_wc_opcode    %c enum ibv_wc_status
 *     %s enum ibv_qp_state     %t enum ibv_qp_type      %a enum ibv_event_type
 *     %d decimal, with a sign  %k a connection, by its number
 *     %n a name, which is no argument, but the text of the event
 */
#ifndef ANYWARP_OBSERVE_RECORD_LIST_H
#define ANYWARP_OBSERVE_RECORD_LIST_H

#define RECORD_LIST(X)                                                                             \
    X(OPEN_DEVICE, VERBS, "ibv_open_device", "context %x")                                         \
    X(CLOSE_DEVICE, VERBS, "ibv_close_device", "context %x")                                       \
    X(ALLOC_PD, VERBS, "ibv_alloc_pd", "PD %x")                                                    \
    X(DEALLOC_PD, VERBS, "ibv_dealloc_pd", "PD %x")                                                \
    X(REG_MR, VERBS, "ibv_reg_mr", "key %x PD %x address %x length %u access %x")                  \
    X(REREG_MR, VERBS, "ibv_rereg_mr", "key %x flags %x address %x length %u")                     \
    X(DEREG_MR, VERBS, "ibv_dereg_mr", "key %x")                                                   \
    X(ALLOC_MW, VERBS, "ibv_alloc_mw", "MW %x PD %x")                                              \
    X(BIND_MW, VERBS, "ibv_bind_mw", "MW %x QP %q wr_id %x")                                       \
    X(DEALLOC_MW, VERBS, "ibv_dealloc_mw", "MW %x")                                                \
    X(CREATE_COMP_CHANNEL, VERBS, "ibv_create_comp_channel", "channel %x")                         \
    X(DESTROY_COMP_CHANNEL, VERBS, "ibv_destroy_comp_channel", "channel %x")                       \
    X(CREATE_CQ, VERBS, "ibv_create_cq", "CQ %x cqe %u channel %x")                                \
    X(RESIZE_CQ, VERBS, "ibv_resize_cq", "CQ %x cqe %u")                                           \
    X(DESTROY_CQ, VERBS, "ibv_destroy_cq", "CQ %x")                                                \
    X(CREATE_SRQ, VERBS, "ibv_create_srq", "SRQ %x max_wr %u")                                     \
    X(MODIFY_SRQ, VERBS, "ibv_modify_srq", "SRQ %x mask %x")                                       \
    X(DESTROY_SRQ, VERBS, "ibv_destroy_srq", "SRQ %x")                                             \
    X(CREATE_AH, VERBS, "ibv_create_ah", "AH %x PD %x")                                            \
    X(DESTROY_AH, VERBS, "ibv_destroy_ah", "AH %x")                                                \
    X(CREATE_QP, VERBS, "ibv_create_qp",                                                           \
      "QP %q type %t send_cq %x recv_cq %x max_send_wr %u max_recv_wr %u")                         \
    X(MODIFY_QP, VERBS, "ibv_modify_qp", "QP %q mask %x")                                          \
    X(MODIFY_QP_STATE, VERBS, "ibv_modify_qp", "QP %q mask %x to %s")                              \
    X(DESTROY_QP, VERBS, "ibv_destroy_qp", "QP %q")                                                \
    X(POST_SEND, VERBS, "ibv_post_send", "QP %q %o wr_id %x length %u send_flags %x")              \
    X(POST_RDMA, VERBS, "ibv_post_send",                                                           \
      "QP %q %o wr_id %x length %u send_flags %x rkey %x remote_addr %x")                          \
    X(WR_COMPLETE, VERBS, "ibv_wr_complete", "QP %q work requests %u")                             \
    X(POST_RECV, VERBS, "ibv_post_recv", "QP %q wr_id %x length %u")                               \
    X(POST_SRQ_RECV, VERBS, "ibv_post_srq_recv", "SRQ %x wr_id %x length %u")                      \
    X(COMPLETION, VERBS, "ibv_poll_cq", "CQ %x QP %q wr_id %x %c %w byte_len %u vendor_err %u")    \
    X(POLL_EMPTY, VERBS, "ibv_poll_cq", "CQ %x: none, and perhaps more such polls")                \
    X(REQ_NOTIFY_CQ, VERBS, "ibv_req_notify_cq", "CQ %x solicited_only %u")                        \
    X(GET_CQ_EVENT, VERBS, "ibv_get_cq_event", "CQ %x channel %x")                                 \
    X(ACK_CQ_EVENTS, VERBS, "ibv_ack_cq_events", "CQ %x events %u")                                \
    X(GET_ASYNC_EVENT, VERBS, "ibv_get_async_event", "%a context %x")                              \
    X(ACK_ASYNC_EVENT, VERBS, "ibv_ack_async_event", "%a")                                         \
    X(STATE, VERBS, "state", "QP %q from %s to %s")                                                \
    X(FAILURE, VERBS, "failure", "QP %q: %i")                                                      \
    X(CM_CALL, CM, "", "%n %x")                                                                    \
    X(CM_RAISED, CM, "raised", "%n id %x status %d")                                               \
    X(CM_GOT, CM, "got", "%n id %x status %d")                                                     \
    X(LINK, CM, "connected", "QP %q %k")                                                           \
    X(FRAME, WIRE, "", "")

#endif
