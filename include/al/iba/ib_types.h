/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types of the InfiniBand Access Layer: ibal(7) tells which of them mean something here.
 *
 * What is called ib_net16_t, ib_net32_t, ib_net64_t or net32_t is in network order: GUIDs, keys,
 * numbers of queue pairs.
 */
#ifndef __IB_TYPES_H__
#define __IB_TYPES_H__

#if defined(IB_VERBS_H)
#error "<iba/ib_types.h> and the kernel's <rdma/ib_verbs.h> have the same names for other things"
#endif

#include <complib/cl_byteswap.h>
#include <complib/cl_types.h>

#define AL_API
#define AL_EXPORT extern __attribute__((visibility("default")))
#define AL_INLINE static inline

typedef uint16_t ib_net16_t;
typedef uint32_t ib_net32_t;
typedef uint64_t ib_net64_t;
typedef ib_net64_t ib_gid_prefix_t;

/* Handles: numbers that look like pointers. One of something that is gone is invalid, no crash. */
typedef struct _ib_ca *ib_ca_handle_t;
typedef struct _ib_pd *ib_pd_handle_t;
typedef struct _ib_mr *ib_mr_handle_t;
typedef struct _ib_mw *ib_mw_handle_t;
typedef struct _ib_qp *ib_qp_handle_t;
typedef struct _ib_srq *ib_srq_handle_t;
typedef struct _ib_cq *ib_cq_handle_t;
typedef struct _ib_av *ib_av_handle_t;
typedef struct _ib_mcast *ib_mcast_handle_t;

/* ---- what goes over a wire ---- */

typedef union _ib_gid {
    uint8_t raw[16];
    struct _ib_gid_unicast {
        ib_gid_prefix_t prefix;
        ib_net64_t interface_id;
    } __attribute__((packed)) unicast;
    struct _ib_gid_multicast {
        uint8_t header[2];
        uint8_t raw_group_id[14];
    } __attribute__((packed)) multicast;
} __attribute__((packed)) ib_gid_t;

typedef struct _ib_grh {
    ib_net32_t ver_class_flow;
    uint16_t resv1;
    uint8_t resv2;
    uint8_t hop_limit;
    ib_gid_t src_gid;
    ib_gid_t dest_gid;
} __attribute__((packed)) ib_grh_t;

typedef struct _ib_mad {
    uint8_t base_ver;
    uint8_t mgmt_class;
    uint8_t class_ver;
    uint8_t method;
    ib_net16_t status;
    ib_net16_t class_spec;
    ib_net64_t trans_id;
    ib_net16_t attr_id;
    ib_net16_t resv;
    ib_net32_t attr_mod;
} __attribute__((packed)) ib_mad_t;

/* Of a path, the two GIDs count here; the rest is the subnet's. */
typedef struct _ib_path_rec {
    ib_net64_t service_id;
    ib_gid_t dgid;
    ib_gid_t sgid;
    ib_net16_t dlid;
    ib_net16_t slid;
    ib_net32_t hop_flow_raw;
    uint8_t tclass;
    uint8_t num_path;
    ib_net16_t pkey;
    ib_net16_t qos_class_sl;
    uint8_t mtu;
    uint8_t rate;
    uint8_t pkt_life;
    uint8_t preference;
    uint8_t resv2[6];
} __attribute__((packed)) ib_path_rec_t;

typedef struct _ib_member_rec {
    ib_gid_t mgid;
    ib_gid_t port_gid;
    ib_net32_t qkey;
    ib_net16_t mlid;
    uint8_t mtu;
    uint8_t tclass;
    ib_net16_t pkey;
    uint8_t rate;
    uint8_t pkt_life;
    ib_net32_t sl_flow_hop;
    uint8_t scope_state;
    uint8_t proxy_join;
    uint8_t reserved[2];
    uint8_t pad[4];
} __attribute__((packed)) ib_member_rec_t;

/* ---- results ---- */

typedef enum _ib_api_status_t {
    IB_SUCCESS,
    IB_INSUFFICIENT_RESOURCES,
    IB_INSUFFICIENT_MEMORY,
    IB_INVALID_PARAMETER,
    IB_INVALID_SETTING,
    IB_NOT_FOUND,
    IB_TIMEOUT,
    IB_CANCELED,
    IB_INTERRUPTED,
    IB_INVALID_PERMISSION,
    IB_UNSUPPORTED,
    IB_OVERFLOW,
    IB_MAX_MCAST_QPS_REACHED,
    IB_INVALID_QP_STATE,
    IB_INVALID_APM_STATE,
    IB_INVALID_PORT_STATE,
    IB_INVALID_STATE,
    IB_RESOURCE_BUSY,
    IB_INVALID_PKEY,
    IB_INVALID_LKEY,
    IB_INVALID_RKEY,
    IB_INVALID_MAX_WRS,
    IB_INVALID_MAX_SGE,
    IB_INVALID_CQ_SIZE,
    IB_INVALID_SRQ_SIZE,
    IB_INVALID_SERVICE_TYPE,
    IB_INVALID_GID,
    IB_INVALID_LID,
    IB_INVALID_GUID,
    IB_INVALID_GUID_MASK,
    IB_INVALID_CA_HANDLE,
    IB_INVALID_AV_HANDLE,
    IB_INVALID_CQ_HANDLE,
    IB_INVALID_QP_HANDLE,
    IB_INVALID_SRQ_HANDLE,
    IB_INVALID_PD_HANDLE,
    IB_INVALID_MR_HANDLE,
    IB_INVALID_FMR_HANDLE,
    IB_INVALID_MW_HANDLE,
    IB_INVALID_MCAST_HANDLE,
    IB_INVALID_CALLBACK,
    IB_INVALID_AL_HANDLE,
    IB_INVALID_HANDLE,
    IB_ERROR,
    IB_REMOTE_ERROR,
    IB_VERBS_PROCESSING_DONE,
    IB_INVALID_WR_TYPE,
    IB_QP_IN_TIMEWAIT,
    IB_EE_IN_TIMEWAIT,
    IB_INVALID_PORT,
    IB_NOT_DONE,
    IB_INVALID_INDEX,
    IB_NO_MATCH,
    IB_PENDING,
    IB_UNKNOWN_ERROR
} ib_api_status_t;

typedef enum _ib_async_event_t {
    IB_AE_SQ_ERROR = 1,
    IB_AE_SQ_DRAINED,
    IB_AE_RQ_ERROR,
    IB_AE_CQ_ERROR,
    IB_AE_QP_FATAL,
    IB_AE_QP_COMM,
    IB_AE_QP_APM,
    IB_AE_LOCAL_FATAL,
    IB_AE_PKEY_TRAP,
    IB_AE_QKEY_TRAP,
    IB_AE_MKEY_TRAP,
    IB_AE_PORT_TRAP,
    IB_AE_SYSIMG_GUID_TRAP,
    IB_AE_BUF_OVERRUN,
    IB_AE_LINK_INTEGRITY,
    IB_AE_FLOW_CTRL_ERROR,
    IB_AE_BKEY_TRAP,
    IB_AE_QP_APM_ERROR,
    IB_AE_WQ_REQ_ERROR,
    IB_AE_WQ_ACCESS_ERROR,
    IB_AE_PORT_ACTIVE,
    IB_AE_PORT_DOWN,
    IB_AE_CLIENT_REREGISTER,
    IB_AE_SRQ_LIMIT_REACHED,
    IB_AE_SRQ_CATAS_ERROR,
    IB_AE_SRQ_QP_LAST_WQE_REACHED,
    IB_AE_UNKNOWN
} ib_async_event_t;

typedef enum _ib_wc_status_t {
    IB_WCS_SUCCESS,
    IB_WCS_LOCAL_LEN_ERR,
    IB_WCS_LOCAL_OP_ERR,
    IB_WCS_LOCAL_PROTECTION_ERR,
    IB_WCS_WR_FLUSHED_ERR,
    IB_WCS_MEM_WINDOW_BIND_ERR,
    IB_WCS_REM_ACCESS_ERR,
    IB_WCS_REM_OP_ERR,
    IB_WCS_RNR_RETRY_ERR,
    IB_WCS_TIMEOUT_RETRY_ERR,
    IB_WCS_REM_INVALID_REQ_ERR,
    IB_WCS_BAD_RESP_ERR,
    IB_WCS_LOCAL_ACCESS_ERR,
    IB_WCS_GENERAL_ERR,
    IB_WCS_UNMATCHED_RESPONSE,
    IB_WCS_CANCELED,
    IB_WCS_REM_ABORT_ERR,
    IB_WCS_UNKNOWN
} ib_wc_status_t;

/* ---- adapters ---- */

typedef enum _ib_atomic_t { IB_ATOMIC_NONE, IB_ATOMIC_LOCAL, IB_ATOMIC_GLOBAL } ib_atomic_t;

enum rdma_transport_type { RDMA_TRANSPORT_IB, RDMA_TRANSPORT_IWARP, RDMA_TRANSPORT_RDMAOE };

#define IB_LINK_NO_CHANGE 0
#define IB_LINK_DOWN      1
#define IB_LINK_INIT      2
#define IB_LINK_ARMED     3
#define IB_LINK_ACTIVE    4
#define IB_LINK_ACT_DEFER 5

#define IB_MTU_LEN_256  1
#define IB_MTU_LEN_512  2
#define IB_MTU_LEN_1024 3
#define IB_MTU_LEN_2048 4
#define IB_MTU_LEN_4096 5

typedef struct _ib_port_cap {
    boolean_t cm;
    boolean_t snmp;
    boolean_t dev_mgmt;
    boolean_t vend;
    boolean_t sm;
    boolean_t sm_disable;
    boolean_t qkey_ctr;
    boolean_t pkey_ctr;
    boolean_t notice;
    boolean_t trap;
    boolean_t apm;
    boolean_t slmap;
    boolean_t pkey_nvram;
    boolean_t mkey_nvram;
    boolean_t sysguid;
    boolean_t dr_notice;
    boolean_t boot_mgmt;
    boolean_t capm_notice;
    boolean_t reinit;
    boolean_t ledinfo;
    boolean_t port_active;
    boolean_t ipd;
    boolean_t pkey_switch_ext_port;
    boolean_t bm;
    boolean_t link_rtl;
    boolean_t client_reregister;
} ib_port_cap_t;

typedef uint8_t ib_init_type_t;

typedef struct _ib_port_attr_mod {
    ib_port_cap_t cap;
    uint16_t pkey_ctr;
    uint16_t qkey_ctr;
    ib_init_type_t init_type;
    ib_net64_t system_image_guid;
} ib_port_attr_mod_t;

typedef struct _ib_port_attr {
    ib_net64_t port_guid;
    uint8_t port_num;
    uint8_t mtu; /* IB_MTU_LEN_* */
    enum rdma_transport_type transport;
    uint64_t max_msg_size; /* bytes */
    ib_net16_t lid;
    uint8_t lmc;
    uint8_t active_width;
    uint16_t max_vls;
    ib_net16_t sm_lid;
    uint8_t sm_sl;
    uint8_t link_state; /* IB_LINK_* */
    ib_init_type_t init_type_reply;
    uint8_t subnet_timeout;
    uint8_t active_speed;
    uint8_t phys_state;
    ib_port_cap_t cap;
    uint16_t pkey_ctr;
    uint16_t qkey_ctr;
    uint16_t num_gids;
    uint16_t num_pkeys;
    ib_gid_t *p_gid_table;
    ib_net16_t *p_pkey_table;
} ib_port_attr_t;

typedef struct _ib_ca_attr {
    ib_net64_t ca_guid;
    uint32_t vend_id;
    uint16_t dev_id;
    uint16_t revision;
    uint64_t fw_ver;
    uint32_t size; /* bytes of all of it, tables included */
    uint32_t max_qps;
    uint32_t max_wrs;
    uint32_t max_sges;
    uint32_t max_rd_sges;
    uint32_t max_cqs;
    uint32_t max_cqes;
    uint32_t max_pds;
    uint32_t init_regions;
    uint64_t init_region_size;
    uint32_t init_windows;
    uint64_t max_addr_handles;
    uint32_t max_partitions;
    ib_atomic_t atomicity;
    uint8_t max_qp_resp_res;
    uint8_t max_resp_res;
    uint8_t max_qp_init_depth;
    uint32_t max_ipv6_qps;
    uint32_t max_ether_qps;
    uint32_t max_mcast_grps;
    uint32_t max_mcast_qps;
    uint32_t max_qps_per_mcast_grp;
    uint32_t max_fmr;
    uint32_t max_map_per_fmr;
    uint32_t max_srq;
    uint32_t max_srq_wrs;
    uint32_t max_srq_sges;
    uint8_t local_ack_delay;
    boolean_t bad_pkey_ctr_support;
    boolean_t bad_qkey_ctr_support;
    boolean_t raw_mcast_support;
    boolean_t apm_support;
    boolean_t av_port_check;
    boolean_t change_primary_port;
    boolean_t modify_wr_depth;
    boolean_t modify_srq_depth;
    boolean_t current_qp_state_support;
    boolean_t shutdown_port_capability;
    boolean_t init_type_support;
    boolean_t port_active_event_support;
    boolean_t system_image_guid_support;
    boolean_t hw_agents;
    ib_net64_t system_image_guid;
    uint32_t num_page_sizes;
    uint8_t num_ports;
    uint32_t *p_page_size; /* bytes, each */
    ib_port_attr_t *p_port_attr;
} ib_ca_attr_t;

typedef uint32_t ib_ca_mod_t;
#define IB_CA_MOD_IS_CM_SUPPORTED 0x00000001
#define IB_CA_MOD_IS_SM           0x00000010
#define IB_CA_MOD_QKEY_CTR        0x00000040
#define IB_CA_MOD_PKEY_CTR        0x00000080
#define IB_CA_MOD_SHUTDOWN_PORT   0x00100000
#define IB_CA_MOD_RESERVED_MASK   0xFF000000

/* ---- domains, address vectors, memory ---- */

typedef enum _ib_pd_type { IB_PDT_NORMAL, IB_PDT_ALIAS, IB_PDT_SQP, IB_PDT_UD } ib_pd_type_t;

#define IB_PATH_RECORD_RATE_2_5_GBS 2
#define IB_PATH_RECORD_RATE_10_GBS  3
#define IB_PATH_RECORD_RATE_30_GBS  4
#define IB_PATH_RECORD_RATE_5_GBS   5
#define IB_PATH_RECORD_RATE_20_GBS  6
#define IB_PATH_RECORD_RATE_40_GBS  7
#define IB_PATH_RECORD_RATE_60_GBS  8
#define IB_PATH_RECORD_RATE_80_GBS  9
#define IB_PATH_RECORD_RATE_120_GBS 10

typedef struct _ib_av_attr {
    uint8_t port_num;
    uint8_t sl;
    ib_net16_t dlid;
    boolean_t grh_valid; /* else the peer is on the port that has dlid: on this host */
    ib_grh_t grh;
    uint8_t static_rate;
    uint8_t path_bits;
    struct _av_conn {
        uint8_t path_mtu; /* IB_MTU_LEN_* */
        uint8_t local_ack_timeout;
        uint8_t seq_err_retry_cnt;
        uint8_t rnr_retry_cnt;
    } conn;
} ib_av_attr_t;

typedef uint32_t ib_access_t;
#define IB_AC_RDMA_READ   0x00000001
#define IB_AC_RDMA_WRITE  0x00000002
#define IB_AC_ATOMIC      0x00000004
#define IB_AC_LOCAL_WRITE 0x00000008
#define IB_AC_MW_BIND     0x00000010

typedef struct _ib_mr_create {
    void *vaddr;
    uint64_t length;
    ib_access_t access_ctrl;
} ib_mr_create_t;

typedef struct _ib_phys_range {
    uint64_t base_addr;
    uint64_t size;
} ib_phys_range_t;

typedef struct _ib_phys_create {
    uint64_t length;
    uint32_t num_ranges;
    ib_phys_range_t *range_array;
    uint32_t buf_offset;
    uint32_t hca_page_size;
    ib_access_t access_ctrl;
} ib_phys_create_t;

typedef struct _ib_mr_attr {
    ib_pd_handle_t h_pd;
    uint64_t local_lb; /* lower bound: the first byte */
    uint64_t local_ub; /* upper bound: behind the last */
    uint64_t remote_lb;
    uint64_t remote_ub;
    ib_access_t access_ctrl;
    net32_t lkey;
    net32_t rkey;
} ib_mr_attr_t;

typedef uint32_t ib_mr_mod_t;
#define IB_MR_MOD_ADDR   0x00000001
#define IB_MR_MOD_PD     0x00000002
#define IB_MR_MOD_ACCESS 0x00000004

/* ---- queues ---- */

typedef enum _ib_qp_type {
    IB_QPT_RELIABLE_CONN,
    IB_QPT_UNRELIABLE_CONN,
    IB_QPT_RELIABLE_DGRM,
    IB_QPT_UNRELIABLE_DGRM,
    IB_QPT_QP0,
    IB_QPT_QP1,
    IB_QPT_RAW_IPV6,
    IB_QPT_RAW_ETHER,
    IB_QPT_MAD,
    IB_QPT_QP0_ALIAS,
    IB_QPT_QP1_ALIAS,
    IB_QPT_UNKNOWN
} ib_qp_type_t;

typedef uint32_t ib_qp_state_t;
#define IB_QPS_RESET        0x00000001
#define IB_QPS_INIT         0x00000002
#define IB_QPS_RTR          0x00000004
#define IB_QPS_RTS          0x00000008
#define IB_QPS_SQD          0x00000010
#define IB_QPS_SQD_DRAINING 0x00000030
#define IB_QPS_SQD_DRAINED  0x00000050
#define IB_QPS_SQERR        0x00000080
#define IB_QPS_ERROR        0x00000100
#define IB_QPS_TIME_WAIT    0xDEAD0000

typedef enum _ib_apm_state { IB_APM_MIGRATED = 1, IB_APM_REARM, IB_APM_ARMED } ib_apm_state_t;

typedef enum _ib_srq_attr_mask { IB_SRQ_MAX_WR = 1, IB_SRQ_LIMIT = 2 } ib_srq_attr_mask_t;

typedef struct _ib_srq_attr {
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t srq_limit;
} ib_srq_attr_t;

typedef struct _ib_qp_create {
    ib_qp_type_t qp_type;
    uint32_t sq_max_inline;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint32_t sq_sge;
    uint32_t rq_sge;
    ib_cq_handle_t h_sq_cq;
    ib_cq_handle_t h_rq_cq;
    ib_srq_handle_t h_srq;
    boolean_t sq_signaled;
} ib_qp_create_t;

typedef struct _ib_qp_attr {
    ib_pd_handle_t h_pd;
    ib_qp_type_t qp_type;
    ib_access_t access_ctrl;
    uint16_t pkey_index;
    uint32_t sq_max_inline;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint32_t sq_sge;
    uint32_t rq_sge;
    uint8_t init_depth;
    uint8_t resp_res;
    ib_cq_handle_t h_sq_cq;
    ib_cq_handle_t h_rq_cq;
    ib_srq_handle_t h_srq;
    boolean_t sq_signaled;
    ib_qp_state_t state;
    ib_net32_t num;
    ib_net32_t dest_num;
    ib_net32_t qkey;
    ib_net32_t sq_psn;
    ib_net32_t rq_psn;
    uint8_t primary_port;
    uint8_t alternate_port;
    ib_av_attr_t primary_av;
    ib_av_attr_t alternate_av;
    ib_apm_state_t apm_state;
} ib_qp_attr_t;

typedef uint32_t ib_qp_opts_t;
#define IB_MOD_QP_ALTERNATE_AV      0x00000001
#define IB_MOD_QP_PKEY              0x00000002
#define IB_MOD_QP_APM_STATE         0x00000004
#define IB_MOD_QP_PRIMARY_AV        0x00000008
#define IB_MOD_QP_RNR_NAK_TIMEOUT   0x00000010
#define IB_MOD_QP_RESP_RES          0x00000020
#define IB_MOD_QP_INIT_DEPTH        0x00000040
#define IB_MOD_QP_PRIMARY_PORT      0x00000080
#define IB_MOD_QP_ACCESS_CTRL       0x00000100
#define IB_MOD_QP_QKEY              0x00000200
#define IB_MOD_QP_SQ_DEPTH          0x00000400
#define IB_MOD_QP_RQ_DEPTH          0x00000800
#define IB_MOD_QP_CURRENT_STATE     0x00001000
#define IB_MOD_QP_RETRY_CNT         0x00002000
#define IB_MOD_QP_LOCAL_ACK_TIMEOUT 0x00004000
#define IB_MOD_QP_RNR_RETRY_CNT     0x00008000

typedef struct _ib_qp_mod {
    ib_qp_state_t req_state;
    union _qp_state {
        struct _qp_init {
            uint8_t primary_port;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
        } init;
        struct _qp_rtr {
            ib_net32_t rq_psn;
            ib_net32_t dest_qp;
            ib_av_attr_t primary_av;
            uint8_t resp_res;
            uint8_t rnr_nak_timeout;
            ib_qp_opts_t opts; /* which of the following count */
            ib_av_attr_t alternate_av;
            ib_net32_t qkey;
            uint16_t pkey_index;
            ib_access_t access_ctrl;
            uint32_t sq_depth;
            uint32_t rq_depth;
        } rtr;
        struct _qp_rts {
            ib_net32_t sq_psn;
            uint8_t retry_cnt;
            uint8_t rnr_retry_cnt;
            uint8_t local_ack_timeout;
            uint8_t init_depth;
            ib_qp_opts_t
                opts; /* which of the following count, and from RTS or SQD of those above */
            uint8_t rnr_nak_timeout;
            ib_qp_state_t current_state;
            ib_net32_t qkey;
            ib_access_t access_ctrl;
            uint8_t resp_res;
            ib_av_attr_t primary_av;
            ib_av_attr_t alternate_av;
            uint32_t sq_depth;
            uint32_t rq_depth;
            ib_apm_state_t apm_state;
            uint8_t primary_port;
            uint16_t pkey_index;
        } rts;
        struct _qp_sqd {
            boolean_t sqd_event;
        } sqd;
    } state;
} ib_qp_mod_t;

/* ---- work ---- */

typedef enum _ib_wr_type_t {
    WR_SEND,
    WR_RDMA_WRITE,
    WR_RDMA_READ,
    WR_COMPARE_SWAP,
    WR_FETCH_ADD,
    WR_LSO,
    WR_NOP,
    WR_LOCAL_INV,
    WR_FAST_REG_MR,
    WR_UNKNOWN
} ib_wr_type_t;

typedef struct _ib_local_ds {
    uint64_t vaddr;
    uint32_t length;
    uint32_t lkey; /* as ib_reg_mem() gave it */
} ib_local_ds_t;

typedef uint32_t ib_send_opt_t;
#define IB_SEND_OPT_IMMEDIATE 0x00000001
#define IB_SEND_OPT_FENCE     0x00000002
#define IB_SEND_OPT_SIGNALED  0x00000004
#define IB_SEND_OPT_SOLICITED 0x00000008
#define IB_SEND_OPT_INLINE    0x00000010

union _send_dgrm {
    struct _send_ud {
        ib_av_handle_t h_av;
        ib_net32_t remote_qp;
        ib_net32_t remote_qkey;
        void *rsvd;
        uint16_t pkey_index;
    } ud;
};

struct _send_remote_ops {
    uint64_t vaddr;
    net32_t rkey;
    ib_net64_t atomic1; /* what is compared, or added */
    ib_net64_t atomic2; /* what is put there */
};

typedef struct _ib_send_wr {
    uint64_t wr_id;
    struct _ib_send_wr *p_next;
    ib_local_ds_t *ds_array;
    uint32_t num_ds;
    ib_wr_type_t wr_type;
    ib_send_opt_t send_opt;
    union {
        ib_net32_t immediate_data;
        net32_t invalidate_rkey;
    };
    union {
        union _send_dgrm dgrm;
        struct _send_remote_ops remote_ops;
    };
} ib_send_wr_t;

typedef struct _ib_recv_wr {
    struct _ib_recv_wr *p_next;
    uint64_t wr_id;
    uint32_t num_ds;
    ib_local_ds_t *ds_array;
} ib_recv_wr_t;

typedef struct _ib_bind_wr {
    uint64_t wr_id;
    ib_send_opt_t send_opt;
    ib_mr_handle_t h_mr;
    ib_access_t access_ctrl;
    net32_t current_rkey;
    ib_local_ds_t local_ds; /* which part of the region; its lkey is not looked at */
} ib_bind_wr_t;

typedef enum _ib_wc_type_t {
    IB_WC_SEND,
    IB_WC_RDMA_WRITE,
    IB_WC_RDMA_READ,
    IB_WC_COMPARE_SWAP,
    IB_WC_FETCH_ADD,
    IB_WC_MW_BIND,
    IB_WC_NOP,
    IB_WC_UNKNOWN1,
    IB_WC_RECV = 0x80,
    IB_WC_RECV_RDMA_WRITE,
    IB_WC_LSO,
    IB_WC_LOCAL_INV,
    IB_WC_FAST_REG_MR,
    IB_WC_UNKNOWN2
} ib_wc_type_t;

typedef uint32_t ib_recv_opt_t;
#define IB_RECV_OPT_IMMEDIATE  0x00000001
#define IB_RECV_OPT_FORWARD    0x00000002
#define IB_RECV_OPT_GRH_VALID  0x00000004
#define IB_RECV_OPT_INVALIDATE 0x00000008

typedef struct _ib_wc {
    struct _ib_wc *p_next;
    uint64_t wr_id;
    ib_wc_type_t wc_type;
    uint32_t length; /* bytes, of a receive or of what a read or atomic brought */
    uint64_t vendor_specific;
    ib_wc_status_t status;
    union _wc_recv {
        struct _wc_conn {
            ib_recv_opt_t recv_opt;
            ib_net32_t immediate_data; /* or the key that was invalidated */
        } conn;
        struct _wc_ud {
            ib_recv_opt_t recv_opt;
            ib_net32_t immediate_data;
            ib_net32_t remote_qp;
            uint16_t pkey_index;
            ib_net16_t remote_lid;
            uint8_t remote_sl;
            uint8_t path_bits;
        } ud;
    } recv;
} ib_wc_t;

/* ---- connections ---- */

#define IB_REQ_PDATA_SIZE  92
#define IB_MRA_PDATA_SIZE  222
#define IB_REJ_PDATA_SIZE  148
#define IB_REP_PDATA_SIZE  196
#define IB_RTU_PDATA_SIZE  224
#define IB_LAP_PDATA_SIZE  168
#define IB_APR_PDATA_SIZE  148
#define IB_DREQ_PDATA_SIZE 220
#define IB_DREP_PDATA_SIZE 224
#define IB_ARI_SIZE        72

typedef ib_net16_t ib_rej_status_t;
#define IB_REJ_INSUF_QP        CL_HTON16(1)
#define IB_REJ_INSUF_RESOURCES CL_HTON16(3)
#define IB_REJ_TIMEOUT         CL_HTON16(4)
#define IB_REJ_UNSUPPORTED     CL_HTON16(5)
#define IB_REJ_INVALID_SID     CL_HTON16(8)
#define IB_REJ_STALE_CONN      CL_HTON16(10)
#define IB_REJ_INVALID_GID     CL_HTON16(12)
#define IB_REJ_USER_DEFINED    CL_HTON16(28)

/* ---- words for numbers ---- */

#ifdef __cplusplus
extern "C" {
#endif

/** Their names, without prefix; a number that is none has one, too. */
AL_EXPORT const char *AL_API ib_get_err_str(IN ib_api_status_t status);
AL_EXPORT const char *AL_API ib_get_async_event_str(IN ib_async_event_t event);
AL_EXPORT const char *AL_API ib_get_wc_status_str(IN ib_wc_status_t wc_status);
AL_EXPORT const char *AL_API ib_get_wc_type_str(IN ib_wc_type_t wc_type);
AL_EXPORT const char *AL_API ib_get_wr_type_str(IN uint8_t wr_type);
AL_EXPORT const char *AL_API ib_get_qp_type_str(IN uint8_t qp_type);
AL_EXPORT const char *AL_API ib_get_port_state_str(IN uint8_t port_state);

#ifdef __cplusplus
}
#endif

#endif
