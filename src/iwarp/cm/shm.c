/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings for the connections between processes of one host: which may have them, and how both ends
 * come to share them (local/meeting.h, qp/rings.h). What fails stays on TCP, and nobody is told.
 */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "engine/active.h"
#include "engine/poller.h"
#include "env/conf.h"
#include "env/gather.h"
#include "qp/rings.h"
#include "qp/rx_scatter.h"

#define ROUNDS  16   /* of a thread that was rung for, while bytes come */
#define REST_MS 1000 /* in which a ring was not used: its pages go */

static struct iw_cm *of_bell(struct iw_source *s)
{
    return container_of(s, struct iw_cm, shm.source);
}

/* ---- the stream ---- */

static void see_to_it(struct iw_timer *t);

void iw_cm_shm_due(struct iw_cm *cm)
{
    bool there = iwc_stream_shm_attached(&cm->shm.stream);
    iw_cm_arm(cm, &cm->shm.timer, there ? REST_MS : 0, see_to_it);
}

/** There is room for a bell: that is told of at once, to whoever makes the next pass. */
static void again(void *arg)
{
    struct iw_cm *cm = arg;
    iw_source_want(&cm->shm.source, EPOLLIN | EPOLLOUT | EPOLLET);
}

static const struct iwc_shm_user user = {.gather = iw_gather, .place = iw_place, .again = again};

static void hold(struct iw_offer *o)
{
    iw_cm_get(container_of(o, struct iw_cm, shm.offer));
}

static void taken(struct iw_offer *o, int bell, int memory, uint32_t ring);

void iw_cm_shm_begin(struct iw_cm *cm)
{
    if (!iw_conf()->shm_bytes || !cm->same_host || cm->itself || cm->tls || cm->tcp.base.faults ||
        iw_cm_wants_crc(cm))
        return;
    iwc_stream_shm_init(&cm->shm.stream, &cm->tcp.base, &user, cm);
    list_init(&cm->shm.offer.link);
    cm->shm.offer.hold = hold;
    cm->shm.offer.taken = taken;
    cm->shm.bell = -1;
    cm->shm.may = true;
    cm->stream = &cm->shm.stream.base;
}

bool iw_cm_shm_may(const struct iw_cm *cm, const struct iw_qp *qp)
{
    return cm->shm.may && qp;
}

/* ---- the bell ---- */

/** Has somebody look at the ring by itself, or rung for. The QP is pinned. */
static void settle(struct iw_cm *cm)
{
    /* What is not read now is armed when it is again (iw_qp_want_locked). */
    if (iw_source_wants(&cm->source, EPOLLIN) && !iw_active_add(&cm->shm.source))
        iwc_stream_shm_arm(&cm->shm.stream);
}

/** @return whether bytes moved */
static bool go_on(struct iw_qp *qp, bool *looked)
{
    bool moved = false, more;
    int rounds = 0;
    do {
        more = iw_rings_rung(qp, looked);
        moved |= more;
    } while (more && ++rounds < ROUNDS && !iw_engine_told());
    return moved;
}

static bool idle(const struct iw_source *s)
{
    const struct iw_cm *cm = container_of(s, const struct iw_cm, shm.source);
    return iwc_stream_shm_idle(&cm->shm.stream);
}

static bool settled(const struct iw_source *s)
{
    const struct iw_cm *cm = container_of(s, const struct iw_cm, shm.source);
    const struct iw_qp *qp = atomic_load(&cm->qp);
    return idle(s) && qp && !lock_is_taken(&qp->rx.lock);
}

static void rest(struct iw_source *s)
{
    iwc_stream_shm_arm(&of_bell(s)->shm.stream);
}

/** Hears the bell, and sees to the next time. The QP is pinned. @return whether bytes moved */
static bool answer(struct iw_cm *cm, struct iw_qp *qp, uint32_t events)
{
    bool looked, asked = events & EPOLLOUT, all = asked || (events & (EPOLLHUP | EPOLLERR));
    iw_cm_get(cm); /* what comes in may end it, in here */
    /* Both before it is looked: what comes behind that asks again, and is told of. */
    if (asked)
        iw_source_want(&cm->shm.source, EPOLLIN | EPOLLET);
    bool rings = iwc_stream_shm_hear(&cm->shm.stream, all);
    if (!rings) /* once more at most: TCP tells of the end */
        iw_source_want(&cm->shm.source, EPOLLET);
    bool moved = go_on(qp, &looked);
    if (!looked)
        again(cm);
    if (rings && (events & EPOLLIN)) /* heard now, whoever looks */
        iw_rings_switch(qp);         /* who rings has mapped them */
    if (looked)
        settle(cm);
    iw_cm_put(cm);
    return moved;
}

static bool rung(struct iw_source *s, uint32_t events)
{
    struct iw_cm *cm = of_bell(s);
    struct iw_qp *qp = atomic_load(&cm->qp);
    bool looked;
    if (!qp) {
        iw_source_want(s, EPOLLET);
        return false;
    }
    atomic_fetch_add(&qp->pins, 1); /* as in endpoint.c */
    iw_source_move(&cm->source, &qp->tx.deferred.home);
    iw_source_move(s, &qp->tx.deferred.home);
    bool moved = events ? answer(cm, qp, events) : iw_rings_rung(qp, &looked);
    atomic_fetch_sub(&qp->pins, 1);
    return moved;
}

/* ---- how both ends come to share them ---- */

/** @return whether it has them now */
static bool attach(struct iw_cm *cm, bool made, int bell)
{
    struct iwc_shm_rings rings = iw_pages_rings(&cm->shm.pages, made, bell);
    cm->shm.bell = bell;
    cm->shm.source.idle = idle;
    cm->shm.source.settled = settled;
    cm->shm.source.rest = rest;
    iw_source_link(&cm->shm.source, atomic_load(&cm->qp)->pub.qp_num); /* so it is waited for */
    iwc_stream_shm_attach(&cm->shm.stream, &rings);
    return iw_source_add(&cm->shm.source, bell, EPOLLIN | EPOLLET, rung) == 0;
}

/** The QP stays linked meanwhile: whoever takes it waits for this thread. */
static bool begin_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    return atomic_load(&cm->qp) && cm->fd >= 0 && !cm->shm.pages.base;
}

enum stats_tcp iw_cm_shm_why_not(const struct iw_cm *cm)
{
    if (!cm->same_host)
        return STATS_TCP_NONE;
    if (!iw_conf()->shm_bytes)
        return STATS_TCP_OFF;
    if (cm->tls)
        return STATS_TCP_TLS;
    if (cm->tcp.base.faults)
        return STATS_TCP_CHAOS;
    if (cm->agreed.crc)
        return STATS_TCP_CRC;
    return cm->agreed.shm ? STATS_TCP_FEW : STATS_TCP_PEER;
}

void iw_cm_shm_offer(struct iw_cm *cm, const struct iw_qp *qp)
{
    struct mpa_conf *conf = &cm->nego->conf;
    bool asked = cm->nego->peer.flags & MPA_FLAG_SHM;
    conf->shm = asked && iw_cm_shm_may(cm, qp) && !iw_offer_make(&cm->shm.offer, conf->offer);
}

struct arrival {
    int bell, memory;
    uint32_t ring;
};

static enum stats_tcp why_no_memory(int error)
{
    return error == -ENOSPC ? STATS_TCP_LIMIT : STATS_TCP_MEMORY;
}

static void tell_why_locked(struct iw_cm *cm, enum stats_tcp why)
{
    assert_held(&cm->lock);
    iw_stats_set(&atomic_load(&cm->qp)->stats->rq.tcp, why);
}

static bool open_locked(struct iw_cm *cm, const struct arrival *a)
{
    int r = iw_pages_open(&cm->shm.pages, a->memory, a->ring);
    if (r)
        tell_why_locked(cm, why_no_memory(r));
    return !r;
}

/**
 * The initiator hears of it by the bell, not by TCP.
 * @param kept  [out] the bell is the connection's, whose end closes it
 */
static bool meet(struct iw_cm *cm, const struct arrival *a, bool *kept)
{
    lock_get(&cm->lock);
    bool done = begin_locked(cm) && open_locked(cm, a) && attach(cm, false, a->bell);
    if (done)
        iwc_stream_shm_ring(&cm->shm.stream);
    *kept = cm->shm.bell >= 0;
    lock_put(&cm->lock);
    return done;
}

static void switch_to_it(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)cm;
    iw_rings_switch(qp);
}

static void taken(struct iw_offer *o, int bell, int memory, uint32_t ring)
{
    struct iw_cm *cm = container_of(o, struct iw_cm, shm.offer);
    struct arrival a = {.bell = bell, .memory = memory, .ring = ring};
    bool kept, done = meet(cm, &a, &kept);
    sys_close(memory);
    if (done)
        iw_cm_with_qp(cm, switch_to_it);
    if (!kept)
        sys_close(bell);
    iw_cm_put(cm);
}

/**
 * Goes to where the responder is, with memory for both. All is ready before it is asked.
 * @return why nothing goes through rings now
 */
static enum stats_tcp come_locked(struct iw_cm *cm)
{
    const uint8_t *said = cm->agreed.offer;
    struct iw_pages *pages = &cm->shm.pages;
    assert_held(&cm->lock);
    int memory = iw_pages_make(pages, iw_conf()->shm_bytes);
    if (memory < 0)
        return why_no_memory(memory);
    int bell = iw_offer_visit(said);
    if (bell < 0)
        iw_pages_close(pages);
    else if (attach(cm, true, bell))
        iw_offer_greet(bell, said, memory, (uint32_t)pages->ring);
    sys_close(memory);
    return bell == -EPERM ? STATS_TCP_USER : bell < 0 ? STATS_TCP_AWAY : STATS_TCP_ASKED;
}

static void come(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)qp;
    lock_get(&cm->lock);
    if (begin_locked(cm))
        tell_why_locked(cm, come_locked(cm));
    lock_put(&cm->lock);
}

static void come_or_rest(struct iw_cm *cm, struct iw_qp *qp)
{
    if (!iwc_stream_shm_attached(&cm->shm.stream))
        come(cm, qp);
    else if (iw_rings_rest(qp))
        iw_cm_shm_due(cm);
}

static void see_to_it(struct iw_timer *t)
{
    iw_cm_with_qp(container_of(t, struct iw_cm, shm.timer), come_or_rest);
}

/* ---- the end ---- */

void iw_cm_shm_end(struct iw_cm *cm)
{
    if (!cm->shm.may)
        return;
    iw_offer_withdraw(&cm->shm.offer);
    iw_timer_cancel(&cm->shm.timer);
    iw_source_del(&cm->shm.source);
    lock_get(&cm->lock);
    iwc_stream_shm_kill(&cm->shm.stream);
    iw_pages_close(&cm->shm.pages);
    int bell = cm->shm.bell;
    cm->shm.bell = -1;
    lock_put(&cm->lock);
    if (bell >= 0)
        sys_close(bell);
}

void iw_cm_shm_forget(struct iw_cm *cm)
{
    if (!cm->shm.may)
        return;
    iwc_stream_shm_kill(&cm->shm.stream);
    iw_source_del(&cm->shm.source);
    iw_pages_forget(&cm->shm.pages);
    list_init(&cm->shm.offer.link);
    if (cm->shm.bell >= 0)
        sys_close(cm->shm.bell);
    cm->shm.bell = -1;
}
