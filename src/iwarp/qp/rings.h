/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection between two processes of one host begins on TCP and goes on in rings
 * (conn/stream_shm.h), when both ends have mapped them. Each says so in band, in front of the next
 * that it sends, for its own direction: never alone, as a peer that only sends may end with what it
 * has not read, and its TCP would throw away what is still to go.
 */
#ifndef ANYWARP_QP_RINGS_H
#define ANYWARP_QP_RINGS_H

#include "qp/end.h"
#include "qp/qp.h"

/** Of a new link. @param s  NULL: TCP alone. tx.lock */
void iw_rings_init(struct iw_qp *qp, struct iwc_stream_shm *s, bool responder, size_t early);

/** Behind a send or a recv, outside a section: has the CM see to rings if they pay from now on, or
 * are used again. */
static inline void iw_rings_look(struct iw_qp *qp, struct iw_wakes *w)
{
    if (qp->rings.shm && iwc_stream_shm_due(qp->rings.shm))
        iw_qp_note_news(qp, IW_QP_NEWS_RINGS, w);
}

/** Whether what comes in comes through the ring. rx.lock */
static inline bool iw_rings_carry(const struct iw_qp *qp)
{
    return qp->rings.shm && iwc_stream_shm_receives(qp->rings.shm);
}

/** Whether what is sent goes into the ring. tx.lock */
static inline bool iw_rings_take(const struct iw_qp *qp)
{
    return qp->rings.shm && iwc_stream_shm_sends(qp->rings.shm);
}

/** What the peer says of the path: an upcall of conn/rx.h. rx.lock */
int iw_rings_heard(void *up, uint32_t kind);

/** The rings are there: what is sent goes through them from now on. No lock is held. */
void iw_rings_switch(struct iw_qp *qp);

/** Cuts what there is to tell, if something follows. @return false if nothing may do so in this
 * batch. tx.lock */
bool iw_rings_cut_locked(struct iw_qp *qp);

/**
 * Somebody has rung, or may have: goes on with what comes in, and what waits for room.
 * @param looked  [out] false if another thread was at it
 * @return whether bytes moved
 */
bool iw_rings_rung(struct iw_qp *qp, bool *looked);

/**
 * Gives the pages of the ring that goes out back, if it was not used since the last call.
 * @return whether it was: the caller asks again, in a time. If not, the CM hears when it is
 */
bool iw_rings_rest(struct iw_qp *qp);

/** TCP, or the ring, is full: has room told of. @return what epoll is to be asked for. tx.lock */
uint32_t iw_rings_want_locked(struct iw_qp *qp);

#endif
