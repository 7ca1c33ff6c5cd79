/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's verbs, as of Linux 4.12 to 4.14, for sources of the kernel that are compiled as
 * programs: names and meaning as there, behind them the public verbs of the program. kverbs(7)
 * tells what differs.
 *
 * Functions that return pointers return ERR_PTR() of a negative errno, others a negative errno.
 * What may sleep in the kernel complains where the kernel could not sleep.
 */
#ifndef KVERBS_RDMA_IB_VERBS_H
#define KVERBS_RDMA_IB_VERBS_H

#ifdef RDMA_AIX_NAME_VERBS_H
#error "the kernel's <rdma/ib_verbs.h> and AIX's <rdma/verbs.h> are not for one program"
#endif

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/err.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timex.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

struct ib_device;
struct ib_pd;
struct ib_cq;
struct ib_qp;
struct ib_srq;
struct ib_mr;
struct ib_ah;
struct ib_wc;
struct ib_event;
struct ib_xrcd;
struct ib_fmr;

union ib_gid {
    u8 raw[16];
    struct {
        __be64 subnet_prefix;
        __be64 interface_id;
    } global;
};

enum rdma_node_type {
    RDMA_NODE_IB_CA = 1,
    RDMA_NODE_IB_SWITCH,
    RDMA_NODE_IB_ROUTER,
    RDMA_NODE_RNIC,
};

enum rdma_transport_type {
    RDMA_TRANSPORT_IB,
    RDMA_TRANSPORT_IWARP,
};

enum rdma_link_layer {
    IB_LINK_LAYER_UNSPECIFIED,
    IB_LINK_LAYER_INFINIBAND,
    IB_LINK_LAYER_ETHERNET,
};

enum rdma_network_type {
    RDMA_NETWORK_IB,
    RDMA_NETWORK_ROCE_V1 = RDMA_NETWORK_IB,
    RDMA_NETWORK_IPV4,
    RDMA_NETWORK_IPV6,
};

enum ib_mtu {
    IB_MTU_256 = 1,
    IB_MTU_512,
    IB_MTU_1024,
    IB_MTU_2048,
    IB_MTU_4096,
};

enum ib_port_state {
    IB_PORT_NOP,
    IB_PORT_DOWN,
    IB_PORT_INIT,
    IB_PORT_ARMED,
    IB_PORT_ACTIVE,
    IB_PORT_ACTIVE_DEFER,
};

enum ib_rate {
    IB_RATE_PORT_CURRENT = 0,
    IB_RATE_2_5_GBPS = 2,
    IB_RATE_5_GBPS = 5,
    IB_RATE_10_GBPS = 3,
    IB_RATE_20_GBPS = 6,
    IB_RATE_30_GBPS = 4,
    IB_RATE_40_GBPS = 7,
    IB_RATE_60_GBPS = 8,
    IB_RATE_80_GBPS = 9,
    IB_RATE_120_GBPS = 10,
    IB_RATE_14_GBPS = 11,
    IB_RATE_56_GBPS = 12,
    IB_RATE_112_GBPS = 13,
    IB_RATE_168_GBPS = 14,
    IB_RATE_25_GBPS = 15,
    IB_RATE_100_GBPS = 16,
    IB_RATE_200_GBPS = 17,
    IB_RATE_300_GBPS = 18,
};

enum ib_atomic_cap {
    IB_ATOMIC_NONE,
    IB_ATOMIC_HCA,
    IB_ATOMIC_GLOB,
};

enum ib_device_cap_flags {
    IB_DEVICE_BAD_PKEY_CNTR = 1 << 1,
    IB_DEVICE_SRQ_RESIZE = 1 << 13,
    IB_DEVICE_LOCAL_DMA_LKEY = 1 << 15,
    IB_DEVICE_MEM_WINDOW = 1 << 17,
    IB_DEVICE_MEM_MGT_EXTENSIONS = 1 << 21,
    IB_DEVICE_MEM_WINDOW_TYPE_2A = 1 << 23,
    IB_DEVICE_MEM_WINDOW_TYPE_2B = 1 << 24,
};

struct ib_device_attr {
    u64 fw_ver;
    __be64 sys_image_guid;
    u64 max_mr_size;
    u64 page_size_cap;
    u32 vendor_id;
    u32 vendor_part_id;
    u32 hw_ver;
    int max_qp;
    int max_qp_wr;
    u64 device_cap_flags;
    int max_sge;
    int max_sge_rd;
    int max_cq;
    int max_cqe;
    int max_mr;
    int max_pd;
    int max_qp_rd_atom;
    int max_res_rd_atom;
    int max_qp_init_rd_atom;
    enum ib_atomic_cap atomic_cap;
    int max_mw;
    int max_ah;
    int max_srq;
    int max_srq_wr;
    int max_srq_sge;
    unsigned max_fast_reg_page_list_len;
    u16 max_pkeys;
    u8 local_ca_ack_delay;
};

struct ib_port_attr {
    enum ib_port_state state;
    enum ib_mtu max_mtu;
    enum ib_mtu active_mtu;
    int gid_tbl_len;
    u32 port_cap_flags;
    u32 max_msg_sz;
    u16 pkey_tbl_len;
    u16 lid;
    u8 active_width;
    u8 active_speed;
    u8 phys_state;
};

#define IB_DEVICE_NAME_MAX 64

struct ib_device {
    struct device *dma_device; /* = &dev */
    struct device dev;
    char name[IB_DEVICE_NAME_MAX];
    struct ib_device_attr attrs;
    __be64 node_guid;
    u32 local_dma_lkey;
    u8 node_type;
    u8 phys_port_cnt;
    int num_comp_vectors;
};

enum ib_event_type {
    IB_EVENT_CQ_ERR,
    IB_EVENT_QP_FATAL,
    IB_EVENT_QP_REQ_ERR,
    IB_EVENT_QP_ACCESS_ERR,
    IB_EVENT_COMM_EST,
    IB_EVENT_SQ_DRAINED,
    IB_EVENT_PATH_MIG,
    IB_EVENT_PATH_MIG_ERR,
    IB_EVENT_DEVICE_FATAL,
    IB_EVENT_PORT_ACTIVE,
    IB_EVENT_PORT_ERR,
    IB_EVENT_LID_CHANGE,
    IB_EVENT_PKEY_CHANGE,
    IB_EVENT_SM_CHANGE,
    IB_EVENT_SRQ_ERR,
    IB_EVENT_SRQ_LIMIT_REACHED,
    IB_EVENT_QP_LAST_WQE_REACHED,
    IB_EVENT_CLIENT_REREGISTER,
    IB_EVENT_GID_CHANGE,
};

struct ib_event {
    struct ib_device *device;
    union {
        struct ib_cq *cq;
        struct ib_qp *qp;
        struct ib_srq *srq;
        u8 port_num;
    } element;
    enum ib_event_type event;
};

struct ib_event_handler {
    struct ib_device *device;
    void (*handler)(struct ib_event_handler *h, struct ib_event *e);
    struct list_head list;
};

#define INIT_IB_EVENT_HANDLER(p, d, f)                                                             \
    do {                                                                                           \
        (p)->device = (d);                                                                         \
        (p)->handler = (f);                                                                        \
        INIT_LIST_HEAD(&(p)->list);                                                                \
    } while (0)

#define IB_PD_UNSAFE_GLOBAL_RKEY 0x01

struct ib_pd {
    u32 local_dma_lkey;
    u32 flags;
    struct ib_device *device;
    atomic_t usecnt;
    u32 unsafe_global_rkey;
};

enum ib_access_flags {
    IB_ACCESS_LOCAL_WRITE = 1 << 0,
    IB_ACCESS_REMOTE_WRITE = 1 << 1,
    IB_ACCESS_REMOTE_READ = 1 << 2,
    IB_ACCESS_REMOTE_ATOMIC = 1 << 3,
    IB_ACCESS_MW_BIND = 1 << 4,
    IB_ZERO_BASED = 1 << 5,
    IB_ACCESS_ON_DEMAND = 1 << 6,
    IB_ACCESS_HUGETLB = 1 << 7,
};

enum ib_mr_type {
    IB_MR_TYPE_MEM_REG,
    IB_MR_TYPE_SIGNATURE,
    IB_MR_TYPE_SG_GAPS,
};

struct ib_mr {
    struct ib_device *device;
    struct ib_pd *pd;
    u32 lkey;
    u32 rkey;
    u64 iova;
    u64 length;
    unsigned page_size;
    bool need_inval;
};

struct ib_sge {
    u64 addr;
    u32 length;
    u32 lkey;
};

enum ib_cq_notify_flags {
    IB_CQ_SOLICITED = 1 << 0,
    IB_CQ_NEXT_COMP = 1 << 1,
    IB_CQ_SOLICITED_MASK = IB_CQ_SOLICITED | IB_CQ_NEXT_COMP,
    IB_CQ_REPORT_MISSED_EVENTS = 1 << 2,
};

typedef void (*ib_comp_handler)(struct ib_cq *cq, void *cq_context);

enum ib_poll_context {
    IB_POLL_DIRECT,
    IB_POLL_SOFTIRQ,
    IB_POLL_WORKQUEUE,
};

struct ib_cq_init_attr {
    unsigned cqe;
    int comp_vector;
    u32 flags;
};

struct ib_cq {
    struct ib_device *device;
    ib_comp_handler comp_handler;
    void (*event_handler)(struct ib_event *e, void *cq_context);
    void *cq_context;
    int cqe;
    atomic_t usecnt; /* queue pairs */
    enum ib_poll_context poll_ctx;
    struct work_struct work; /* of ib_alloc_cq() */
};

/* What ib_alloc_cq()'s completions lead to: wr_cqe of the work request. */
struct ib_cqe {
    void (*done)(struct ib_cq *cq, struct ib_wc *wc);
};

enum ib_wc_status {
    IB_WC_SUCCESS,
    IB_WC_LOC_LEN_ERR,
    IB_WC_LOC_QP_OP_ERR,
    IB_WC_LOC_EEC_OP_ERR,
    IB_WC_LOC_PROT_ERR,
    IB_WC_WR_FLUSH_ERR,
    IB_WC_MW_BIND_ERR,
    IB_WC_BAD_RESP_ERR,
    IB_WC_LOC_ACCESS_ERR,
    IB_WC_REM_INV_REQ_ERR,
    IB_WC_REM_ACCESS_ERR,
    IB_WC_REM_OP_ERR,
    IB_WC_RETRY_EXC_ERR,
    IB_WC_RNR_RETRY_EXC_ERR,
    IB_WC_LOC_RDD_VIOL_ERR,
    IB_WC_REM_INV_RD_REQ_ERR,
    IB_WC_REM_ABORT_ERR,
    IB_WC_INV_EECN_ERR,
    IB_WC_INV_EEC_STATE_ERR,
    IB_WC_FATAL_ERR,
    IB_WC_RESP_TIMEOUT_ERR,
    IB_WC_GENERAL_ERR,
};

enum ib_wc_opcode {
    IB_WC_SEND,
    IB_WC_RDMA_WRITE,
    IB_WC_RDMA_READ,
    IB_WC_COMP_SWAP,
    IB_WC_FETCH_ADD,
    IB_WC_LSO,
    IB_WC_LOCAL_INV,
    IB_WC_REG_MR,
    IB_WC_MASKED_COMP_SWAP,
    IB_WC_MASKED_FETCH_ADD,
    IB_WC_RECV = 1 << 7,
    IB_WC_RECV_RDMA_WITH_IMM,
};

enum ib_wc_flags {
    IB_WC_GRH = 1,
    IB_WC_WITH_IMM = 1 << 1,
    IB_WC_WITH_INVALIDATE = 1 << 2,
    IB_WC_IP_CSUM_OK = 1 << 3,
    IB_WC_WITH_SMAC = 1 << 4,
    IB_WC_WITH_VLAN = 1 << 5,
    IB_WC_WITH_NETWORK_HDR_TYPE = 1 << 6,
};

struct ib_wc {
    union {
        u64 wr_id;
        struct ib_cqe *wr_cqe;
    };
    enum ib_wc_status status;
    enum ib_wc_opcode opcode;
    u32 vendor_err;
    u32 byte_len;
    struct ib_qp *qp; /* NULL: it is destroyed */
    union {
        __be32 imm_data;
        u32 invalidate_rkey;
    } ex;
    u32 src_qp;
    u32 slid;
    int wc_flags;
    u16 pkey_index;
    u8 sl;
    u8 dlid_path_bits;
    u8 port_num;
    u8 smac[6];
    u16 vlan_id;
    u8 network_hdr_type;
};

enum ib_srq_type {
    IB_SRQT_BASIC,
    IB_SRQT_XRC,
};

enum ib_srq_attr_mask {
    IB_SRQ_MAX_WR = 1 << 0,
    IB_SRQ_LIMIT = 1 << 1,
};

struct ib_srq_attr {
    u32 max_wr;
    u32 max_sge;
    u32 srq_limit;
};

struct ib_srq_init_attr {
    void (*event_handler)(struct ib_event *e, void *srq_context);
    void *srq_context;
    struct ib_srq_attr attr;
    enum ib_srq_type srq_type;
};

struct ib_srq {
    struct ib_device *device;
    struct ib_pd *pd;
    void (*event_handler)(struct ib_event *e, void *srq_context);
    void *srq_context;
    enum ib_srq_type srq_type;
    atomic_t usecnt; /* queue pairs */
};

enum ib_sig_type {
    IB_SIGNAL_ALL_WR,
    IB_SIGNAL_REQ_WR,
};

enum ib_qp_type {
    IB_QPT_SMI,
    IB_QPT_GSI,
    IB_QPT_RC,
    IB_QPT_UC,
    IB_QPT_UD,
    IB_QPT_RAW_IPV6,
    IB_QPT_RAW_ETHERTYPE,
    IB_QPT_RAW_PACKET = 8,
    IB_QPT_XRC_INI = 9,
    IB_QPT_XRC_TGT,
    IB_QPT_MAX,
};

struct ib_qp_cap {
    u32 max_send_wr;
    u32 max_recv_wr;
    u32 max_send_sge;
    u32 max_recv_sge;
    u32 max_inline_data;
    u32 max_rdma_ctxs;
};

struct ib_qp_init_attr {
    void (*event_handler)(struct ib_event *e, void *qp_context);
    void *qp_context;
    struct ib_cq *send_cq;
    struct ib_cq *recv_cq;
    struct ib_srq *srq;
    struct ib_xrcd *xrcd;
    struct ib_qp_cap cap;
    enum ib_sig_type sq_sig_type;
    enum ib_qp_type qp_type;
    u32 create_flags;
    u8 port_num;
};

struct ib_qp_open_attr {
    void (*event_handler)(struct ib_event *e, void *qp_context);
    void *qp_context;
    u32 qp_num;
    enum ib_qp_type qp_type;
};

struct ib_qp {
    struct ib_device *device;
    struct ib_pd *pd;
    struct ib_cq *send_cq;
    struct ib_cq *recv_cq;
    struct ib_srq *srq;
    struct ib_xrcd *xrcd;
    struct ib_qp *real_qp;
    void (*event_handler)(struct ib_event *e, void *qp_context);
    void *qp_context;
    u32 qp_num;
    enum ib_qp_type qp_type;
};

enum ib_qp_state {
    IB_QPS_RESET,
    IB_QPS_INIT,
    IB_QPS_RTR,
    IB_QPS_RTS,
    IB_QPS_SQD,
    IB_QPS_SQE,
    IB_QPS_ERR,
};

enum ib_mig_state {
    IB_MIG_MIGRATED,
    IB_MIG_REARM,
    IB_MIG_ARMED,
};

enum ib_qp_attr_mask {
    IB_QP_STATE = 1,
    IB_QP_CUR_STATE = 1 << 1,
    IB_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
    IB_QP_ACCESS_FLAGS = 1 << 3,
    IB_QP_PKEY_INDEX = 1 << 4,
    IB_QP_PORT = 1 << 5,
    IB_QP_QKEY = 1 << 6,
    IB_QP_AV = 1 << 7,
    IB_QP_PATH_MTU = 1 << 8,
    IB_QP_TIMEOUT = 1 << 9,
    IB_QP_RETRY_CNT = 1 << 10,
    IB_QP_RNR_RETRY = 1 << 11,
    IB_QP_RQ_PSN = 1 << 12,
    IB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    IB_QP_ALT_PATH = 1 << 14,
    IB_QP_MIN_RNR_TIMER = 1 << 15,
    IB_QP_SQ_PSN = 1 << 16,
    IB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    IB_QP_PATH_MIG_STATE = 1 << 18,
    IB_QP_CAP = 1 << 19,
    IB_QP_DEST_QPN = 1 << 20,
    IB_QP_RATE_LIMIT = 1 << 25,
};

struct ib_grh {
    __be32 version_tclass_flow;
    __be16 paylen;
    u8 next_hdr;
    u8 hop_limit;
    union ib_gid sgid;
    union ib_gid dgid;
};

/* The last 20 of 40 bytes are an IPv4 header, or all of them one of IPv6. */
union rdma_network_hdr {
    struct ib_grh ibgrh;
    struct {
        u8 reserved[20];
        u8 roce4grh[20];
    };
};

struct ib_global_route {
    union ib_gid dgid;
    u32 flow_label;
    u8 sgid_index;
    u8 hop_limit;
    u8 traffic_class;
};

enum ib_ah_flags {
    IB_AH_GRH = 1,
};

enum rdma_ah_attr_type {
    RDMA_AH_ATTR_TYPE_IB,
    RDMA_AH_ATTR_TYPE_ROCE,
    RDMA_AH_ATTR_TYPE_OPA,
};

struct rdma_ah_attr {
    struct ib_global_route grh;
    u8 sl;
    u8 static_rate;
    u8 port_num;
    u8 ah_flags;
    enum rdma_ah_attr_type type;
    struct {
        u16 dlid;
        u8 src_path_bits;
    } ib;
};

struct ib_ah {
    struct ib_device *device;
    struct ib_pd *pd;
};

struct ib_qp_attr {
    enum ib_qp_state qp_state;
    enum ib_qp_state cur_qp_state;
    enum ib_mtu path_mtu;
    enum ib_mig_state path_mig_state;
    u32 qkey;
    u32 rq_psn;
    u32 sq_psn;
    u32 dest_qp_num;
    int qp_access_flags;
    struct ib_qp_cap cap;
    struct rdma_ah_attr ah_attr;
    struct rdma_ah_attr alt_ah_attr;
    u16 pkey_index;
    u16 alt_pkey_index;
    u8 en_sqd_async_notify;
    u8 sq_draining;
    u8 max_rd_atomic;
    u8 max_dest_rd_atomic;
    u8 min_rnr_timer;
    u8 port_num;
    u8 timeout;
    u8 retry_cnt;
    u8 rnr_retry;
    u8 alt_port_num;
    u8 alt_timeout;
    u32 rate_limit;
};

enum ib_wr_opcode {
    IB_WR_RDMA_WRITE,
    IB_WR_RDMA_WRITE_WITH_IMM,
    IB_WR_SEND,
    IB_WR_SEND_WITH_IMM,
    IB_WR_RDMA_READ,
    IB_WR_ATOMIC_CMP_AND_SWP,
    IB_WR_ATOMIC_FETCH_AND_ADD,
    IB_WR_LSO,
    IB_WR_SEND_WITH_INV,
    IB_WR_RDMA_READ_WITH_INV,
    IB_WR_LOCAL_INV,
    IB_WR_REG_MR,
    IB_WR_MASKED_ATOMIC_CMP_AND_SWP,
    IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
    IB_WR_REG_SIG_MR,
};

enum ib_send_flags {
    IB_SEND_FENCE = 1,
    IB_SEND_SIGNALED = 1 << 1,
    IB_SEND_SOLICITED = 1 << 2,
    IB_SEND_INLINE = 1 << 3,
    IB_SEND_IP_CSUM = 1 << 4,
};

struct ib_send_wr {
    struct ib_send_wr *next;
    union {
        u64 wr_id;
        struct ib_cqe *wr_cqe;
    };
    struct ib_sge *sg_list;
    int num_sge;
    enum ib_wr_opcode opcode;
    int send_flags;
    union {
        __be32 imm_data;
        u32 invalidate_rkey;
    } ex;
};

struct ib_rdma_wr {
    struct ib_send_wr wr;
    u64 remote_addr;
    u32 rkey;
};

struct ib_atomic_wr {
    struct ib_send_wr wr;
    u64 remote_addr;
    u64 compare_add;
    u64 swap;
    u64 compare_add_mask;
    u64 swap_mask;
    u32 rkey;
};

struct ib_ud_wr {
    struct ib_send_wr wr;
    struct ib_ah *ah;
    void *header;
    int hlen;
    int mss;
    u32 remote_qpn;
    u32 remote_qkey;
    u16 pkey_index;
    u8 port_num;
};

struct ib_reg_wr {
    struct ib_send_wr wr;
    struct ib_mr *mr;
    u32 key;
    int access;
};

struct ib_recv_wr {
    struct ib_recv_wr *next;
    union {
        u64 wr_id;
        struct ib_cqe *wr_cqe;
    };
    struct ib_sge *sg_list;
    int num_sge;
};

#define rdma_wr(w)   container_of(w, struct ib_rdma_wr, wr)
#define atomic_wr(w) container_of(w, struct ib_atomic_wr, wr)
#define ud_wr(w)     container_of(w, struct ib_ud_wr, wr)
#define reg_wr(w)    container_of(w, struct ib_reg_wr, wr)

#include <rdma/kverbs_calls.h>

#endif
