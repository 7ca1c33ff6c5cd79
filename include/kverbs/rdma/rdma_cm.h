/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's RDMA connection manager, as of Linux 4.12 to 4.14. Functions that librdmacm has
 * under the same name, with other parameters, get another name for the linker.
 *
 * Handlers run on a thread of their own, one at a time, and may sleep. One that returns other than
 * 0 has its id destroyed; of a connection request that is the new id.
 */
#ifndef KVERBS_RDMA_RDMA_CM_H
#define KVERBS_RDMA_RDMA_CM_H

#if defined(RDMA_AIX_NAME_RDMA_CM_H) || defined(RDMA_CMA_H) || defined(_RDMA_CMA_H)
#error "the kernel's <rdma/rdma_cm.h> and librdmacm's headers are not for one source file"
#endif

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>

#define rdma_create_id     kv_rdma_create_id
#define rdma_destroy_id    kv_rdma_destroy_id
#define rdma_bind_addr     kv_rdma_bind_addr
#define rdma_resolve_addr  kv_rdma_resolve_addr
#define rdma_resolve_route kv_rdma_resolve_route
#define rdma_create_qp     kv_rdma_create_qp
#define rdma_destroy_qp    kv_rdma_destroy_qp
#define rdma_init_qp_attr  kv_rdma_init_qp_attr
#define rdma_connect       kv_rdma_connect
#define rdma_listen        kv_rdma_listen
#define rdma_accept        kv_rdma_accept
#define rdma_notify        kv_rdma_notify
#define rdma_reject        kv_rdma_reject
#define rdma_disconnect    kv_rdma_disconnect

enum rdma_cm_event_type {
    RDMA_CM_EVENT_ADDR_RESOLVED,
    RDMA_CM_EVENT_ADDR_ERROR,
    RDMA_CM_EVENT_ROUTE_RESOLVED,
    RDMA_CM_EVENT_ROUTE_ERROR,
    RDMA_CM_EVENT_CONNECT_REQUEST,
    RDMA_CM_EVENT_CONNECT_RESPONSE,
    RDMA_CM_EVENT_CONNECT_ERROR,
    RDMA_CM_EVENT_UNREACHABLE,
    RDMA_CM_EVENT_REJECTED,
    RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_DISCONNECTED,
    RDMA_CM_EVENT_DEVICE_REMOVAL,
    RDMA_CM_EVENT_MULTICAST_JOIN,
    RDMA_CM_EVENT_MULTICAST_ERROR,
    RDMA_CM_EVENT_ADDR_CHANGE,
    RDMA_CM_EVENT_TIMEWAIT_EXIT,
};

enum rdma_port_space {
    RDMA_PS_IPOIB = 0x0002,
    RDMA_PS_TCP = 0x0106,
    RDMA_PS_UDP = 0x0111,
    RDMA_PS_IB = 0x013F,
};

struct rdma_addr {
    struct sockaddr_storage src_addr;
    struct sockaddr_storage dst_addr;
};

struct rdma_route {
    struct rdma_addr addr;
    int num_paths;
};

struct rdma_conn_param {
    const void *private_data; /* of an event: until its handler returns */
    u8 private_data_len;
    u8 responder_resources;
    u8 initiator_depth;
    u8 flow_control;
    u8 retry_count; /* ignored when accepting */
    u8 rnr_retry_count;
    u8 srq; /* these two if the id has no queue pair */
    u32 qp_num;
    u32 qkey;
};

struct rdma_ud_param {
    const void *private_data;
    u8 private_data_len;
    struct rdma_ah_attr ah_attr;
    u32 qp_num;
    u32 qkey;
};

struct rdma_cm_event {
    enum rdma_cm_event_type event;
    int status;
    union {
        struct rdma_conn_param conn;
        struct rdma_ud_param ud;
    } param;
};

struct rdma_cm_id;
typedef int (*rdma_cm_event_handler)(struct rdma_cm_id *id, struct rdma_cm_event *event);

struct rdma_cm_id {
    struct ib_device *device;
    void *context;
    struct ib_qp *qp;
    rdma_cm_event_handler event_handler;
    struct rdma_route route;
    enum rdma_port_space ps;
    enum ib_qp_type qp_type;
    u8 port_num;
};

struct rdma_cm_id *rdma_create_id(struct net *net, rdma_cm_event_handler event_handler,
                                  void *context, enum rdma_port_space ps, enum ib_qp_type qp_type);

/** Waits for a handler of the id that runs. In it, complains, and destroys the id after it. */
void rdma_destroy_id(struct rdma_cm_id *id);

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms);
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);
int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr);
void rdma_destroy_qp(struct rdma_cm_id *id);
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr, int *qp_attr_mask);
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_listen(struct rdma_cm_id *id, int backlog);
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);
int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event);
int rdma_reject(struct rdma_cm_id *id, const void *private_data, u8 private_data_len);
int rdma_disconnect(struct rdma_cm_id *id);
void rdma_set_service_type(struct rdma_cm_id *id, int tos);
int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse);
int rdma_set_afonly(struct rdma_cm_id *id, int afonly);
const char *rdma_event_msg(enum rdma_cm_event_type event);
const char *rdma_reject_msg(struct rdma_cm_id *id, int reason);
bool rdma_is_consumer_reject(struct rdma_cm_id *id, int reason);
const void *rdma_consumer_reject_data(struct rdma_cm_id *id, struct rdma_cm_event *event,
                                      u8 *data_len);

#endif
