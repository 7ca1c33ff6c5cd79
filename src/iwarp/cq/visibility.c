/* SPDX-License-Identifier: BSD-2-Clause */
#include "cq/visibility.h"

#include "engine/active.h"
#include "engine/poller.h"
#include "engine/presence.h"
#include "engine/source.h"

#define LOOKS 4  /* at most, where another thread is in the way of each */
#define FULL  64 /* passes of one look, which may find as many sources as one can take */

#define NOBODY UINT32_MAX

static struct {
    atomic_bool exposed;
    atomic_int connections;
} order;

static __thread bool busy; /* a connection was left alone, as another thread was at it */

void iw_visibility_expose(void)
{
    if (!atomic_load_explicit(&order.exposed, memory_order_relaxed)) /* never taken back */
        atomic_store(&order.exposed, true);
}

void iw_visibility_connections(int n)
{
    atomic_fetch_add(&order.connections, n);
}

void iw_visibility_busy(void)
{
    busy = true;
}

/** Whether a program that sees it knows something of the peer. */
static bool tells(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_SUCCESS &&
           ((wc->opcode & IBV_WC_RECV) || wc->opcode == IBV_WC_RDMA_READ ||
            wc->opcode == IBV_WC_COMP_SWAP || wc->opcode == IBV_WC_FETCH_ADD);
}

/** @return the QP of which all those are that tell something; 0: of several; NOBODY: none does */
static uint32_t teller(const struct ibv_wc *wc, int n)
{
    uint32_t qp_num = NOBODY;
    for (int i = 0; i < n; i++)
        if (tells(&wc[i]))
            qp_num = qp_num == NOBODY || qp_num == wc[i].qp_num ? wc[i].qp_num : 0;
    return qp_num;
}

/** Runs what arrived before what a completion of QP @p qp_num tells. */
static void look(uint32_t qp_num)
{
    for (int i = 0; i < LOOKS; i++) {
        unsigned passes = 0, turns = iw_source_turns();
        busy = false;
        iw_adopted_return(qp_num);
        iw_active_run_all(qp_num);
        while (iw_engine_run_linked(qp_num) && ++passes < FULL)
            ;
        if (!iw_source_wait_engine(qp_num) && !busy && iw_source_turns() == turns)
            break;
    }
}

/* Two halves of cq->ordered: the QP but for which a look was made, and up to where it counts. */
#define ORDERED(but, to)   ((uint64_t)(but) << 32 | (to))
#define ORDERED_BUT(value) ((uint32_t)((value) >> 32))
#define ORDERED_TO(value)  ((uint32_t)(value))

void iw_visibility_show(struct iw_cq *cq, const struct ibv_wc *wc, int n)
{
    /* What a peer did knowing of a key or connection came in behind the store here, by way of the
     * kernel; and the completions were taken under the lock of the CQ. */
    if (atomic_load_explicit(&order.connections, memory_order_relaxed) < 2 ||
        !atomic_load_explicit(&order.exposed, memory_order_relaxed))
        return;
    uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
    /* The look begins behind it. */
    uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
    /* Of other pollers of this CQ: an old one is another look. */
    uint64_t ordered = atomic_load_explicit(&cq->ordered, memory_order_relaxed);
    uint32_t qp_num = teller(wc, n), but = ORDERED_BUT(ordered);
    if (ORDERED_TO(ordered) - head <= tail - head && (but == 0 || but == qp_num))
        return;
    if (qp_num == NOBODY) {
        ordered = ORDERED(0, head);
    } else {
        look(qp_num);
        ordered = ORDERED(qp_num, tail);
    }
    atomic_store_explicit(&cq->ordered, ordered, memory_order_relaxed);
}
