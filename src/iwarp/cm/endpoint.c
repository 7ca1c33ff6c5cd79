/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "device/context.h"
#include "env/conf.h"
#include "observe/pcap.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "qp/rx_stall.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_MS     1000 /* for queued work to go out, and again for the peer's FIN */
#define LINGER_MS    700  /* more, as long as the peer's TCP takes something in this time */
#define LINGERS      14
#define WATCH_MS     1000    /* for what was sent to be acknowledged: then who is idle sleeps */
#define LOOK_NS      1000000 /* while waiting for queued work to go out */
#define DROPS_A_PASS 64      /* reads of a socket whose connection is over */
#define GRACE_MS     200     /* responder without p2p: until it may send first */
#define RTR_MS       10000
/*
 * Initiator: siw overlooks an FPDU that comes right behind its Reply, until the next one comes. Our
 * first one waits; if the peer stays silent all the same, more bytes make it look.
 */
#define SETTLE_MS    10
#define NUDGES       4
#define NUDGE_MS     50 /* after the hold; twice as long each time */

/* ---- life ---- */

struct lock_class iw_cm_locks = LOCK_CLASS(iw_cm_locks, LOCK_CM);

struct iw_cm *iw_cm_new(void)
{
    struct iw_cm *cm = calloc(1, sizeof(*cm));
    if (!cm)
        return NULL;
    lock_init_in(&cm->lock, &iw_cm_locks);
    pthread_cond_init(&cm->idle, NULL);
    atomic_init(&cm->refs, 1);
    list_init(&cm->events);
    list_init(&cm->endable);
    list_init(&cm->child_link);
    cm->fd = -1;
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
    free(cm->nego);
    pthread_cond_destroy(&cm->idle);
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

bool iw_cm_move(struct iw_cm *cm, enum iw_cm_state from, enum iw_cm_state to)
{
    lock_get(&cm->lock);
    bool was = cm->state == from;
    if (was)
        cm->state = to;
    lock_put(&cm->lock);
    return was;
}

/* ---- events ---- */

static void raise_ended(struct iw_cm *cm)
{
    iw_cm_raise(cm, &cm->ended, &(struct iw_cm_event){.type = IW_CM_DISCONNECTED});
}

static uint8_t depth8(uint16_t d)
{
    return d > UINT8_MAX ? UINT8_MAX : (uint8_t)d;
}

void iw_cm_established(struct iw_cm *cm)
{
    struct mpa_nego *n = cm->nego;
    struct iw_cm_event ev = {
        .type = IW_CM_ESTABLISHED,
        .initiator_depth = depth8(n->result.ord),
        .responder_resources = depth8(n->result.ird),
        .peer_qpn = n->result.peer_qpn,
    };
    if (n->initiator && n->peer.pd_len) {
        ev.private_data = n->peer.pd;
        ev.private_data_len = n->peer.pd_len;
    }
    iw_cm_raise(cm, &cm->outcome, &ev);
    lock_get(&cm->lock);
    cm->told = true;
    bool end_waits = cm->end_waits, unwanted = cm->destroyed || cm->hang_up;
    lock_put(&cm->lock);
    if (end_waits)
        raise_ended(cm);
    else if (unwanted)
        iw_cm_disconnect(cm);
}

/* ---- the connection ---- */

static void expired(struct iw_timer *t);

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
    return qp;
}

/** The QP has left: waits for the peer's FIN, so that no RST overtakes what we sent. */
static void drain(struct iw_cm *cm)
{
    char dropped[4096];
    long n;
    int rounds = 0;
    do
        n = sys_recv(cm->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
    while (n == (long)sizeof(dropped) && ++rounds < DROPS_A_PASS);
    if ((n <= 0 && n != -EAGAIN) && iw_cm_move(cm, IW_CM_S_CLOSING, IW_CM_S_CLOSED))
        iw_cm_release(cm, false);
}

static bool ready(struct iw_source *s, uint32_t events)
{
    struct iw_cm *cm = container_of(s, struct iw_cm, source);
    struct iw_qp *qp = atomic_load(&cm->qp);
    if (qp) { /* who takes it waits for the source; but that may be we */
        atomic_fetch_add(&qp->pins, 1);
        bool moved = iw_qp_ready(qp, events);
        unpin(qp);
        return moved;
    }
    if (!events)
        return false;
    lock_get(&cm->lock);
    enum iw_cm_state state = cm->state;
    lock_put(&cm->lock);
    iw_cm_get(cm); /* what follows may end it */
    switch (state) {
    case IW_CM_S_LISTEN:
        iw_cm_listen_ready(cm);
        break;
    case IW_CM_S_CONNECTING:
        iw_cm_connect_ready(cm);
        break;
    case IW_CM_S_WAIT_REPLY:
        iw_cm_reply_ready(cm);
        break;
    case IW_CM_S_WAIT_REQUEST:
        iw_cm_request_ready(cm);
        break;
    case IW_CM_S_DECISION:
        iw_cm_decision_ready(cm, events);
        break;
    case IW_CM_S_CLOSING:
        drain(cm);
        break;
    case IW_CM_S_IDLE:
    case IW_CM_S_BOUND:
    case IW_CM_S_RETRY:
    case IW_CM_S_ACCEPTED:
    case IW_CM_S_ESTABLISHED:
    case IW_CM_S_CLOSED:
        break;
    }
    iw_cm_put(cm);
    return false;
}

int iw_cm_watch(struct iw_cm *cm, uint32_t events)
{
    if (!cm->watched)
        iw_cm_get(cm);
    cm->watched = true;
    return -iw_source_add(&cm->source, cm->fd, events, ready);
}

void iw_cm_set_timer(struct iw_cm *cm, unsigned ms)
{
    lock_get(&cm->lock);
    if (cm->state != IW_CM_S_CLOSED)
        iw_timer_set(&cm->timer, ms, expired);
    lock_put(&cm->lock);
}

/** The timer is that of the end from now on. */
static void set_close_timer(struct iw_cm *cm)
{
    atomic_store(&cm->nudges, 0);
    iw_cm_set_timer(cm, CLOSE_MS);
}

static void nudge(struct iw_cm *cm, struct iw_qp *qp, unsigned left)
{
    bool again = iw_qp_nudge(qp) && left > 1;
    if (atomic_compare_exchange_strong(&cm->nudges, &left, again ? left - 1 : 0) && again)
        iw_cm_set_timer(cm, NUDGE_MS << (NUDGES + 1 - left));
}

/** The timer of a linked connection. */
static void linked_expired(struct iw_cm *cm, struct iw_qp *qp)
{
    unsigned nudges = atomic_load(&cm->nudges);
    bool closing = atomic_load(&cm->closing);
    if (!atomic_exchange(&cm->released, true)) {
        iw_qp_release(qp);
        if (closing)
            set_close_timer(cm);
        else if (nudges)
            iw_cm_set_timer(cm, NUDGE_MS);
    } else if (nudges && !closing) {
        nudge(cm, qp, nudges);
    } else {
        iw_qp_expired(qp, atomic_load(&cm->awaits));
    }
}

/**
 * The close has had its time, and all there is to send is with TCP. What the peer's TCP takes may
 * go on. Where it takes nothing, as its window is closed, our FIN would not be heard either.
 * @return whether the endpoint waits on
 */
static bool lingers(struct iw_cm *cm, struct iw_qp *qp)
{
    if (qp && !iw_qp_drains(qp))
        return false;
    lock_get(&cm->lock);
    enum iw_cm_delivery is = iw_cm_delivery_locked(cm);
    cm->stuck = is == IW_CM_STUCK;
    bool more = is == IW_CM_DELIVERS && cm->looks++ < LINGERS;
    lock_put(&cm->lock);
    if (more)
        iw_cm_set_timer(cm, LINGER_MS);
    return more;
}

static void expired(struct iw_timer *t)
{
    struct iw_cm *cm = container_of(t, struct iw_cm, timer);
    lock_get(&cm->lock);
    enum iw_cm_state state = cm->state;
    lock_put(&cm->lock);
    struct iw_qp *qp = pin(cm);
    iw_cm_get(cm); /* what follows may end it */
    switch (state) {
    case IW_CM_S_LISTEN:
        iw_cm_listen_resume(cm);
        break;
    case IW_CM_S_CONNECTING:
        iw_cm_connect_expired(cm);
        break;
    case IW_CM_S_WAIT_REPLY:
        iw_cm_reply_expired(cm);
        break;
    case IW_CM_S_WAIT_REQUEST:
        iw_cm_request_expired(cm);
        break;
    case IW_CM_S_ACCEPTED:
        if (qp)
            iw_qp_close(qp, true);
        break;
    case IW_CM_S_CLOSING:
        if (lingers(cm, qp))
            break;
        if (!qp) {
            if (iw_cm_move(cm, IW_CM_S_CLOSING, IW_CM_S_CLOSED))
                iw_cm_release(cm, cm->stuck);
            break;
        }
        linked_expired(cm, qp);
        break;
    case IW_CM_S_ESTABLISHED:
        if (qp)
            linked_expired(cm, qp);
        break;
    default:
        break;
    }
    if (qp)
        unpin(qp);
    iw_cm_put(cm);
}

static void stall_expired(struct iw_timer *t)
{
    struct iw_cm *cm = container_of(t, struct iw_cm, stall);
    struct iw_qp *qp = pin(cm);
    iw_cm_get(cm); /* what follows may end it */
    if (qp) {
        iw_qp_stalled(qp);
        unpin(qp);
    }
    iw_cm_put(cm);
}

static void set_stall_timer(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    if (cm->state != IW_CM_S_CLOSED)
        iw_timer_set(&cm->stall, IW_STALL_MS, stall_expired);
    lock_put(&cm->lock);
}

static void watch(struct iw_cm *cm, unsigned ms);

/** The peer of a linked connection has had some time more to answer. */
static void look(struct iw_cm *cm, struct iw_qp *qp)
{
    iw_qp_watched(qp, false); /* first: what is sent from now on starts the watch anew */
    lock_get(&cm->lock);
    enum iw_cm_answer answer = cm->fd < 0 ? IW_CM_NONE_DUE : iw_cm_answer_locked(cm);
    cm->stuck |= answer == IW_CM_DEAD;
    lock_put(&cm->lock);
    if (answer == IW_CM_DUE) {
        iw_qp_watched(qp, true);
        watch(cm, iw_cm_watch_ms());
    } else if (answer == IW_CM_DEAD) {
        iw_qp_lose(qp, -ETIMEDOUT);
    }
}

static void watch_expired(struct iw_timer *t)
{
    struct iw_cm *cm = container_of(t, struct iw_cm, watch);
    struct iw_qp *qp = pin(cm);
    iw_cm_get(cm); /* what follows may end it */
    if (qp) {
        look(cm, qp);
        unpin(qp);
    }
    iw_cm_put(cm);
}

static void watch(struct iw_cm *cm, unsigned ms)
{
    lock_get(&cm->lock);
    if (cm->state != IW_CM_S_CLOSED)
        iw_timer_set(&cm->watch, ms, watch_expired);
    lock_put(&cm->lock);
}

void iw_cm_release(struct iw_cm *cm, bool reset)
{
    lock_get(&cm->lock);
    cm->state = IW_CM_S_CLOSED; /* from here on no timer is set */
    lock_put(&cm->lock);
    iw_timer_cancel(&cm->timer);
    iw_timer_cancel(&cm->stall);
    iw_timer_cancel(&cm->watch);
    iw_source_del(&cm->source);
    struct iw_qp *qp = take_qp(cm);
    if (qp) {
        iw_qp_unlink(qp);
        unpin(qp);
    }
    lock_get(&cm->lock);
    iw_pcap_detach(&cm->tcp.base, reset);
    bool watched = cm->watched;
    cm->watched = false;
    int fd = cm->fd;
    cm->fd = -1;
    lock_put(&cm->lock);
    if (fd >= 0) {
        if (reset) {
            struct linger l = {.l_onoff = 1};
            sys_setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
        } else if (qp) {
            sys_shutdown(fd, SHUT_WR); /* our FIN, even if a forked child holds a copy */
        }
        sys_close(fd);
    }
    iw_cm_orphan(cm);
    if (watched)
        iw_cm_put(cm);
}

int iw_cm_link(struct iw_cm *cm, const uint8_t *early, size_t early_len)
{
    const struct mpa_nego *n = cm->nego;
    struct iw_qp *qp = cm->reserved;
    struct sockaddr_storage local, peer;
    struct iw_link l = {
        .stream = &cm->tcp.base,
        .source = &cm->source,
        .agreed = &n->result,
        .local = (struct sockaddr *)&local,
        .peer = (struct sockaddr *)&peer,
        .same_host = cm->same_host,
        .responder = !n->initiator,
        .hold = !n->initiator || !n->result.ext,
        .rtr = n->initiator ? n->result.rtr : 0,
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
        cm->reserved = NULL;
        unpin(qp); /* of the reservation */
    } else if (take_qp(cm)) {
        unpin(qp);
    }
    return r;
}

unsigned iw_cm_patience(unsigned ms)
{
    return ms < iw_conf()->connect_ms ? ms : iw_conf()->connect_ms;
}

void iw_cm_wait_first(struct iw_cm *cm)
{
    const struct mpa_nego *n = cm->nego;
    bool at_once = n->initiator && n->result.ext;
    atomic_store(&cm->released, at_once);
    atomic_store(&cm->nudges, n->initiator && !at_once ? NUDGES : 0);
    if (!at_once)
        iw_cm_set_timer(cm, n->initiator    ? SETTLE_MS
                            : n->result.p2p ? iw_cm_patience(RTR_MS)
                                            : GRACE_MS);
}

/** The endpoint of a QP, in this life if not NULL, referenced. @return NULL if it has none any more
 */
static struct iw_cm *cm_of(struct iw_qp *qp, const uint32_t *life)
{
    lock_get(&qp->tx.lock);
    struct iw_cm *cm = !life || *life == qp->life ? qp->cm : NULL;
    if (cm)
        iw_cm_get(cm);
    lock_put(&qp->tx.lock);
    return cm;
}

/** Once; behind ESTABLISHED if that is on its way. */
static void raise_disconnected(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    bool was_up = cm->state == IW_CM_S_ESTABLISHED;
    bool mine = was_up || cm->state == IW_CM_S_ACCEPTED;
    bool now = mine && (cm->told || !was_up);
    if (mine) {
        cm->state = IW_CM_S_CLOSING;
        cm->end_waits = !now;
    }
    lock_put(&cm->lock);
    if (mine)
        set_close_timer(cm);
    if (now)
        raise_ended(cm);
}

/** The socket goes when both are so: the QP has closed, and the program has heard of the end. */
static void closed(struct iw_cm *cm, bool heard, unsigned news)
{
    lock_get(&cm->lock);
    cm->end_heard |= heard;
    cm->closed |= news & (IW_QP_NEWS_CLOSED | IW_QP_NEWS_RESET);
    unsigned both = cm->end_heard ? cm->closed : 0;
    bool reset = cm->stuck || (both & IW_QP_NEWS_RESET);
    lock_put(&cm->lock);
    if (both && iw_cm_move(cm, IW_CM_S_CLOSING, IW_CM_S_CLOSED))
        iw_cm_release(cm, reset);
}

void iw_cm_end_heard(struct iw_cm *cm)
{
    closed(cm, true, 0);
}

void iw_cm_news(struct iw_qp *qp, uint32_t life, unsigned news)
{
    struct iw_cm *cm = cm_of(qp, &life);
    if (!cm)
        return;
    if ((news & IW_QP_NEWS_READY) && !atomic_exchange(&cm->released, true)) {
        iw_timer_cancel(&cm->timer);
        if (iw_cm_move(cm, IW_CM_S_ACCEPTED, IW_CM_S_ESTABLISHED)) {
            cm->nego->result.peer_qpn = qp->rx.peer_qpn;
            iw_cm_established(cm);
        }
    }
    if (news & IW_QP_NEWS_FIN_HELD) {
        if (!atomic_exchange(&cm->released, true))
            iw_qp_release(qp); /* the timer was that of the hold */
        atomic_store(&cm->awaits, atomic_load(&qp->rx.awaits));
        set_close_timer(cm);
    }
    if (news & IW_QP_NEWS_SENDS)
        watch(cm, WATCH_MS);
    if (news & IW_QP_NEWS_STALLS)
        set_stall_timer(cm);
    /* The thread with the news of the disconnection may be behind the one with that of the end. */
    if (news & (IW_QP_NEWS_DISCONNECTED | IW_QP_NEWS_CLOSED))
        raise_disconnected(cm);
    closed(cm, false, news);
    iw_cm_put(cm);
}

void iw_cm_lose(struct iw_cm *cm)
{
    struct iw_qp *qp = pin(cm);
    if (qp) {
        iw_qp_lose(qp, -ECONNABORTED);
        unpin(qp);
    }
    raise_disconnected(cm);
    if (iw_cm_move(cm, IW_CM_S_CLOSING, IW_CM_S_CLOSED))
        iw_cm_release(cm, false);
}

/** @return whether all went out in time */
static bool wait_sent(struct iw_qp *qp)
{
    uint64_t end = iw_now() + CLOSE_MS * 1000000ull;
    while (!iw_qp_closed_enough(qp)) {
        if (iw_now() > end)
            return false;
        iw_engine_poll_within(LOOK_NS);
    }
    return true;
}

static void leave_linked(struct iw_qp *qp, struct iw_cm *cm)
{
    iw_qp_close(qp, false);
    if (!wait_sent(qp))
        iw_qp_expired(qp, atomic_load(&qp->rx.awaits));
    if (take_qp(cm)) {
        iw_qp_unlink(qp);
        unpin(qp);
    }
    raise_disconnected(cm);
    iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
}

void iw_cm_qp_leaves(struct iw_qp *qp)
{
    struct iw_cm *cm;
    /* A handshake that is abandoned may link the QP all the same: then it leaves once more. */
    while ((cm = cm_of(qp, NULL))) {
        if (iw_qp_was_linked(qp))
            leave_linked(qp, cm);
        else
            iw_cm_abandon(cm);
        iw_cm_put(cm);
        sched_yield();
    }
    /* A thread that came from the endpoint, or from a failed handshake, may still be inside. */
    while (atomic_load(&qp->pins))
        sched_yield();
}

/* ---- the program's calls that are common to both sides ---- */

struct iw_qp *iw_cm_param_qp(const struct iw_cm_param *param)
{
    if (param->initiator_depth > IW_MAX_DEPTH || param->responder_resources > IW_MAX_DEPTH ||
        param->private_data_len > IW_CM_PRIVATE_DATA_MAX)
        return NULL;
    if (param->qp)
        return iw_qp(param->qp);
    return param->ctx ? iw_qp_find(param->ctx, param->qp_num) : NULL;
}

/** Whether an ESTABLISHED may be on its way. */
static bool begun(enum iw_cm_state s)
{
    return s == IW_CM_S_CONNECTING || s == IW_CM_S_WAIT_REPLY || s == IW_CM_S_RETRY ||
           s == IW_CM_S_ACCEPTED || s == IW_CM_S_ESTABLISHED;
}

int iw_cm_disconnect(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    enum iw_cm_state state = cm->state;
    cm->hang_up |= !cm->told && begun(state);
    lock_put(&cm->lock);
    struct iw_qp *qp = pin(cm);
    int r = 0;
    switch (state) {
    case IW_CM_S_IDLE:
    case IW_CM_S_BOUND:
    case IW_CM_S_LISTEN:
        r = -EINVAL;
        break;
    case IW_CM_S_ACCEPTED:
    case IW_CM_S_ESTABLISHED:
        if (qp) {
            atomic_store(&cm->closing, true);
            if (!cm->nego->initiator)
                atomic_store(&cm->released, true);
            if (atomic_load(&cm->released))
                set_close_timer(cm);
            iw_qp_close(qp, false);
        }
        break;
    default:
        break;
    }
    if (qp)
        unpin(qp);
    return r;
}

void iw_cm_destroy(struct iw_cm *cm)
{
    iw_cm_forget_handler(cm);
    lock_get(&cm->lock);
    enum iw_cm_state state = cm->state;
    lock_put(&cm->lock);
    switch (state) {
    case IW_CM_S_ACCEPTED:
    case IW_CM_S_ESTABLISHED:
        iw_cm_disconnect(cm);
        break;
    case IW_CM_S_CLOSING:
    case IW_CM_S_CLOSED:
        break;
    case IW_CM_S_DECISION:
        iw_cm_reject(cm, NULL, 0);
        break;
    default:
        iw_cm_abandon(cm);
        break;
    }
    iw_cm_put(cm);
}
