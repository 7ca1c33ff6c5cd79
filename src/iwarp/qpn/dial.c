/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/dial.h"

#include "engine/timer.h"
#include "env/random.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "qp/rnr.h"
#include "qpn/address.h"
#include "qpn/hello.h"
#include "qpn/number.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MAX_MS 1000 /* between two attempts; the first ones come sooner */
#define PATIENCE_MIN 500  /* ms without a connection: an adapter's peer answers within less */

struct iw_dial {
    struct iw_number number;
    atomic_uint pins; /* threads that work for it beside those of the QP */
    struct iw_timer again, clock, not_ready;

    struct lock lock;
    struct iw_qp *qp;
    bool leaving;      /* stopped: everything is left to who stopped it */
    bool begun;        /* in RTR or later: self, peer and path are known */
    bool over;         /* no attempts any more */
    uint64_t patience; /* us of what is posted without a connection, 0: for ever */
    struct iw_hello_end self, peer;
    struct iw_path path;
    unsigned tries;
    struct iw_cm *cm;      /* the attempt, or the connection */
    struct iw_cm *visitor; /* that asked before its time */
    struct iw_hello asked; /* what that said */
};

static struct lock_class locks = LOCK_CLASS(locks, LOCK_DIAL);

/* ---- life ---- */

/** A number that no earlier incarnation is likely to have had. */
static uint32_t draw_epoch(void)
{
    uint32_t epoch = 0;
    return iw_random32(&epoch) || !epoch ? 1 : epoch;
}

struct iw_dial *iw_dial_new(void)
{
    struct iw_dial *d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    lock_init_in(&d->lock, &locks);
    d->self.epoch = draw_epoch();
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

static void unpin(struct iw_dial *d)
{
    atomic_fetch_sub(&d->pins, 1);
}

/** @return false if it is being stopped: then nothing is to be done */
static bool enter(struct iw_dial *d)
{
    lock_get(&d->lock);
    if (!d->leaving && d->qp)
        return true;
    lock_put(&d->lock);
    return false;
}

static void drop(struct iw_cm *cm)
{
    if (cm)
        iw_cm_destroy(cm);
}

static void drop_all(struct iw_dial *d)
{
    lock_get(&d->lock);
    struct iw_cm *cm = d->cm, *visitor = d->visitor;
    d->cm = d->visitor = NULL;
    lock_put(&d->lock);
    drop(cm);
    drop(visitor);
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
    while (atomic_load(&d->pins))
        sched_yield();
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
    struct iw_cm *cm = d->cm; /* its QP has left it; who asked for the next incarnation stays */
    d->cm = NULL;
    d->begun = d->over = false;
    d->tries = 0;
    d->self.epoch = draw_epoch();
    lock_put(&d->lock);
    drop(cm);
    lock_get(&d->lock);
    d->leaving = false;
    lock_put(&d->lock);
}

/* ---- attempts ---- */

static int on_event(void *owner, const struct iw_cm_event *event);

static void again(struct iw_timer *t);

static void set_again_locked(struct iw_dial *d)
{
    assert_held(&d->lock);
    unsigned ms = d->tries < 10 ? 1u << d->tries++ : AGAIN_MAX_MS;
    if (!d->over)
        iw_timer_set(&d->again, ms, again);
}

static struct iw_cm_param param_of(struct iw_dial *d, const uint8_t hello[IW_HELLO_BYTES])
{
    return (struct iw_cm_param){
        .private_data = hello,
        .private_data_len = IW_HELLO_BYTES,
        .initiator_depth = IW_MAX_DEPTH,
        .responder_resources = IW_MAX_DEPTH,
        .qp = &d->qp->pub,
    };
}

static void set_port(struct sockaddr_storage *addr, uint16_t port)
{
    if (addr->ss_family == AF_INET)
        ((struct sockaddr_in *)addr)->sin_port = htons(port);
    else
        ((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
}

/** Calls the peer; pinned. */
static void dial(struct iw_dial *d)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_cm *cm;
    int r = iw_cm_create(&cm, on_event, d);
    if (!enter(d)) {
        if (!r)
            drop(cm);
        return;
    }
    if (r || d->over || d->cm) {
        if (r)
            set_again_locked(d);
        lock_put(&d->lock);
        if (!r)
            drop(cm);
        return;
    }
    struct iw_hello h = {.from = d->self, .to = d->peer};
    struct sockaddr_storage own = d->path.own, peer = d->path.peer;
    set_port(&peer, iw_number_tcp_port(d->peer.qpn));
    iw_hello_encode(bytes, &h);
    struct iw_cm_param p = param_of(d, bytes);
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
        drop(cm);
}

static void again(struct iw_timer *t)
{
    dial(container_of(t, struct iw_dial, again));
}

/** Whether a hello is that of the peer, over a connection that may be its. */
static bool fits_locked(const struct iw_dial *d, const struct iw_hello *h, struct iw_cm *cm)
{
    struct sockaddr_storage own, peer;
    assert_held(&d->lock);
    iw_cm_addresses(cm, &own, &peer);
    return h->from.qpn == d->peer.qpn &&
           memcmp(&h->from.gid, &d->peer.gid, sizeof(h->from.gid)) == 0 &&
           memcmp(&h->to.gid, &d->self.gid, sizeof(h->to.gid)) == 0 &&
           iw_path_fits(&d->path, &own, &peer);
}

/** Takes the visitor, if it is the peer, and gives the lock back. */
static void take_visitor(struct iw_dial *d)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_cm *cm = d->visitor;
    assert_held(&d->lock);
    if (!cm || d->cm || d->over) {
        lock_put(&d->lock);
        return;
    }
    d->visitor = NULL;
    bool fits = fits_locked(d, &d->asked, cm);
    d->peer.epoch = d->asked.from.epoch;
    struct iw_hello h = {.from = d->self, .to = d->peer};
    struct iw_cm_param p = param_of(d, bytes);
    iw_hello_encode(bytes, &h);
    if (fits)
        d->cm = cm;
    lock_put(&d->lock);
    if (fits && iw_cm_accept(cm, &p) == 0)
        return;
    lock_get(&d->lock);
    bool mine = !fits || d->cm == cm;
    if (fits && mine)
        d->cm = NULL;
    lock_put(&d->lock);
    if (mine)
        drop(cm);
}

int iw_dial_asked(void *port, const struct iw_cm_event *event)
{
    struct iw_hello h;
    if (event->type != IW_CM_CONNECT_REQUEST ||
        !iw_hello_decode(event->private_data, event->private_data_len, &h))
        return -EINVAL;
    struct iw_dial *d = iw_number_find(port, h.to.qpn);
    if (!d)
        return -ENOENT;
    lock_get(&d->lock);
    /* A stopped one may be on its way to another incarnation, which this one asks for. */
    bool wanted = d->qp && !(d->begun && !d->cm && !fits_locked(d, &h, event->request));
    struct iw_cm *before = d->visitor;
    if (!wanted) {
        lock_put(&d->lock);
        unpin(d);
        return -EPERM;
    }
    iw_cm_set_handler(event->request, on_event, d);
    d->visitor = event->request;
    d->asked = h;
    if (d->begun && !d->leaving)
        take_visitor(d);
    else
        lock_put(&d->lock);
    drop(before);
    unpin(d);
    return 0;
}

/** Nobody is lower than the other in both: then it is one QP. */
static bool is_dialler(const struct iw_hello_end *self, const struct iw_hello_end *peer)
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
    if (!is_dialler(&d->self, &d->peer))
        return true;
    if (!iw_hello_decode(event->private_data, event->private_data_len, &h) ||
        h.from.qpn != d->peer.qpn || h.to.epoch != d->self.epoch ||
        memcmp(&h.from.gid, &d->peer.gid, sizeof(h.from.gid)) != 0)
        return false;
    d->peer.epoch = h.from.epoch;
    return true;
}

static int on_event(void *owner, const struct iw_cm_event *event)
{
    struct iw_dial *d = owner;
    struct iw_cm *cm = NULL;
    if (!enter(d))
        return 0;
    iw_dial_pin(d);
    if (event->type == IW_CM_ESTABLISHED && is_peers_locked(d, event)) {
        d->tries = 0;
    } else {
        cm = d->cm;
        d->cm = NULL;
        if (event->type == IW_CM_ESTABLISHED || event->type == IW_CM_DISCONNECTED)
            d->over = true;
        else if (d->begun && is_dialler(&d->self, &d->peer))
            set_again_locked(d);
    }
    lock_put(&d->lock);
    drop(cm);
    unpin(d);
    return 0;
}

/* ---- the clock ---- */

static void give_up(struct iw_timer *t)
{
    struct iw_dial *d = container_of(t, struct iw_dial, clock);
    if (!enter(d))
        return;
    struct iw_qp *qp = d->qp; /* who stops it waits for the timer */
    lock_put(&d->lock);
    iw_qp_unreached(qp);
}

static void judge_receiver(struct iw_timer *t)
{
    struct iw_dial *d = container_of(t, struct iw_dial, not_ready);
    if (!enter(d))
        return;
    struct iw_qp *qp = d->qp;
    lock_put(&d->lock);
    uint64_t us = iw_qp_not_ready(qp);
    if (!us || !enter(d))
        return;
    iw_timer_set_us(&d->not_ready, us, judge_receiver);
    lock_put(&d->lock);
}

static void hear(struct iw_qp *qp, unsigned news)
{
    struct iw_dial *d = qp->dial;
    if (!enter(d))
        return;
    if ((news & IW_QP_NEWS_STRANDED) && d->patience && !d->clock.set)
        iw_timer_set_us(&d->clock, d->patience, give_up);
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

int iw_dial_check(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    struct iw_path path;
    if (is_to(attr, mask, IBV_QPS_INIT) && (mask & IBV_QP_PKEY_INDEX) && d && d->number.port)
        return -iw_number_listen(&d->number);
    if (!says_where(attr, mask))
        return 0;
    if (!d || !d->number.port)
        return iw_refuse("ibv_modify_qp", NO_NUMBER);
    if (!attr->ah_attr.is_global)
        return iw_refuse("ibv_modify_qp", NO_GID);
    int r = iw_path_find(iw_device(d->qp->pub.context->device), &attr->ah_attr, &path);
    if (r == EINVAL)
        return iw_refuse("ibv_modify_qp", GID_INDEX, attr->ah_attr.grh.sgid_index);
    if (r)
        return iw_refuse("ibv_modify_qp", GID_KIND);
    bool itself = attr->dest_qp_num == d->number.qpn &&
                  memcmp(&path.own_gid, &path.peer_gid, sizeof(path.own_gid)) == 0;
    return itself ? iw_refuse("ibv_modify_qp", ITSELF) : 0;
}

static void begin(struct iw_dial *d, const struct ibv_qp_attr *attr)
{
    if (!enter(d))
        return;
    if (iw_path_find(iw_device(d->qp->pub.context->device), &attr->ah_attr, &d->path)) {
        lock_put(&d->lock);
        return;
    }
    d->self.qpn = d->number.qpn;
    d->self.gid = d->path.own_gid;
    d->peer = (struct iw_hello_end){.qpn = attr->dest_qp_num, .gid = d->path.peer_gid};
    d->begun = true;
    bool dials = is_dialler(&d->self, &d->peer);
    iw_dial_pin(d);
    if (dials) {
        lock_put(&d->lock);
        dial(d);
    } else {
        take_visitor(d);
    }
    unpin(d);
}

/** (retry_cnt + 1) * 4.096 us * 2^timeout */
static uint64_t patience(const struct ibv_qp_attr *attr)
{
    uint64_t us =
        attr->timeout ? ((attr->retry_cnt + 1ull) * 4096 << (attr->timeout & 31)) / 1000 : 0;
    return us && us < PATIENCE_MIN * 1000 ? PATIENCE_MIN * 1000 : us;
}

/** No attempt goes on; a connection is ended by the QP. */
static void end(struct iw_dial *d)
{
    if (!enter(d))
        return;
    d->over = true;
    lock_put(&d->lock);
    iw_timer_cancel(&d->again);
}

void iw_dial_moved(struct iw_dial *d, const struct ibv_qp_attr *attr, int mask)
{
    if (!d)
        return;
    if (says_where(attr, mask)) {
        begin(d, attr);
    } else if (is_to(attr, mask, IBV_QPS_RTS) && (mask & IBV_QP_TIMEOUT)) {
        lock_get(&d->lock);
        d->patience = patience(attr);
        lock_put(&d->lock);
    } else if (is_to(attr, mask, IBV_QPS_ERR)) {
        end(d);
    }
}

void iw_dial_fork(enum fork_step step)
{
    lock_class_fork(&locks, step);
}
