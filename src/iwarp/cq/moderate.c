/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/moderate.h"

#include "cq/cq.h"
#include "engine/engine.h"

/* ---- the rule ---- */

static enum iw_moderate release(struct iw_moderation *m)
{
    m->held = 0;
    return IW_MODERATE_RAISE;
}

enum iw_moderate iw_moderate_add(struct iw_moderation *m, uint32_t n, uint64_t now)
{
    if (!m->held)
        m->since = now;
    m->held += n;
    if (!iw_is_moderated(m) || (m->count && m->held >= m->count))
        return release(m);
    if (!m->period_us || m->timing)
        return IW_MODERATE_WAIT;
    m->timing = true;
    return IW_MODERATE_TIME;
}

enum iw_moderate iw_moderate_expired(struct iw_moderation *m, uint64_t now, uint64_t *left_us)
{
    uint64_t period = m->period_us * 1000ull, gone = now - m->since;
    m->timing = false;
    if (!m->held || !m->period_us)
        return IW_MODERATE_WAIT;
    if (gone >= period)
        return release(m);
    m->timing = true;
    *left_us = (period - gone + 999) / 1000;
    return IW_MODERATE_TIME;
}

/* ---- a CQ's ---- */

static void period_over(struct iw_timer *t)
{
    struct iw_cq *cq = container_of(t, struct iw_cq, mod.timer);
    uint64_t left_us;
    lock_get(&cq->lock);
    enum iw_moderate act = iw_moderate_expired(&cq->mod, iw_now(), &left_us);
    lock_put(&cq->lock);
    if (act == IW_MODERATE_RAISE)
        iw_channel_raise(cq);
    else if (act == IW_MODERATE_TIME)
        iw_timer_set_us(t, left_us, period_over);
}

void iw_cq_time(struct iw_cq *cq)
{
    lock_get(&cq->lock);
    uint64_t us = cq->mod.period_us;
    lock_put(&cq->lock);
    iw_timer_set_us(&cq->mod.timer, us, period_over);
}

int iw_cq_moderate(struct iw_cq *cq, uint16_t count, uint16_t period_us)
{
    int r = period_us ? iw_engine_start() : 0;
    if (r)
        return r;
    lock_get(&cq->lock);
    cq->mod.count = count;
    cq->mod.period_us = period_us;
    bool held = cq->mod.held;
    cq->mod.held = 0;
    lock_put(&cq->lock);
    if (held)
        iw_channel_raise(cq);
    return 0;
}
