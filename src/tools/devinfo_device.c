/* SPDX-License-Identifier: BSD-2-Clause */
#include "devinfo.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FLAG(name)                                                                                 \
    {                                                                                              \
        IBV_DEVICE_##name, #name                                                                   \
    }

static const struct devinfo_name device_flags[] = {
    FLAG(RESIZE_MAX_WR),
    FLAG(BAD_PKEY_CNTR),
    FLAG(BAD_QKEY_CNTR),
    FLAG(RAW_MULTI),
    FLAG(AUTO_PATH_MIG),
    FLAG(CHANGE_PHY_PORT),
    FLAG(UD_AV_PORT_ENFORCE),
    FLAG(CURR_QP_STATE_MOD),
    FLAG(SHUTDOWN_PORT),
    FLAG(INIT_TYPE),
    FLAG(PORT_ACTIVE_EVENT),
    FLAG(SYS_IMAGE_GUID),
    FLAG(RC_RNR_NAK_GEN),
    FLAG(SRQ_RESIZE),
    FLAG(N_NOTIFY_CQ),
    FLAG(MEM_WINDOW),
    FLAG(UD_IP_CSUM),
    FLAG(XRC),
    FLAG(MEM_MGT_EXTENSIONS),
    FLAG(MEM_WINDOW_TYPE_2A),
    FLAG(MEM_WINDOW_TYPE_2B),
    FLAG(RC_IP_CSUM),
    FLAG(RAW_IP_CSUM),
    FLAG(MANAGED_FLOW_STEERING),
    {0, NULL},
};

static const struct devinfo_name transports[] = {
    {IBV_TRANSPORT_IB, "InfiniBand"},
    {IBV_TRANSPORT_IWARP, "iWARP"},
    {IBV_TRANSPORT_USNIC, "usNIC"},
    {IBV_TRANSPORT_USNIC_UDP, "usNIC UDP"},
    {IBV_TRANSPORT_UNSPECIFIED, "unspecified"},
    {0, NULL},
};

static const struct devinfo_name atomics[] = {
    {IBV_ATOMIC_NONE, "ATOMIC_NONE"},
    {IBV_ATOMIC_HCA, "ATOMIC_HCA"},
    {IBV_ATOMIC_GLOB, "ATOMIC_GLOB"},
    {0, NULL},
};

static const struct devinfo_name paging[] = {
    {IBV_ODP_SUPPORT, "ODP_SUPPORT"},
    {IBV_ODP_SUPPORT_IMPLICIT, "ODP_SUPPORT_IMPLICIT"},
    {0, NULL},
};

static const struct devinfo_name paging_operations[] = {
    {IBV_ODP_SUPPORT_SEND, "SUPPORT_SEND"},
    {IBV_ODP_SUPPORT_RECV, "SUPPORT_RECV"},
    {IBV_ODP_SUPPORT_WRITE, "SUPPORT_WRITE"},
    {IBV_ODP_SUPPORT_READ, "SUPPORT_READ"},
    {IBV_ODP_SUPPORT_ATOMIC, "SUPPORT_ATOMIC"},
    {IBV_ODP_SUPPORT_SRQ_RECV, "SUPPORT_SRQ"},
    {0, NULL},
};

static void number(const char *name, int value)
{
    devinfo_field(1, name, "%d", value);
}

static void guid(const char *name, __be64 value)
{
    uint64_t n = be64toh(value);
    devinfo_field(1, name, "%04x:%04x:%04x:%04x", (unsigned)(n >> 48), (unsigned)(n >> 32) & 0xffff,
                  (unsigned)(n >> 16) & 0xffff, (unsigned)n & 0xffff);
}

static void limits(const struct ibv_device_attr *a)
{
    devinfo_field(1, "max_mr_size", "0x%" PRIx64, a->max_mr_size);
    devinfo_field(1, "page_size_cap", "0x%" PRIx64, a->page_size_cap);
    number("max_qp", a->max_qp);
    number("max_qp_wr", a->max_qp_wr);
    devinfo_field(1, "device_cap_flags", "0x%08x", a->device_cap_flags);
    devinfo_flags(a->device_cap_flags, device_flags);
    number("max_sge", a->max_sge);
    number("max_sge_rd", a->max_sge_rd);
    number("max_cq", a->max_cq);
    number("max_cqe", a->max_cqe);
    number("max_mr", a->max_mr);
    number("max_pd", a->max_pd);
    number("max_qp_rd_atom", a->max_qp_rd_atom);
    number("max_ee_rd_atom", a->max_ee_rd_atom);
    number("max_res_rd_atom", a->max_res_rd_atom);
    number("max_qp_init_rd_atom", a->max_qp_init_rd_atom);
    number("max_ee_init_rd_atom", a->max_ee_init_rd_atom);
    devinfo_named(1, "atomic_cap", a->atomic_cap, atomics);
    number("max_ee", a->max_ee);
    number("max_rdd", a->max_rdd);
    number("max_mw", a->max_mw);
    number("max_raw_ipv6_qp", a->max_raw_ipv6_qp);
    number("max_raw_ethy_qp", a->max_raw_ethy_qp);
    number("max_mcast_grp", a->max_mcast_grp);
    number("max_mcast_qp_attach", a->max_mcast_qp_attach);
    number("max_total_mcast_qp_attach", a->max_total_mcast_qp_attach);
    number("max_ah", a->max_ah);
    number("max_fmr", a->max_fmr);
    number("max_srq", a->max_srq);
    if (a->max_srq) {
        number("max_srq_wr", a->max_srq_wr);
        number("max_srq_sge", a->max_srq_sge);
    }
    number("max_pkeys", a->max_pkeys);
    number("local_ca_ack_delay", a->local_ca_ack_delay);
}

static void paging_of(const char *transport, uint32_t flags)
{
    printf("\t%s:\n", transport);
    devinfo_flags(flags, paging_operations);
    if (!flags)
        puts("\t\t\t\t\tNO SUPPORT");
}

static void extended(const struct ibv_device_attr_ex *a)
{
    puts("\tgeneral_odp_caps:");
    devinfo_flags(a->odp_caps.general_caps, paging);
    paging_of("rc_odp_caps", a->odp_caps.per_transport_caps.rc_odp_caps);
    paging_of("uc_odp_caps", a->odp_caps.per_transport_caps.uc_odp_caps);
    paging_of("ud_odp_caps", a->odp_caps.per_transport_caps.ud_odp_caps);
    paging_of("xrc_odp_caps", a->xrc_odp_caps);
    if (a->completion_timestamp_mask)
        devinfo_field(1, "completion timestamp_mask", "0x%016" PRIx64,
                      a->completion_timestamp_mask);
    else
        puts("\tcompletion_timestamp_mask not supported");
    if (a->hca_core_clock)
        devinfo_field(1, "hca_core_clock", "%" PRIu64 "kHZ", a->hca_core_clock);
    else
        puts("\tcore clock not supported");
    devinfo_field(1, "device_cap_flags_ex", "0x%" PRIX64, a->device_cap_flags_ex);
    puts("\ttso_caps:");
    devinfo_field(2, "max_tso", "%u", a->tso_caps.max_tso);
    puts("\trss_caps:");
    devinfo_field(2, "max_rwq_indirection_tables", "%u", a->rss_caps.max_rwq_indirection_tables);
    devinfo_field(2, "max_rwq_indirection_table_size", "%u",
                  a->rss_caps.max_rwq_indirection_table_size);
    devinfo_field(2, "rx_hash_function", "0x%x", a->rss_caps.rx_hash_function);
    devinfo_field(2, "rx_hash_fields_mask", "0x%" PRIX64, a->rss_caps.rx_hash_fields_mask);
    devinfo_field(1, "max_wq_type_rq", "%u", a->max_wq_type_rq);
    puts("\tpacket_pacing_caps:");
    devinfo_field(2, "qp_rate_limit_min", "%ukbps", a->packet_pacing_caps.qp_rate_limit_min);
    devinfo_field(2, "qp_rate_limit_max", "%ukbps", a->packet_pacing_caps.qp_rate_limit_max);
    if (!a->tm_caps.max_num_tags)
        puts("\ttag matching not supported");
    if (a->cq_mod_caps.max_cq_count) {
        puts("\n\tcq moderation caps:");
        devinfo_field(2, "max_cq_count", "%u", a->cq_mod_caps.max_cq_count);
        devinfo_field(2, "max_cq_period", "%u us", a->cq_mod_caps.max_cq_period);
    }
    putchar('\n');
}

int devinfo_device(struct ibv_context *ctx, bool verbose, unsigned *ports)
{
    struct ibv_device_attr_ex ex = {0};
    const struct ibv_device_attr *a = &ex.orig_attr;
    int err = ibv_query_device_ex(ctx, NULL, &ex);
    if (err)
        return err;
    *ports = a->phys_port_cnt;
    printf("hca_id:\t%s\n", ibv_get_device_name(ctx->device));
    devinfo_named(1, "transport", ctx->device->transport_type, transports);
    devinfo_field(1, "fw_ver", "%s", a->fw_ver);
    guid("node_guid", a->node_guid);
    guid("sys_image_guid", a->sys_image_guid);
    devinfo_field(1, "vendor_id", "0x%04x", a->vendor_id);
    devinfo_field(1, "vendor_part_id", "%u", a->vendor_part_id);
    devinfo_field(1, "hw_ver", "0x%X", a->hw_ver);
    number("phys_port_cnt", a->phys_port_cnt);
    if (verbose) {
        limits(a);
        extended(&ex);
        number("num_comp_vectors", ctx->num_comp_vectors);
    }
    return 0;
}
