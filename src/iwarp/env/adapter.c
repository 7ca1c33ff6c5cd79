/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/adapter.h"

#include <string.h>

/* Files of Linux, below drivers/infiniband unless they begin elsewhere; devinfo: what the owner of
 * such an adapter published. */
#define CXGB4      "hw/cxgb4/t4.h"
#define CXGB4_DEV  "hw/cxgb4/device.c, 64 byte status page"
#define CXGB4_ATTR "hw/cxgb4/provider.c"
#define I40IW      "hw/irdma/i40iw_hw.h"
#define ICRDMA     "hw/irdma/icrdma_hw.h"
#define IRDMA      "hw/irdma/user.h"
#define IRDMA_ATTR "hw/irdma/verbs.c at 01798df19878"
#define E810       "devinfo, github.com/deepseek-ai/3FS/issues/192"
#define CX5        "devinfo, github.com/open-mpi/ompi/pull/6137"
#define CX6        "devinfo, github.com/openucx/ucx/issues/10317"
#define EFA_MAIN   "hw/efa/efa_main.c"
#define EFA_VERBS  "hw/efa/efa_verbs.c"
#define EFA_ATTR   "github.com/openucx/ucx contrib/ibmock/config.c at 91da2951d121"
#define QEDR_INFO  "devinfo, github.com/openucx/ucx/issues/5148"
#define QED_IWARP  "drivers/net/ethernet/qlogic/qed/qed_iwarp.c"
#define QED_HSI    "include/linux/qed/iwarp_common.h"
#define SIW        "sw/siw/siw.h at 0457e5153e0e"
#define SIW_ABI    "include/uapi/rdma/siw-abi.h"
#define RXE        "sw/rxe/rxe_param.h at 018c6837f3e6"
#define RXE_INFO   "devinfo, github.com/openucx/ucx/issues/5045"

/* What RFC 7306 brought to iWARP: the driver's post_send() gives EINVAL. */
#define NO_RFC7306(driver)                                                                         \
    [IW_LIMIT_ATOMICS] = {0, driver}, [IW_LIMIT_SEND_IMM] = {0, driver},                           \
    [IW_LIMIT_WRITE_IMM] = {0, driver}

static const struct iw_adapter adapters[] = {
    {"cxgb4",
     "Chelsio T6, iWARP",
     {[IW_LIMIT_QP_WR] = {8190, CXGB4_DEV},
      [IW_LIMIT_SEND_SGE] = {4, CXGB4_ATTR},
      [IW_LIMIT_RECV_SGE] = {4, CXGB4},
      [IW_LIMIT_READ_SGE] = {1, CXGB4_ATTR},
      [IW_LIMIT_CQE] = {65518, CXGB4_DEV},
      [IW_LIMIT_IRD] = {32, CXGB4_ATTR},
      [IW_LIMIT_ORD] = {32, CXGB4_ATTR},
      [IW_LIMIT_ATOMICS] = {0, CXGB4_ATTR},
      [IW_LIMIT_SEND_IMM] = {0, "hw/cxgb4/qp.c"}}},
    {"efa",
     "Amazon EFA, datagrams (UD)",
     {[IW_LIMIT_RC] = {0, EFA_VERBS},
      [IW_LIMIT_QP_WR] = {4096, EFA_ATTR},
      [IW_LIMIT_RECV_WR] = {32768, EFA_ATTR},
      [IW_LIMIT_SEND_SGE] = {2, EFA_ATTR},
      [IW_LIMIT_RECV_SGE] = {3, EFA_ATTR},
      [IW_LIMIT_READ_SGE] = {1, EFA_ATTR},
      [IW_LIMIT_INLINE] = {32, EFA_ATTR},
      [IW_LIMIT_CQE] = {32768, EFA_ATTR},
      [IW_LIMIT_SRQ] = {0, EFA_VERBS},
      [IW_LIMIT_MW] = {0, EFA_MAIN},
      [IW_LIMIT_IRD] = {0, EFA_ATTR},
      [IW_LIMIT_ORD] = {0, EFA_ATTR},
      [IW_LIMIT_ATOMICS] = {0, EFA_ATTR},
      [IW_LIMIT_MCAST] = {0, EFA_MAIN}}},
    {"i40iw",
     "Intel X722, iWARP",
     {[IW_LIMIT_SEND_SGE] = {3, I40IW},
      [IW_LIMIT_RECV_SGE] = {3, I40IW},
      [IW_LIMIT_READ_SGE] = {1, I40IW},
      [IW_LIMIT_INLINE] = {48, I40IW},
      [IW_LIMIT_CQE] = {1048574, I40IW},
      [IW_LIMIT_SRQ] = {0, IRDMA_ATTR},
      [IW_LIMIT_IRD] = {63, I40IW},
      [IW_LIMIT_ORD] = {127, I40IW},
      NO_RFC7306(IRDMA_ATTR)}},
    {"irdma",
     "Intel E810, iWARP",
     {[IW_LIMIT_SEND_SGE] = {13, ICRDMA},
      [IW_LIMIT_RECV_SGE] = {13, ICRDMA},
      [IW_LIMIT_READ_SGE] = {13, ICRDMA},
      [IW_LIMIT_INLINE] = {101, IRDMA},
      [IW_LIMIT_CQE] = {1048574, E810},
      [IW_LIMIT_SRQ] = {0, IRDMA_ATTR},
      [IW_LIMIT_IRD] = {32, ICRDMA},
      [IW_LIMIT_ORD] = {64, ICRDMA},
      NO_RFC7306(IRDMA_ATTR)}},
    {"irdma-roce",
     "Intel E810, RoCE",
     {[IW_LIMIT_QP_WR] = {8127, E810},
      [IW_LIMIT_SEND_SGE] = {6, E810},
      [IW_LIMIT_RECV_SGE] = {6, E810},
      [IW_LIMIT_READ_SGE] = {6, E810},
      [IW_LIMIT_INLINE] = {101, IRDMA},
      [IW_LIMIT_CQE] = {1048574, E810},
      [IW_LIMIT_SRQ] = {0, E810},
      [IW_LIMIT_IRD] = {8, E810},
      [IW_LIMIT_ORD] = {8, E810},
      [IW_LIMIT_ATOMICS] = {0, E810}}},
    {"mlx5-cx5",
     "NVIDIA ConnectX-5",
     {[IW_LIMIT_QP_WR] = {32768, CX5},
      [IW_LIMIT_SEND_SGE] = {30, CX5},
      [IW_LIMIT_RECV_SGE] = {30, CX5},
      [IW_LIMIT_READ_SGE] = {30, CX5},
      [IW_LIMIT_CQE] = {4194303, CX5},
      [IW_LIMIT_IRD] = {16, CX5},
      [IW_LIMIT_ORD] = {16, CX5}}},
    {"mlx5-cx6", "NVIDIA ConnectX-6 Lx", {[IW_LIMIT_QP_WR] = {32768, CX6}}},
    {"qedr",
     "Marvell FastLinQ 41000, RoCE",
     {[IW_LIMIT_QP_WR] = {32767, QEDR_INFO},
      [IW_LIMIT_SEND_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_RECV_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_READ_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_CQE] = {8388480, QEDR_INFO},
      [IW_LIMIT_IRD] = {32, QEDR_INFO},
      [IW_LIMIT_ORD] = {32, QEDR_INFO}}},
    {"qedr-iwarp",
     "Marvell FastLinQ 41000, iWARP",
     {[IW_LIMIT_SEND_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_RECV_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_READ_SGE] = {4, QEDR_INFO},
      [IW_LIMIT_INLINE] = {128, QED_HSI},
      [IW_LIMIT_IRD] = {32, QED_IWARP},
      [IW_LIMIT_ORD] = {32, QED_IWARP},
      NO_RFC7306("hw/qedr/verbs.c")}},
    {"rxe",
     "Linux software RoCE",
     {[IW_LIMIT_QP_WR] = {16384, RXE},
      [IW_LIMIT_SEND_SGE] = {32, RXE},
      [IW_LIMIT_RECV_SGE] = {32, RXE},
      [IW_LIMIT_READ_SGE] = {32, RXE},
      [IW_LIMIT_INLINE] = {400, RXE},
      [IW_LIMIT_CQE] = {32767, RXE_INFO},
      [IW_LIMIT_SRQ] = {960, RXE},
      [IW_LIMIT_SRQ_WR] = {16384, RXE},
      [IW_LIMIT_SRQ_SGE] = {27, RXE},
      [IW_LIMIT_IRD] = {128, RXE},
      [IW_LIMIT_ORD] = {128, RXE}}},
    {"siw",
     "Linux software iWARP, as a guest has it",
     {[IW_LIMIT_QP_WR] = {32768, SIW},
      [IW_LIMIT_SEND_SGE] = {6, SIW_ABI},
      [IW_LIMIT_RECV_SGE] = {6, SIW_ABI},
      [IW_LIMIT_READ_SGE] = {1, SIW},
      [IW_LIMIT_CQE] = {3276800, SIW},
      [IW_LIMIT_SRQ] = {102400, SIW},
      [IW_LIMIT_SRQ_WR] = {327680, SIW},
      [IW_LIMIT_SRQ_SGE] = {6, SIW_ABI},
      [IW_LIMIT_MW] = {0, SIW},
      [IW_LIMIT_IRD] = {128, SIW},
      [IW_LIMIT_ORD] = {128, SIW},
      NO_RFC7306("sw/siw/siw_verbs.c")}},
};
#define N_ADAPTERS (sizeof(adapters) / sizeof(adapters[0]))

const struct iw_adapter *iw_adapters(size_t *n)
{
    *n = N_ADAPTERS;
    return adapters;
}

const struct iw_adapter *iw_adapter_find(const char *name)
{
    for (size_t i = 0; i < N_ADAPTERS; i++)
        if (!strcmp(adapters[i].name, name))
            return &adapters[i];
    return NULL;
}

const char *iw_limit_name(enum iw_limit limit)
{
    static const char *const names[IW_LIMITS] = {
        [IW_LIMIT_RC] = "connected QPs",
        [IW_LIMIT_QP_WR] = "max_qp_wr",
        [IW_LIMIT_RECV_WR] = "max_recv_wr",
        [IW_LIMIT_SEND_SGE] = "max_send_sge",
        [IW_LIMIT_RECV_SGE] = "max_recv_sge",
        [IW_LIMIT_READ_SGE] = "max_sge_rd",
        [IW_LIMIT_INLINE] = "max_inline_data",
        [IW_LIMIT_CQE] = "max_cqe",
        [IW_LIMIT_SRQ] = "max_srq",
        [IW_LIMIT_SRQ_WR] = "max_srq_wr",
        [IW_LIMIT_SRQ_SGE] = "max_srq_sge",
        [IW_LIMIT_MW] = "max_mw",
        [IW_LIMIT_IRD] = "max_qp_rd_atom",
        [IW_LIMIT_ORD] = "max_qp_init_rd_atom",
        [IW_LIMIT_ATOMICS] = "atomics",
        [IW_LIMIT_SEND_IMM] = "send with immediate",
        [IW_LIMIT_WRITE_IMM] = "write with immediate",
        [IW_LIMIT_MCAST] = "max_mcast_grp",
    };
    return names[limit];
}
