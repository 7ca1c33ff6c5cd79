/* SPDX-License-Identifier: BSD-2-Clause */
/* Reception: one recv into staging, then every whole FPDU of it through conn/rx.h. */
#include "qp/rx_stream.h"

#include "common/sys.h"
#include "conn/rx_text.h"
#include "cq/counter.h"
#include "cq/visibility.h"
#include "engine/engine.h"
#include "env/pool.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/rings.h"
#include "qp/rx_direct.h"
#include "qp/rx_early.h"
#include "qp/rx_late.h"
#include "qp/rx_place.h"
#include "qp/rx_scatter.h"
#include "qp/rx_stall.h"
#include "qp/section.h"
#include "qp/tx_answers.h"
#include "qp/tx_cut.h"
#include "qp/tx_quantum.h"
#include "qp/tx_queue.h"
#include "qp/tx_requests.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define ROOM_MIN        (64 * 1024) /* with less behind a partial FPDU it is moved to the front */
/*
 * A thread in recv() may sleep for the socket's lock, which it never gets from one that sends
 * without a break: the sender stays away for so long.
 */
#define READER_NS       20000
#define DISCARDS_A_PASS 16

/** The RTR of an anywarp, see tx_cut.c. */
static void note_peer(struct iw_qp *qp, const struct ddp_seg *seg)
{
    if (qp->ext && qp->silent && !qp->rx.half.fpdus && seg->stag == IWC_NOTE_RTR &&
        seg->to <= MPA_QPN_MAX)
        qp->rx.peer_qpn = (uint32_t)seg->to;
}

static enum iw_err place_write(struct iw_qp *qp, const struct ddp_seg *seg)
{
    uint8_t *p;
    bool late = __builtin_expect(qp->rx.late != NULL, 0) && iw_late_begin(qp, seg);
    iw_copy_begin(qp->pd);
    enum iw_err err =
        iw_region_check(seg->stag, &qp->accessor, IW_USE_WRITE, seg->to, seg->len, &p);
    if (!err && seg->len && !iw_qp_allows(qp, IBV_ACCESS_REMOTE_WRITE))
        err = IW_ERR_TAGGED_ACCESS;
    if (!err && !late && !iw_place(p, seg->payload, seg->len))
        err = IW_ERR_TAGGED_GONE;
    if (err && !qp->uc)
        iw_qp_explain_access(qp, err, seg->stag, IW_USE_WRITE, seg->to, seg->len);
    iw_copy_end();
    if (late && !err)
        iw_late_keep(qp, seg, p);
    return err;
}

/** A Write of UC that is refused is dropped, with the immediate behind it. */
static void note_loss(struct iw_qp *qp, const struct ddp_seg *seg, enum iw_err err)
{
    struct iw_loss *loss = &qp->rx.loss;
    if (loss->ended)
        loss->write = false;
    loss->write |= err != IW_OK;
    loss->ended = seg->last;
}

static int on_write(void *up, const struct ddp_seg *seg)
{
    struct iw_qp *qp = up;
    if (!seg->len) {
        bool is_note;
        int r = iw_on_note(qp, seg, &is_note);
        if (is_note)
            return r;
        note_peer(qp, seg);
    }
    qp->acks.work |= seg->last && !iwc_is_note(RDMAP_WRITE, seg->stag, seg->len);
    enum iw_err err = place_write(qp, seg);
    if (qp->uc)
        note_loss(qp, seg, err);
    else if (err)
        return err;
    qp->rx.writing += seg->len;
    if (seg->last) {
        if (atomic_load_explicit(&qp->counters, memory_order_relaxed))
            iw_late_land(qp);
        if (!qp->rx.rtr_first || qp->rx.half.fpdus)
            iw_counted(&qp->counters, IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE, false,
                       qp->rx.writing);
        qp->rx.written = qp->rx.writing;
        qp->rx.writing = 0;
    }
    return IW_OK;
}

/* All of these tell of what was written before. What needs a receive, or must not overtake what
 * does, queues behind held messages. */

static int on_send(void *up, const struct ddp_seg *seg)
{
    struct iw_qp *qp = up;
    iw_late_land(qp);
    qp->rx.written = 0;
    qp->rx.loss.write = false;
    qp->acks.work |= seg->last;
    int r = iw_early_any(&qp->rx) ? IWC_HOLD : iw_recv_place(qp, seg);
    return r == IWC_HOLD ? iw_early_add(qp, 0) : r;
}

static int on_immediate(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited)
{
    struct iw_qp *qp = up;
    struct iw_immediate imm = {.solicited = solicited, .written = qp->rx.written};
    iw_late_land(qp);
    if (qp->uc && qp->rx.loss.write) {
        qp->rx.loss.write = false;
        qp->rx.written = 0;
        return IW_OK;
    }
    memcpy(&imm.data, data, sizeof(imm.data));
    qp->acks.work = true;
    int r = iw_early_any(&qp->rx) ? IWC_HOLD : iw_recv_immediate(qp, &imm);
    if (r == IWC_HOLD)
        r = iw_early_add(qp, imm.written);
    if (r != IWC_HOLD)
        qp->rx.written = 0;
    return r;
}

static int on_read_request(void *up, const struct rdmap_read_request *r)
{
    struct iw_qp *qp = up;
    iw_late_land(qp);
    if (qp->uc) /* which has none */
        return IW_OK;
    return iw_early_any(&qp->rx) ? iw_early_add(qp, 0) : iw_answer_read(qp, r);
}

static int on_atomic_request(void *up, const struct rdmap_atomic_request *r)
{
    struct iw_qp *qp = up;
    iw_late_land(qp);
    if (qp->uc)
        return IW_OK;
    return iw_early_any(&qp->rx) ? iw_early_add(qp, 0) : iw_answer_atomic(qp, r);
}

static void on_terminate(void *up, const struct terminate *t)
{
    iw_qp_on_terminate(up, t);
}

const struct iwc_upcalls iw_qp_upcalls = {
    .write = on_write,
    .read_request = on_read_request,
    .read_response = iw_on_read_response,
    .send = on_send,
    .immediate = on_immediate,
    .atomic_request = on_atomic_request,
    .atomic_response = iw_on_atomic_response,
    .path = iw_rings_heard,
    .terminate = on_terminate,
};

/* ---- staging ---- */

static bool staging_take(struct iw_qp_rx *rx)
{
    if (!rx->staging) {
        rx->staging = iw_pool_get(IW_POOL_STAGING);
        rx->staged = rx->staged_at = 0;
    }
    if (!rx->staging)
        return false;
    if (rx->staged == 0)
        rx->staged_at = 0;
    if (IW_STAGING_BYTES - rx->staged_at - rx->staged < ROOM_MIN) {
        memmove(rx->staging, rx->staging + rx->staged_at, rx->staged);
        rx->staged_at = 0;
    }
    return true;
}

/** Forgets what is staged. */
static void unstage(struct iw_qp_rx *rx)
{
    rx->staged = rx->staged_at = 0;
    rx->direct.left = 0;
}

static void staging_release(struct iw_qp_rx *rx)
{
    if (rx->staged || !rx->staging)
        return;
    iw_pool_put(IW_POOL_STAGING, rx->staging);
    rx->staging = NULL;
}

static void fail(struct iw_qp *qp, enum iw_err err, const struct ddp_seg *seg, uint32_t ulpdu_len)
{
    iw_late_land(qp);
    iw_acks_failed(qp);
    lock_get(&qp->tx.lock);
    iw_qp_fail_locked(qp, err, seg, ulpdu_len, &qp->rx.wakes);
    lock_put(&qp->tx.lock);
}

/** The peer's FIN came in: what is in front of it waits for receives, for a time. */
static void await_receives(struct iw_qp *qp)
{
    atomic_fetch_add(&qp->rx.awaits, 1);
    iw_qp_note_news(qp, IW_QP_NEWS_FIN_HELD, &qp->rx.wakes);
    lock_get(&qp->tx.lock);
    qp->fin_known = true;
    qp->tx.rx_takes_in = false;
    iw_qp_want_locked(qp);
    lock_put(&qp->tx.lock);
}

static void pause_reading(struct iw_qp *qp, bool paused)
{
    if (qp->rx.paused == paused)
        return;
    qp->rx.paused = paused;
    if (paused)
        iw_stall_paused(qp);
    lock_get(&qp->tx.lock);
    qp->tx.rx_paused = paused;
    qp->tx.rx_takes_in = paused && qp->rx.stall.takes_in && !qp->fin_known;
    iw_qp_want_locked(qp);
    lock_put(&qp->tx.lock);
    if (paused && qp->fin_known)
        await_receives(qp); /* until now receives came in time */
}

/** The facts about what the peer sent, unless an upcall has noted better ones. */
static void explain_segment(struct iw_qp *qp, enum iw_err err)
{
    char text[sizeof(qp->end.explanation)];
    iwc_rx_describe(&qp->rx.half, err, text, sizeof(text));
    iw_qp_explain(qp, err, "%s", text);
}

/** The first FPDU came in: a responder may send. */
static void heard_first(struct iw_qp *qp)
{
    iw_qp_note_news(qp, IW_QP_NEWS_READY, &qp->rx.wakes);
    lock_get(&qp->tx.lock);
    qp->silent = false;
    qp->tx.hold = false;
    lock_put(&qp->tx.lock);
    qp->rx.work = true;
}

/** Uses the whole FPDUs in staging. @return whether one of them waits for a receive */
static bool use(struct iw_qp *qp)
{
    size_t used;
    enum iw_err err;
    if (!qp->rx.staged) {
        pause_reading(qp, false);
        return false;
    }
    const uint8_t *p = qp->rx.staging + qp->rx.staged_at;
    bool held = false;
    switch (iwc_rx_input(&qp->rx.half, p, qp->rx.staged, &used, &err)) {
    case IWC_RX_MORE:
        break;
    case IWC_RX_HELD:
        atomic_store(&qp->rx.starved, true);
        held = true;
        break;
    case IWC_RX_ERROR:
        explain_segment(qp, err);
        fail(qp, err, qp->rx.half.bad.hdr ? &qp->rx.half.bad : NULL, qp->rx.half.bad_ulpdu_len);
        used = qp->rx.staged;
        break;
    case IWC_RX_TERMINATED:
        used = qp->rx.staged;
        break;
    }
    qp->rx.staged -= used;
    qp->rx.staged_at += used;
    pause_reading(qp, held);
    if (qp->rx.half.fpdus && qp->silent)
        heard_first(qp);
    return held;
}

/** Whether nothing that is held waits for a receive any more. */
static bool replayed(struct iw_qp *qp)
{
    return iw_early_replay(qp) == IW_OK && !iw_early_any(&qp->rx);
}

static void consume(struct iw_qp *qp)
{
    /* A receive posted before `starved` was seen did not resume us. */
    while (use(qp) && iw_rq_wait(qp) && !atomic_load(&qp->end.over) && replayed(qp))
        ;
}

/** The pause is over: uses what is there already. */
static void go_on(struct iw_qp *qp)
{
    consume(qp);
    while (!qp->rx.paused && !atomic_load(&qp->end.over) && qp->rx.stall.bytes) {
        bool kept = staging_take(&qp->rx); /* it was not released in the pause */
        assert(kept);
        (void)kept;
        uint32_t end = qp->rx.staged_at + qp->rx.staged;
        qp->rx.staged += iw_stall_give(&qp->rx, qp->rx.staging + end, IW_STAGING_BYTES - end);
        consume(qp);
    }
}

/**
 * Reads and drops: the stream is over, only its end is waited for. A peer that goes on sending
 * finds this thread back at its other work in between.
 * @return as recv
 */
static ssize_t discard(struct iw_qp *qp)
{
    ssize_t n;
    int rounds = 0;
    do
        n = qp->stream->ops->recv(qp->stream, qp->rx.staging, IW_STAGING_BYTES);
    while (n == IW_STAGING_BYTES && ++rounds < DISCARDS_A_PASS);
    return n;
}

static void lost(struct iw_qp *qp, int error)
{
    lock_get(&qp->tx.lock);
    iw_qp_lost_locked(qp, error, &qp->rx.wakes);
    lock_put(&qp->tx.lock);
}

static void stream_ended(struct iw_qp *qp, ssize_t n)
{
    if (n < 0) {
        lost(qp, (int)n);
    } else if (iw_early_any(&qp->rx)) {
        qp->rx.fin_seen = true;
        pause_reading(qp, true);
        await_receives(qp);
    } else {
        lock_get(&qp->tx.lock);
        iw_qp_fin_locked(qp, qp->rx.staged, &qp->rx.wakes);
        lock_put(&qp->tx.lock);
    }
}

static void takes_in(struct iw_qp *qp, bool on)
{
    qp->rx.stall.takes_in = on;
    lock_get(&qp->tx.lock);
    qp->tx.rx_takes_in = on;
    iw_qp_want_locked(qp);
    lock_put(&qp->tx.lock);
}

void iw_rx_take_in(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    if (!qp->rx.paused)
        return;
    ssize_t n = iw_stall_take_in(qp);
    if (n == 0) {
        qp->rx.fin_seen = true;
        await_receives(qp);
    } else if (n < 0 && n != -EAGAIN && n != -ENOBUFS) {
        lost(qp, (int)n);
    } else if (qp->tx.rx_takes_in != (n != -ENOBUFS)) {
        takes_in(qp, n != -ENOBUFS);
    }
}

/** The socket has unread bytes, so that only an error or the peer's FIN behind them counts. */
static void look_at_paused(struct iw_qp *qp, uint32_t events)
{
    if (events & (EPOLLERR | EPOLLHUP))
        lost(qp, qp->stream->ops->error(qp->stream));
    else if ((events & EPOLLRDHUP) && !qp->fin_known)
        await_receives(qp);
    else if (qp->rx.stall.takes_in && !qp->fin_known)
        iw_rx_take_in(qp);
}

/** FPDUs that came in, but for acknowledgements: these are no answer. */
static uint64_t spoken(const struct iw_qp *qp)
{
    return qp->rx.half.fpdus - qp->acks.notes;
}

/**
 * Uses what came in, and notes whether the peer was heard. One that was heard before, and that the
 * program has posted nothing for since, sends one way, and waits for acknowledgements alone.
 */
static void hear(struct iw_qp *qp)
{
    uint64_t before = spoken(qp);
    if (qp->ib && !qp->uc && atomic_load_explicit(&qp->hints.heard, memory_order_relaxed))
        iw_engine_linger();
    if (!qp->ib)
        atomic_store_explicit(&qp->hints.heard, true, memory_order_relaxed);
    atomic_store_explicit(&qp->hints.looked_heard, true, memory_order_relaxed);
    consume(qp);
    if (spoken(qp) != before)
        atomic_store_explicit(&qp->hints.heard, true, memory_order_relaxed);
}

static ssize_t read_direct(struct iw_qp *qp)
{
    enum iw_err err;
    struct ddp_seg seg;
    ssize_t n = iw_direct_recv(qp, &err);
    if (err) {
        iw_direct_decode(&qp->rx, &seg);
        fail(qp, err, &seg, seg.hdr_len + seg.len);
    }
    return n;
}

/** Reads where the stream is in full operation. @return as recv */
static ssize_t read_on(struct iw_qp *qp)
{
    struct iw_qp_rx *rx = &qp->rx;
    if (rx->direct.left || iw_direct_plan(qp))
        return read_direct(qp);
    uint32_t end = rx->staged_at + rx->staged;
    uint32_t room = IW_STAGING_BYTES - end, first = qp->stream->read_first;
    if (first && first < room)
        room = first;
    ssize_t n = qp->stream->ops->recv(qp->stream, rx->staging + end, room);
    if (n > 0) {
        if ((uint32_t)n < room)
            rx->stall.since = 0;
        rx->staged += (uint32_t)n;
    }
    return n;
}

/** @return whether bytes came in */
static bool receive(struct iw_qp *qp, uint32_t events)
{
    bool over = atomic_load(&qp->end.over);
    if (qp->rx.paused && !over) {
        look_at_paused(qp, events);
        return false;
    }
    if (!staging_take(&qp->rx))
        return false;
    if (over)
        unstage(&qp->rx);
    ssize_t n = over ? discard(qp) : read_on(qp);
    if (n > 0 && !over) {
        iw_rings_look(qp, &qp->rx.wakes);
        iw_sent_note(&qp->sent);
        iw_quantum_note(&qp->tx);
        hear(qp);
    } else if (n <= 0 && n != -EAGAIN) {
        stream_ended(qp, n);
    }
    staging_release(&qp->rx);
    return n > 0;
}

void iw_rx_feed(struct iw_qp *qp, const uint8_t *p, size_t len)
{
    assert_held(&qp->rx.lock);
    if (!len || !staging_take(&qp->rx))
        return;
    memcpy(qp->rx.staging + qp->rx.staged_at + qp->rx.staged, p, len);
    qp->rx.staged += (uint32_t)len;
    consume(qp);
    staging_release(&qp->rx);
}

void iw_rx_resume(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    if (atomic_load(&qp->end.over)) {
        iw_rq_leave(qp);
        return;
    }
    bool all = replayed(qp);
    if (qp->fin_known)
        await_receives(qp); /* a receive was posted: the time for the next one begins */
    if (all && qp->rx.paused)
        go_on(qp);
    if (qp->rx.paused)
        iw_stall_paused(qp); /* there may be room to take in more */
    else if (qp->rx.fin_seen && !atomic_load(&qp->end.over) && !iw_early_any(&qp->rx))
        stream_ended(qp, 0);
    staging_release(&qp->rx);
}

void iw_rx_abandon(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    iw_early_drop(qp);
    unstage(&qp->rx);
    /* Unread bytes would make our FIN a reset. There is an end to them: the peer's is in. To what
     * is in a ring there may be none, and it makes no reset. */
    if (!qp->rx.fin_seen && !iw_rings_carry(qp) && staging_take(&qp->rx))
        while (discard(qp) > 0) /* a stream over another gives less than there is room */
            ;
    staging_release(&qp->rx);
}

/** Nothing else is to be sent now: a program that polls may send something before its next poll. */
static void acknowledge(struct iw_qp *qp)
{
    if (iw_qp_is_polled(qp))
        iw_deferred_push(&qp->tx.deferred);
    else
        qp->rx.work = true;
}

void iw_rx_leave(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    if (!iw_late_any(qp) && iw_acks_advance(qp) && !qp->rx.work)
        acknowledge(qp);
    struct iw_wakes w = qp->rx.wakes;
    qp->rx.wakes = (struct iw_wakes){0};
    if (qp->rx.work) {
        qp->rx.work = false;
        lock_get(&qp->tx.lock);
        iw_sq_retire_locked(qp, &w);
        iw_qp_transmit_locked(qp, &w);
        lock_put(&qp->tx.lock);
    }
    iw_qp_leave_rx(qp, &w);
}

void iw_rx_check(struct iw_qp *qp)
{
    uint64_t end = iw_now() + READER_NS;
    while (!lock_try(&qp->rx.lock))
        if (iw_now() > end)
            return;
    if (qp->stream)
        receive(qp, 0);
    iw_rx_leave(qp);
}

void iw_rx_fini(struct iw_qp *qp)
{
    iw_early_drop(qp);
    unstage(&qp->rx);
    staging_release(&qp->rx);
}

bool iw_rx_go_on(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    return receive(qp, 0);
}

bool iw_tx_go_on(struct iw_qp *qp)
{
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    uint64_t before = qp->tx.half.sent_pos;
    iw_qp_transmit_locked(qp, &w);
    bool moved = qp->tx.half.sent_pos != before;
    iw_qp_leave(qp, &w);
    return moved;
}

bool iw_qp_ready(struct iw_qp *qp, uint32_t events)
{
    bool moved = false;
    if (events & EPOLLOUT)
        moved = iw_tx_go_on(qp);
    if (events == EPOLLOUT)
        return moved;
    if (!lock_try(&qp->rx.lock)) {
        iw_visibility_busy();
        sched_yield(); /* whoever has it may wait for this very processor */
        return moved;
    }
    if (qp->stream)
        moved |= receive(qp, events);
    iw_rx_leave(qp);
    return moved;
}
