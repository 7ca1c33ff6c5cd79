/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of <rdma/ib_verbs.h>, which includes this. */
#ifndef KVERBS_RDMA_KVERBS_CALLS_H
#define KVERBS_RDMA_KVERBS_CALLS_H

#include <rdma/ib_verbs.h>

/* Devices, and who wants to know of them. */

struct ib_client {
    const char *name;
    void (*add)(struct ib_device *device);
    void (*remove)(struct ib_device *device, void *client_data);
    struct list_head list;
};

int ib_register_client(struct ib_client *client);
void ib_unregister_client(struct ib_client *client);
void *ib_get_client_data(struct ib_device *device, struct ib_client *client);
void ib_set_client_data(struct ib_device *device, struct ib_client *client, void *data);
int ib_register_event_handler(struct ib_event_handler *h);
int ib_unregister_event_handler(struct ib_event_handler *h);
int ib_query_port(struct ib_device *device, u8 port, struct ib_port_attr *attr);
int ib_query_gid(struct ib_device *device, u8 port, int index, union ib_gid *gid, void *no_attr);
int ib_query_pkey(struct ib_device *device, u8 port, u16 index, u16 *pkey);
const char *ib_event_msg(enum ib_event_type event);
const char *ib_wc_status_msg(enum ib_wc_status status);

u8 rdma_start_port(const struct ib_device *device);
u8 rdma_end_port(const struct ib_device *device);
int rdma_is_port_valid(const struct ib_device *device, unsigned port);
enum rdma_transport_type rdma_node_get_transport(enum rdma_node_type type);
enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device, u8 port);
bool rdma_protocol_ib(const struct ib_device *device, u8 port);
bool rdma_protocol_roce(const struct ib_device *device, u8 port);
bool rdma_protocol_iwarp(const struct ib_device *device, u8 port);
bool rdma_cap_ib_switch(const struct ib_device *device);
bool rdma_cap_ib_mad(const struct ib_device *device, u8 port);
bool rdma_cap_opa_mad(struct ib_device *device, u8 port);
bool rdma_cap_ib_smi(const struct ib_device *device, u8 port);
bool rdma_cap_ib_cm(const struct ib_device *device, u8 port);
bool rdma_cap_iw_cm(const struct ib_device *device, u8 port);
bool rdma_cap_ib_sa(const struct ib_device *device, u8 port);
bool rdma_cap_ib_mcast(const struct ib_device *device, u8 port);
bool rdma_cap_af_ib(const struct ib_device *device, u8 port);
bool rdma_cap_eth_ah(const struct ib_device *device, u8 port);
bool rdma_cap_opa_ah(struct ib_device *device, u8 port);
bool rdma_cap_roce_gid_table(const struct ib_device *device, u8 port);
bool rdma_cap_read_inv(struct ib_device *device, u32 port);
size_t rdma_max_mad_size(const struct ib_device *device, u8 port);

/* Pure. */

__attribute_const__ int ib_rate_to_mult(enum ib_rate rate);
__attribute_const__ int ib_rate_to_mbps(enum ib_rate rate);
__attribute_const__ enum ib_rate mult_to_ib_rate(int mult);
int ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
                       enum ib_qp_type type, enum ib_qp_attr_mask mask, enum rdma_link_layer ll);
int ib_get_rdma_header_version(const union rdma_network_hdr *hdr);
int ib_get_gids_from_rdma_hdr(const union rdma_network_hdr *hdr, enum rdma_network_type net_type,
                              union ib_gid *sgid, union ib_gid *dgid);

static inline int ib_mtu_enum_to_int(enum ib_mtu mtu)
{
    return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? 128 << mtu : -1;
}

/* Of a driver's counters. */

struct rdma_hw_stats {
    unsigned long timestamp;
    unsigned long lifespan;
    const char *const *names;
    int num_counters;
    u64 value[];
};

#define RDMA_HW_STATS_DEFAULT_LIFESPAN 10

struct rdma_hw_stats *rdma_alloc_hw_stats_struct(const char *const *names, int num_counters,
                                                 unsigned long lifespan);

/* Protection domains and memory. */

struct ib_pd *ib_alloc_pd(struct ib_device *device, unsigned flags);

/** Warns, and leaves it, if something is in it. */
void ib_dealloc_pd(struct ib_pd *pd);

struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int ib_dereg_mr(struct ib_mr *mr);
int ib_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int sg_nents, unsigned *sg_offset,
                 unsigned page_size);

static inline u32 ib_inc_rkey(u32 rkey)
{
    return (rkey & ~0xffu) | ((rkey + 1) & 0xff);
}

static inline void ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
    mr->lkey = (mr->lkey & ~0xffu) | newkey;
    mr->rkey = (mr->rkey & ~0xffu) | newkey;
}

/*
 * A DMA address is the memory's own. What is mapped is known, however: work requests with
 * local_dma_lkey, and fast registrations, are of mapped memory only.
 */

u64 ib_dma_map_single(struct ib_device *dev, void *cpu_addr, size_t size,
                      enum dma_data_direction direction);
void ib_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
                         enum dma_data_direction direction);
int ib_dma_mapping_error(struct ib_device *dev, u64 dma_addr);
u64 ib_dma_map_page(struct ib_device *dev, struct page *page, unsigned long offset, size_t size,
                    enum dma_data_direction direction);
void ib_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
                       enum dma_data_direction direction);
int ib_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
                  enum dma_data_direction direction);
void ib_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
                     enum dma_data_direction direction);
u64 ib_sg_dma_address(struct ib_device *dev, struct scatterlist *sg);
unsigned int ib_sg_dma_len(struct ib_device *dev, struct scatterlist *sg);
void ib_dma_sync_single_for_cpu(struct ib_device *dev, u64 addr, size_t size,
                                enum dma_data_direction dir);
void ib_dma_sync_single_for_device(struct ib_device *dev, u64 addr, size_t size,
                                   enum dma_data_direction dir);
void *ib_dma_alloc_coherent(struct ib_device *dev, size_t size, dma_addr_t *dma_handle, gfp_t flag);
void ib_dma_free_coherent(struct ib_device *dev, size_t size, void *cpu_addr,
                          dma_addr_t dma_handle);

/* Completion queues. */

struct ib_cq *ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
                           void (*event_handler)(struct ib_event *, void *), void *cq_context,
                           const struct ib_cq_init_attr *cq_attr);
int ib_destroy_cq(struct ib_cq *cq);
int ib_resize_cq(struct ib_cq *cq, int cqe);
int ib_modify_cq(struct ib_cq *cq, u16 cq_count, u16 cq_period);
int ib_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
int ib_peek_cq(struct ib_cq *cq, int wc_cnt);
int ib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int ib_req_ncomp_notif(struct ib_cq *cq, int wc_cnt);

/** Completion queues that call wr_cqe->done for each completion. */
struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *private, int nr_cqe, int comp_vector,
                          enum ib_poll_context poll_ctx);
void ib_free_cq(struct ib_cq *cq);
int ib_process_cq_direct(struct ib_cq *cq, int budget);

/* Queue pairs, shared receive queues, work. */

struct ib_qp *ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr);
int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask);
int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
                struct ib_qp_init_attr *qp_init_attr);
int ib_destroy_qp(struct ib_qp *qp);
int ib_post_send(struct ib_qp *qp, struct ib_send_wr *send_wr, struct ib_send_wr **bad_send_wr);
int ib_post_recv(struct ib_qp *qp, struct ib_recv_wr *recv_wr, struct ib_recv_wr **bad_recv_wr);

/** Moves the queue pair to the error state, and waits until its completions are there. */
void ib_drain_qp(struct ib_qp *qp);

struct ib_srq *ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *srq_init_attr);
int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
                  enum ib_srq_attr_mask srq_attr_mask);
int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
int ib_destroy_srq(struct ib_srq *srq);
int ib_post_srq_recv(struct ib_srq *srq, struct ib_recv_wr *recv_wr,
                     struct ib_recv_wr **bad_recv_wr);

/* Address handles. */

struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr);
int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
int rdma_destroy_ah(struct ib_ah *ah);
int ib_init_ah_from_wc(struct ib_device *device, u8 port_num, const struct ib_wc *wc,
                       const struct ib_grh *grh, struct rdma_ah_attr *ah_attr);
struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
                                   const struct ib_grh *grh, u8 port_num);

/* What no device of ours offers; each refuses. */

struct ib_fmr_attr {
    int max_pages;
    int max_maps;
    u8 page_shift;
};

struct ib_sig_err {
    enum ib_sig_err_type {
        IB_SIG_BAD_GUARD,
        IB_SIG_BAD_REFTAG,
        IB_SIG_BAD_APPTAG,
    } err_type;
    u32 expected;
    u32 actual;
    u64 sig_err_offset;
    u32 key;
};

enum ib_mr_status_check {
    IB_MR_CHECK_SIG_STATUS = 1,
};

struct ib_mr_status {
    u32 fail_status;
    struct ib_sig_err sig_err;
};

struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags, struct ib_fmr_attr *fmr_attr);
int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova);
int ib_unmap_fmr(struct list_head *fmr_list);
int ib_dealloc_fmr(struct ib_fmr *fmr);
int ib_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int ib_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
struct ib_xrcd *ib_alloc_xrcd(struct ib_device *device);
int ib_dealloc_xrcd(struct ib_xrcd *xrcd);
struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *qp_open_attr);
int ib_close_qp(struct ib_qp *qp);
int ib_check_mr_status(struct ib_mr *mr, u32 check_mask, struct ib_mr_status *mr_status);

#endif
