/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/failure.h"

#include "cm/reason.h"
#include "common/addr.h"
#include "env/conf.h"
#include "env/log.h"
#include "env/unmet.h"
#include "qp/qp.h"

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

/* ---- while it lasts ---- */

/** What an attempt waits for; NULL: for nothing of the peer's. */
static const char *awaited(enum iw_cm_state state)
{
    switch (state) {
    case IW_CM_S_CONNECTING:
        return "nobody has answered TCP for a second: is there a host with this address?";
    case IW_CM_S_WAIT_REPLY:
        return "TCP is connected, but nobody has answered the MPA Request for a second: does an "
               "RDMA "
               "program listen there, and take its events?";
    default:
        return NULL;
    }
}

static void long_unanswered(struct iw_timer *t)
{
    struct iw_cm *cm = container_of(t, struct iw_cm, unmet);
    char where[ADDR_TEXT_MAX];
    lock_get(&cm->lock);
    const char *what = awaited(cm->state);
    uint32_t qp_num = what && cm->reserved ? cm->reserved->pub.qp_num : 0;
    addr_text(&cm->dst, where);
    lock_put(&cm->lock);
    if (qp_num)
        iw_cm_unmet("rdma_connect: QP 0x%06x, %s: %s", qp_num, where, what);
}

void iw_cm_expect_answer(struct iw_cm *cm)
{
    if (iw_log_on(IW_LOG_WARN))
        iw_cm_arm(cm, &cm->unmet, IW_UNMET_MS, long_unanswered);
}
