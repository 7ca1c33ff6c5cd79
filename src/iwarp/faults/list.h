/* SPDX-License-Identifier: BSD-2-Clause */
/* Every fault there is: name, once in how many calls unless --every says so, the errno with which a
 * call fails or 0, what happens. */
#ifndef ANYWARP_FAULTS_LIST_H
#define ANYWARP_FAULTS_LIST_H

#define IW_FAULT_LIST(X)                                                                           \
    X(GET_DEVICE_LIST, "get_device_list", 50, ENOMEM, "ibv_get_device_list() fails with ENOMEM")   \
    X(OPEN_DEVICE, "open_device", 20, EMFILE, "ibv_open_device() fails with EMFILE")               \
    X(ALLOC_PD, "alloc_pd", 20, ENOMEM, "ibv_alloc_pd() fails with ENOMEM")                        \
    X(REG_MR, "reg_mr", 40, ENOMEM, "ibv_reg_mr() fails with ENOMEM")                              \
    X(CREATE_COMP_CHANNEL, "create_comp_channel", 20, EMFILE,                                      \
      "ibv_create_comp_channel() fails with EMFILE")                                               \
    X(CREATE_CQ, "create_cq", 20, ENOMEM, "ibv_create_cq() fails with ENOMEM")                     \
    X(RESIZE_CQ, "resize_cq", 20, ENOMEM, "ibv_resize_cq() fails with ENOMEM")                     \
    X(CREATE_QP, "create_qp", 20, ENOMEM, "ibv_create_qp() fails with ENOMEM")                     \
    X(MODIFY_QP, "modify_qp", 20, ENOMEM, "ibv_modify_qp() fails with ENOMEM")                     \
    X(CREATE_SRQ, "create_srq", 20, ENOMEM, "ibv_create_srq() fails with ENOMEM")                  \
    X(ALLOC_MW, "alloc_mw", 20, ENOMEM, "ibv_alloc_mw() fails with ENOMEM")                        \
    X(POST_SEND, "post_send", 500, ENOMEM, "ibv_post_send() fails with ENOMEM, nothing is posted") \
    X(POST_RECV, "post_recv", 500, ENOMEM, "ibv_post_recv() fails with ENOMEM, nothing is posted") \
    X(POST_SRQ_RECV, "post_srq_recv", 500, ENOMEM, "ibv_post_srq_recv() fails with ENOMEM")        \
    X(REQ_NOTIFY_CQ, "req_notify_cq", 1000, EINVAL, "ibv_req_notify_cq() fails with EINVAL")       \
    X(GET_CQ_EVENT, "get_cq_event", 500, EINTR, "ibv_get_cq_event() is interrupted: EINTR")        \
    X(GET_ASYNC_EVENT, "get_async_event", 20, EINTR,                                               \
      "ibv_get_async_event() is interrupted: EINTR")                                               \
    X(CREATE_EVENT_CHANNEL, "create_event_channel", 20, EMFILE,                                    \
      "rdma_create_event_channel() fails with EMFILE")                                             \
    X(CREATE_ID, "create_id", 20, ENOMEM, "rdma_create_id() fails with ENOMEM")                    \
    X(BIND_ADDR, "bind_addr", 20, EADDRINUSE, "rdma_bind_addr() fails with EADDRINUSE")            \
    X(RESOLVE_ADDR, "resolve_addr", 20, ENOMEM, "rdma_resolve_addr() fails with ENOMEM")           \
    X(RESOLVE_ROUTE, "resolve_route", 20, ENOMEM, "rdma_resolve_route() fails with ENOMEM")        \
    X(LISTEN, "listen", 20, EADDRINUSE, "rdma_listen() fails with EADDRINUSE")                     \
    X(CONNECT, "connect", 20, ENOMEM, "rdma_connect() fails with ENOMEM")                          \
    X(ACCEPT, "accept", 20, ENOMEM, "rdma_accept() fails with ENOMEM")                             \
    X(GET_CM_EVENT, "get_cm_event", 100, EINTR, "rdma_get_cm_event() is interrupted: EINTR")       \
    X(QUERY_DEVICE, "query_device", 50, ENOMEM, "ibv_query_device() fails with ENOMEM")            \
    X(QUERY_PORT, "query_port", 50, ENOMEM, "ibv_query_port() fails with ENOMEM")                  \
    X(QUERY_GID, "query_gid", 50, ENOMEM, "ibv_query_gid() fails with ENOMEM")                     \
    X(QUERY_QP, "query_qp", 20, ENOMEM, "ibv_query_qp() fails with ENOMEM")                        \
    X(MODIFY_SRQ, "modify_srq", 20, ENOMEM, "ibv_modify_srq() fails with ENOMEM")                  \
    X(REREG_MR, "rereg_mr", 20, ENOMEM, "ibv_rereg_mr() fails with ENOMEM, nothing has changed")   \
    X(BIND_MW, "bind_mw", 100, ENOMEM, "ibv_bind_mw() fails with ENOMEM")                          \
    X(GET_DEVICES, "get_devices", 50, ENOMEM, "rdma_get_devices() fails with ENOMEM")              \
    X(GETADDRINFO, "getaddrinfo", 20, ENOMEM, "rdma_getaddrinfo() fails with ENOMEM")              \
    X(SET_OPTION, "set_option", 20, ENOMEM, "rdma_set_option() fails with ENOMEM")                 \
    X(MIGRATE_ID, "migrate_id", 20, ENOMEM, "rdma_migrate_id() fails with ENOMEM")                 \
    X(REJECT, "reject", 20, ENOMEM, "rdma_reject() fails with ENOMEM")                             \
    X(DISCONNECT, "disconnect", 50, ENOMEM, "rdma_disconnect() fails with ENOMEM")                 \
    X(ADDR_ERROR, "addr_error", 20, 0, "RDMA_CM_EVENT_ADDR_ERROR in place of ADDR_RESOLVED")       \
    X(ROUTE_ERROR, "route_error", 20, 0, "RDMA_CM_EVENT_ROUTE_ERROR in place of ROUTE_RESOLVED")   \
    X(REJECTED, "rejected", 20, 0, "the connection attempt ends with RDMA_CM_EVENT_REJECTED")      \
    X(UNREACHABLE, "unreachable", 20, 0,                                                           \
      "the connection attempt ends with RDMA_CM_EVENT_UNREACHABLE")                                \
    X(CONNECT_ERROR, "connect_error", 20, 0,                                                       \
      "the connection attempt ends with RDMA_CM_EVENT_CONNECT_ERROR")                              \
    X(ADDR_CHANGE, "addr_change", 50, 0, "RDMA_CM_EVENT_ADDR_CHANGE follows ESTABLISHED")          \
    X(DEVICE_REMOVAL, "device_removal", 50, 0, "RDMA_CM_EVENT_DEVICE_REMOVAL follows ESTABLISHED") \
    X(CUT_FIN, "cut_fin", 20, 0, "a connection ends as by the peer's FIN, after some bytes")       \
    X(CUT_RST, "cut_rst", 20, 0, "a connection ends as by the peer's RST, after some bytes")       \
    X(SILENCE, "silence", 100, 0, "a connection carries nothing more, and nobody says so")         \
    X(CORRUPT, "corrupt", 50, 0, "a bit of what is received changes, which the CRC finds")         \
    X(SHORT_READ, "short_read", 5, 0, "what a connection receives comes in odd pieces")            \
    X(SHORT_WRITE, "short_write", 5, 0, "what a connection sends leaves in odd pieces")            \
    X(SLOW_PEER, "slow_peer", 20, 0, "the peer of a connection takes and gives little at a time")  \
    X(PLACEMENT, "placement", 20, 0, "bytes of RDMA Writes land in pieces, in any order, late")    \
    X(FIN_AT_MESSAGE, "fin_at_message", 1000, 0,                                                   \
      "a connection ends as by the peer's FIN, at a posted message")                               \
    X(RST_AT_MESSAGE, "rst_at_message", 1000, 0,                                                   \
      "a connection ends as by the peer's RST, at a posted message")                               \
    X(SILENCE_AT_MESSAGE, "silence_at_message", 2000, 0,                                           \
      "a connection carries nothing from a posted message on")                                     \
    X(LATE_RECV, "late_recv", 200, 0,                                                              \
      "a receive, and those behind it, are posted some milliseconds late")                         \
    X(LATE, "late", 200, 0, "a completion is there, and polls do not find it yet")                 \
    X(SINGLE, "single", 100, 0, "completions are polled one at a time for a while")                \
    X(BURST, "burst", 200, 0, "completions are kept back, and come several at once")               \
    X(SPURIOUS, "spurious", 100, 0, "a completion channel has an event, and the CQ nothing new")   \
    X(WC_LOC_LEN_ERR, "wc_loc_len_err", 2000, 0,                                                   \
      "work fails with IBV_WC_LOC_LEN_ERR, a flush follows")                                       \
    X(WC_LOC_PROT_ERR, "wc_loc_prot_err", 2000, 0,                                                 \
      "work fails with IBV_WC_LOC_PROT_ERR, a flush follows")                                      \
    X(WC_REM_INV_REQ_ERR, "wc_rem_inv_req_err", 2000, 0,                                           \
      "work fails with IBV_WC_REM_INV_REQ_ERR, a flush follows")                                   \
    X(WC_REM_ACCESS_ERR, "wc_rem_access_err", 2000, 0,                                             \
      "work fails with IBV_WC_REM_ACCESS_ERR, a flush follows")                                    \
    X(WC_REM_OP_ERR, "wc_rem_op_err", 2000, 0,                                                     \
      "work fails with IBV_WC_REM_OP_ERR, a flush follows")                                        \
    X(WC_RETRY_EXC_ERR, "wc_retry_exc_err", 2000, 0,                                               \
      "work fails with IBV_WC_RETRY_EXC_ERR, a flush follows")                                     \
    X(WC_RNR_RETRY_EXC_ERR, "wc_rnr_retry_exc_err", 2000, 0,                                       \
      "work fails with IBV_WC_RNR_RETRY_EXC_ERR, a flush follows")                                 \
    X(WC_LOC_QP_OP_ERR, "wc_loc_qp_op_err", 2000, 0,                                               \
      "work fails with IBV_WC_LOC_QP_OP_ERR, a flush follows")                                     \
    X(WC_MW_BIND_ERR, "wc_mw_bind_err", 2000, 0,                                                   \
      "work fails with IBV_WC_MW_BIND_ERR, a flush follows")                                       \
    X(WC_BAD_RESP_ERR, "wc_bad_resp_err", 2000, 0,                                                 \
      "work fails with IBV_WC_BAD_RESP_ERR, a flush follows")                                      \
    X(WC_LOC_ACCESS_ERR, "wc_loc_access_err", 2000, 0,                                             \
      "work fails with IBV_WC_LOC_ACCESS_ERR, a flush follows")                                    \
    X(WC_REM_ABORT_ERR, "wc_rem_abort_err", 2000, 0,                                               \
      "work fails with IBV_WC_REM_ABORT_ERR, a flush follows")                                     \
    X(WC_RESP_TIMEOUT_ERR, "wc_resp_timeout_err", 2000, 0,                                         \
      "work fails with IBV_WC_RESP_TIMEOUT_ERR, a flush follows")                                  \
    X(WC_FATAL_ERR, "wc_fatal_err", 2000, 0, "work fails with IBV_WC_FATAL_ERR, a flush follows")  \
    X(WC_GENERAL_ERR, "wc_general_err", 2000, 0,                                                   \
      "work fails with IBV_WC_GENERAL_ERR, a flush follows")                                       \
    X(RECV_LOC_LEN_ERR, "recv_loc_len_err", 2000, 0,                                               \
      "a receive fails with IBV_WC_LOC_LEN_ERR, a flush follows")                                  \
    X(RECV_LOC_PROT_ERR, "recv_loc_prot_err", 2000, 0,                                             \
      "a receive fails with IBV_WC_LOC_PROT_ERR, a flush follows")                                 \
    X(RECV_LOC_QP_OP_ERR, "recv_loc_qp_op_err", 2000, 0,                                           \
      "a receive fails with IBV_WC_LOC_QP_OP_ERR, a flush follows")                                \
    X(RECV_REM_ABORT_ERR, "recv_rem_abort_err", 2000, 0,                                           \
      "a receive fails with IBV_WC_REM_ABORT_ERR, a flush follows")                                \
    X(DEVICE_FATAL, "device_fatal", 5000, 0, "IBV_EVENT_DEVICE_FATAL is raised")                   \
    X(PORT_FLAP, "port_flap", 2000, 0, "IBV_EVENT_PORT_ERR is raised, then IBV_EVENT_PORT_ACTIVE") \
    X(CQ_ERR, "cq_err", 5000, 0, "IBV_EVENT_CQ_ERR is raised")                                     \
    X(SRQ_LIMIT, "srq_limit", 500, 0, "IBV_EVENT_SRQ_LIMIT_REACHED is raised")

#define IW_FAULT_ENUM(name, text, every, error, meaning) IW_FAULT_##name,
enum iw_fault { IW_FAULT_LIST(IW_FAULT_ENUM) IW_FAULTS };
#undef IW_FAULT_ENUM

#endif
