/* SPDX-License-Identifier: BSD-2-Clause */
/* Every fault there is: name, once in how many calls unless --every says so, what happens. */
#ifndef ANYWARP_FAULTS_LIST_H
#define ANYWARP_FAULTS_LIST_H

#define IW_FAULT_LIST(X)                                                                           \
    X(GET_DEVICE_LIST, "get_device_list", 50, "ibv_get_device_list() fails with ENOMEM")           \
    X(OPEN_DEVICE, "open_device", 20, "ibv_open_device() fails with EMFILE")                       \
    X(ALLOC_PD, "alloc_pd", 20, "ibv_alloc_pd() fails with ENOMEM")                                \
    X(REG_MR, "reg_mr", 40, "ibv_reg_mr() fails with ENOMEM")                                      \
    X(CREATE_COMP_CHANNEL, "create_comp_channel", 20,                                              \
      "ibv_create_comp_channel() fails with EMFILE")                                               \
    X(CREATE_CQ, "create_cq", 20, "ibv_create_cq() fails with ENOMEM")                             \
    X(RESIZE_CQ, "resize_cq", 20, "ibv_resize_cq() fails with ENOMEM")                             \
    X(CREATE_QP, "create_qp", 20, "ibv_create_qp() fails with ENOMEM")                             \
    X(MODIFY_QP, "modify_qp", 20, "ibv_modify_qp() fails with ENOMEM")                             \
    X(CREATE_SRQ, "create_srq", 20, "ibv_create_srq() fails with ENOMEM")                          \
    X(ALLOC_MW, "alloc_mw", 20, "ibv_alloc_mw() fails with ENOMEM")                                \
    X(POST_SEND, "post_send", 500, "ibv_post_send() fails with ENOMEM, nothing is posted")         \
    X(POST_RECV, "post_recv", 500, "ibv_post_recv() fails with ENOMEM, nothing is posted")         \
    X(POST_SRQ_RECV, "post_srq_recv", 500, "ibv_post_srq_recv() fails with ENOMEM")                \
    X(REQ_NOTIFY_CQ, "req_notify_cq", 1000, "ibv_req_notify_cq() fails with EINVAL")               \
    X(GET_CQ_EVENT, "get_cq_event", 500, "ibv_get_cq_event() is interrupted: EINTR")               \
    X(GET_ASYNC_EVENT, "get_async_event", 20, "ibv_get_async_event() is interrupted: EINTR")       \
    X(CREATE_EVENT_CHANNEL, "create_event_channel", 20,                                            \
      "rdma_create_event_channel() fails with EMFILE")                                             \
    X(CREATE_ID, "create_id", 20, "rdma_create_id() fails with ENOMEM")                            \
    X(BIND_ADDR, "bind_addr", 20, "rdma_bind_addr() fails with EADDRINUSE")                        \
    X(RESOLVE_ADDR, "resolve_addr", 20, "rdma_resolve_addr() fails with ENOMEM")                   \
    X(RESOLVE_ROUTE, "resolve_route", 20, "rdma_resolve_route() fails with ENOMEM")                \
    X(LISTEN, "listen", 20, "rdma_listen() fails with EADDRINUSE")                                 \
    X(CONNECT, "connect", 20, "rdma_connect() fails with ENOMEM")                                  \
    X(ACCEPT, "accept", 20, "rdma_accept() fails with ENOMEM")                                     \
    X(GET_CM_EVENT, "get_cm_event", 100, "rdma_get_cm_event() is interrupted: EINTR")              \
    X(ADDR_ERROR, "addr_error", 20, "RDMA_CM_EVENT_ADDR_ERROR in place of ADDR_RESOLVED")          \
    X(ROUTE_ERROR, "route_error", 20, "RDMA_CM_EVENT_ROUTE_ERROR in place of ROUTE_RESOLVED")      \
    X(REJECTED, "rejected", 20, "the connection attempt ends with RDMA_CM_EVENT_REJECTED")         \
    X(UNREACHABLE, "unreachable", 20,                                                              \
      "the connection attempt ends with RDMA_CM_EVENT_UNREACHABLE")                                \
    X(CONNECT_ERROR, "connect_error", 20,                                                          \
      "the connection attempt ends with RDMA_CM_EVENT_CONNECT_ERROR")                              \
    X(ADDR_CHANGE, "addr_change", 50, "RDMA_CM_EVENT_ADDR_CHANGE follows ESTABLISHED")             \
    X(DEVICE_REMOVAL, "device_removal", 50, "RDMA_CM_EVENT_DEVICE_REMOVAL follows ESTABLISHED")    \
    X(CUT_FIN, "cut_fin", 20, "a connection ends as by the peer's FIN, after some bytes")          \
    X(CUT_RST, "cut_rst", 20, "a connection ends as by the peer's RST, after some bytes")          \
    X(SILENCE, "silence", 100, "a connection carries nothing more, and nobody says so")            \
    X(CORRUPT, "corrupt", 50, "a bit of what is received changes, which the CRC finds")            \
    X(SHORT_READ, "short_read", 5, "what a connection receives comes in odd pieces")               \
    X(SHORT_WRITE, "short_write", 5, "what a connection sends leaves in odd pieces")               \
    X(SLOW_PEER, "slow_peer", 20, "the peer of a connection takes and gives little at a time")     \
    X(LATE, "late", 200, "a completion is there, and polls do not find it yet")                    \
    X(SINGLE, "single", 100, "completions are polled one at a time for a while")                   \
    X(BURST, "burst", 200, "completions are kept back, and come several at once")                  \
    X(SPURIOUS, "spurious", 100, "a completion channel has an event, and the CQ nothing new")      \
    X(WC_LOC_LEN_ERR, "wc_loc_len_err", 2000,                                                      \
      "work fails with IBV_WC_LOC_LEN_ERR, a flush follows")                                       \
    X(WC_LOC_PROT_ERR, "wc_loc_prot_err", 2000,                                                    \
      "work fails with IBV_WC_LOC_PROT_ERR, a flush follows")                                      \
    X(WC_REM_INV_REQ_ERR, "wc_rem_inv_req_err", 2000,                                              \
      "work fails with IBV_WC_REM_INV_REQ_ERR, a flush follows")                                   \
    X(WC_REM_ACCESS_ERR, "wc_rem_access_err", 2000,                                                \
      "work fails with IBV_WC_REM_ACCESS_ERR, a flush follows")                                    \
    X(WC_REM_OP_ERR, "wc_rem_op_err", 2000, "work fails with IBV_WC_REM_OP_ERR, a flush follows")  \
    X(WC_RETRY_EXC_ERR, "wc_retry_exc_err", 2000,                                                  \
      "work fails with IBV_WC_RETRY_EXC_ERR, a flush follows")                                     \
    X(WC_RNR_RETRY_EXC_ERR, "wc_rnr_retry_exc_err", 2000,                                          \
      "work fails with IBV_WC_RNR_RETRY_EXC_ERR, a flush follows")                                 \
    X(DEVICE_FATAL, "device_fatal", 5000, "IBV_EVENT_DEVICE_FATAL is raised")                      \
    X(PORT_FLAP, "port_flap", 2000, "IBV_EVENT_PORT_ERR is raised, then IBV_EVENT_PORT_ACTIVE")    \
    X(CQ_ERR, "cq_err", 5000, "IBV_EVENT_CQ_ERR is raised")                                        \
    X(SRQ_LIMIT, "srq_limit", 500, "IBV_EVENT_SRQ_LIMIT_REACHED is raised")

#define IW_FAULT_ENUM(name, text, every, meaning) IW_FAULT_##name,
enum iw_fault { IW_FAULT_LIST(IW_FAULT_ENUM) IW_FAULTS };
#undef IW_FAULT_ENUM

#endif
