/* SPDX-License-Identifier: BSD-2-Clause */
/* What attributes a change of a QP's state wants and allows: InfiniBand, volume 1, 11.2.5.2. */
#include <rdma/ib_verbs.h>

#define T(type) (1u << IB_QPT_##type)

enum {
    DATAGRAM = T(UD),
    MANAGEMENT = T(SMI) | T(GSI),
    RELIABLE = T(RC) | T(XRC_TGT), /* answers reads */
    ASKS = T(RC) | T(XRC_INI),     /* sends what is acknowledged */
    CONNECTED = T(UC) | T(RC) | T(XRC_INI) | T(XRC_TGT),
    RAW = T(RAW_PACKET),
};

#define S(state) (1u << IB_QPS_##state)

static const unsigned next_states[] = {
    [IB_QPS_RESET] = S(RESET) | S(INIT),
    [IB_QPS_INIT] = S(RESET) | S(INIT) | S(RTR) | S(ERR),
    [IB_QPS_RTR] = S(RESET) | S(RTS) | S(ERR),
    [IB_QPS_RTS] = S(RESET) | S(RTS) | S(SQD) | S(ERR),
    [IB_QPS_SQD] = S(RESET) | S(RTS) | S(SQD) | S(ERR),
    [IB_QPS_SQE] = S(RESET) | S(RTS) | S(ERR),
    [IB_QPS_ERR] = S(RESET) | S(ERR),
};

#define A(name) IB_QP_##name

/* All rows of a pair and a type count together. */
static const struct {
    enum ib_qp_state cur, next;
    unsigned types;
    unsigned required, optional;
} rows[] = {
    {IB_QPS_RESET, IB_QPS_INIT, DATAGRAM, A(PKEY_INDEX) | A(PORT) | A(QKEY), 0},
    {IB_QPS_RESET, IB_QPS_INIT, MANAGEMENT, A(PKEY_INDEX) | A(QKEY), 0},
    {IB_QPS_RESET, IB_QPS_INIT, CONNECTED, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS), 0},
    {IB_QPS_RESET, IB_QPS_INIT, RAW, A(PORT), 0},

    {IB_QPS_INIT, IB_QPS_INIT, DATAGRAM, 0, A(PKEY_INDEX) | A(PORT) | A(QKEY)},
    {IB_QPS_INIT, IB_QPS_INIT, MANAGEMENT, 0, A(PKEY_INDEX) | A(QKEY)},
    {IB_QPS_INIT, IB_QPS_INIT, CONNECTED, 0, A(PKEY_INDEX) | A(PORT) | A(ACCESS_FLAGS)},

    {IB_QPS_INIT, IB_QPS_RTR, DATAGRAM | MANAGEMENT, 0, A(PKEY_INDEX) | A(QKEY)},
    {IB_QPS_INIT, IB_QPS_RTR, CONNECTED, A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN),
     A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX)},
    {IB_QPS_INIT, IB_QPS_RTR, RELIABLE, A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER), 0},

    {IB_QPS_RTR, IB_QPS_RTS, DATAGRAM | MANAGEMENT, A(SQ_PSN), A(CUR_STATE) | A(QKEY)},
    {IB_QPS_RTR, IB_QPS_RTS, CONNECTED, A(SQ_PSN),
     A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE)},
    {IB_QPS_RTR, IB_QPS_RTS, ASKS, A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC),
     0},
    {IB_QPS_RTR, IB_QPS_RTS, T(XRC_TGT), A(TIMEOUT), 0},
    {IB_QPS_RTR, IB_QPS_RTS, RELIABLE, 0, A(MIN_RNR_TIMER)},
    {IB_QPS_RTR, IB_QPS_RTS, RAW, 0, A(RATE_LIMIT)},

    {IB_QPS_RTS, IB_QPS_RTS, DATAGRAM | MANAGEMENT, 0, A(CUR_STATE) | A(QKEY)},
    {IB_QPS_RTS, IB_QPS_RTS, CONNECTED, 0,
     A(CUR_STATE) | A(ACCESS_FLAGS) | A(ALT_PATH) | A(PATH_MIG_STATE)},
    {IB_QPS_RTS, IB_QPS_RTS, RELIABLE, 0, A(MIN_RNR_TIMER)},
    {IB_QPS_RTS, IB_QPS_RTS, RAW, 0, A(RATE_LIMIT)},

    {IB_QPS_RTS, IB_QPS_SQD, DATAGRAM | MANAGEMENT | CONNECTED, 0, A(EN_SQD_ASYNC_NOTIFY)},

    {IB_QPS_SQD, IB_QPS_RTS, DATAGRAM | MANAGEMENT, 0, A(CUR_STATE) | A(QKEY)},
    {IB_QPS_SQD, IB_QPS_RTS, CONNECTED, 0,
     A(CUR_STATE) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PATH_MIG_STATE)},
    {IB_QPS_SQD, IB_QPS_RTS, RELIABLE, 0, A(MIN_RNR_TIMER)},

    {IB_QPS_SQD, IB_QPS_SQD, DATAGRAM | MANAGEMENT, 0, A(PKEY_INDEX) | A(QKEY)},
    {IB_QPS_SQD, IB_QPS_SQD, CONNECTED, 0,
     A(AV) | A(ALT_PATH) | A(ACCESS_FLAGS) | A(PKEY_INDEX) | A(PATH_MIG_STATE)},
    {IB_QPS_SQD, IB_QPS_SQD, ASKS, 0,
     A(PORT) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_QP_RD_ATOMIC)},
    {IB_QPS_SQD, IB_QPS_SQD, RELIABLE, 0,
     A(PORT) | A(TIMEOUT) | A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER)},

    {IB_QPS_SQE, IB_QPS_RTS, DATAGRAM | MANAGEMENT, 0, A(CUR_STATE) | A(QKEY)},
    {IB_QPS_SQE, IB_QPS_RTS, T(UC), 0, A(CUR_STATE) | A(ACCESS_FLAGS)},
};

int ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
                       enum ib_qp_type type, enum ib_qp_attr_mask mask, enum rdma_link_layer ll)
{
    (void)ll;
    if ((unsigned)cur_state > IB_QPS_ERR || (unsigned)next_state > IB_QPS_ERR ||
        (unsigned)type >= IB_QPT_MAX || !(next_states[cur_state] & 1u << next_state))
        return 0;
    unsigned required = 0, optional = IB_QP_STATE;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].cur == cur_state && rows[i].next == next_state && rows[i].types & 1u << type) {
            required |= rows[i].required;
            optional |= rows[i].optional;
        }
    }
    return ((unsigned)mask & required) == required && !((unsigned)mask & ~(required | optional));
}
