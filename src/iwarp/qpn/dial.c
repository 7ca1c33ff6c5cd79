/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/dialling.h"

#include "common/addr.h"
#include "common/patience.h"
#include "env/random.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "qp/retry.h"
#include "qp/rnr.h"
#include "qpn/visitor.h"
#include "qpn/vouch.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define WHY_MAX      (ADDR_TEXT_MAX + 48)
#define AGAIN_MAX_MS 256 /* between two attempts; the first ones come sooner */

static struct lock_class locks = LOCK_CLASS(locks, LOCK_DIAL);

/* ---- life ---- */

/** A number that no earlier incarnation is likely to have had. */
static uint32_t draw_epoch(void)
{
    uint32_t epoch = 0;
    return iw_random32(&epoch) || !epoch ? 1 : epoch;
}

struct iw_dial *iw_dial_new(bool numbered)
{
    struct iw_dial *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    lock_init_in(&d->lock, &locks);
    d->self.epoch = draw_epoch();
    if (numbered)
        iw_number_take(&d->number, d);
    return d;
}

uint32_t iw_dial_number(const struct iw_dial *d)
{
    return d->number.qpn;
}

void iw_dial_pin(struct iw_dial *d)
{
    atomic_fetch_add(&d->pins, 1);
}

void iw_dial_unpin(struct iw_dial *d)
{
    atomic_fetch_sub(&d->pins, 1);
}

bool iw_dial_enter(struct iw_dial *d)
{
    lock_get(&d->lock);
    if (!d->leaving && d->qp)
        return true;
    lock_put(&d->lock);
    return false;
}

void iw_dial_drop(struct iw_cm *cm)
{
    if (cm)
        iw_cm_destroy(cm);
}

/** For anywarp stat. */
static void show_locked(struct iw_dial *d, enum stats_dial how)
{
    assert_held(&d->lock);
    iw_stats_set(&d->qp->stats->sq.peer_qpn, d->peer.qpn);
    iw_stats_set(&d->qp->stats->sq.dial, how);
}

static void drop_all(struct iw_dial *d)
{
    lock_get(&d->lock);
    struct iw_cm *cm = d->cm, *visitor = d->visitor, *doubt = d->doubt;
    d->cm = d->visitor = d->doubt = NULL;
    lock_put(&d->lock);
    iw_dial_drop(cm);
    iw_dial_drop(visitor);
    iw_dial_drop(doubt);
}

void iw_dial_stop(struct iw_dial *d)
{
    if (!d)
        return;
    lock_get(&d->lock);
    d->leaving = true;
    lock_put(&d->lock);
    iw_timer_cancel(&d->again);
    iw_timer_cancel(&d->clock);
    iw_timer_cancel(&d->not_ready);
    patience_for(&d->pins);
}

void iw_dial_free(struct iw_dial *d)
{
    if (!d)
        return;
    iw_number_give(&d->number);
    iw_dial_stop(d);
    drop_all(d);
    lock_fini(&d->lock);
    free(d);
}

void iw_dial_renew(struct iw_dial *d)
{
    if (!d)
        return;
    lock_get(&d->lock);
    /* Its QP has left it; who asked for the next incarnation stays. */
    struct iw_cm *cm = d->cm, *doubt = d->doubt;
    d->cm = d->doubt = NULL;
    d->vouched = 0;
    d->begun = d->met = d->over = d->is_the_cms = false;
    d->tries = 0;
    d->self.epoch = draw_epoch();
    show_locked(d, STATS_DIAL_NONE);
    lock_put(&d->lock);
    iw_dial_drop(cm);
    iw_dial_drop(doubt);
    lock_get(&d->lock);
    d->leaving = false;
    lock_put(&d->lock);
}

/* ---- attempts ---- */

static void again(struct iw_timer *t);

static void set_again_locked(struct iw_dial *d)
{
    assert_held(&d->lock);
    unsigned ms = 1u << d->tries;
    if (ms < AGAIN_MAX_MS)
        d->tries++;
    if (!d->over)
        iw_timer_set(&d->again, ms, again);
}

struct iw_cm_param iw_dial_param(struct iw_dial *d, const uint8_t hello[IW_HELLO_BYTES])
{
    return (struct iw_cm_param){
        .private_data = hello,
        .private_data_len = IW_HELLO_BYTES,
        .initiator_depth = IW_MAX_DEPTH,
        .responder_resources = IW_MAX_DEPTH,
        .qp = &d->qp->pub,
    };
}

struct sockaddr_storage iw_dial_peers_port_locked(const struct iw_dial *d)
{
    assert_held(&d->lock);
    struct sockaddr_storage process = d->path.peer;
    addr_set_port((struct sockaddr *)&process, iw_number_tcp_port(d->peer.qpn));
    return process;
}

/** Calls the peer; pinned. */
static void dial(struct iw_dial *d)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_cm *cm;
    int r = iw_cm_create(&cm, iw_dial_on_event, d);
    if (!iw_dial_enter(d)) {
        if (!r)
            iw_dial_drop(cm);
        return;
    }
    if (r || d->over || d->cm) {
        if (r)
            set_again_locked(d);
        lock_put(&d->lock);
        if (!r)
            iw_dial_drop(cm);
        return;
    }
    struct sockaddr_storage own = d->path.own, peer = iw_dial_peers_port_locked(d);
    struct iw_hello h = {.kind = IW_HELLO_ASKS,
                         .uc = d->qp->uc,
                         .token = iw_vouch_token(&peer),
                         .from = d->self,
                         .to = d->peer};
    iw_hello_encode(bytes, &h);
    struct iw_cm_param p = iw_dial_param(d, bytes);
    p.itself = d->itself;
    d->cm = cm;
    lock_put(&d->lock);

    r = iw_cm_bind_active(cm, (struct sockaddr *)&own);
    if (!r)
        r = iw_cm_connect(cm, (struct sockaddr *)&peer, &p);
    if (!r)
        return;
    lock_get(&d->lock);
    bool mine = d->cm == cm;
    if (mine)
        d->cm = NULL;
    if (mine && !d->leaving)
        set_again_locked(d);
    lock_put(&d->lock);
    if (mine)
        iw_dial_drop(cm);
}

static void again(struct iw_timer *t)
{
    dial(container_of(t, struct iw_dial, again));
}

/** Which of two QPs dials. */
static bool is_lower(const struct iw_hello_end *self, const struct iw_hello_end *peer)
{
    if (self->qpn != peer->qpn)
        return self->qpn < peer->qpn;
    return memcmp(&self->gid, &peer->gid, sizeof(self->gid)) < 0;
}

/** Whether the connection is with the peer: who accepted has judged that already. */
static bool is_peers_locked(struct iw_dial *d, const struct iw_cm_event *event)
{
    struct iw_hello h;
    assert_held(&d->lock);
    if (!d->dials || d->itself)
        return true;
    if (!iw_hello_decode(event->private_data, event->private_data_len, &h) ||
        h.kind != IW_HELLO_ANSWERS || h.uc != d->qp->uc || h.from.qpn != d->peer.qpn ||
        h.to.epoch != d->self.epoch || memcmp(&h.from.gid, &d->peer.gid, sizeof(h.from.gid)) != 0)
        return false;
    d->peer.epoch = h.from.epoch;
    return true;
}

/** TCP that gets no answer is no connection, and the clock is to run. */
static void limit_silence_locked(struct iw_dial *d)
{
    assert_held(&d->lock);
    if (d->cm && !d->qp->uc && d->patience / 1000 <= UINT_MAX)
        iw_cm_set_silence(d->cm, (unsigned)(d->patience / 1000));
}

static void leave_locked(struct iw_dial *d)
{
    assert_held(&d->lock);
    if (d->begun)
        show_locked(d, STATS_DIAL_OVER);
    d->over = true;
}

/** Whether who called was let in, and has gone without a word: the peer, new again, may call. */
static bool never_met_locked(const struct iw_dial *d, const struct iw_cm_event *event)
{
    assert_held(&d->lock);
    return event->type == IW_CM_DISCONNECTED && d->begun && !d->dials && !d->met;
}

int iw_dial_on_event(void *owner, const struct iw_cm_event *event)
{
    struct iw_dial *d = owner;
    struct iw_cm *cm = NULL;
    if (!iw_dial_enter(d))
        return 0;
    iw_dial_pin(d);
    bool met = event->type == IW_CM_ESTABLISHED && is_peers_locked(d, event);
    if (met) {
        d->tries = 0;
        d->met = true;
        iw_timer_unset(&d->clock); /* it counts from where a connection is missing */
        limit_silence_locked(d);
        show_locked(d, STATS_DIAL_MET);
    } else {
        cm = d->cm;
        d->cm = NULL;
        if (never_met_locked(d, event))
            show_locked(d, STATS_DIAL_WAITS);
        else if (event->type == IW_CM_ESTABLISHED || event->type == IW_CM_DISCONNECTED)
            leave_locked(d);
        else if (d->begun && d->dials)
            set_again_locked(d);
    }
    lock_put(&d->lock);
    iw_dial_drop(cm);
    if (!met)
        iw_visitor_next(d);
    iw_dial_unpin(d);
    return 0;
}

/* ---- the clock ---- */

static void say_why_locked(const struct iw_dial *d, char why[WHY_MAX])
{
    char where[ADDR_TEXT_MAX];
    if (!d->begun) {
        snprintf(why, WHY_MAX, "the connection of the CM has gone");
        return;
    }
    struct sockaddr_storage process = iw_dial_peers_port_locked(d);
    addr_text(&process, where);
    const char *what = d->over ? "has gone" : d->dials ? "did not answer" : "has not called";
    snprintf(why, WHY_MAX, "QP 0x%06x at %s %s", d->peer.qpn, where, what);
}

static void give_up(struct iw_timer *t)
{
    struct iw_dial *d = container_of(t, struct iw_dial, clock);
    if (!iw_dial_enter(d))
        return;
    char why[WHY_MAX];
    struct iw_qp *qp = d->qp; /* who stops it waits for the timer */
    say_why_locked(d, why);
    lock_put(&d->lock);
    iw_qp_unreached(qp, why);
}

static void judge_receiver(struct iw_timer *t)
{
    struct iw_dial *d = container_of(t, struct iw_dial, not_ready);
    if (!iw_dial_enter(d))
        return;
    struct iw_qp *qp = d->qp;
    lock_put(&d->lock);
    uint64_t us = iw_qp_not_ready(qp);
    if (!us || !iw_dial_enter(d))
        return;
    iw_timer_set_us(&d->not_ready, us, judge_receiver);
    lock_put(&d->lock);
}

/** The CM has set the times. */
static void take_times_locked(struct iw_dial *d)
{
    assert_held(&d->lock);
    lock_get(&d->qp->tx.lock);
    d->patience = iw_retry_us(d->qp->attr.timeout, d->qp->attr.retry_cnt);
    lock_put(&d->qp->tx.lock);
}

static void hear(struct iw_qp *qp, unsigned news)
{
    struct iw_dial *d = qp->dial;
    if (!iw_dial_enter(d))
        return;
    if (!d->begun)
        take_times_locked(d);
    if ((news & IW_QP_NEWS_STRANDED) && d->patience)
        iw_timer_start_us(&d->clock, qp->uc && d->over ? 0 : d->patience, give_up);
    if (news & IW_QP_NEWS_NOT_READY)
        iw_timer_set_us(&d->not_ready, 0, judge_receiver);
    lock_put(&d->lock);
}

void iw_dial_attach(struct iw_dial *d, struct iw_qp *qp)
{
    lock_get(&d->lock);
    d->qp = qp;
    qp->dial = d;
    qp->dial_news = hear;
    lock_put(&d->lock);
}

/* ---- what the program does ---- */

static bool is_to(const struct ibv_qp_attr *attr, int mask, enum ibv_qp_state state)
{
    return (mask & IBV_QP_STATE) && attr->qp_state == state;
}

/** Whether this says where the peer is. */
static bool says_where(const struct ibv_qp_attr *attr, int mask)
{
    return is_to(attr, mask, IBV_QPS_RTR) && (mask & IBV_QP_AV) && (mask & IBV_QP_DEST_QPN);
}

/**
 * Whether an id connects the QP, or is asked to by the very peer that is named.
 * @param peer  NULL: the attributes lead nowhere
 */
static bool is_the_cms(struct iw_dial *d, const struct sockaddr_storage *peer, uint32_t qpn)
{
    lock_get(&d->qp->tx.lock);
    bool has = d->qp->cm;
    lock_put(&d->qp->tx.lock);
    if (!has && peer && iw_device(d->qp->pub.context->device)->roce)
        has = iw_cm_will_accept((const struct sockaddr *)peer, qpn);
    lock_get(&d->lock);
    d->is_the_cms = has;
    lock_put(&d->lock);
    return has;
}

int iw_dial_check(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    struct iw_path path;
    if (is_to(attr, mask, IBV_QPS_INIT) && (mask & IBV_QP_PKEY_INDEX) && d && d->number.port)
        return -iw_number_listen(&d->number);
    if (!says_where(attr, mask))
        return 0;
    if (!d)
        return iw_refuse("ibv_modify_qp", NO_NUMBER);
    int r = iw_path_find(iw_device(d->qp->pub.context->device), &attr->ah_attr, &path);
    /* Of whatever kind the own GID is: an id's address may be none of the device's. */
    if (is_the_cms(d, r == EINVAL ? NULL : &path.peer, attr->dest_qp_num))
        return 0;
    if (!d->number.port)
        return iw_refuse("ibv_modify_qp", NO_NUMBER);
    if (!attr->ah_attr.is_global)
        return iw_refuse("ibv_modify_qp", NO_GID);
    if (r == EINVAL)
        return iw_refuse("ibv_modify_qp", GID_INDEX, attr->ah_attr.grh.sgid_index);
    if (r)
        return iw_refuse("ibv_modify_qp", GID_KIND);
    return 0;
}

static void begin(struct iw_dial *d, const struct ibv_qp_attr *attr)
{
    if (!iw_dial_enter(d))
        return;
    const struct iw_device *dev = iw_device(d->qp->pub.context->device);
    if (d->is_the_cms || iw_path_find(dev, &attr->ah_attr, &d->path)) {
        lock_put(&d->lock);
        return;
    }
    d->self.qpn = d->number.qpn;
    d->self.gid = d->path.own_gid;
    d->peer = (struct iw_hello_end){.qpn = attr->dest_qp_num, .gid = d->path.peer_gid};
    d->begun = true;
    if (d->qp->uc) /* where no attribute says it */
        d->patience = IW_RETRY_US_MIN;
    d->itself = d->peer.qpn == d->self.qpn && iw_path_ends_here(dev, &d->path);
    d->dials = d->itself || is_lower(&d->self, &d->peer);
    bool dials = d->dials;
    show_locked(d, dials ? STATS_DIAL_CALLS : STATS_DIAL_WAITS);
    iw_dial_pin(d);
    if (dials) {
        lock_put(&d->lock);
        dial(d);
    } else {
        iw_visitor_take(d);
    }
    iw_dial_unpin(d);
}

/** For RTS, and for what comes later. */
static void keep_times(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    lock_get(&d->lock);
    if (mask & IBV_QP_TIMEOUT)
        d->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        d->retry_cnt = attr->retry_cnt;
    d->patience = iw_retry_us(d->timeout, d->retry_cnt);
    limit_silence_locked(d);
    lock_put(&d->lock);
}

/** No attempt goes on; a connection is ended by the QP. */
static void end(struct iw_dial *d)
{
    if (!iw_dial_enter(d))
        return;
    leave_locked(d);
    lock_put(&d->lock);
    iw_timer_cancel(&d->again);
}

void iw_dial_moved(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    if (!d)
        return;
    if (says_where(attr, mask)) {
        begin(d, attr);
    } else if (mask & (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT)) {
        keep_times(d, attr, mask);
    } else if (is_to(attr, mask, IBV_QPS_ERR)) {
        end(d);
    }
}

void iw_dial_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}
