/* SPDX-License-Identifier: BSD-2-Clause */
/* Refused calls of libibverbs; each case returns the errno. */
#include "cases.h"

#include "../api/cm_kit.h"
#include "env/later.h"

#include <errno.h>
#include <rdma/xrc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define ENTRIES 8

static int of_pointer(const void *p)
{
    return p ? 0 : errno;
}

static int of_int(int r)
{
    return r ? errno : 0;
}

struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){
        .send_cq = w.cq, .recv_cq = w.cq, .cap = {4, 4, 2, 2, 64}, .qp_type = IBV_QPT_RC};
}

int modify(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/** Posts @p n SGEs of @p len bytes. */
int post(struct ibv_qp *qp, enum ibv_wr_opcode op, unsigned flags, int n, uint32_t len)
{
    struct ibv_sge sge[ENTRIES];
    for (int i = 0; i < ENTRIES; i++)
        sge[i] = (struct ibv_sge){(uintptr_t)w.bytes, len, w.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = n, .opcode = op, .send_flags = flags}, *bad;
    return ibv_post_send(qp, &wr, &bad);
}

static void drain(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) > 0)
        ;
}

static int post_recv(struct ibv_qp *qp, int n)
{
    struct ibv_sge sge[ENTRIES] = {{0}};
    struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = n}, *bad;
    return ibv_post_recv(qp, &wr, &bad);
}

static int reg(void *addr, size_t len, int access)
{
    return of_pointer(ibv_reg_mr(w.pd, addr, len, access));
}

static int create_qp(struct ibv_qp_init_attr attr)
{
    return of_pointer(ibv_create_qp(w.pd, &attr));
}

static int bind_window(uint32_t key_change, size_t len, unsigned access, enum ibv_mw_type type,
                       struct ibv_pd *pd)
{
    struct ibv_mw *mw = ibv_alloc_mw(pd, type);
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_BIND_MW};
    assert_non_null(mw);
    wr.bind_mw.mw = mw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey) ^ key_change;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){w.mr, (uintptr_t)w.bytes, len, access};
    int r = ibv_post_send(w.qp, &wr, &bad);
    ibv_dealloc_mw(mw);
    return r;
}

int refused_argument(void)
{
    return of_pointer(ibv_create_qp(w.pd, NULL));
}

int refused_offered(void)
{
    struct ibv_ece ece = {0};
    return ibv_query_ece(w.qp, &ece);
}

/** A QP of datagrams, in ERR, where posts are checked. */
static struct ibv_qp *ud_qp(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.qp_type = IBV_QPT_UD;
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    assert_non_null(qp);
    struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    assert_int_equal(modify(qp, IBV_QPS_ERR), 0);
    return qp;
}

static int post_datagram(uint32_t len, bool addressed)
{
    struct ibv_qp *qp = ud_qp();
    struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
    assert_int_equal(ibv_query_gid(w.ctx, 1, 0, &attr.grh.dgid), 0);
    struct ibv_ah *ah = ibv_create_ah(w.pd, &attr);
    assert_non_null(ah);
    struct ibv_sge sge[2] = {{(uintptr_t)w.bytes, len, w.mr->lkey},
                             {(uintptr_t)w.bytes, len, w.mr->lkey}};
    struct ibv_send_wr *bad, wr = {.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND};
    if (addressed)
        wr.wr.ud.ah = ah;
    int r = ibv_post_send(qp, &wr, &bad);
    ibv_destroy_ah(ah);
    ibv_destroy_qp(qp);
    return r;
}

int refused_no_handle(void)
{
    return post_datagram(8, false);
}

int refused_datagram_length(void)
{
    return post_datagram(BYTES, true);
}

int refused_group(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x12, [15] = 1}};
    return ibv_attach_mcast(w.qp, &gid, 0);
}

int refused_no_group(void)
{
    union ibv_gid gid = {.raw = {0xff, 0x12, [15] = 1}};
    struct ibv_qp *qp = ud_qp();
    int r = ibv_detach_mcast(qp, &gid, 0);
    ibv_destroy_qp(qp);
    return r;
}

int refused_attribute(void)
{
    struct ibv_modify_cq_attr attr = {.attr_mask = 1u << 30};
    return ibv_modify_cq(w.cq, &attr);
}

int refused_absent(void)
{
    return of_pointer(ibv_open_xrc_domain(w.ctx, -1, 0));
}

int refused_value(void)
{
    struct ibv_wc wc;
    return -ibv_poll_cq(w.cq, -1, &wc);
}

int refused_in_use(void)
{
    struct ibv_td *td = ibv_alloc_td(w.ctx, &(struct ibv_td_init_attr){0});
    struct ibv_parent_domain_init_attr attr = {.pd = w.pd, .td = td};
    struct ibv_pd *parent = ibv_alloc_parent_domain(w.ctx, &attr);
    assert_true(td && parent);
    int r = ibv_dealloc_td(td);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
    return r;
}

int refused_counted(void)
{
    struct ibv_comp_cntr_init_attr attr = {.type = IBV_COMP_CNTR_TYPE_WRS};
    struct ibv_comp_cntr *counter = ibv_create_comp_cntr(w.ctx, &attr);
    struct ibv_qp_attach_comp_cntr_attr to = {.op_mask = IBV_QP_ATTACH_COMP_CNTR_OP_SEND};
    struct ibv_qp_init_attr init = qp_attr();
    struct ibv_qp *qp = ibv_create_qp(w.pd, &init);
    assert_true(counter && qp);
    assert_int_equal(ibv_qp_attach_comp_cntr(qp, counter, &to), 0);
    int r = ibv_qp_attach_comp_cntr(qp, counter, &to);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_comp_cntr(counter), 0);
    return r;
}

int refused_send_state(void)
{
    return post(w.fresh, IBV_WR_SEND, 0, 0, 0);
}

int refused_opcode(void)
{
    return post(w.qp, (enum ibv_wr_opcode)77, 0, 0, 0);
}

int refused_extension(void)
{
    return post(w.qp, IBV_WR_SEND_WITH_IMM, 0, 0, 0);
}

int refused_flags(void)
{
    return post(w.qp, IBV_WR_SEND, 1u << 20, 0, 0);
}

int refused_send_sges(void)
{
    return post(w.qp, IBV_WR_SEND, 0, 3, 1);
}

int refused_send_length(void)
{
    return post(w.qp, IBV_WR_SEND, 0, 2, UINT32_MAX);
}

int refused_atomic_length(void)
{
    return post(w.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 1, 4);
}

int refused_inline_read(void)
{
    return post(w.qp, IBV_WR_RDMA_READ, IBV_SEND_INLINE, 1, 8);
}

int refused_inline_length(void)
{
    return post(w.qp, IBV_WR_SEND, IBV_SEND_INLINE, 1, 2000);
}

int refused_send_full(void)
{
    int r = 0;
    for (int i = 0; i < ENTRIES && !r; i++)
        r = post(w.qp, IBV_WR_SEND, IBV_SEND_SIGNALED, 0, 0);
    drain(w.cq);
    return r;
}

static struct ibv_qp_init_attr_ex ex_attr(void)
{
    return (struct ibv_qp_init_attr_ex){
        .send_cq = w.cq,
        .recv_cq = w.cq,
        .cap = {4, 4, 2, 2, 64},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = w.pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
}

static int built(bool begun)
{
    struct ibv_qp_init_attr_ex attr = ex_attr();
    struct ibv_qp *qp = ibv_create_qp_ex(w.ctx, &attr);
    assert_non_null(qp);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(q);
    if (begun)
        ibv_wr_rdma_read(q, 0, 0);
    ibv_wr_set_sge(q, 0, 0, 0);
    int r = ibv_wr_complete(q);
    ibv_destroy_qp(qp);
    return r;
}

int refused_not_asked(void)
{
    return built(true);
}

int refused_no_work(void)
{
    return built(false);
}

/* Whichever way the list comes. */
int refused_no_sges(void)
{
    struct ibv_qp_init_attr_ex attr = ex_attr();
    struct ibv_qp *qp = ibv_create_qp_ex(w.ctx, &attr);
    assert_non_null(qp);
    struct ibv_qp_ex *q = ibv_qp_to_qp_ex(qp);
    ibv_wr_start(q);
    ibv_wr_send(q);
    ibv_wr_set_sge_list(q, 1, NULL);
    assert_int_equal(ibv_wr_complete(q), EINVAL);
    ibv_destroy_qp(qp);

    struct ibv_recv_wr recv = {.num_sge = 1}, *bad_recv = NULL;
    assert_int_equal(ibv_post_recv(w.fresh, &recv, &bad_recv), EINVAL);
    assert_ptr_equal(bad_recv, &recv);
    assert_int_equal(ibv_post_srq_recv(w.srq, &recv, &bad_recv), EINVAL);

    struct ibv_send_wr wr = {.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
    struct ibv_send_wr *bad = NULL;
    assert_int_equal(ibv_post_send(w.qp, &wr, &bad), EINVAL);
    assert_ptr_equal(bad, &wr);
    wr.send_flags = 0;
    return ibv_post_send(w.qp, &wr, &bad);
}

int refused_recv_state(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    assert_int_equal(modify(qp, IBV_QPS_RESET), 0);
    int r = post_recv(qp, 0);
    ibv_destroy_qp(qp);
    return r;
}

int refused_recv_shared(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.srq = w.srq;
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    int r = post_recv(qp, 0);
    ibv_destroy_qp(qp);
    return r;
}

int refused_recv_sges(void)
{
    return post_recv(w.fresh, 5);
}

int refused_recv_full(void)
{
    int r = 0;
    for (int i = 0; i < ENTRIES && !r; i++)
        r = post_recv(w.fresh, 0);
    return r;
}

static struct ibv_qp *without_queues(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 0;
    return ibv_create_qp(w.pd, &attr);
}

int refused_no_sends(void)
{
    struct ibv_qp *qp = without_queues();
    assert_int_equal(modify(qp, IBV_QPS_ERR), 0);
    int r = post(qp, IBV_WR_SEND, 0, 0, 0);
    ibv_destroy_qp(qp);
    return r;
}

int refused_no_recvs(void)
{
    struct ibv_qp *qp = without_queues();
    assert_int_equal(modify(qp, IBV_QPS_ERR), 0);
    int r = post_recv(qp, 0);
    ibv_destroy_qp(qp);
    return r;
}

int refused_access_flags(void)
{
    return reg(w.bytes, 8, 1 << 30);
}

int refused_access_local(void)
{
    return reg(w.bytes, 8, IBV_ACCESS_REMOTE_WRITE);
}

int refused_on_demand(void)
{
    return reg(w.bytes, 8, IBV_ACCESS_ON_DEMAND);
}

int refused_empty(void)
{
    return reg(w.bytes, 0, 0);
}

int refused_wraps(void)
{
    return reg(w.bytes, SIZE_MAX, 0);
}

int refused_unmapped(void)
{
    uint8_t *gone = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, BYTES);
    return reg(gone, BYTES, 0);
}

int refused_iova(void)
{
    return of_pointer(ibv_reg_mr_iova2(w.pd, w.bytes, 8, 1, 0));
}

int refused_rereg_flags(void)
{
    return of_int(ibv_rereg_mr(w.mr, 0, NULL, NULL, 0, 0));
}

int refused_other_context(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.send_cq = w.other_cq;
    return create_qp(attr);
}

int refused_has_windows(void)
{
    struct cm_sides s;
    struct rdma_cm_id *a, *b;
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    struct ibv_mr *mr = ibv_reg_mr(a->pd, w.bytes, BYTES, IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = ibv_alloc_mw(a->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind info = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {mr, (uintptr_t)w.bytes, 8, IBV_ACCESS_REMOTE_READ}};
    assert_int_equal(ibv_bind_mw(a->qp, mw, &info), 0);
    assert_int_equal(cm_poll(a->send_cq).status, IBV_WC_SUCCESS);
    int r = ibv_dereg_mr(mr);
    ibv_dealloc_mw(mw);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    cm_drop(a);
    cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED);
    cm_drop(b);
    cm_close(&s);
    return r;
}

int refused_window_type(void)
{
    return of_pointer(ibv_alloc_mw(w.pd, (enum ibv_mw_type)7));
}

int refused_bind_type(void)
{
    return bind_window(0, 8, IBV_ACCESS_REMOTE_READ, IBV_MW_TYPE_1, w.pd);
}

int refused_bind_key(void)
{
    return bind_window(1u << 20, 8, IBV_ACCESS_REMOTE_READ, IBV_MW_TYPE_2, w.pd);
}

int refused_bind_range(void)
{
    return bind_window(0, 0, IBV_ACCESS_REMOTE_READ, IBV_MW_TYPE_2, w.pd);
}

int refused_bind_rights(void)
{
    return bind_window(0, 8, IBV_ACCESS_MW_BIND, IBV_MW_TYPE_2, w.pd);
}

int refused_bind_pd(void)
{
    return bind_window(0, 8, IBV_ACCESS_REMOTE_READ, IBV_MW_TYPE_2, w.other_pd);
}

int refused_pd_used(void)
{
    return ibv_dealloc_pd(w.pd);
}

int refused_cq_size(void)
{
    return of_pointer(ibv_create_cq(w.ctx, 0, NULL, NULL, 0));
}

int refused_cq_vector(void)
{
    return of_pointer(ibv_create_cq(w.ctx, 1, NULL, NULL, 1 << 20));
}

/** A CQ of @p cqe in which a QP's @p n flushed receives are, resized. */
static int resize(int cqe, int n, int to)
{
    struct ibv_cq *cq = ibv_create_cq(w.ctx, cqe, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = qp_attr();
    attr.recv_cq = cq;
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    for (int i = 0; i < n; i++)
        assert_int_equal(post_recv(qp, 0), 0);
    assert_int_equal(modify(qp, IBV_QPS_ERR), 0);
    int r = ibv_resize_cq(cq, to);
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    return r;
}

int refused_cq_shrink(void)
{
    return resize(8, 3, 1);
}

int refused_cq_overrun(void)
{
    return resize(1, 3, 64);
}

int refused_cq_used(void)
{
    return ibv_destroy_cq(w.cq);
}

int refused_channel_used(void)
{
    return ibv_destroy_comp_channel(w.channel);
}

int refused_srq_used(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.srq = w.srq;
    struct ibv_qp *qp = ibv_create_qp(w.pd, &attr);
    int r = ibv_destroy_srq(w.srq);
    ibv_destroy_qp(qp);
    return r;
}

int refused_srq_size(void)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_sge = 1}};
    return of_pointer(ibv_create_srq(w.pd, &srq));
}

int refused_srq_modify(void)
{
    struct ibv_srq_attr attr = {.max_wr = 64};
    return ibv_modify_srq(w.srq, &attr, IBV_SRQ_MAX_WR);
}

int refused_srq_limit(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 1 << 20};
    return ibv_modify_srq(w.srq, &attr, IBV_SRQ_LIMIT);
}

int refused_qp_type(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.qp_type = IBV_QPT_RAW_PACKET;
    return create_qp(attr);
}

int refused_qp_size(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.cap.max_send_sge = 1 << 20;
    return create_qp(attr);
}

int refused_qp_cq(void)
{
    struct ibv_qp_init_attr attr = qp_attr();
    attr.send_cq = NULL;
    return create_qp(attr);
}

int refused_qp_ops(void)
{
    struct ibv_qp_init_attr_ex attr = ex_attr();
    attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
    attr.create_flags = IBV_QP_CREATE_SCATTER_FCS;
    return of_pointer(ibv_create_qp_ex(w.ctx, &attr));
}

int refused_qp_pd(void)
{
    struct ibv_qp_init_attr_ex attr = ex_attr();
    attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    return of_pointer(ibv_create_qp_ex(w.ctx, &attr));
}

int refused_attr_mask(void)
{
    struct ibv_qp_attr attr = {0};
    return ibv_modify_qp(w.fresh, &attr, 1 << 30);
}

int refused_attr_value(void)
{
    struct ibv_qp_attr attr = {.port_num = 9};
    return ibv_modify_qp(w.fresh, &attr, IBV_QP_PORT);
}

int refused_transition(void)
{
    return modify(w.fresh, IBV_QPS_SQD);
}

/** Full masks, as programs set them that use no rdma_cm. */
#define RTR_MASK                                                                                   \
    (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                \
     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/** To RTR for a peer of this host, @p change it before. @return the errno */
static int to_rtr(struct ibv_qp *qp, void (*change)(struct ibv_qp *qp, struct ibv_qp_attr *attr))
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num ^ 1,
        .max_dest_rd_atomic = 1,
        .ah_attr = {.port_num = 1, .is_global = 1, .grh.sgid_index = 1},
    };
    assert_int_equal(ibv_query_gid(qp->context, 1, 1, &attr.ah_attr.grh.dgid), 0);
    change(qp, &attr);
    return ibv_modify_qp(qp, &attr, RTR_MASK);
}

/** The same with a queue pair of the program's own. */
static int own_to_rtr(void (*change)(struct ibv_qp *qp, struct ibv_qp_attr *attr))
{
    struct ibv_qp_init_attr init = qp_attr();
    struct ibv_qp *qp = ibv_create_qp(w.pd, &init);
    assert_non_null(qp);
    int r = to_rtr(qp, change);
    ibv_destroy_qp(qp);
    return r;
}

int refused_no_connection(void)
{
    struct ibv_qp_init_attr init = qp_attr();
    struct ibv_qp *qp = ibv_create_qp(w.pd, &init);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .port_num = 1};
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT), 0);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14};
    int r = ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    ibv_destroy_qp(qp);
    return r;
}

static void no_gid(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
    (void)qp;
    attr->ah_attr.is_global = 0;
}

int refused_no_gid(void)
{
    return own_to_rtr(no_gid);
}

static void as_it_is(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
    (void)qp, (void)attr;
}

int refused_no_number(void)
{
    struct cm_sides s;
    cm_open(&s, NULL);
    struct rdma_cm_id *id = cm_prepare(s.a, &s.addr);
    int r = to_rtr(id->qp, as_it_is);
    cm_drop(id);
    cm_close(&s);
    return r;
}

static void other_index(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
    (void)qp;
    attr->ah_attr.grh.sgid_index = 250;
}

int refused_gid_index(void)
{
    return own_to_rtr(other_index);
}

/** From an IPv4 address to an IPv6 address, or the other way round. */
static void other_kind(struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
    union ibv_gid *gid = &attr->ah_attr.grh.dgid;
    const union ibv_gid four = {.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}};
    (void)qp;
    if (memcmp(gid, &four, 12) == 0)
        *gid = (union ibv_gid){.raw = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}};
    else
        *gid = four;
}

int refused_gid_kind(void)
{
    return own_to_rtr(other_kind);
}
