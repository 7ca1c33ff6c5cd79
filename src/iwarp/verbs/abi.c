/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts that programs built for rdma-core carry in themselves, checked against the header
 * this library is built with, which may be newer than they are: structs that this library makes, or
 * whose size its callers tell, only grow. LP64 with the mutex and condition variable of x86-64;
 * elsewhere offsets behind a mutex differ.
 */
#include "env/later.h"

#include <infiniband/sa.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__LP64__)

#define SIZE(type, size)  _Static_assert(sizeof(struct type) == (size), "size of struct " #type)
#define GROWS(type, size) _Static_assert(sizeof(struct type) >= (size), "size of struct " #type)
#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)

/* Programs come from the context in it, at any release: it grows at its head. */
#define BEFORE_CONTEXT(field, distance)                                                            \
    _Static_assert(offsetof(struct verbs_context, context) -                                       \
                           offsetof(struct verbs_context, field) ==                                \
                       (distance),                                                                 \
                   "verbs_context." #field)
_Static_assert(sizeof(struct verbs_context) ==
                   offsetof(struct verbs_context, context) + sizeof(struct ibv_context),
               "nothing follows the context");

/* clang-format off */
SIZE(ibv_device, 664);
AT(ibv_device, _ops, 0);
AT(ibv_device, node_type, 16);
AT(ibv_device, transport_type, 20);
AT(ibv_device, name, 24);
AT(ibv_device, dev_name, 88);
AT(ibv_device, dev_path, 152);
AT(ibv_device, ibdev_path, 408);
SIZE(ibv_context, 328);
AT(ibv_context, device, 0);
AT(ibv_context, ops, 8);
AT(ibv_context, cmd_fd, 264);
AT(ibv_context, async_fd, 268);
AT(ibv_context, num_comp_vectors, 272);
AT(ibv_context, mutex, 280);
AT(ibv_context, abi_compat, 320);
SIZE(ibv_context_ops, 256);
AT(ibv_context_ops, _compat_query_device, 0);
AT(ibv_context_ops, _compat_query_port, 8);
AT(ibv_context_ops, alloc_mw, 56);
AT(ibv_context_ops, bind_mw, 64);
AT(ibv_context_ops, dealloc_mw, 72);
AT(ibv_context_ops, poll_cq, 88);
AT(ibv_context_ops, req_notify_cq, 96);
AT(ibv_context_ops, post_srq_recv, 160);
AT(ibv_context_ops, _compat_create_qp, 168);
AT(ibv_context_ops, post_send, 200);
AT(ibv_context_ops, post_recv, 208);
AT(ibv_context_ops, _compat_async_event, 248);
BEFORE_CONTEXT(query_port, 320);
BEFORE_CONTEXT(advise_mr, 312);
BEFORE_CONTEXT(alloc_null_mr, 304);
BEFORE_CONTEXT(read_counters, 296);
BEFORE_CONTEXT(attach_counters_point_flow, 288);
BEFORE_CONTEXT(create_counters, 280);
BEFORE_CONTEXT(destroy_counters, 272);
BEFORE_CONTEXT(reg_dm_mr, 264);
BEFORE_CONTEXT(alloc_dm, 256);
BEFORE_CONTEXT(free_dm, 248);
BEFORE_CONTEXT(modify_flow_action_esp, 240);
BEFORE_CONTEXT(destroy_flow_action, 232);
BEFORE_CONTEXT(create_flow_action_esp, 224);
BEFORE_CONTEXT(modify_qp_rate_limit, 216);
BEFORE_CONTEXT(alloc_parent_domain, 208);
BEFORE_CONTEXT(dealloc_td, 200);
BEFORE_CONTEXT(alloc_td, 192);
BEFORE_CONTEXT(modify_cq, 184);
BEFORE_CONTEXT(post_srq_ops, 176);
BEFORE_CONTEXT(destroy_rwq_ind_table, 168);
BEFORE_CONTEXT(create_rwq_ind_table, 160);
BEFORE_CONTEXT(destroy_wq, 152);
BEFORE_CONTEXT(modify_wq, 144);
BEFORE_CONTEXT(create_wq, 136);
BEFORE_CONTEXT(query_rt_values, 128);
BEFORE_CONTEXT(create_cq_ex, 120);
BEFORE_CONTEXT(priv, 112);
BEFORE_CONTEXT(query_device_ex, 104);
BEFORE_CONTEXT(ibv_destroy_flow, 96);
BEFORE_CONTEXT(ABI_placeholder2, 88);
BEFORE_CONTEXT(ibv_create_flow, 80);
BEFORE_CONTEXT(ABI_placeholder1, 72);
BEFORE_CONTEXT(open_qp, 64);
BEFORE_CONTEXT(create_qp_ex, 56);
BEFORE_CONTEXT(get_srq_num, 48);
BEFORE_CONTEXT(create_srq_ex, 40);
BEFORE_CONTEXT(open_xrcd, 32);
BEFORE_CONTEXT(close_xrcd, 24);
BEFORE_CONTEXT(_ABI_placeholder3, 16);
BEFORE_CONTEXT(sz, 8);
SIZE(ibv_device_attr, 232);
GROWS(ibv_device_attr_ex, 400);
GROWS(ibv_port_attr, 52);
AT(ibv_port_attr, state, 0);
AT(ibv_port_attr, max_mtu, 4);
AT(ibv_port_attr, active_mtu, 8);
AT(ibv_port_attr, gid_tbl_len, 12);
AT(ibv_port_attr, port_cap_flags, 16);
AT(ibv_port_attr, max_msg_sz, 20);
AT(ibv_port_attr, bad_pkey_cntr, 24);
AT(ibv_port_attr, qkey_viol_cntr, 28);
AT(ibv_port_attr, pkey_tbl_len, 32);
AT(ibv_port_attr, lid, 34);
AT(ibv_port_attr, sm_lid, 36);
AT(ibv_port_attr, lmc, 38);
AT(ibv_port_attr, max_vl_num, 39);
AT(ibv_port_attr, sm_sl, 40);
AT(ibv_port_attr, subnet_timeout, 41);
AT(ibv_port_attr, init_type_reply, 42);
AT(ibv_port_attr, active_width, 43);
AT(ibv_port_attr, active_speed, 44);
AT(ibv_port_attr, phys_state, 45);
AT(ibv_port_attr, link_layer, 46);
AT(ibv_port_attr, flags, 47);
AT(ibv_port_attr, port_cap_flags2, 48);
SIZE(ibv_pd, 16);
SIZE(ibv_mr, 48);
AT(ibv_mr, context, 0);
AT(ibv_mr, pd, 8);
AT(ibv_mr, addr, 16);
AT(ibv_mr, length, 24);
AT(ibv_mr, handle, 32);
AT(ibv_mr, lkey, 36);
AT(ibv_mr, rkey, 40);
SIZE(ibv_mw, 32);
SIZE(ibv_ah, 24);
SIZE(ibv_ah_attr, 32);
SIZE(ibv_comp_channel, 16);
AT(ibv_comp_channel, context, 0);
AT(ibv_comp_channel, fd, 8);
AT(ibv_comp_channel, refcnt, 12);
SIZE(ibv_async_event, 16);
AT(ibv_async_event, element, 0);
AT(ibv_async_event, event_type, 8);
SIZE(ibv_srq, 128);
AT(ibv_srq, context, 0);
AT(ibv_srq, srq_context, 8);
AT(ibv_srq, pd, 16);
AT(ibv_srq, handle, 24);
AT(ibv_srq, mutex, 32);
AT(ibv_srq, cond, 72);
AT(ibv_srq, events_completed, 120);
SIZE(ibv_cq, 128);
AT(ibv_cq, context, 0);
AT(ibv_cq, channel, 8);
AT(ibv_cq, cq_context, 16);
AT(ibv_cq, handle, 24);
AT(ibv_cq, cqe, 28);
AT(ibv_cq, mutex, 32);
AT(ibv_cq, cond, 72);
AT(ibv_cq, comp_events_completed, 120);
AT(ibv_cq, async_events_completed, 124);
GROWS(ibv_cq_ex, 288);
AT(ibv_cq_ex, comp_mask, 128);
AT(ibv_cq_ex, status, 132);
AT(ibv_cq_ex, wr_id, 136);
AT(ibv_cq_ex, start_poll, 144);
AT(ibv_cq_ex, next_poll, 152);
AT(ibv_cq_ex, end_poll, 160);
AT(ibv_cq_ex, read_opcode, 168);
AT(ibv_cq_ex, read_vendor_err, 176);
AT(ibv_cq_ex, read_byte_len, 184);
AT(ibv_cq_ex, read_imm_data, 192);
AT(ibv_cq_ex, read_qp_num, 200);
AT(ibv_cq_ex, read_src_qp, 208);
AT(ibv_cq_ex, read_wc_flags, 216);
AT(ibv_cq_ex, read_slid, 224);
AT(ibv_cq_ex, read_sl, 232);
AT(ibv_cq_ex, read_dlid_path_bits, 240);
AT(ibv_cq_ex, read_completion_ts, 248);
AT(ibv_cq_ex, read_cvlan, 256);
AT(ibv_cq_ex, read_flow_tag, 264);
AT(ibv_cq_ex, read_tm_info, 272);
AT(ibv_cq_ex, read_completion_wallclock_ns, 280);
SIZE(ibv_qp, 160);
AT(ibv_qp, context, 0);
AT(ibv_qp, qp_context, 8);
AT(ibv_qp, pd, 16);
AT(ibv_qp, send_cq, 24);
AT(ibv_qp, recv_cq, 32);
AT(ibv_qp, srq, 40);
AT(ibv_qp, handle, 48);
AT(ibv_qp, qp_num, 52);
AT(ibv_qp, state, 56);
AT(ibv_qp, qp_type, 60);
AT(ibv_qp, mutex, 64);
AT(ibv_qp, cond, 104);
AT(ibv_qp, events_completed, 152);
GROWS(ibv_qp_ex, 352);
AT(ibv_qp_ex, comp_mask, 160);
AT(ibv_qp_ex, wr_id, 168);
AT(ibv_qp_ex, wr_flags, 176);
AT(ibv_qp_ex, wr_atomic_cmp_swp, 184);
AT(ibv_qp_ex, wr_atomic_fetch_add, 192);
AT(ibv_qp_ex, wr_bind_mw, 200);
AT(ibv_qp_ex, wr_local_inv, 208);
AT(ibv_qp_ex, wr_rdma_read, 216);
AT(ibv_qp_ex, wr_rdma_write, 224);
AT(ibv_qp_ex, wr_rdma_write_imm, 232);
AT(ibv_qp_ex, wr_send, 240);
AT(ibv_qp_ex, wr_send_imm, 248);
AT(ibv_qp_ex, wr_send_inv, 256);
AT(ibv_qp_ex, wr_send_tso, 264);
AT(ibv_qp_ex, wr_set_ud_addr, 272);
AT(ibv_qp_ex, wr_set_xrc_srqn, 280);
AT(ibv_qp_ex, wr_set_inline_data, 288);
AT(ibv_qp_ex, wr_set_inline_data_list, 296);
AT(ibv_qp_ex, wr_set_sge, 304);
AT(ibv_qp_ex, wr_set_sge_list, 312);
AT(ibv_qp_ex, wr_start, 320);
AT(ibv_qp_ex, wr_complete, 328);
AT(ibv_qp_ex, wr_abort, 336);
AT(ibv_qp_ex, wr_atomic_write, 344);
SIZE(ibv_wc, 48);
AT(ibv_wc, wr_id, 0);
AT(ibv_wc, status, 8);
AT(ibv_wc, opcode, 12);
AT(ibv_wc, vendor_err, 16);
AT(ibv_wc, byte_len, 20);
AT(ibv_wc, imm_data, 24);
AT(ibv_wc, invalidated_rkey, 24);
AT(ibv_wc, qp_num, 28);
AT(ibv_wc, src_qp, 32);
AT(ibv_wc, wc_flags, 36);
AT(ibv_wc, pkey_index, 40);
AT(ibv_wc, slid, 42);
AT(ibv_wc, sl, 44);
AT(ibv_wc, dlid_path_bits, 45);
SIZE(ibv_send_wr, 128);
AT(ibv_send_wr, wr_id, 0);
AT(ibv_send_wr, next, 8);
AT(ibv_send_wr, sg_list, 16);
AT(ibv_send_wr, num_sge, 24);
AT(ibv_send_wr, opcode, 28);
AT(ibv_send_wr, send_flags, 32);
AT(ibv_send_wr, imm_data, 36);
AT(ibv_send_wr, invalidate_rkey, 36);
AT(ibv_send_wr, wr, 40);
AT(ibv_send_wr, qp_type, 72);
AT(ibv_send_wr, bind_mw, 80);
AT(ibv_send_wr, tso, 80);
SIZE(ibv_recv_wr, 32);
SIZE(ibv_sge, 16);
SIZE(ibv_qp_attr, 144);
SIZE(ibv_qp_init_attr, 64);
GROWS(ibv_qp_init_attr_ex, 136);
SIZE(ibv_srq_init_attr, 24);
GROWS(ibv_srq_init_attr_ex, 64);
GROWS(ibv_cq_init_attr_ex, 56);
SIZE(ibv_gid_entry, 32);
SIZE(ibv_ece, 12);
SIZE(ibv_wq, 152);
SIZE(ibv_sa_path_rec, 64);
GROWS(ibv_mr_init_attr, 64);
AT(ibv_mr_init_attr, length, 0);
AT(ibv_mr_init_attr, access, 8);
AT(ibv_mr_init_attr, comp_mask, 16);
AT(ibv_mr_init_attr, iova, 24);
AT(ibv_mr_init_attr, addr, 32);
AT(ibv_mr_init_attr, fd, 40);
AT(ibv_mr_init_attr, fd_offset, 48);
AT(ibv_mr_init_attr, dmah, 56);
SIZE(ibv_comp_cntr, 16);
AT(ibv_comp_cntr, context, 0);
AT(ibv_comp_cntr, handle, 8);
GROWS(ibv_comp_cntr_caps, 16);
AT(ibv_comp_cntr_caps, max_value, 0);
AT(ibv_comp_cntr_caps, max_counters, 8);
AT(ibv_comp_cntr_caps, supported_qp_attach_ops, 12);
GROWS(ibv_comp_cntr_init_attr, 12);
AT(ibv_comp_cntr_init_attr, comp_mask, 0);
AT(ibv_comp_cntr_init_attr, type, 4);
AT(ibv_comp_cntr_init_attr, flags, 8);
GROWS(ibv_qp_attach_comp_cntr_attr, 8);
AT(ibv_qp_attach_comp_cntr_attr, comp_mask, 0);
AT(ibv_qp_attach_comp_cntr_attr, op_mask, 4);
/* clang-format on */

#endif
