/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints what a program sees in <rdma/...>: sizes, offsets, constants, and whether each function
 * has the type it should. Compiled once with our headers and once with rdma-core's: both say the
 * same.
 */
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include <stddef.h>
#include <stdio.h>

/* Field types that compare unequal would convert all the same; the class and size must agree. */
#define SIZE(type) printf("sizeof %s %zu align %zu\n", #type, sizeof(type), _Alignof(type));
#define FIELD(type, field)                                                                         \
    printf("%s.%s at %zu size %zu class %d\n", #type, #field, offsetof(type, field),               \
           sizeof(((type *)0)->field), __builtin_classify_type(((type *)0)->field));
#define FUNC(ret, name, params)                                                                    \
    printf("%s %d\n", #name, __builtin_types_compatible_p(__typeof__(name), ret params));
#define CONST(name)     printf("%s %lld\n", #name, (long long)(name));
#define STRUCT(type, X) SIZE(type) X(type)

#define EVENT_CHANNEL(t) FIELD(t, fd)
#define IB_ADDR(t)       FIELD(t, sgid.raw[0]) FIELD(t, dgid.raw[0]) FIELD(t, pkey)
#define ADDR(t)                                                                                    \
    FIELD(t, src_addr.sa_family)                                                                   \
    FIELD(t, src_sin.sin_port)                                                                     \
    FIELD(t, src_sin6.sin6_port)                                                                   \
    FIELD(t, src_storage.ss_family) FIELD(t, dst_addr.sa_family) FIELD(t, dst_sin.sin_port)        \
        FIELD(t, dst_sin6.sin6_port) FIELD(t, dst_storage.ss_family) FIELD(t, addr.ibaddr.pkey)
#define ROUTE(t) FIELD(t, addr.src_addr.sa_family) FIELD(t, path_rec) FIELD(t, num_paths)
#define CM_ID(t)                                                                                   \
    FIELD(t, verbs)                                                                                \
    FIELD(t, channel)                                                                              \
    FIELD(t, context)                                                                              \
    FIELD(t, qp) FIELD(t, route.num_paths) FIELD(t, ps) FIELD(t, port_num) FIELD(t, event)         \
        FIELD(t, send_cq_channel) FIELD(t, send_cq) FIELD(t, recv_cq_channel) FIELD(t, recv_cq)    \
            FIELD(t, srq) FIELD(t, pd) FIELD(t, qp_type)
#define CONN_PARAM(t)                                                                              \
    FIELD(t, private_data)                                                                         \
    FIELD(t, private_data_len)                                                                     \
    FIELD(t, responder_resources)                                                                  \
    FIELD(t, initiator_depth) FIELD(t, flow_control) FIELD(t, retry_count)                         \
        FIELD(t, rnr_retry_count) FIELD(t, srq) FIELD(t, qp_num)
#define UD_PARAM(t)                                                                                \
    FIELD(t, private_data)                                                                         \
    FIELD(t, private_data_len) FIELD(t, ah_attr.dlid) FIELD(t, qp_num) FIELD(t, qkey)
#define CM_EVENT(t)                                                                                \
    FIELD(t, id)                                                                                   \
    FIELD(t, listen_id)                                                                            \
    FIELD(t, event) FIELD(t, status) FIELD(t, param.conn.qp_num) FIELD(t, param.ud.qkey)
#define ADDRINFO(t)                                                                                \
    FIELD(t, ai_flags)                                                                             \
    FIELD(t, ai_family)                                                                            \
    FIELD(t, ai_qp_type)                                                                           \
    FIELD(t, ai_port_space) FIELD(t, ai_src_len) FIELD(t, ai_dst_len) FIELD(t, ai_src_addr)        \
        FIELD(t, ai_dst_addr) FIELD(t, ai_src_canonname) FIELD(t, ai_dst_canonname)                \
            FIELD(t, ai_route_len) FIELD(t, ai_route) FIELD(t, ai_connect_len)                     \
                FIELD(t, ai_connect) FIELD(t, ai_next)
#define JOIN_ATTR(t) FIELD(t, comp_mask) FIELD(t, join_flags) FIELD(t, addr)

static void layouts(void)
{
    STRUCT(struct rdma_event_channel, EVENT_CHANNEL)
    STRUCT(struct rdma_ib_addr, IB_ADDR)
    STRUCT(struct rdma_addr, ADDR)
    STRUCT(struct rdma_route, ROUTE)
    STRUCT(struct rdma_cm_id, CM_ID)
    STRUCT(struct rdma_conn_param, CONN_PARAM)
    STRUCT(struct rdma_ud_param, UD_PARAM)
    STRUCT(struct rdma_cm_event, CM_EVENT)
    STRUCT(struct rdma_addrinfo, ADDRINFO)
    STRUCT(struct rdma_cm_join_mc_attr_ex, JOIN_ATTR)
    SIZE(struct ibv_sa_path_rec)
    SIZE(enum rdma_cm_event_type)
    SIZE(enum rdma_port_space)
    SIZE(enum rdma_cm_join_mc_attr_mask)
    SIZE(enum rdma_cm_mc_join_flags)
}

static void constants(void)
{
    CONST(RDMA_CM_EVENT_ADDR_RESOLVED)
    CONST(RDMA_CM_EVENT_ADDR_ERROR)
    CONST(RDMA_CM_EVENT_ROUTE_RESOLVED)
    CONST(RDMA_CM_EVENT_ROUTE_ERROR)
    CONST(RDMA_CM_EVENT_CONNECT_REQUEST)
    CONST(RDMA_CM_EVENT_CONNECT_RESPONSE)
    CONST(RDMA_CM_EVENT_CONNECT_ERROR)
    CONST(RDMA_CM_EVENT_UNREACHABLE)
    CONST(RDMA_CM_EVENT_REJECTED)
    CONST(RDMA_CM_EVENT_ESTABLISHED)
    CONST(RDMA_CM_EVENT_DISCONNECTED)
    CONST(RDMA_CM_EVENT_DEVICE_REMOVAL)
    CONST(RDMA_CM_EVENT_MULTICAST_JOIN)
    CONST(RDMA_CM_EVENT_MULTICAST_ERROR)
    CONST(RDMA_CM_EVENT_ADDR_CHANGE)
    CONST(RDMA_CM_EVENT_TIMEWAIT_EXIT)
    CONST(RDMA_PS_IPOIB)
    CONST(RDMA_PS_TCP)
    CONST(RDMA_PS_UDP)
    CONST(RDMA_PS_IB)
    CONST(RDMA_IB_IP_PS_MASK)
    CONST(RDMA_IB_IP_PORT_MASK)
    CONST(RDMA_IB_IP_PS_TCP)
    CONST(RDMA_IB_IP_PS_UDP)
    CONST(RDMA_IB_PS_IB)
    CONST(RDMA_UDP_QKEY)
    CONST(RDMA_MAX_RESP_RES)
    CONST(RDMA_MAX_INIT_DEPTH)
    CONST(RAI_PASSIVE)
    CONST(RAI_NUMERICHOST)
    CONST(RAI_NOROUTE)
    CONST(RAI_FAMILY)
    CONST(RDMA_CM_JOIN_MC_ATTR_ADDRESS)
    CONST(RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS)
    CONST(RDMA_CM_JOIN_MC_ATTR_RESERVED)
    CONST(RDMA_MC_JOIN_FLAG_FULLMEMBER)
    CONST(RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER)
    CONST(RDMA_MC_JOIN_FLAG_RESERVED)
    CONST(RDMA_OPTION_ID)
    CONST(RDMA_OPTION_IB)
    CONST(RDMA_OPTION_ID_TOS)
    CONST(RDMA_OPTION_ID_REUSEADDR)
    CONST(RDMA_OPTION_ID_AFONLY)
    CONST(RDMA_OPTION_ID_ACK_TIMEOUT)
    CONST(RDMA_OPTION_IB_PATH)
    CONST(SOL_RDMA)
    CONST(RDMA_SQSIZE)
    CONST(RDMA_RQSIZE)
    CONST(RDMA_INLINE)
    CONST(RDMA_IOMAPSIZE)
    CONST(RDMA_ROUTE)
}

#define P_ID      struct rdma_cm_id *
#define P_CHANNEL struct rdma_event_channel *
#define P_ADDR    struct sockaddr *
#define P_CADDR   const struct sockaddr *
#define P_MR      struct ibv_mr *
#define P_SGE     struct ibv_sge *

static void functions(void)
{
    FUNC(P_CHANNEL, rdma_create_event_channel, (void))
    FUNC(void, rdma_destroy_event_channel, (P_CHANNEL))
    FUNC(int, rdma_create_id, (P_CHANNEL, P_ID *, void *, enum rdma_port_space))
    FUNC(int, rdma_create_ep,
         (P_ID *, struct rdma_addrinfo *, struct ibv_pd *, struct ibv_qp_init_attr *))
    FUNC(void, rdma_destroy_ep, (P_ID))
    FUNC(int, rdma_destroy_id, (P_ID))
    FUNC(int, rdma_bind_addr, (P_ID, P_ADDR))
    FUNC(int, rdma_resolve_addr, (P_ID, P_ADDR, P_ADDR, int))
    FUNC(int, rdma_resolve_route, (P_ID, int))
    FUNC(int, rdma_create_qp, (P_ID, struct ibv_pd *, struct ibv_qp_init_attr *))
    FUNC(int, rdma_create_qp_ex, (P_ID, struct ibv_qp_init_attr_ex *))
    FUNC(void, rdma_destroy_qp, (P_ID))
    FUNC(int, rdma_connect, (P_ID, struct rdma_conn_param *))
    FUNC(int, rdma_establish, (P_ID))
    FUNC(int, rdma_listen, (P_ID, int))
    FUNC(int, rdma_get_request, (P_ID, P_ID *))
    FUNC(int, rdma_accept, (P_ID, struct rdma_conn_param *))
    FUNC(int, rdma_reject, (P_ID, const void *, uint8_t))
    FUNC(int, rdma_reject_ece, (P_ID, const void *, uint8_t))
    FUNC(int, rdma_notify, (P_ID, enum ibv_event_type))
    FUNC(int, rdma_disconnect, (P_ID))
    FUNC(int, rdma_join_multicast, (P_ID, P_ADDR, void *))
    FUNC(int, rdma_leave_multicast, (P_ID, P_ADDR))
    FUNC(int, rdma_join_multicast_ex, (P_ID, struct rdma_cm_join_mc_attr_ex *, void *))
    FUNC(int, rdma_get_cm_event, (P_CHANNEL, struct rdma_cm_event **))
    FUNC(int, rdma_ack_cm_event, (struct rdma_cm_event *))
    FUNC(__be16, rdma_get_src_port, (P_ID))
    FUNC(__be16, rdma_get_dst_port, (P_ID))
    FUNC(P_ADDR, rdma_get_local_addr, (P_ID))
    FUNC(P_ADDR, rdma_get_peer_addr, (P_ID))
    FUNC(struct ibv_context **, rdma_get_devices, (int *))
    FUNC(void, rdma_free_devices, (struct ibv_context **))
    FUNC(const char *, rdma_event_str, (enum rdma_cm_event_type))
    FUNC(int, rdma_set_option, (P_ID, int, int, void *, size_t))
    FUNC(int, rdma_migrate_id, (P_ID, P_CHANNEL))
    FUNC(int, rdma_getaddrinfo,
         (const char *, const char *, const struct rdma_addrinfo *, struct rdma_addrinfo **))
    FUNC(void, rdma_freeaddrinfo, (struct rdma_addrinfo *))
    FUNC(int, rdma_init_qp_attr, (P_ID, struct ibv_qp_attr *, int *))
    FUNC(int, rdma_set_local_ece, (P_ID, struct ibv_ece *))
    FUNC(int, rdma_get_remote_ece, (P_ID, struct ibv_ece *))

    FUNC(int, rdma_seterrno, (int))
    FUNC(int, rdma_create_srq, (P_ID, struct ibv_pd *, struct ibv_srq_init_attr *))
    FUNC(int, rdma_create_srq_ex, (P_ID, struct ibv_srq_init_attr_ex *))
    FUNC(void, rdma_destroy_srq, (P_ID))
    FUNC(P_MR, rdma_reg_msgs, (P_ID, void *, size_t))
    FUNC(P_MR, rdma_reg_read, (P_ID, void *, size_t))
    FUNC(P_MR, rdma_reg_write, (P_ID, void *, size_t))
    FUNC(int, rdma_dereg_mr, (P_MR))
    FUNC(int, rdma_post_recvv, (P_ID, void *, P_SGE, int))
    FUNC(int, rdma_post_sendv, (P_ID, void *, P_SGE, int, int))
    FUNC(int, rdma_post_readv, (P_ID, void *, P_SGE, int, int, uint64_t, uint32_t))
    FUNC(int, rdma_post_writev, (P_ID, void *, P_SGE, int, int, uint64_t, uint32_t))
    FUNC(int, rdma_post_recv, (P_ID, void *, void *, size_t, P_MR))
    FUNC(int, rdma_post_send, (P_ID, void *, void *, size_t, P_MR, int))
    FUNC(int, rdma_post_read, (P_ID, void *, void *, size_t, P_MR, int, uint64_t, uint32_t))
    FUNC(int, rdma_post_write, (P_ID, void *, void *, size_t, P_MR, int, uint64_t, uint32_t))
    FUNC(int, rdma_post_ud_send,
         (P_ID, void *, void *, size_t, P_MR, int, struct ibv_ah *, uint32_t))
    FUNC(int, rdma_get_send_comp, (P_ID, struct ibv_wc *))
    FUNC(int, rdma_get_recv_comp, (P_ID, struct ibv_wc *))

    FUNC(int, rsocket, (int, int, int))
    FUNC(int, rbind, (int, P_CADDR, socklen_t))
    FUNC(int, rlisten, (int, int))
    FUNC(int, raccept, (int, P_ADDR, socklen_t *))
    FUNC(int, rconnect, (int, P_CADDR, socklen_t))
    FUNC(int, rshutdown, (int, int))
    FUNC(int, rclose, (int))
    FUNC(ssize_t, rrecv, (int, void *, size_t, int))
    FUNC(ssize_t, rrecvfrom, (int, void *, size_t, int, P_ADDR, socklen_t *))
    FUNC(ssize_t, rrecvmsg, (int, struct msghdr *, int))
    FUNC(ssize_t, rsend, (int, const void *, size_t, int))
    FUNC(ssize_t, rsendto, (int, const void *, size_t, int, P_CADDR, socklen_t))
    FUNC(ssize_t, rsendmsg, (int, const struct msghdr *, int))
    FUNC(ssize_t, rread, (int, void *, size_t))
    FUNC(ssize_t, rreadv, (int, const struct iovec *, int))
    FUNC(ssize_t, rwrite, (int, const void *, size_t))
    FUNC(ssize_t, rwritev, (int, const struct iovec *, int))
    FUNC(int, rpoll, (struct pollfd *, nfds_t, int))
    FUNC(int, rselect, (int, fd_set *, fd_set *, fd_set *, struct timeval *))
    FUNC(int, rgetpeername, (int, P_ADDR, socklen_t *))
    FUNC(int, rgetsockname, (int, P_ADDR, socklen_t *))
    FUNC(int, rsetsockopt, (int, int, int, const void *, socklen_t))
    FUNC(int, rgetsockopt, (int, int, int, void *, socklen_t *))
    FUNC(int, rfcntl, (int, int, ...))
    FUNC(off_t, riomap, (int, void *, size_t, int, int, off_t))
    FUNC(int, riounmap, (int, void *, size_t))
    FUNC(size_t, riowrite, (int, const void *, size_t, off_t, int))
}

int main(void)
{
    layouts();
    constants();
    functions();
    return 0;
}
