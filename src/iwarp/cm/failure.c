/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/failure.h"

#include "cm/reason.h"
#include "common/addr.h"
#include "env/conf.h"
#include "env/log.h"

void iw_cm_log_failure(const struct iw_cm *cm, int status, uint32_t qp_num)
{
    char where[ADDR_TEXT_MAX], reason[IW_CM_REASON_MAX];
    if (!iw_log_on(IW_LOG_WARN))
        return;
    addr_text(&cm->dst, where);
    const char *tls = cm->tls ? iwc_stream_tls_why(cm->tls) : NULL;
    if (tls)
        snprintf(reason, sizeof(reason), "TLS: %s", tls);
    else
        iw_cm_reason(atomic_load(&cm->requested) ? cm->nego : NULL, status, iw_conf()->connect_ms,
                     reason);
    iw_log(IW_LOG_WARN, "rdma_connect: QP 0x%06x, %s: %s", qp_num, where, reason);
}
