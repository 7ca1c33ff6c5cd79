/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of numbers. */
#include <iba/ib_types.h>

#define NAME(prefix, name) [prefix##name] = #name
#define ERR(name)          NAME(IB_, name)
#define AE(name)           NAME(IB_AE_, name)
#define WCS(name)          NAME(IB_WCS_, name)
#define WC(name)           NAME(IB_WC_, name)
#define WR(name)           NAME(WR_, name)
#define QPT(name)          NAME(IB_QPT_, name)
#define LINK(name)         NAME(IB_LINK_, name)

static const char *const errors[] = {
    ERR(SUCCESS),
    ERR(INSUFFICIENT_RESOURCES),
    ERR(INSUFFICIENT_MEMORY),
    ERR(INVALID_PARAMETER),
    ERR(INVALID_SETTING),
    ERR(NOT_FOUND),
    ERR(TIMEOUT),
    ERR(CANCELED),
    ERR(INTERRUPTED),
    ERR(INVALID_PERMISSION),
    ERR(UNSUPPORTED),
    ERR(OVERFLOW),
    ERR(MAX_MCAST_QPS_REACHED),
    ERR(INVALID_QP_STATE),
    ERR(INVALID_APM_STATE),
    ERR(INVALID_PORT_STATE),
    ERR(INVALID_STATE),
    ERR(RESOURCE_BUSY),
    ERR(INVALID_PKEY),
    ERR(INVALID_LKEY),
    ERR(INVALID_RKEY),
    ERR(INVALID_MAX_WRS),
    ERR(INVALID_MAX_SGE),
    ERR(INVALID_CQ_SIZE),
    ERR(INVALID_SRQ_SIZE),
    ERR(INVALID_SERVICE_TYPE),
    ERR(INVALID_GID),
    ERR(INVALID_LID),
    ERR(INVALID_GUID),
    ERR(INVALID_GUID_MASK),
    ERR(INVALID_CA_HANDLE),
    ERR(INVALID_AV_HANDLE),
    ERR(INVALID_CQ_HANDLE),
    ERR(INVALID_QP_HANDLE),
    ERR(INVALID_SRQ_HANDLE),
    ERR(INVALID_PD_HANDLE),
    ERR(INVALID_MR_HANDLE),
    ERR(INVALID_FMR_HANDLE),
    ERR(INVALID_MW_HANDLE),
    ERR(INVALID_MCAST_HANDLE),
    ERR(INVALID_CALLBACK),
    ERR(INVALID_AL_HANDLE),
    ERR(INVALID_HANDLE),
    ERR(ERROR),
    ERR(REMOTE_ERROR),
    ERR(VERBS_PROCESSING_DONE),
    ERR(INVALID_WR_TYPE),
    ERR(QP_IN_TIMEWAIT),
    ERR(EE_IN_TIMEWAIT),
    ERR(INVALID_PORT),
    ERR(NOT_DONE),
    ERR(INVALID_INDEX),
    ERR(NO_MATCH),
    ERR(PENDING),
    ERR(UNKNOWN_ERROR),
};

static const char *const events[] = {
    AE(SQ_ERROR),
    AE(SQ_DRAINED),
    AE(RQ_ERROR),
    AE(CQ_ERROR),
    AE(QP_FATAL),
    AE(QP_COMM),
    AE(QP_APM),
    AE(LOCAL_FATAL),
    AE(PKEY_TRAP),
    AE(QKEY_TRAP),
    AE(MKEY_TRAP),
    AE(PORT_TRAP),
    AE(SYSIMG_GUID_TRAP),
    AE(BUF_OVERRUN),
    AE(LINK_INTEGRITY),
    AE(FLOW_CTRL_ERROR),
    AE(BKEY_TRAP),
    AE(QP_APM_ERROR),
    AE(WQ_REQ_ERROR),
    AE(WQ_ACCESS_ERROR),
    AE(PORT_ACTIVE),
    AE(PORT_DOWN),
    AE(CLIENT_REREGISTER),
    AE(SRQ_LIMIT_REACHED),
    AE(SRQ_CATAS_ERROR),
    AE(SRQ_QP_LAST_WQE_REACHED),
    AE(UNKNOWN),
};

static const char *const wc_statuses[] = {
    WCS(SUCCESS),
    WCS(LOCAL_LEN_ERR),
    WCS(LOCAL_OP_ERR),
    WCS(LOCAL_PROTECTION_ERR),
    WCS(WR_FLUSHED_ERR),
    WCS(MEM_WINDOW_BIND_ERR),
    WCS(REM_ACCESS_ERR),
    WCS(REM_OP_ERR),
    WCS(RNR_RETRY_ERR),
    WCS(TIMEOUT_RETRY_ERR),
    WCS(REM_INVALID_REQ_ERR),
    WCS(BAD_RESP_ERR),
    WCS(LOCAL_ACCESS_ERR),
    WCS(GENERAL_ERR),
    WCS(UNMATCHED_RESPONSE),
    WCS(CANCELED),
    WCS(REM_ABORT_ERR),
};

static const char *const wc_types[] = {
    WC(SEND), WC(RDMA_WRITE), WC(RDMA_READ),       WC(COMPARE_SWAP), WC(FETCH_ADD), WC(MW_BIND),
    WC(NOP),  WC(RECV),       WC(RECV_RDMA_WRITE), WC(LSO),          WC(LOCAL_INV), WC(FAST_REG_MR),
};

static const char *const wr_types[] = {
    WR(SEND), WR(RDMA_WRITE), WR(RDMA_READ), WR(COMPARE_SWAP), WR(FETCH_ADD),
    WR(LSO),  WR(NOP),        WR(LOCAL_INV), WR(FAST_REG_MR),
};

static const char *const qp_types[] = {
    QPT(RELIABLE_CONN), QPT(UNRELIABLE_CONN),
    QPT(RELIABLE_DGRM), QPT(UNRELIABLE_DGRM),
    QPT(QP0),           QPT(QP1),
    QPT(RAW_IPV6),      QPT(RAW_ETHER),
    QPT(MAD),           QPT(QP0_ALIAS),
    QPT(QP1_ALIAS),
};

static const char *const links[] = {
    LINK(NO_CHANGE), LINK(DOWN), LINK(INIT), LINK(ARMED), LINK(ACTIVE), LINK(ACT_DEFER),
};

#define LOOK(table, number)                                                                        \
    ((number) < sizeof(table) / sizeof *(table) && (table)[number] ? (table)[number] : "UNKNOWN")

const char *ib_get_err_str(ib_api_status_t status)
{
    return LOOK(errors, (unsigned)status);
}

const char *ib_get_async_event_str(ib_async_event_t event)
{
    return LOOK(events, (unsigned)event);
}

const char *ib_get_wc_status_str(ib_wc_status_t wc_status)
{
    return LOOK(wc_statuses, (unsigned)wc_status);
}

const char *ib_get_wc_type_str(ib_wc_type_t wc_type)
{
    return LOOK(wc_types, (unsigned)wc_type);
}

const char *ib_get_wr_type_str(uint8_t wr_type)
{
    return LOOK(wr_types, wr_type);
}

const char *ib_get_qp_type_str(uint8_t qp_type)
{
    return LOOK(qp_types, qp_type);
}

const char *ib_get_port_state_str(uint8_t port_state)
{
    return LOOK(links, port_state);
}
