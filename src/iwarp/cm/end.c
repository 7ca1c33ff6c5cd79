/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of connections: what the QP says, what the program asks for, and what TCP still has. */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/qp.h"

#include <errno.h>
#include <sched.h>

#define CLOSE_MS     1000 /* for queued work to go out, and again for the peer's FIN */
#define LINGER_MS    700  /* more, as long as the peer's TCP takes something in this time */
#define LINGERS      14
#define LOOK_NS      1000000 /* while waiting for queued work to go out */
#define DROPS_A_PASS 64      /* reads of a socket whose connection is over */

void iw_cm_close_timer(struct iw_cm *cm)
{
    atomic_store(&cm->nudges, 0); /* the timer is that of the end from now on */
    iw_cm_set_timer(cm, CLOSE_MS);
}

void iw_cm_reset(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    cm->end.reset = true;
    lock_put(&cm->lock);
}

/* ---- the program asks ---- */

static void ask(struct iw_cm *cm, struct iw_qp *qp)
{
    if (!cm->initiator)
        atomic_store(&cm->released, true);
    if (atomic_load(&cm->released))
        iw_cm_close_timer(cm);
    iw_qp_close(qp, false);
}

void iw_cm_ask(struct iw_cm *cm)
{
    atomic_store(&cm->end.asked, true); /* first: who links the QP meanwhile looks at that */
    iw_cm_with_qp(cm, ask);
}

void iw_cm_ask_late(struct iw_cm *cm)
{
    if (atomic_load(&cm->end.asked))
        iw_cm_step(cm, IW_CM_EV_ASK_CLOSE);
}

int iw_cm_disconnect(struct iw_cm *cm)
{
    return iw_cm_step(cm, IW_CM_EV_ASK_CLOSE).kind == IW_CM_STEP ? 0 : -EINVAL;
}

/* ---- the QP tells ---- */

static void ready(struct iw_cm *cm, struct iw_qp *qp)
{
    lock_get(&cm->lock);
    struct iw_cm_row row = iw_cm_take_locked(cm, IW_CM_EV_QP_READY);
    if (row.kind == IW_CM_STEP) {
        iw_timer_unset(&cm->timer);
        cm->agreed.peer_qpn = qp->rx.peer_qpn;
    }
    lock_put(&cm->lock);
    iw_cm_carry_out(cm, row);
}

static void closed(struct iw_cm *cm, bool reset)
{
    lock_get(&cm->lock);
    cm->end.reset |= reset;
    struct iw_cm_row row = iw_cm_take_locked(cm, IW_CM_EV_QP_CLOSED);
    lock_put(&cm->lock);
    iw_cm_carry_out(cm, row);
}

/** Those of a life that the QP has left, as a thread may bring them late, are dropped. */
static void on_news(struct iw_qp *qp, uint32_t life, unsigned news)
{
    struct iw_cm *cm = iw_cm_of(qp, &life);
    if (!cm)
        return;
    if ((news & IW_QP_NEWS_READY) && !atomic_exchange(&cm->released, true))
        ready(cm, qp);
    if (news & IW_QP_NEWS_FIN_HELD) {
        if (!atomic_exchange(&cm->released, true))
            iw_qp_release(qp); /* the timer was that of the hold */
        atomic_store(&cm->awaits, atomic_load(&qp->rx.awaits));
        iw_cm_close_timer(cm);
    }
    if (news & IW_QP_NEWS_SENDS)
        iw_cm_set_watch(cm);
    if (news & IW_QP_NEWS_STALLS)
        iw_cm_set_stall(cm);
    if (news & IW_QP_NEWS_UNMET)
        iw_cm_set_unmet(cm);
    if (news & IW_QP_NEWS_RINGS)
        iw_cm_shm_due(cm);
    /* Threads with earlier news, of the first FPDU or of the disconnection, may be behind this. */
    if (news & (IW_QP_NEWS_DISCONNECTED | IW_QP_NEWS_CLOSED)) {
        if (iw_qp_heard(qp))
            ready(cm, qp);
        iw_cm_step(cm, IW_CM_EV_QP_ENDS);
    }
    if (news & IW_QP_NEWS_CLOSED)
        closed(cm, news & IW_QP_NEWS_RESET);
    iw_cm_put(cm);
}

static void told(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)cm;
    iw_qp_end_is_told(qp);
}

void iw_cm_tell_end(struct iw_cm *cm)
{
    iw_cm_raise(cm, &cm->ended, &(struct iw_cm_event){.type = IW_CM_DISCONNECTED});
    iw_cm_with_qp(cm, told);
}

/* ---- the QP is gone, or about to ---- */

/* Waits for the peer's FIN, so that no RST overtakes what we sent. */
void iw_cm_drain(struct iw_cm *cm)
{
    char dropped[4096];
    long n;
    int rounds = 0;
    do
        n = sys_recv(cm->fd, dropped, sizeof(dropped), MSG_DONTWAIT);
    while (n == (long)sizeof(dropped) && ++rounds < DROPS_A_PASS);
    if (n <= 0 && n != -EAGAIN)
        iw_cm_step(cm, IW_CM_EV_DRAINED);
}

/**
 * The close has had its time, and all there is to send is with TCP. What the peer's TCP takes may
 * go on. Where it takes nothing, as its window is closed, our FIN would not be heard either.
 * @return whether the endpoint waits on
 */
static bool lingers(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    enum iw_cm_delivery is = iw_cm_delivery_locked(cm);
    cm->end.reset |= is == IW_CM_STUCK;
    bool more = is == IW_CM_DELIVERS && cm->end.looks++ < LINGERS;
    lock_put(&cm->lock);
    if (more)
        iw_cm_set_timer(cm, LINGER_MS);
    return more;
}

static void linger_linked(struct iw_cm *cm, struct iw_qp *qp)
{
    if (!iw_qp_drains(qp) || !lingers(cm))
        iw_cm_hold_over(cm);
}

void iw_cm_linger(struct iw_cm *cm)
{
    if (!iw_cm_with_qp(cm, linger_linked) && !lingers(cm))
        iw_cm_step(cm, IW_CM_EV_DRAINED);
}

static void break_off(struct iw_cm *cm, struct iw_qp *qp)
{
    (void)cm;
    if (qp->ib) /* knows of no peer that never begins */
        iw_qp_lose(qp, -ETIMEDOUT);
    else
        iw_qp_close(qp, true);
}

void iw_cm_break_off(struct iw_cm *cm)
{
    iw_cm_with_qp(cm, break_off);
}

static void lose(struct iw_cm *cm, struct iw_qp *qp)
{
    if (cm->fd < 0) {
        lock_get(&qp->tx.lock);
        iw_qp_explain(qp, IW_ERR_LLP_LOST, "behind fork() it is the parent's");
        lock_put(&qp->tx.lock);
    }
    iw_qp_lose(qp, -ECONNABORTED);
}

void iw_cm_lose(struct iw_cm *cm)
{
    iw_cm_with_qp(cm, lose);
    iw_cm_step(cm, IW_CM_EV_QP_ENDS);
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
    iw_cm_unlink(cm);
    iw_cm_step(cm, IW_CM_EV_QP_ENDS);
    iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
}

/** What was posted goes out (1 s), the endpoint drains on its own. */
static void on_leave(struct iw_qp *qp)
{
    struct iw_cm *cm;
    /* A handshake that is abandoned may link the QP all the same: then it leaves once more. */
    while ((cm = iw_cm_of(qp, NULL))) {
        if (iw_qp_was_linked(qp))
            leave_linked(qp, cm);
        else
            iw_cm_step(cm, IW_CM_EV_DESTROY);
        iw_cm_put(cm);
        sched_yield();
    }
}

const struct iw_qp_owner iw_cm_owner = {.news = on_news, .leave = on_leave};
