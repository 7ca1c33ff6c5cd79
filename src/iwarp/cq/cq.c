/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/cq.h"

#include "advice/life.h"
#include "advice/shadow.h"
#include "common/usdt.h"
#include "cq/arm.h"
#include "device/async.h"
#include "engine/engine.h"
#include "env/limits.h"
#include "env/log.h"
#include "env/refuse.h"
#include "env/unmet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CREATE "ibv_create_cq"
#define RESIZE "ibv_resize_cq"

static struct lock_class locks = LOCK_CLASS(locks, LOCK_CQ);

static void forget_threads(struct iw_cq *cq)
{
    if (atomic_load(&cq->failing.state))
        atomic_store(&cq->failing.state, 0);
}

void iw_cq_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        list_for_each (l, &locks.locks)
            forget_threads(container_of(container_of(l, struct lock, link), struct iw_cq, lock));
    lock_class_fork(&locks, step);
}

static uint32_t ring_size(int cqe)
{
    uint32_t size = 2;
    while (size < (uint32_t)cqe + 1)
        size *= 2;
    return size;
}

static struct iw_cqe *ring_alloc(uint32_t size)
{
    return calloc(size, sizeof(struct iw_cqe));
}

static struct iw_cqe *at(const struct iw_cq *cq, uint32_t i)
{
    return &cq->ring[i & (cq->size - 1)];
}

/* Who holds cq->lock is the only one to change these. */

static uint32_t head(const struct iw_cq *cq)
{
    return atomic_load_explicit(&cq->head, memory_order_relaxed);
}

static uint32_t tail(const struct iw_cq *cq)
{
    return atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

/* ---- life ---- */

static void channel_attach(struct iw_channel *ch)
{
    if (!ch)
        return;
    lock_get(&ch->lock);
    ch->pub.refcnt++;
    lock_put(&ch->lock);
}

static int check(const struct ibv_context *ctx, int cqe, const struct ibv_comp_channel *channel,
                 int comp_vector)
{
    if (cqe < 1 || cqe > IW_MAX_CQE)
        return iw_refuse(CREATE, CQ_SIZE, cqe, IW_MAX_CQE);
    if (comp_vector < 0 || comp_vector >= ctx->num_comp_vectors)
        return iw_refuse(CREATE, CQ_VECTOR, comp_vector);
    if (channel && channel->context != ctx)
        return iw_refuse(CREATE, OTHER_CONTEXT, "the completion channel");
    return 0;
}

struct iw_cq *iw_cq_create(struct ibv_context *ctx, int cqe, void *cq_context,
                           struct ibv_comp_channel *channel, int comp_vector,
                           void (*fail_users)(struct iw_deferred *failing))
{
    int r = check(ctx, cqe, channel, comp_vector);
    if (r) {
        errno = r;
        return NULL;
    }
    struct iw_cq *cq = calloc(1, sizeof(*cq));
    uint32_t size = ring_size(cqe);
    struct iw_cqe *ring = ring_alloc(size);
    if (!cq || !ring) {
        free(cq);
        free(ring);
        errno = ENOMEM;
        return NULL;
    }
    cq->pub.context = ctx;
    cq->pub.channel = channel;
    cq->pub.cq_context = cq_context;
    cq->pub.cqe = (int)size - 1;
    pthread_mutex_init(&cq->pub.mutex, NULL);
    pthread_cond_init(&cq->pub.cond, NULL);
    lock_init_in(&cq->lock, &locks);
    lock_init(&cq->poll_lock, LOCK_PROGRAM);
    cq->channel = channel ? iw_channel(channel) : NULL;
    cq->ring = ring;
    cq->size = size;
    list_init(&cq->event_link);
    cq->failing.run = fail_users;
    cq->stats = iw_stats_cq_take(&cq->not_shown, (uint32_t)cq->pub.cqe);
    channel_attach(cq->channel);
    return cq;
}

/** How many of @p read events are not acknowledged. More acknowledgements than events do no harm.
 */
static unsigned due(uint32_t acked, unsigned read)
{
    return (int32_t)(acked - read) < 0 ? read - acked : 0;
}

/** Waits until every event that was read is acknowledged. */
static void wait_acks(struct iw_cq *cq, unsigned events, unsigned async)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&cq->pub.mutex);
    struct iw_unmet unmet = {0};
    while (due(cq->pub.comp_events_completed, events) || due(cq->pub.async_events_completed, async))
        if (iw_unmet_wait(&unmet, &cq->pub.cond, &cq->pub.mutex)) {
            iw_advise(IW_FINDING_UNACKED_EVENT, "CQ", iw_stack_here(),
                      "ibv_destroy_cq() waits for acknowledgements of %u completion events and %u "
                      "asynchronous events",
                      due(cq->pub.comp_events_completed, events),
                      due(cq->pub.async_events_completed, async));
            iw_cm_unmet("ibv_destroy_cq: waits for acknowledgements of %u completion events "
                        "(ibv_ack_cq_events) and %u asynchronous events (ibv_ack_async_event)",
                        due(cq->pub.comp_events_completed, events),
                        due(cq->pub.async_events_completed, async));
        }
    pthread_mutex_unlock(&cq->pub.mutex);
    pthread_setcancelstate(state, &state);
}

int iw_cq_destroy(struct iw_cq *cq)
{
    unsigned users = atomic_load(&cq->users);
    if (users)
        return iw_refuse("ibv_destroy_cq", CQ_USED, users);
    struct iw_context *ctx = iw_context(cq->pub.context);
    iw_deferred_wait(&cq->failing);
    iw_timer_cancel(&cq->mod.timer);
    iw_async_drop(ctx, &cq->pub);
    lock_get(&ctx->lock);
    unsigned async = cq->async_events_read;
    lock_put(&ctx->lock);
    wait_acks(cq, cq->channel ? iw_channel_drop(cq) : 0, async);
    pthread_mutex_destroy(&cq->pub.mutex);
    pthread_cond_destroy(&cq->pub.cond);
    lock_fini(&cq->lock);
    lock_fini(&cq->poll_lock);
    iw_stats_cq_release(cq->stats);
    for (uint32_t i = head(cq); i != tail(cq); i++)
        iw_slots_release(at(cq, i)->slots, 1);
    free(cq->ring);
    iw_shadow_cq_free(cq->shadow);
    iw_life_end(cq);
    return 0;
}

void iw_cq_ack(struct iw_cq *cq, unsigned n)
{
    pthread_mutex_lock(&cq->pub.mutex);
    cq->pub.comp_events_completed += n;
    pthread_cond_signal(&cq->pub.cond);
    pthread_mutex_unlock(&cq->pub.mutex);
}

/* ---- completions ---- */

static bool matches(const struct iw_cqe *cqe)
{
    return cqe->solicited || cqe->wc.status != IBV_WC_SUCCESS;
}

static void note(struct iw_cq *list[2], struct iw_cq *cq)
{
    int i = list[0] && list[0] != cq;
    assert(!list[i] || list[i] == cq);
    list[i] = cq;
}

static struct iw_arm_step step_locked(struct iw_cq *cq, enum iw_arm_event event)
{
    assert_held(&cq->lock);
    struct iw_arm_step step = iw_arm_step(cq->arm, event);
    __atomic_store_n(&cq->arm, step.next, __ATOMIC_RELAXED);
    return step;
}

static void queue_locked(struct iw_cq *cq, struct iw_cq_wakes *w)
{
    assert_held(&cq->lock);
    if (iw_channel_queue(cq))
        note(w->told, cq);
}

static void raise_locked(struct iw_cq *cq, struct iw_cq_wakes *w)
{
    assert_held(&cq->lock);
    cq->mod.held = 0;
    cq->raised_at = tail(cq);
    queue_locked(cq, w);
}

/**
 * An event is due for the completions from position @p from on. Without moderation it is that one's
 * alone; a moderated one stands for all that there are.
 */
static void due_locked(struct iw_cq *cq, uint32_t from, struct iw_cq_wakes *w)
{
    uint32_t t = tail(cq);
    assert_held(&cq->lock);
    if (!iw_is_moderated(&cq->mod)) {
        cq->raised_at = from + 1;
        queue_locked(cq, w);
        return;
    }
    cq->raised_at = t;
    enum iw_moderate act = iw_moderate_add(&cq->mod, t - from, iw_now());
    if (act == IW_MODERATE_RAISE)
        queue_locked(cq, w);
    else if (act == IW_MODERATE_TIME)
        note(w->timed, cq);
}

static void overrun_locked(struct iw_cq *cq, struct iw_cq_wakes *w)
{
    atomic_store(&cq->overrun, true);
    note(w->overrun, cq);
    if (step_locked(cq, IW_ARM_EV_MATCHED).raise || cq->mod.held)
        raise_locked(cq, w);
}

static bool push_locked(struct iw_cq *cq, const struct iw_cqe *cqe, struct iw_cq_wakes *w)
{
    uint32_t t = tail(cq);
    assert_held(&cq->lock);
    if (atomic_load(&cq->overrun))
        return false;
    if (t - head(cq) >= (uint32_t)cq->pub.cqe) {
        overrun_locked(cq, w);
        return false;
    }
    *at(cq, t) = *cqe;
    if (cq->stamped)
        at(cq, t)->stamp = iw_now();
    t++;
    atomic_store_explicit(&cq->tail, t, memory_order_release);
    iw_stats_set(&cq->stats->tail, t);
    if (matches(cqe))
        cq->matched_at = t;
    bool due = step_locked(cq, matches(cqe) ? IW_ARM_EV_MATCHED : IW_ARM_EV_PLAIN).raise;
    if (due || cq->mod.held)
        due_locked(cq, t - 1, w);
    return true;
}

bool iw_cq_add(struct iw_cq *cq, const struct iw_cqe *cqe, struct iw_cq_wakes *w)
{
    lock_get(&cq->lock);
    bool added = push_locked(cq, cqe, w);
    USDT5(completion, cqe->wc.qp_num, cqe->wc.wr_id, cqe->wc.status, cqe->wc.opcode,
          cqe->wc.byte_len);
    lock_put(&cq->lock);
    if (!added)
        iw_slots_release(cqe->slots, 1);
    return added;
}

void iw_cq_fail_users(struct iw_cq *cq)
{
    int r = iw_engine_start();
    if (r)
        iw_log(IW_LOG_ERR, "no engine to end the users of an overrun CQ: %s", strerror(r));
    iw_deferred_push(&cq->failing);
}

static void tell_overrun(struct iw_cq *cq)
{
    struct ibv_async_event ev = {.element.cq = &cq->pub, .event_type = IBV_EVENT_CQ_ERR};
    iw_async_raise(iw_context(cq->pub.context), &ev, &cq->async_events_read);
    iw_cq_fail_users(cq);
}

void iw_cq_wake(const struct iw_cq_wakes *w)
{
    for (int i = 0; i < 2 && iw_cq_is_to_wake(w); i++) {
        if (w->told[i])
            iw_channel_tell(w->told[i]);
        if (w->timed[i])
            iw_cq_time(w->timed[i]);
        if (w->overrun[i])
            tell_overrun(w->overrun[i]);
    }
}

/** Moves a position that was overtaken by @p n taken completions along to the new head. */
static void keep_up(uint32_t *pos, uint32_t head, uint32_t n)
{
    if (*pos - head < n)
        *pos = head + n;
}

/** Frees the places of the @p n oldest; mostly they are of one queue. */
static void release_locked(struct iw_cq *cq, uint32_t h, uint32_t n)
{
    struct iw_slots *slots = NULL;
    uint32_t run = 0;
    assert_held(&cq->lock);
    for (uint32_t i = h; i != h + n; i++, run++) {
        if (at(cq, i)->slots == slots)
            continue;
        iw_slots_release(slots, run);
        slots = at(cq, i)->slots;
        run = 0;
    }
    iw_slots_release(slots, run);
}

static void consume_locked(struct iw_cq *cq, uint32_t n)
{
    uint32_t h = head(cq);
    assert_held(&cq->lock);
    keep_up(&cq->raised_at, h, n);
    keep_up(&cq->matched_at, h, n);
    release_locked(cq, h, n);
    atomic_store_explicit(&cq->head, h + n, memory_order_release);
    iw_stats_set(&cq->stats->head, h + n);
}

int iw_cq_take(struct iw_cq *cq, int n, struct ibv_wc *wc)
{
    bool over = atomic_load(&cq->overrun); /* before the look: what was added earlier is seen */
    if (n <= 0 || iw_cq_is_empty(cq))
        return n > 0 && over ? -EIO : 0;
    lock_get(&cq->lock);
    uint32_t h = head(cq), got = tail(cq) - h;
    if (got > (uint32_t)n)
        got = (uint32_t)n;
    for (uint32_t i = 0; i < got; i++)
        wc[i] = at(cq, h + i)->wc;
    consume_locked(cq, got);
    lock_put(&cq->lock);
    return (int)got;
}

bool iw_cq_take_one(struct iw_cq *cq, struct iw_cqe *cqe)
{
    if (iw_cq_is_empty(cq))
        return false;
    lock_get(&cq->lock);
    bool got = head(cq) != tail(cq);
    if (got) {
        *cqe = *at(cq, head(cq));
        consume_locked(cq, 1);
    }
    lock_put(&cq->lock);
    return got;
}

void iw_cq_purge(struct iw_cq *cq, uint32_t qp_num)
{
    if (!cq)
        return;
    lock_get(&cq->lock);
    uint32_t h = head(cq), kept = tail(cq);
    for (uint32_t i = kept; i-- != h;) {
        if (at(cq, i)->wc.qp_num == qp_num)
            continue;
        struct iw_cqe stays = *at(cq, i);
        *at(cq, i) = *at(cq, --kept);
        *at(cq, kept) = stays;
    }
    consume_locked(cq, kept - h);
    lock_put(&cq->lock);
}

/* ---- events ---- */

/** Whether a matching unpolled completion is newer than the last raised one; the oldest such. */
static bool late_locked(const struct iw_cq *cq, bool solicited_only, uint32_t *oldest)
{
    uint32_t h = head(cq);
    *oldest = cq->raised_at;
    if (!solicited_only)
        return cq->raised_at != tail(cq);
    if (cq->matched_at - h <= cq->raised_at - h)
        return false;
    while (!matches(at(cq, *oldest)))
        ++*oldest;
    return true;
}

void iw_cq_arm(struct iw_cq *cq, bool solicited_only)
{
    struct iw_cq_wakes w = {0};
    uint32_t oldest;
    if (!cq->channel)
        return;
    lock_get(&cq->lock);
    bool late = late_locked(cq, solicited_only, &oldest);
    enum iw_arm_event event = solicited_only ? IW_ARM_EV_SOLICITED : IW_ARM_EV_ANY;
    bool raise = step_locked(cq, event + late).raise;
    if (atomic_load(&cq->overrun))
        raise_locked(cq, &w);
    else if (raise)
        due_locked(cq, oldest, &w);
    lock_put(&cq->lock);
    iw_cq_wake(&w);
}

/* ---- resize ---- */

static int resize_locked(struct iw_cq *cq, struct iw_cqe **ring, uint32_t size)
{
    uint32_t h = head(cq), t = tail(cq);
    assert_held(&cq->lock);
    if (t - h > size - 1)
        return iw_refuse(RESIZE, CQ_SHRINK, t - h, size - 1);
    if (atomic_load(&cq->overrun))
        return iw_refuse(RESIZE, CQ_OVERRUN);
    struct iw_cqe *old = cq->ring;
    for (uint32_t i = h; i != t; i++)
        (*ring)[i & (size - 1)] = *at(cq, i);
    cq->ring = *ring;
    cq->size = size;
    cq->pub.cqe = (int)size - 1;
    *ring = old;
    return 0;
}

int iw_cq_resize(struct iw_cq *cq, int cqe)
{
    if (cqe < 1 || cqe > IW_MAX_CQE)
        return iw_refuse(RESIZE, CQ_SIZE, cqe, IW_MAX_CQE);
    uint32_t size = ring_size(cqe);
    struct iw_cqe *ring = ring_alloc(size);
    if (!ring)
        return ENOMEM;
    lock_get(&cq->lock);
    int r = resize_locked(cq, &ring, size);
    lock_put(&cq->lock);
    free(ring);
    if (!r)
        iw_stats_cq_resized(cq->stats, (uint32_t)cq->pub.cqe);
    return r;
}
