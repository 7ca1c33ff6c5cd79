/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand Access Layer on a software adapter: ibal(7).
 *
 * A handle is checked in every call: one that is NULL, of another type, or of something that is
 * gone is IB_INVALID_<TYPE>_HANDLE. Behind that, where a reference is missing:
 * IB_INVALID_PARAMETER.
 *
 * Callbacks run on one thread of the library, one at a time, and may call everything. Who destroys
 * an object cannot use its handle any more; the callback that is given then comes when no other one
 * of the object or of what was made in it is running or will, with the context that the object was
 * made with.
 */
#ifndef __IB_AL_H__
#define __IB_AL_H__

#include <complib/cl_waitobj.h>
#include <iba/ib_types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct _ib_al *ib_al_handle_t;
typedef struct _al_listen *ib_listen_handle_t;
/* Nothing gives out one of these: there is no subnet, and no management. */
typedef struct _al_pnp *ib_pnp_handle_t;
typedef struct _al_reg_svc *ib_reg_svc_handle_t;
typedef struct _al_mad_send *ib_mad_send_handle_t;
typedef struct _al_mad_svc *ib_mad_svc_handle_t;
typedef struct _al_query *ib_query_handle_t;
typedef struct _al_sub *ib_sub_handle_t;
typedef struct _al_ioc *ib_ioc_handle_t;
typedef struct _al_svc_entry *ib_svc_handle_t;
typedef struct _al_pool_key *ib_pool_key_t;
typedef struct _al_pool *ib_pool_handle_t;

typedef struct _ib_cm_handle {
    ib_al_handle_t h_al;
    ib_qp_handle_t h_qp;
    net32_t cid;
} ib_cm_handle_t;

typedef uint8_t ib_shmid_t[64];

#define ATS_SERVICE_ID  CL_NTOH64(CL_CONST64(0x10000CE100415453))
#define ATS_NAME        "DAPL Address Translation Service"
#define ATS_IPV4_OFFSET 12

typedef uint32_t ib_al_flags_t;
#define IB_FLAGS_SYNC 0x00000001 /* the call returns when the callback has; not from a callback */

typedef enum _ib_mad_svc_type { IB_MAD_SVC_DEFAULT, IB_MAD_SVC_RMPP } ib_mad_svc_type_t;

typedef struct _ib_mad_element {
    struct _ib_mad_element *p_next;
    const void *context1;
    const void *context2;
    ib_mad_t *p_mad_buf;
    uint32_t size;
    uint32_t immediate_data;
    ib_net32_t remote_qp;
    ib_av_handle_t h_av;
    ib_send_opt_t send_opt;
    ib_net32_t remote_qkey;
    boolean_t resp_expected;
    uint32_t timeout_ms;
    uint32_t retry_cnt;
    uint8_t rmpp_version;
    ib_wc_status_t status;
    boolean_t grh_valid;
    ib_grh_t *p_grh;
    ib_recv_opt_t recv_opt;
    ib_net16_t remote_lid;
    uint8_t remote_sl;
    uint16_t pkey_index;
    uint8_t path_bits;
    void *send_context1;
    void *send_context2;
} ib_mad_element_t;

AL_INLINE void *AL_API ib_get_mad_buf(IN const ib_mad_element_t *const p_mad_element)
{
    CL_ASSERT(p_mad_element);
    return p_mad_element->p_mad_buf;
}

/* ---- callbacks ---- */

typedef void(AL_API *ib_pfn_comp_cb_t)(IN const ib_cq_handle_t h_cq, IN void *cq_context);

typedef void(AL_API *ib_pfn_destroy_cb_t)(IN void *context);

/** In the place of a callback: the call returns when the object is gone. */
static const ib_pfn_destroy_cb_t ib_sync_destroy __attribute__((unused)) =
    (ib_pfn_destroy_cb_t)(intptr_t)-1;

typedef struct _ib_async_event_rec {
    ib_async_event_t code;
    uint64_t vendor_specific;
    void *context;
    union {
        ib_ca_handle_t h_ca;
        ib_cq_handle_t h_cq;
        ib_qp_handle_t h_qp;
        ib_srq_handle_t h_srq;
    } handle;
} ib_async_event_rec_t;

typedef void(AL_API *ib_pfn_event_cb_t)(IN ib_async_event_rec_t *p_event_rec);

/* ---- the layer and its adapters ---- */

AL_EXPORT ib_api_status_t AL_API ib_open_al(OUT ib_al_handle_t *const ph_al);

/** Closes all that was opened in it, and waits for that, unless it is called from a callback. */
AL_EXPORT ib_api_status_t AL_API ib_close_al(IN const ib_al_handle_t h_al);

/**
 * @param p_guid_cnt in: room in the array; out: how many there are
 * @return IB_INSUFFICIENT_MEMORY: the array is NULL or too small
 */
AL_EXPORT ib_api_status_t AL_API ib_get_ca_guids(IN ib_al_handle_t h_al,
                                                 OUT ib_net64_t *const p_guid_array OPTIONAL,
                                                 IN OUT size_t *const p_guid_cnt);

/** @return IB_INVALID_GUID: there is no such adapter */
AL_EXPORT ib_api_status_t AL_API ib_open_ca(IN const ib_al_handle_t h_al,
                                            IN const ib_net64_t ca_guid,
                                            IN const ib_pfn_event_cb_t pfn_ca_event_cb OPTIONAL,
                                            IN const void *const ca_context,
                                            OUT ib_ca_handle_t *const ph_ca);

/**
 * @param p_ca_attr room for *p_size bytes, or NULL
 * @param p_size out: how many bytes it takes
 * @return IB_INSUFFICIENT_MEMORY: p_ca_attr is NULL or too small
 */
AL_EXPORT ib_api_status_t AL_API ib_query_ca(IN const ib_ca_handle_t h_ca,
                                             OUT ib_ca_attr_t *const p_ca_attr OPTIONAL,
                                             IN OUT uint32_t *const p_size);

AL_EXPORT ib_api_status_t AL_API ib_query_ca_by_guid(IN const ib_al_handle_t h_al,
                                                     IN const ib_net64_t ca_guid,
                                                     OUT ib_ca_attr_t *const p_ca_attr OPTIONAL,
                                                     IN OUT uint32_t *const p_size);

/** @return IB_UNSUPPORTED if all is well: nothing of a port can be changed */
AL_EXPORT ib_api_status_t AL_API ib_modify_ca(IN const ib_ca_handle_t h_ca,
                                              IN const uint8_t port_num,
                                              IN const ib_ca_mod_t ca_mod,
                                              IN const ib_port_attr_mod_t *const p_port_attr_mod);

AL_EXPORT ib_api_status_t AL_API ib_close_ca(IN const ib_ca_handle_t h_ca,
                                             IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/* ---- protection domains and address vectors ---- */

/** @param pd_type IB_PDT_NORMAL */
AL_EXPORT ib_api_status_t AL_API ib_alloc_pd(IN const ib_ca_handle_t h_ca,
                                             IN const ib_pd_type_t pd_type,
                                             IN const void *const pd_context,
                                             OUT ib_pd_handle_t *const ph_pd);

AL_EXPORT ib_api_status_t AL_API
ib_dealloc_pd(IN const ib_pd_handle_t h_pd, IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

AL_EXPORT ib_api_status_t AL_API ib_create_av(IN const ib_pd_handle_t h_pd,
                                              IN const ib_av_attr_t *const p_av_attr,
                                              OUT ib_av_handle_t *const ph_av);

AL_EXPORT ib_api_status_t AL_API ib_query_av(IN const ib_av_handle_t h_av,
                                             OUT ib_av_attr_t *const p_av_attr,
                                             OUT ib_pd_handle_t *const ph_pd);

AL_EXPORT ib_api_status_t AL_API ib_modify_av(IN const ib_av_handle_t h_av,
                                              IN const ib_av_attr_t *const p_av_attr);

AL_EXPORT ib_api_status_t AL_API ib_destroy_av(IN const ib_av_handle_t h_av);

/* ---- queues ---- */

typedef struct _ib_cq_create {
    uint32_t size;                  /* out: at least as many */
    ib_pfn_comp_cb_t pfn_comp_cb;   /* either this */
    cl_waitobj_handle_t h_wait_obj; /* or this */
} ib_cq_create_t;

AL_EXPORT ib_api_status_t AL_API ib_create_cq(IN const ib_ca_handle_t h_ca,
                                              IN OUT ib_cq_create_t *const p_cq_create,
                                              IN const void *const cq_context,
                                              IN const ib_pfn_event_cb_t pfn_cq_event_cb OPTIONAL,
                                              OUT ib_cq_handle_t *const ph_cq);

/** @return IB_OVERFLOW: more completions than that are there; nothing has changed */
AL_EXPORT ib_api_status_t AL_API ib_modify_cq(IN const ib_cq_handle_t h_cq,
                                              IN OUT uint32_t *const p_size);

AL_EXPORT ib_api_status_t AL_API ib_query_cq(IN const ib_cq_handle_t h_cq,
                                             OUT uint32_t *const p_size);

/** @return IB_RESOURCE_BUSY: there are queue pairs with it */
AL_EXPORT ib_api_status_t AL_API
ib_destroy_cq(IN const ib_cq_handle_t h_cq, IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/** The four about shared receive queues are younger than the document that has the others. */
AL_EXPORT ib_api_status_t AL_API ib_create_srq(IN const ib_pd_handle_t h_pd,
                                               IN const ib_srq_attr_t *const p_srq_attr,
                                               IN const void *const srq_context,
                                               IN const ib_pfn_event_cb_t pfn_srq_event_cb OPTIONAL,
                                               OUT ib_srq_handle_t *const ph_srq);

AL_EXPORT ib_api_status_t AL_API ib_query_srq(IN const ib_srq_handle_t h_srq,
                                              OUT ib_srq_attr_t *const p_srq_attr);

AL_EXPORT ib_api_status_t AL_API ib_modify_srq(IN const ib_srq_handle_t h_srq,
                                               IN const ib_srq_attr_t *const p_srq_attr,
                                               IN const ib_srq_attr_mask_t srq_attr_mask);

/** @return IB_RESOURCE_BUSY: there are queue pairs with it */
AL_EXPORT ib_api_status_t AL_API ib_destroy_srq(
    IN const ib_srq_handle_t h_srq, IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/** Of type IB_QPT_RELIABLE_CONN or IB_QPT_UNRELIABLE_CONN; others are IB_UNSUPPORTED. */
AL_EXPORT ib_api_status_t AL_API ib_create_qp(IN const ib_pd_handle_t h_pd,
                                              IN const ib_qp_create_t *const p_qp_create,
                                              IN const void *const qp_context,
                                              IN const ib_pfn_event_cb_t pfn_qp_event_cb OPTIONAL,
                                              OUT ib_qp_handle_t *const ph_qp);

/** @return IB_UNSUPPORTED if all is well */
AL_EXPORT ib_api_status_t AL_API ib_get_spl_qp(IN const ib_pd_handle_t h_pd,
                                               IN const ib_net64_t port_guid,
                                               IN const ib_qp_create_t *const p_qp_create,
                                               IN const void *const qp_context,
                                               IN const ib_pfn_event_cb_t pfn_qp_event_cb OPTIONAL,
                                               OUT ib_pool_key_t *const p_pool_key OPTIONAL,
                                               OUT ib_qp_handle_t *const ph_qp);

AL_EXPORT ib_api_status_t AL_API ib_query_qp(IN const ib_qp_handle_t h_qp,
                                             OUT ib_qp_attr_t *const p_qp_attr);

AL_EXPORT ib_api_status_t AL_API ib_modify_qp(IN const ib_qp_handle_t h_qp,
                                              IN const ib_qp_mod_t *const p_qp_mod);

AL_EXPORT ib_api_status_t AL_API
ib_destroy_qp(IN const ib_qp_handle_t h_qp, IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/* ---- memory ---- */

AL_EXPORT ib_api_status_t AL_API ib_reg_mem(IN const ib_pd_handle_t h_pd,
                                            IN const ib_mr_create_t *const p_mr_create,
                                            OUT net32_t *const p_lkey, OUT net32_t *const p_rkey,
                                            OUT ib_mr_handle_t *const ph_mr);

/** @return IB_UNSUPPORTED if all is well: a program has no physical addresses */
AL_EXPORT ib_api_status_t AL_API ib_reg_phys(IN const ib_pd_handle_t h_pd,
                                             IN const ib_phys_create_t *const p_phys_create,
                                             IN OUT uint64_t *const p_vaddr,
                                             OUT net32_t *const p_lkey, OUT net32_t *const p_rkey,
                                             OUT ib_mr_handle_t *const ph_mr);

AL_EXPORT ib_api_status_t AL_API ib_query_mr(IN const ib_mr_handle_t h_mr,
                                             OUT ib_mr_attr_t *const p_mr_attr);

AL_EXPORT ib_api_status_t AL_API ib_rereg_mem(IN const ib_mr_handle_t h_mr,
                                              IN const ib_mr_mod_t mr_mod_mask,
                                              IN const ib_mr_create_t *const p_mr_create OPTIONAL,
                                              OUT net32_t *const p_lkey, OUT net32_t *const p_rkey,
                                              IN const ib_pd_handle_t h_pd OPTIONAL);

/** @return IB_UNSUPPORTED if anything but the domain is to be changed */
AL_EXPORT ib_api_status_t AL_API ib_rereg_phys(
    IN const ib_mr_handle_t h_mr, IN const ib_mr_mod_t mr_mod_mask,
    IN const ib_phys_create_t *const p_phys_create OPTIONAL, IN OUT uint64_t *const p_vaddr,
    OUT net32_t *const p_lkey, OUT net32_t *const p_rkey, IN const ib_pd_handle_t h_pd OPTIONAL);

/** The same memory once more. @param p_vaddr out: where it is, which cannot be chosen */
AL_EXPORT ib_api_status_t AL_API ib_reg_shared(IN const ib_mr_handle_t h_mr,
                                               IN const ib_pd_handle_t h_pd,
                                               IN const ib_access_t access_ctrl,
                                               IN OUT uint64_t *const p_vaddr,
                                               OUT net32_t *const p_lkey, OUT net32_t *const p_rkey,
                                               OUT ib_mr_handle_t *const ph_mr);

/**
 * Memory that all processes of this user with the same SHMID have in common. The first makes it, of
 * zeros; with the last it ends.
 * @param p_mr_create its vaddr is only a wish
 * @param p_vaddr out: where it is in this process
 * @return IB_INVALID_SETTING: it is there, and has another length
 */
AL_EXPORT ib_api_status_t AL_API ib_reg_shmid(IN const ib_pd_handle_t h_pd,
                                              IN const ib_shmid_t shmid,
                                              IN const ib_mr_create_t *const p_mr_create,
                                              OUT uint64_t *const p_vaddr,
                                              OUT net32_t *const p_lkey, OUT net32_t *const p_rkey,
                                              OUT ib_mr_handle_t *const ph_mr);

/** @return IB_RESOURCE_BUSY: windows or shared regions are bound to it */
AL_EXPORT ib_api_status_t AL_API ib_dereg_mr(IN const ib_mr_handle_t h_mr);

AL_EXPORT ib_api_status_t AL_API ib_create_mw(IN const ib_pd_handle_t h_pd,
                                              OUT net32_t *const p_rkey,
                                              OUT ib_mw_handle_t *const ph_mw);

AL_EXPORT ib_api_status_t AL_API ib_query_mw(IN const ib_mw_handle_t h_mw,
                                             OUT ib_pd_handle_t *const ph_pd,
                                             OUT net32_t *const p_rkey);

/** @param p_rkey out: the new key, good when the bind has completed */
AL_EXPORT ib_api_status_t AL_API ib_bind_mw(IN const ib_mw_handle_t h_mw,
                                            IN const ib_qp_handle_t h_qp,
                                            IN ib_bind_wr_t *const p_mw_bind,
                                            OUT net32_t *const p_rkey);

AL_EXPORT ib_api_status_t AL_API ib_destroy_mw(IN const ib_mw_handle_t h_mw);

/* ---- work ---- */

/** Posts them until one is wrong, which pp_*_failure tells. */
AL_EXPORT ib_api_status_t AL_API ib_post_send(IN const ib_qp_handle_t h_qp,
                                              IN ib_send_wr_t *const p_send_wr,
                                              OUT ib_send_wr_t **pp_send_failure OPTIONAL);

AL_EXPORT ib_api_status_t AL_API ib_post_recv(IN const ib_qp_handle_t h_qp,
                                              IN ib_recv_wr_t *const p_recv_wr,
                                              OUT ib_recv_wr_t **pp_recv_failure OPTIONAL);

AL_EXPORT ib_api_status_t AL_API ib_post_srq_recv(IN const ib_srq_handle_t h_srq,
                                                  IN ib_recv_wr_t *const p_recv_wr,
                                                  OUT ib_recv_wr_t **pp_recv_failure OPTIONAL);

/** There is no MAD service: @return IB_INVALID_HANDLE */
AL_EXPORT ib_api_status_t AL_API ib_send_mad(IN const ib_mad_svc_handle_t h_mad_svc,
                                             IN ib_mad_element_t *const p_mad_element_list,
                                             OUT ib_mad_element_t **pp_mad_failure OPTIONAL);

/** @return IB_NOT_FOUND */
AL_EXPORT ib_api_status_t AL_API ib_cancel_mad(IN const ib_mad_svc_handle_t h_mad_svc,
                                               IN ib_mad_element_t *const p_mad_element);

AL_EXPORT ib_api_status_t AL_API ib_peek_cq(IN const ib_cq_handle_t h_cq,
                                            OUT uint32_t *const p_n_cqes);

/**
 * Completions go from the free list, in its order, to the done list.
 * @return IB_NOT_FOUND: there are none
 */
AL_EXPORT ib_api_status_t AL_API ib_poll_cq(IN const ib_cq_handle_t h_cq,
                                            IN OUT ib_wc_t **const pp_free_wclist,
                                            OUT ib_wc_t **const pp_done_wclist);

/** One callback, or signal, for the next completion, or the next solicited one. */
AL_EXPORT ib_api_status_t AL_API ib_rearm_cq(IN const ib_cq_handle_t h_cq,
                                             IN const boolean_t solicited);

/** One when n_cqes more have come than were there at this call, whoever has polled them. */
AL_EXPORT ib_api_status_t AL_API ib_rearm_n_cq(IN const ib_cq_handle_t h_cq,
                                               IN const uint32_t n_cqes);

/* ---- multicast and management: all of it is refused ---- */

typedef struct _ib_mcast_rec {
    const void *mcast_context;
    ib_api_status_t status;
    ib_net16_t error_status;
    ib_mcast_handle_t h_mcast;
    ib_member_rec_t *p_member_rec;
} ib_mcast_rec_t;

typedef void(AL_API *ib_pfn_mcast_cb_t)(IN ib_mcast_rec_t *p_mcast_rec);

typedef struct _ib_mcast_req {
    boolean_t create;
    ib_member_rec_t member_rec;
    const void *mcast_context;
    ib_pfn_mcast_cb_t pfn_mcast_cb;
    uint32_t timeout_ms;
    uint32_t retry_cnt;
    ib_al_flags_t flags;
    ib_net64_t port_guid;
    uint16_t pkey_index;
} ib_mcast_req_t;

/** @return IB_INVALID_SERVICE_TYPE if all is well: no queue pair is one of datagrams */
AL_EXPORT ib_api_status_t AL_API ib_join_mcast(IN const ib_qp_handle_t h_qp,
                                               IN const ib_mcast_req_t *const p_mcast_req);

/** @return IB_INVALID_MCAST_HANDLE */
AL_EXPORT ib_api_status_t AL_API ib_leave_mcast(
    IN const ib_mcast_handle_t h_mcast, IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/** @return IB_UNSUPPORTED if all is well */
AL_EXPORT ib_api_status_t AL_API ib_local_mad(IN const ib_ca_handle_t h_ca,
                                              IN const uint8_t port_num,
                                              IN const void *const p_mad_in, OUT void *p_mad_out);

/* ---- connections: rdma_cm's, by the messages of InfiniBand's ---- */

typedef struct _ib_ari {
    uint8_t data[IB_ARI_SIZE];
} ib_ari_t;

typedef uint8_t ib_apr_status_t;

/*
 * What callbacks get. Private data is there until the callback returns, IB_<MESSAGE>_PDATA_SIZE
 * bytes, filled up with zeros; only a Request, a Reply and a Reject have any.
 */
typedef struct _ib_cm_req_rec {
    const void *context; /* of the listen */
    ib_cm_handle_t h_cm_req;
    ib_listen_handle_t h_cm_listen;
    const uint8_t *p_req_pdata;
    ib_qp_type_t qp_type;
    uint8_t resp_res; /* reads and atomics that the peer may have under way at us */
    boolean_t flow_ctrl;
    uint8_t rnr_retry_cnt;
    ib_path_rec_t primary_path; /* sgid: here, dgid: the peer's */
    ib_path_rec_t alt_path;
    ib_net16_t pkey;
    const void *sidr_context;
} ib_cm_req_rec_t;

typedef struct _ib_cm_rep_rec {
    const uint8_t *p_rep_pdata;
    ib_qp_type_t qp_type;
    ib_cm_handle_t h_cm_rep;
    const void *qp_context;
    uint8_t resp_res;
    boolean_t flow_ctrl;
    ib_apr_status_t apr_status;
} ib_cm_rep_rec_t;

typedef struct _ib_cm_rtu_rec {
    const uint8_t *p_rtu_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_rtu_rec_t;

typedef struct _ib_cm_rej_rec {
    ib_rej_status_t rej_status;
    const uint8_t *p_ari;
    uint8_t ari_length;
    const uint8_t *p_rej_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_rej_rec_t;

typedef struct _ib_cm_mra_rec {
    const uint8_t *p_mra_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_mra_rec_t;

typedef struct _ib_cm_lap_rec {
    ib_cm_handle_t h_cm_lap;
    ib_path_rec_t alt_path;
    const uint8_t *p_lap_pdata;
    const void *qp_context;
} ib_cm_lap_rec_t;

typedef struct _ib_cm_apr_rec {
    ib_api_status_t cm_status;
    ib_apr_status_t apr_status;
    const uint8_t *p_info;
    uint8_t info_length;
    const uint8_t *p_apr_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_apr_rec_t;

typedef struct _ib_cm_dreq_rec {
    ib_cm_handle_t h_cm_dreq;
    const uint8_t *p_dreq_pdata;
    const void *qp_context;
} ib_cm_dreq_rec_t;

typedef struct _ib_cm_drep_rec {
    ib_api_status_t cm_status;
    const uint8_t *p_drep_pdata;
    ib_qp_handle_t h_qp;
    const void *qp_context;
} ib_cm_drep_rec_t;

typedef void(AL_API *ib_pfn_cm_req_cb_t)(IN ib_cm_req_rec_t *p_cm_req_rec);
typedef void(AL_API *ib_pfn_cm_rep_cb_t)(IN ib_cm_rep_rec_t *p_cm_rep_rec);
typedef void(AL_API *ib_pfn_cm_rtu_cb_t)(IN ib_cm_rtu_rec_t *p_cm_rtu_rec);
typedef void(AL_API *ib_pfn_cm_rej_cb_t)(IN ib_cm_rej_rec_t *p_cm_rej_rec);
typedef void(AL_API *ib_pfn_cm_mra_cb_t)(IN ib_cm_mra_rec_t *p_cm_mra_rec);
typedef void(AL_API *ib_pfn_cm_lap_cb_t)(IN ib_cm_lap_rec_t *p_cm_lap_rec);
typedef void(AL_API *ib_pfn_cm_apr_cb_t)(IN ib_cm_apr_rec_t *p_cm_apr_rec);
typedef void(AL_API *ib_pfn_cm_dreq_cb_t)(IN ib_cm_dreq_rec_t *p_cm_dreq_rec);
typedef void(AL_API *ib_pfn_cm_drep_cb_t)(IN ib_cm_drep_rec_t *p_cm_drep_rec);

#define IB_ALL_CAS   0
#define IB_ALL_PORTS 0
#define IB_ALL_LIDS  0
#define IB_ALL_PKEYS 0

typedef struct _ib_cm_listen {
    ib_net64_t svc_id; /* a TCP port, with the bits of the IP service above it, or none */
    ib_net64_t ca_guid;
    ib_net64_t port_guid;
    ib_net16_t lid;
    ib_net16_t pkey;
    uint8_t *p_compare_buffer; /* only Requests with this in their private data */
    uint8_t compare_offset;
    uint8_t compare_length;
    ib_pfn_cm_req_cb_t pfn_cm_req_cb;
    ib_qp_type_t qp_type;
    const void *sidr_context;
} ib_cm_listen_t;

typedef struct _ib_cm_req {
    ib_net64_t svc_id;
    ib_al_flags_t flags;
    uint8_t max_cm_retries;
    ib_path_rec_t *p_primary_path; /* dgid, and sgid if it matters: addresses of IP */
    ib_pfn_cm_rep_cb_t pfn_cm_rep_cb;
    const uint8_t *p_req_pdata;
    uint8_t req_length;
    ib_qp_type_t qp_type;
    ib_qp_handle_t h_qp;
    uint8_t *p_compare_buffer;
    uint8_t compare_offset;
    uint8_t compare_length;
    uint8_t resp_res;
    uint8_t init_depth;
    uint8_t remote_resp_timeout;
    boolean_t flow_ctrl;
    uint8_t local_resp_timeout;
    uint8_t rnr_nak_timeout;
    uint8_t rnr_retry_cnt;
    uint8_t retry_cnt;
    ib_path_rec_t *p_alt_path OPTIONAL;
    ib_pfn_cm_req_cb_t pfn_cm_req_cb;
    ib_pfn_cm_mra_cb_t pfn_cm_mra_cb;
    ib_pfn_cm_rej_cb_t pfn_cm_rej_cb;
    ib_al_handle_t h_al;
    const void *sidr_context;
    uint32_t timeout_ms; /* for the addresses; 0: two seconds */
    ib_net16_t pkey;
} ib_cm_req_t;

typedef uint8_t ib_cm_failover_t;
#define IB_FAILOVER_ACCEPT_SUCCESS     0
#define IB_FAILOVER_ACCEPT_UNSUPPORTED 1
#define IB_FAILOVER_ACCEPT_ERROR       2

typedef struct _ib_cm_rep {
    ib_al_flags_t flags;
    const uint8_t *p_rep_pdata;
    uint8_t rep_length;
    ib_qp_handle_t h_qp;
    ib_qp_type_t qp_type;
    ib_access_t access_ctrl;
    uint32_t sq_depth;
    uint32_t rq_depth;
    uint8_t init_depth;
    uint8_t target_ack_delay;
    ib_cm_failover_t failover_accepted;
    boolean_t flow_ctrl;
    uint8_t rnr_nak_timeout;
    uint8_t rnr_retry_cnt;
    ib_pfn_cm_rej_cb_t pfn_cm_rej_cb;
    ib_pfn_cm_mra_cb_t pfn_cm_mra_cb;
    ib_pfn_cm_rtu_cb_t pfn_cm_rtu_cb;
    ib_pfn_cm_lap_cb_t pfn_cm_lap_cb;
    ib_pfn_cm_dreq_cb_t pfn_cm_dreq_cb;
    ib_recv_wr_t *p_recv_wr; /* posted before the Reply is sent */
    ib_recv_wr_t **pp_recv_failure;
} ib_cm_rep_t;

typedef struct _ib_cm_rtu {
    ib_access_t access_ctrl;
    uint32_t sq_depth;
    uint32_t rq_depth;
    const uint8_t *p_rtu_pdata;
    uint8_t rtu_length;
    ib_pfn_cm_apr_cb_t pfn_cm_apr_cb;
    ib_pfn_cm_dreq_cb_t pfn_cm_dreq_cb;
} ib_cm_rtu_t;

typedef struct _ib_cm_rej {
    ib_rej_status_t rej_status;
    ib_ari_t *p_ari;
    uint8_t ari_length;
    const uint8_t *p_rej_pdata;
    uint8_t rej_length;
} ib_cm_rej_t;

typedef struct _ib_cm_mra {
    uint8_t svc_timeout;
    const uint8_t *p_mra_pdata;
    uint8_t mra_length;
} ib_cm_mra_t;

typedef struct _ib_cm_lap {
    ib_al_flags_t flags;
    const uint8_t *p_lap_pdata;
    uint8_t lap_length;
    ib_qp_type_t qp_type;
    ib_qp_handle_t h_qp;
    uint8_t remote_resp_timeout;
    ib_path_rec_t *p_alt_path;
    ib_pfn_cm_apr_cb_t pfn_cm_apr_cb;
} ib_cm_lap_t;

typedef struct _ib_cm_dreq {
    ib_al_flags_t flags;
    uint8_t *p_dreq_pdata;
    uint8_t dreq_length;
    ib_qp_type_t qp_type;
    ib_qp_handle_t h_qp;
    ib_pfn_cm_drep_cb_t pfn_cm_drep_cb;
} ib_cm_dreq_t;

typedef struct _ib_cm_drep {
    uint8_t *p_drep_pdata;
    uint8_t drep_length;
} ib_cm_drep_t;

AL_EXPORT ib_api_status_t AL_API ib_cm_listen(IN const ib_al_handle_t h_al,
                                              IN const ib_cm_listen_t *const p_cm_listen,
                                              IN const void *const listen_context,
                                              OUT ib_listen_handle_t *const ph_cm_listen);

AL_EXPORT ib_api_status_t AL_API ib_cm_cancel(IN const ib_listen_handle_t h_cm_listen,
                                              IN const ib_pfn_destroy_cb_t pfn_destroy_cb OPTIONAL);

/** The answer is the callback of the Reply, or of the Reject, which comes for other failures, too.
 */
AL_EXPORT ib_api_status_t AL_API ib_cm_req(IN const ib_cm_req_t *const p_cm_req);

AL_EXPORT ib_api_status_t AL_API ib_cm_rep(IN const ib_cm_handle_t h_cm_req,
                                           IN const ib_cm_rep_t *const p_cm_rep);

AL_EXPORT ib_api_status_t AL_API ib_cm_rtu(IN const ib_cm_handle_t h_cm_rep,
                                           IN const ib_cm_rtu_t *const p_cm_rtu);

/** A Request is refused; after a Reply, the connection ends. */
AL_EXPORT ib_api_status_t AL_API ib_cm_rej(IN const ib_cm_handle_t h_cm,
                                           IN const ib_cm_rej_t *const p_cm_rej);

/** Nothing is sent: the peer's patience has no end that this would move. */
AL_EXPORT ib_api_status_t AL_API ib_cm_mra(IN const ib_cm_handle_t h_cm,
                                           IN const ib_cm_mra_t *const p_cm_mra);

/** @return IB_UNSUPPORTED if all is well: there are no alternate paths */
AL_EXPORT ib_api_status_t AL_API ib_cm_lap(IN const ib_cm_lap_t *const p_cm_lap);

/** Ends the connection of a queue pair. */
AL_EXPORT ib_api_status_t AL_API ib_cm_dreq(IN const ib_cm_dreq_t *const p_cm_dreq);

AL_EXPORT ib_api_status_t AL_API ib_cm_drep(IN const ib_cm_handle_t h_cm_dreq,
                                            IN const ib_cm_drep_t *const p_cm_drep);

#ifdef __cplusplus
}
#endif

#endif
