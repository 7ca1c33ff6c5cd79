/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and their ports, objects and what keeps them, what is refused. */
#include <infiniband/verbs.h> /* first: it has parameters of the name "current", a macro of kernels */

#include "kverbs_kit.h"

#include <errno.h>

static int added, removed;
static struct ib_client client;

static void on_add(struct ib_device *device)
{
    added++;
    ib_set_client_data(device, &client, device->name);
}

static void on_remove(struct ib_device *device, void *data)
{
    removed++;
    assert_ptr_equal(data, device->name);
}

static void clients_are_told_of_devices(void **state)
{
    (void)state;
    client = (struct ib_client){.name = "test", .add = on_add, .remove = on_remove};
    struct ib_device *d = kit_device();
    assert_null(ib_get_client_data(d, &client));
    assert_int_equal(ib_register_client(&client), 0);
    assert_true(added >= 1);
    assert_ptr_equal(ib_get_client_data(d, &client), d->name);
    ib_set_client_data(d, &client, NULL);
    assert_null(ib_get_client_data(d, &client));
    ib_set_client_data(d, &client, d->name);
    ib_unregister_client(&client);
    assert_int_equal(removed, added);
    assert_null(ib_get_client_data(d, &client));
}

static void a_device_is_what_verbs_say(void **state)
{
    (void)state;
    struct ib_device *d = kit_device();
    assert_string_equal(dev_name(d->dma_device), d->name);
    assert_true(d->attrs.max_qp > 0 && d->attrs.max_cqe > 0 && d->attrs.max_mr > 0);
    assert_true(d->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS);
    assert_true(d->attrs.device_cap_flags & IB_DEVICE_LOCAL_DMA_LKEY);
    assert_true(d->node_guid != 0);
    assert_true(d->num_comp_vectors >= 1);
    struct ib_port_attr port;
    assert_int_equal(ib_query_port(d, 1, &port), 0);
    assert_int_equal(port.state, IB_PORT_ACTIVE);
    assert_true(port.gid_tbl_len >= 1);
    assert_int_equal(ib_query_port(d, 0, &port), -EINVAL);
    assert_int_equal(ib_query_port(d, 2, &port), -EINVAL);
    union ib_gid gid, none = {.raw = {0}};
    assert_int_equal(ib_query_gid(d, 1, 0, &gid, NULL), 0);
    assert_memory_not_equal(&gid, &none, sizeof gid);
    assert_int_equal(ib_query_gid(d, 1, 100000, &gid, NULL), -EINVAL);
    u16 pkey;
    assert_int_equal(ib_query_pkey(d, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
    assert_int_equal(ib_query_pkey(d, 1, 9999, &pkey), -EINVAL);
}

static void a_port_of_an_rnic(void **state)
{
    (void)state;
    struct ib_device *d = kit_device();
    assert_int_equal(rdma_start_port(d), 1);
    assert_int_equal(rdma_end_port(d), 1);
    assert_int_equal(rdma_end_port(d), d->phys_port_cnt);
    assert_true(rdma_is_port_valid(d, 1));
    assert_false(rdma_is_port_valid(d, 0));
    assert_false(rdma_is_port_valid(d, 2));
    assert_int_equal(rdma_node_get_transport(RDMA_NODE_RNIC), RDMA_TRANSPORT_IWARP);
    assert_int_equal(rdma_node_get_transport(RDMA_NODE_IB_CA), RDMA_TRANSPORT_IB);
    assert_int_equal(rdma_node_get_transport((enum rdma_node_type)d->node_type),
                     RDMA_TRANSPORT_IWARP);
    enum rdma_link_layer layer = rdma_port_get_link_layer(d, 1);
    assert_int_equal(layer, IB_LINK_LAYER_ETHERNET);
    assert_int_equal(rdma_port_get_link_layer(d, 9), IB_LINK_LAYER_UNSPECIFIED);
    assert_true(rdma_protocol_iwarp(d, 1));
    assert_true(rdma_cap_iw_cm(d, 1));
    assert_false(rdma_protocol_ib(d, 1));
    assert_false(rdma_protocol_roce(d, 1));
    assert_true(rdma_protocol_roce(kit_roce(), 1));
    assert_true(rdma_cap_eth_ah(kit_roce(), 1));
    assert_false(rdma_cap_iw_cm(kit_roce(), 1));
    assert_false(rdma_cap_ib_switch(d));
    assert_false(rdma_cap_ib_mad(d, 1));
    assert_false(rdma_cap_opa_mad(d, 1));
    assert_false(rdma_cap_ib_smi(d, 1));
    assert_false(rdma_cap_ib_cm(d, 1));
    assert_false(rdma_cap_ib_sa(d, 1));
    assert_false(rdma_cap_ib_mcast(d, 1));
    assert_false(rdma_cap_af_ib(d, 1));
    assert_false(rdma_cap_eth_ah(d, 1));
    assert_false(rdma_cap_opa_ah(d, 1));
    assert_false(rdma_cap_roce_gid_table(d, 1));
    assert_false(rdma_cap_read_inv(d, 1));
    assert_int_equal(rdma_max_mad_size(d, 1), 0); /* max_mad_size_is_none */
}

struct objects {
    struct ib_device *d;
    struct ib_pd *pd;
    struct ib_cq *send_cq, *recv_cq;
    struct ib_srq *srq;
    struct ib_qp *qp;
};

static struct ib_qp_init_attr init_attr(const struct objects *o)
{
    return (struct ib_qp_init_attr){
        .send_cq = o->send_cq,
        .recv_cq = o->recv_cq,
        .srq = o->srq,
        .cap = {.max_send_wr = 10, .max_recv_wr = 10, .max_send_sge = 2, .max_recv_sge = 2},
        .sq_sig_type = IB_SIGNAL_ALL_WR,
        .qp_type = IB_QPT_RC,
    };
}

static void make_on(struct objects *o, struct ib_device *d)
{
    *o = (struct objects){.d = d};
    struct ib_cq_init_attr cq = {.cqe = 20};
    o->pd = ib_alloc_pd(o->d, 0);
    assert_false(IS_ERR(o->pd));
    assert_ptr_equal(o->pd->device, o->d);
    o->send_cq = ib_create_cq(o->d, NULL, NULL, o, &cq);
    o->recv_cq = ib_create_cq(o->d, NULL, NULL, o, &cq);
    assert_false(IS_ERR(o->send_cq) || IS_ERR(o->recv_cq));
    assert_true(o->send_cq->cqe >= 20);
    struct ib_srq_init_attr srq = {.attr = {.max_wr = 7, .max_sge = 2}};
    o->srq = ib_create_srq(o->pd, &srq);
    assert_false(IS_ERR(o->srq));
    assert_true(srq.attr.max_wr >= 7 && srq.attr.max_sge >= 2); /* srq_sizes_are_at_least */
    struct ib_qp_init_attr qp = init_attr(o);
    o->qp = ib_create_qp(o->pd, &qp);
    assert_false(IS_ERR(o->qp));
    assert_true(qp.cap.max_send_wr >= 10 && qp.cap.max_send_sge >= 2);
}

static void make(struct objects *o)
{
    make_on(o, kit_device());
}

static void unmake(struct objects *o)
{
    assert_int_equal(ib_destroy_qp(o->qp), 0);
    assert_int_equal(ib_destroy_srq(o->srq), 0);
    assert_int_equal(ib_destroy_cq(o->send_cq), 0);
    assert_int_equal(ib_destroy_cq(o->recv_cq), 0);
    ib_dealloc_pd(o->pd);
}

static void dealloc_pd(void *pd)
{
    ib_dealloc_pd(pd);
}

static void who_is_used_stays(void **state)
{
    (void)state;
    struct objects o;
    char said[512];
    make(&o);
    assert_int_equal(ib_destroy_cq(o.send_cq), -EBUSY);
    assert_int_equal(ib_destroy_cq(o.recv_cq), -EBUSY);
    assert_int_equal(ib_destroy_srq(o.srq), -EBUSY);
    assert_int_equal(atomic_read(&o.pd->usecnt), 2);
    kit_stderr(said, sizeof said, dealloc_pd, o.pd); /* as the kernel's, it only warns */
    assert_non_null(strstr(said, "WARNING"));
    struct ib_mr *mr = ib_alloc_mr(o.pd, IB_MR_TYPE_MEM_REG, 4);
    assert_false(IS_ERR(mr));
    assert_int_equal(atomic_read(&o.pd->usecnt), 3);
    assert_int_equal(ib_dereg_mr(mr), 0);
    unmake(&o);
}

static void a_qp_is_asked_and_changed(void **state)
{
    (void)state;
    struct objects o;
    make(&o);
    struct ib_qp_attr a = {.qp_state = IB_QPS_ERR};
    struct ib_qp_init_attr i;
    assert_ptr_equal(o.qp->real_qp, o.qp);
    assert_int_equal(ib_query_qp(o.qp, &a, IB_QP_STATE | IB_QP_CAP, &i), 0);
    assert_true(a.qp_state == IB_QPS_RESET || a.qp_state == IB_QPS_INIT);
    assert_true(i.cap.max_send_wr >= 10);
    assert_ptr_equal(i.send_cq, o.send_cq);
    assert_ptr_equal(i.srq, o.srq);
    assert_int_equal(i.sq_sig_type, IB_SIGNAL_ALL_WR);
    enum ib_qp_type type = i.qp_type;
    assert_int_equal(type, IB_QPT_RC);
    enum ib_qp_attr_mask mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS;
    a = (struct ib_qp_attr){
        .qp_state = IB_QPS_INIT, .port_num = 1, .qp_access_flags = IB_ACCESS_REMOTE_READ};
    assert_int_equal(ib_modify_qp(o.qp, &a, (int)mask | IB_QP_QKEY), -EINVAL);
    assert_int_equal(ib_modify_qp(o.qp, &a, (int)mask), 0);
    a.qp_state = IB_QPS_RTS;
    assert_int_equal(ib_modify_qp(o.qp, &a, IB_QP_STATE), -EINVAL);
    assert_int_equal(ib_query_qp(o.qp, &a, IB_QP_STATE | IB_QP_ACCESS_FLAGS, &i), 0);
    assert_int_equal(a.qp_state, IB_QPS_INIT);
    assert_int_equal(a.qp_access_flags, IB_ACCESS_REMOTE_READ);
    a.qp_state = IB_QPS_ERR;
    assert_int_equal(ib_modify_qp(o.qp, &a, IB_QP_STATE), 0);
    unmake(&o);
}

static void an_srq_is_asked_and_changed(void **state)
{
    (void)state;
    struct objects o;
    make(&o);
    struct ib_srq_attr a = {.srq_limit = 3};
    enum ib_srq_attr_mask mask = IB_SRQ_LIMIT;
    assert_int_equal(ib_modify_srq(o.srq, &a, mask), 0);
    assert_int_equal(ib_query_srq(o.srq, &a), 0);
    assert_int_equal(a.srq_limit, 3);
    assert_true(a.max_wr >= 7 && a.max_sge >= 2);
    a.srq_limit = a.max_wr + 1;
    assert_int_equal(ib_modify_srq(o.srq, &a, IB_SRQ_LIMIT), -EINVAL);
    struct ib_srq_init_attr xrc = {.srq_type = IB_SRQT_XRC};
    assert_int_equal(PTR_ERR(ib_create_srq(o.pd, &xrc)), -EOPNOTSUPP);
    struct ib_srq_init_attr huge = {.attr = {.max_wr = 1 << 30, .max_sge = 1}};
    assert_int_equal(PTR_ERR(ib_create_srq(o.pd, &huge)), -EINVAL);
    unmake(&o);
}

static void address_handles(void **state)
{
    (void)state;
    struct objects o;
    make_on(&o, kit_roce());
    struct rdma_ah_attr a = {.ah_flags = IB_AH_GRH,
                             .port_num = 1,
                             .grh = {.hop_limit = 64, .traffic_class = 8}},
                        b;
    assert_int_equal(ib_query_gid(o.d, 1, 0, &a.grh.dgid, NULL), 0);
    struct ib_ah *ah = rdma_create_ah(o.pd, &a);
    assert_false(IS_ERR(ah));
    assert_ptr_equal(ah->pd, o.pd);
    assert_int_equal(rdma_query_ah(ah, &b), 0);
    assert_memory_equal(&b, &a, sizeof a);
    assert_int_equal(rdma_modify_ah(ah, &b), -EOPNOTSUPP);
    assert_int_equal(rdma_destroy_ah(ah), 0);

    struct ib_grh grh = {.version_tclass_flow = cpu_to_be32(6u << 28 | 0x12345),
                         .hop_limit = 9,
                         .sgid = a.grh.dgid,
                         .dgid = a.grh.dgid};
    struct ib_wc wc = {.wc_flags = IB_WC_GRH, .sl = 3, .slid = 7, .dlid_path_bits = 1};
    assert_int_equal(ib_init_ah_from_wc(o.d, 1, &wc, &grh, &b), 0);
    assert_int_equal(b.ah_flags, IB_AH_GRH);
    assert_int_equal(b.sl, 3);
    assert_int_equal(b.ib.dlid, 7);
    assert_int_equal(b.ib.src_path_bits, 1);
    assert_int_equal(b.grh.flow_label, 0x12345);
    assert_memory_equal(&b.grh.dgid, &grh.sgid, sizeof grh.sgid);
    ah = ib_create_ah_from_wc(o.pd, &wc, &grh, 1);
    assert_false(IS_ERR(ah));
    assert_int_equal(rdma_destroy_ah(ah), 0);
    grh.dgid.raw[3] ^= 0x55; /* not one of the port's */
    assert_true(ib_init_ah_from_wc(o.d, 1, &wc, &grh, &b) < 0);
    assert_true(IS_ERR(ib_create_ah_from_wc(o.pd, &wc, &grh, 1)));
    wc.wc_flags = 0; /* then the header is not looked at */
    assert_int_equal(ib_init_ah_from_wc(o.d, 1, &wc, NULL, &b), 0);
    assert_int_equal(b.ah_flags, 0);
    struct objects rnic;
    make(&rnic);
    a.grh.sgid_index = 250;
    assert_int_equal(PTR_ERR(rdma_create_ah(rnic.pd, &a)), -EINVAL);
    a.grh.sgid_index = 0;
    unmake(&rnic);
    a.port_num = 9;
    assert_int_equal(PTR_ERR(rdma_create_ah(o.pd, &a)), -EINVAL);
    unmake(&o);
}

static void what_no_device_offers_is_refused(void **state)
{
    (void)state;
    struct objects o;
    make(&o);
    struct ib_fmr_attr fmr = {.max_pages = 1, .max_maps = 1, .page_shift = 12};
    LIST_HEAD(list);
    struct list_head entry;
    u64 page = 0;
    assert_int_equal(PTR_ERR(ib_alloc_fmr(o.pd, 0, &fmr)), -EOPNOTSUPP);
    struct ib_fmr *none = NULL;
    assert_int_equal(ib_map_phys_fmr(none, &page, 1, 0), -EOPNOTSUPP);
    assert_int_equal(ib_unmap_fmr(&list), 0); /* nothing to do */
    list_add(&entry, &list);
    assert_int_equal(ib_unmap_fmr(&list), -EOPNOTSUPP);
    assert_int_equal(ib_dealloc_fmr(none), -EOPNOTSUPP);

    struct ib_xrcd *xrcd = ib_alloc_xrcd(o.d);
    assert_int_equal(PTR_ERR(xrcd), -EOPNOTSUPP);
    assert_int_equal(ib_dealloc_xrcd(xrcd), -EOPNOTSUPP);
    struct ib_qp_open_attr open = {.qp_num = 1, .qp_type = IB_QPT_XRC_TGT};
    assert_int_equal(PTR_ERR(ib_open_qp(xrcd, &open)), -EOPNOTSUPP);
    assert_int_equal(ib_close_qp(o.qp), -EOPNOTSUPP);

    struct ib_mr *mr = ib_alloc_mr(o.pd, IB_MR_TYPE_MEM_REG, 1);
    struct ib_mr_status status = {.sig_err = {.err_type = IB_SIG_BAD_GUARD}};
    enum ib_mr_status_check check = IB_MR_CHECK_SIG_STATUS;
    enum ib_sig_err_type bad = status.sig_err.err_type;
    struct ib_sig_err err = status.sig_err;
    assert_int_equal(bad, err.err_type);
    assert_int_equal(ib_check_mr_status(mr, check, &status), -EOPNOTSUPP);
    assert_int_equal(ib_dereg_mr(mr), 0);
    assert_int_equal(PTR_ERR(ib_alloc_mr(o.pd, IB_MR_TYPE_SIGNATURE, 1)), -EOPNOTSUPP);
    assert_int_equal(PTR_ERR(ib_alloc_mr(o.pd, IB_MR_TYPE_SG_GAPS, 1)), -EOPNOTSUPP);
    assert_int_equal(PTR_ERR(ib_alloc_mr(o.pd, IB_MR_TYPE_MEM_REG, 0)), -EINVAL);
    assert_int_equal(PTR_ERR(ib_alloc_mr(o.pd, IB_MR_TYPE_MEM_REG, ~0u)), -EINVAL);
    assert_int_equal(PTR_ERR(ib_alloc_pd(o.d, IB_PD_UNSAFE_GLOBAL_RKEY)), -EOPNOTSUPP);

    union ib_gid group = {.raw = {0xff, 0x0e, [15] = 1}}; /* multicast_wants_ud */
    assert_int_equal(ib_attach_mcast(o.qp, &group, 0), -EINVAL);
    assert_int_equal(ib_detach_mcast(o.qp, &group, 0), -EINVAL);

    struct ib_qp_init_attr init = init_attr(&o);
    init.create_flags = 1;
    assert_int_equal(PTR_ERR(ib_create_qp(o.pd, &init)), -EOPNOTSUPP);
    init = init_attr(&o);
    init.qp_type = IB_QPT_XRC_INI;
    assert_int_equal(PTR_ERR(ib_create_qp(o.pd, &init)), -EOPNOTSUPP);
    init = init_attr(&o);
    init.send_cq = NULL;
    assert_int_equal(PTR_ERR(ib_create_qp(o.pd, &init)), -EINVAL);
    init = init_attr(&o);
    init.cap.max_send_wr = 1 << 30;
    assert_int_equal(PTR_ERR(ib_create_qp(o.pd, &init)), -EINVAL);
    struct ib_cq_init_attr cq = {.cqe = 1, .flags = 1};
    assert_int_equal(PTR_ERR(ib_create_cq(o.d, NULL, NULL, NULL, &cq)), -EOPNOTSUPP);
    cq = (struct ib_cq_init_attr){.cqe = 0};
    assert_int_equal(PTR_ERR(ib_create_cq(o.d, NULL, NULL, NULL, &cq)), -EINVAL);
    unmake(&o);
}

static void hold_spinlock_and_alloc(void *arg)
{
    (void)arg;
    DEFINE_SPINLOCK(lock);
    for (int i = 0; i < 2; i++) { /* once a place */
        unsigned long flags;
        spin_lock_irqsave(&lock, flags);
        kfree(kmalloc(8, GFP_KERNEL));
        kfree(kmalloc(8, GFP_ATOMIC));
        spin_unlock_irqrestore(&lock, flags);
    }
    kfree(kmalloc(8, GFP_KERNEL));
}

static void who_holds_a_spinlock_may_not_sleep(void **state)
{
    (void)state;
    char said[1024];
    kit_stderr(said, sizeof said, hold_spinlock_and_alloc, NULL);
    const char *bug = strstr(said, "BUG: sleeping function called from invalid context");
    assert_non_null(bug);
    assert_non_null(strstr(bug, "spinlocks: 1"));
    assert_non_null(strstr(bug, "kverbs_object_test.c"));
    assert_null(strstr(bug + 1, "BUG"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_are_told_of_devices),
        cmocka_unit_test(a_device_is_what_verbs_say),
        cmocka_unit_test(a_port_of_an_rnic),
        cmocka_unit_test(who_is_used_stays),
        cmocka_unit_test(a_qp_is_asked_and_changed),
        cmocka_unit_test(an_srq_is_asked_and_changed),
        cmocka_unit_test(address_handles),
        cmocka_unit_test(what_no_device_offers_is_refused),
        cmocka_unit_test(who_holds_a_spinlock_may_not_sleep),
    };
    kit_devices();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
