/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "device/context.h"
#include "engine/poller.h"
#include "env/conf.h"
#include "faults/stream.h"
#include "observe/pcap.h"
#include "observe/record_stream.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "qp/retry.h"
#include "qp/rx_early.h"
#include "qp/rx_stall.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_MS  1000 /* for what was sent to be acknowledged: then who is idle sleeps */
#define GRACE_MS  200  /* responder without p2p: until it may send first */
#define RTR_MS    10000
/*
 * Initiator: siw overlooks an FPDU that comes right behind its Reply, until the next one comes. Our
 * first one waits; if the peer stays silent all the same, more bytes make it look.
 */
#define SETTLE_MS 10
#define NUDGES    4
#define NUDGE_MS  50 /* after the hold; twice as long each time */

/* ---- life ---- */

struct lock_class iw_cm_locks = LOCK_CLASS(iw_cm_locks, LOCK_CM);

struct iw_cm *iw_cm_new(void)
{
    struct iw_cm *cm = calloc(1, sizeof(*cm));
    if (!cm)
        return NULL;
    lock_init_in(&cm->lock, &iw_cm_locks);
    atomic_init(&cm->refs, 1);
    list_init(&cm->events);
    list_init(&cm->endable);
    list_init(&cm->child_link);
    cm->fd = -1;
    cm->stream = &cm->tcp.base;
    return cm;
}

void iw_cm_get(struct iw_cm *cm)
{
    atomic_fetch_add(&cm->refs, 1);
}

void iw_cm_put(struct iw_cm *cm)
{
    if (atomic_fetch_sub(&cm->refs, 1) != 1)
        return;
    iwc_stream_tls_free(cm->tls);
    free(cm->nego);
    lock_fini(&cm->lock);
    free(cm);
}

int iw_cm_create(struct iw_cm **out, iw_cm_handler *handler, void *owner)
{
    struct iw_cm *cm = iw_cm_new();
    if (!cm)
        return -ENOMEM;
    cm->handler = handler;
    cm->owner = owner;
    *out = cm;
    return 0;
}

/* ---- steps ---- */

bool iw_cm_may_locked(const struct iw_cm *cm, enum iw_cm_ev ev)
{
    assert_held(&cm->lock);
    return iw_cm_row(cm->state, ev).kind == IW_CM_STEP;
}

struct iw_cm_row iw_cm_take_locked(struct iw_cm *cm, enum iw_cm_ev ev)
{
    assert_held(&cm->lock);
    struct iw_cm_row row = iw_cm_row(cm->state, ev);
    assert(row.kind != IW_CM_NEVER);
    cm->state = row.next;
    if (row.next != IW_CM_S_DECISION)
        iw_cm_decided_locked(cm);
    if (row.status)
        cm->status = row.status;
    return row;
}

void iw_cm_carry_out(struct iw_cm *cm, struct iw_cm_row row)
{
    static void (*const actions[])(struct iw_cm *) = {
#define X(name, function) iw_cm_##function,
        IW_CM_ACTIONS(X)
#undef X
    };
    iw_cm_get(cm); /* an action may end it */
    for (unsigned bits = row.actions; bits; bits &= bits - 1)
        actions[__builtin_ctz(bits)](cm);
    iw_cm_put(cm);
}

struct iw_cm_row iw_cm_step(struct iw_cm *cm, enum iw_cm_ev ev)
{
    lock_get(&cm->lock);
    struct iw_cm_row row = iw_cm_take_locked(cm, ev);
    lock_put(&cm->lock);
    iw_cm_carry_out(cm, row);
    return row;
}

/* ---- the linked QP ---- */

/** The linked QP, kept from being freed until unpin(). @return NULL if there is none */
static struct iw_qp *pin(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    struct iw_qp *qp = cm->qp;
    if (qp)
        atomic_fetch_add(&qp->pins, 1);
    lock_put(&cm->lock);
    return qp;
}

static void unpin(struct iw_qp *qp)
{
    atomic_fetch_sub(&qp->pins, 1);
}

bool iw_cm_with_qp(struct iw_cm *cm, void (*f)(struct iw_cm *, struct iw_qp *))
{
    struct iw_qp *qp = pin(cm);
    if (!qp)
        return false;
    iw_cm_get(cm); /* what follows may end it */
    f(cm, qp);
    unpin(qp);
    iw_cm_put(cm);
    return true;
}

/**
 * Takes the QP off the endpoint; no other thread's ready() uses it afterwards.
 * @return it, kept from being freed until unpin(); NULL if another thread has done that
 */
static struct iw_qp *take_qp(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    struct iw_qp *qp = atomic_exchange(&cm->qp, NULL);
    if (qp)
        atomic_fetch_add(&qp->pins, 1);
    lock_put(&cm->lock);
    iw_source_wait(&cm->source);
    iw_source_wait(&cm->shm.source);
    return qp;
}

bool iw_cm_unlink(struct iw_cm *cm)
{
    struct iw_qp *qp = take_qp(cm);
    if (!qp)
        return false;
    iw_qp_unlink(qp);
    unpin(qp);
    return true;
}

struct iw_cm *iw_cm_of(struct iw_qp *qp, const uint32_t *life)
{
    lock_get(&qp->tx.lock);
    struct iw_cm *cm = !life || *life == qp->life ? qp->cm : NULL;
    if (cm)
        iw_cm_get(cm);
    lock_put(&qp->tx.lock);
    return cm;
}

uint8_t iw_cm_private_data(const struct iw_cm_param *param, const struct iw_qp *qp,
                           uint8_t data[IW_CM_PRIVATE_DATA_MAX])
{
    uint8_t len = 0;
    if (param->ib) {
        struct iw_terms terms = param->terms;
        terms.qpn = qp->pub.qp_num;
        iw_terms_encode(data, &terms);
        len = IW_TERMS_BYTES;
    }
    if (param->private_data_len)
        memcpy(data + len, param->private_data, param->private_data_len);
    return (uint8_t)(len + param->private_data_len);
}

bool iw_cm_take_terms(struct iw_cm *cm)
{
    struct mpa_start *peer = &cm->nego->peer;
    if (!iw_terms_decode(peer->pd, peer->pd_len, &cm->terms))
        return false;
    peer->pd += IW_TERMS_BYTES;
    peer->pd_len -= IW_TERMS_BYTES;
    return true;
}

/** TCP that gets no answer for as long as retries take is no connection. */
static void limit_silence(struct iw_cm *cm, struct iw_qp *qp)
{
    lock_get(&qp->tx.lock);
    uint64_t ms = iw_retry_us(qp->attr.timeout, qp->attr.retry_cnt) / 1000;
    lock_put(&qp->tx.lock);
    if (ms <= UINT_MAX)
        iw_cm_set_silence(cm, (unsigned)ms);
}

static struct iw_link_ib told_by_peer(const struct iw_cm *cm)
{
    return (struct iw_link_ib){
        .peer_qpn = cm->terms.qpn,
        .retry_cnt = cm->initiator ? cm->retry_count : cm->terms.retry_count,
        .rnr_retry = cm->terms.rnr_retry,
        .moves = !cm->hands_off,
    };
}

int iw_cm_link(struct iw_cm *cm, const uint8_t *early, size_t early_len)
{
    const struct mpa_result *agreed = &cm->agreed;
    struct iw_qp *qp = cm->reserved;
    struct sockaddr_storage local, peer;
    struct iw_link_ib ib = told_by_peer(cm);
    cm->agreed = cm->nego->result;
    struct iw_link l = {
        .stream = cm->stream,
        .shm = agreed->shm ? &cm->shm.stream : NULL,
        .source = &cm->source,
        .agreed = agreed,
        .local = (struct sockaddr *)&local,
        .peer = (struct sockaddr *)&peer,
        .tls = cm->tls ? iwc_stream_tls_peer(cm->tls) : NULL,
        .ib = cm->ib ? &ib : NULL,
        .same_host = cm->same_host,
        .tcp = iw_cm_shm_why_not(cm),
        .responder = !cm->initiator,
        .hold = !cm->initiator || !agreed->ext,
        .rtr = cm->initiator ? agreed->rtr : 0,
        .early = early,
        .early_len = early_len,
    };
    iw_cm_addresses(cm, &local, &peer);
    /* Before it is linked: what came behind the Reply may end the connection in there. */
    lock_get(&cm->lock);
    atomic_store(&cm->qp, qp);
    lock_put(&cm->lock);
    int r = iw_qp_link(qp, &l);
    if (!r) {
        if (cm->ib)
            limit_silence(cm, qp);
        cm->reserved = NULL;
        unpin(qp); /* of the reservation */
    } else if (take_qp(cm)) {
        unpin(qp);
    }
    return r;
}

void iw_cm_negotiated(struct iw_cm *cm)
{
    lock_get(&cm->lock); /* who comes late finds that the state is another */
    struct mpa_nego *nego = cm->nego;
    cm->nego = NULL;
    lock_put(&cm->lock);
    free(nego);
}

/* ---- the socket and the timers ---- */

static bool ready(struct iw_source *s, uint32_t events)
{
    struct iw_cm *cm = container_of(s, struct iw_cm, source);
    struct iw_qp *qp = atomic_load(&cm->qp);
    if (qp) { /* who takes it waits for the source; but that may be we */
        atomic_fetch_add(&qp->pins, 1);
        iw_source_move(s, &qp->tx.deferred.home);
        if (events && cm->shm.may)
            iwc_stream_shm_look(&cm->shm.stream);
        bool moved = iw_qp_ready(qp, events);
        unpin(qp);
        return moved;
    }
    if (!events)
        return false;
    bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
    if (!hung_up || iw_cm_step(cm, IW_CM_EV_HANG_UP).kind != IW_CM_STEP)
        iw_cm_step(cm, IW_CM_EV_READY);
    return false;
}

int iw_cm_watch(struct iw_cm *cm, uint32_t events)
{
    if (!cm->watched)
        iw_cm_get(cm);
    cm->watched = true;
    return -iw_source_add(&cm->source, cm->fd, events, ready);
}

void iw_cm_unwatch(struct iw_cm *cm)
{
    iw_source_del(&cm->source);
}

void iw_cm_arm(struct iw_cm *cm, struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *))
{
    lock_get(&cm->lock);
    if (cm->state != IW_CM_S_DEAD)
        iw_timer_set(t, ms, fire);
    lock_put(&cm->lock);
}

static void expired(struct iw_timer *t)
{
    iw_cm_step(container_of(t, struct iw_cm, timer), IW_CM_EV_TIMER);
}

void iw_cm_set_timer(struct iw_cm *cm, unsigned ms)
{
    iw_cm_arm(cm, &cm->timer, ms, expired);
}

static void stalled(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)cm;
    iw_qp_stalled(qp);
}

static void stall_expired(struct iw_timer *t)
{
    iw_cm_with_qp(container_of(t, struct iw_cm, stall), stalled);
}

void iw_cm_set_stall(struct iw_cm *cm)
{
    iw_cm_arm(cm, &cm->stall, IW_STALL_MS, stall_expired);
}

static void unmet(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)cm;
    iw_qp_unmet(qp);
}

static void unmet_expired(struct iw_timer *t)
{
    iw_cm_with_qp(container_of(t, struct iw_cm, unmet), unmet);
}

void iw_cm_set_unmet(struct iw_cm *cm)
{
    iw_cm_arm(cm, &cm->unmet, IW_UNMET_MS, unmet_expired);
}

static void watch_expired(struct iw_timer *t);

/** The peer of a linked connection has had some time more to answer. */
static void look(struct iw_cm *cm, struct iw_qp *qp)
{
    iw_qp_watched(qp, false); /* first: what is sent from now on starts the watch anew */
    lock_get(&cm->lock);
    enum iw_cm_answer answer = cm->fd < 0 ? IW_CM_NONE_DUE : iw_cm_answer_locked(cm);
    cm->end.reset |= answer == IW_CM_DEAD;
    lock_put(&cm->lock);
    if (answer == IW_CM_DUE) {
        iw_qp_watched(qp, true);
        iw_cm_arm(cm, &cm->watch, iw_cm_watch_ms(cm), watch_expired);
    } else if (answer == IW_CM_DEAD) {
        iw_qp_lose(qp, -ETIMEDOUT);
    }
}

static void watch_expired(struct iw_timer *t)
{
    iw_cm_with_qp(container_of(t, struct iw_cm, watch), look);
}

void iw_cm_set_watch(struct iw_cm *cm)
{
    iw_cm_arm(cm, &cm->watch, WATCH_MS, watch_expired);
}

void iw_cm_release(struct iw_cm *cm)
{
    iw_timer_cancel(&cm->timer);
    iw_timer_cancel(&cm->stall);
    iw_timer_cancel(&cm->unmet);
    iw_timer_cancel(&cm->watch);
    iw_source_del(&cm->source);
    bool linked = iw_cm_unlink(cm), reset;
    iw_cm_shm_end(cm);
    lock_get(&cm->lock);
    reset = cm->end.reset;
    iw_record_detach(cm->stream, reset);
    iw_pcap_detach(cm->stream, reset);
    iw_chaos_detach(&cm->tcp.base);
    bool watched = cm->watched;
    cm->watched = false;
    int fd = cm->fd;
    cm->fd = -1;
    lock_put(&cm->lock);
    if (fd >= 0) {
        if (reset) {
            struct linger l = {.l_onoff = 1};
            sys_setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
        } else if (linked) {
            sys_shutdown(fd, SHUT_WR); /* our FIN, even if a forked child holds a copy */
        }
        sys_close(fd);
    }
    iw_cm_orphan(cm);
    iw_cm_hide(cm);
    if (watched)
        iw_cm_put(cm);
}

/* ---- the hold of our first FPDU ---- */

unsigned iw_cm_patience(unsigned ms)
{
    return ms < iw_conf()->connect_ms ? ms : iw_conf()->connect_ms;
}

void iw_cm_wait_first(struct iw_cm *cm)
{
    bool at_once = cm->initiator && cm->agreed.ext;
    atomic_store(&cm->released, at_once);
    atomic_store(&cm->nudges, cm->initiator && !at_once ? NUDGES : 0);
    if (!at_once)
        iw_cm_set_timer(cm, cm->initiator    ? SETTLE_MS
                            : cm->agreed.p2p ? iw_cm_patience(RTR_MS)
                                             : GRACE_MS);
}

static void nudge(struct iw_cm *cm, struct iw_qp *qp, unsigned left)
{
    bool again = iw_qp_nudge(qp) && left > 1;
    if (atomic_compare_exchange_strong(&cm->nudges, &left, again ? left - 1 : 0) && again)
        iw_cm_set_timer(cm, NUDGE_MS << (NUDGES + 1 - left));
}

/** The timer of a linked connection. */
static void hold_over(struct iw_cm *cm, struct iw_qp *qp)
{
    unsigned nudges = atomic_load(&cm->nudges);
    bool closing = atomic_load(&cm->end.asked);
    if (!atomic_exchange(&cm->released, true)) {
        iw_qp_release(qp);
        if (closing)
            iw_cm_close_timer(cm);
        else if (nudges)
            iw_cm_set_timer(cm, NUDGE_MS);
    } else if (nudges && !closing) {
        nudge(cm, qp, nudges);
    } else {
        iw_qp_expired(qp, atomic_load(&cm->awaits));
    }
}

void iw_cm_hold_over(struct iw_cm *cm)
{
    iw_cm_with_qp(cm, hold_over);
}

/* ---- the program's calls that are common to both sides ---- */

struct iw_qp *iw_cm_param_qp(const struct iw_cm_param *param, const char *call)
{
    if (param->initiator_depth > IW_MAX_DEPTH || param->responder_resources > IW_MAX_DEPTH)
        return NULL;
    unsigned max = iw_cm_private_data_max(param->ib);
    if (param->private_data_len > max) {
        iw_refuse(call, PRIVATE_DATA, (size_t)param->private_data_len, max);
        return NULL;
    }
    struct iw_qp *qp = NULL;
    if (param->qp)
        qp = iw_qp(param->qp);
    else if (param->ctx)
        qp = iw_qp_find(param->ctx, param->qp_num, param->ib);
    if (!qp)
        iw_refuse(call, NO_QP);
    return qp;
}

void iw_cm_destroy(struct iw_cm *cm)
{
    iw_cm_forget_handler(cm);
    iw_cm_step(cm, IW_CM_EV_DESTROY);
    iw_cm_put(cm);
}
