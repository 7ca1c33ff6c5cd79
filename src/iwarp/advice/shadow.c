/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/shadow.h"

#include "advice/placed.h"
#include "common/list.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME  32
#define LEFT  64
#define SPARE 1024 /* entries that a CQ may have for nothing */
#define PARTS 4    /* entries of a scatter/gather list that are looked at */

struct part {
    const void *at;
    size_t len;
    struct iw_sample sample;
};

/** A work request. */
struct work {
    uint64_t wr_id;
    bool signaled;
    unsigned parts; /* that the peer is to get, and nobody may change */
    struct part part[PARTS];
    const struct iw_stack *by;
    uint64_t heard; /* when it was posted */
};

/** Those of a queue that are outstanding; the oldest is forgotten if there are too many. */
struct queue {
    struct iw_shadow_cq *cq;
    struct work *ring;
    uint32_t mask, head, tail; /* free-running */
};

struct iw_shadow_cq {
    struct list link;
    char name[NAME];
    int cqe;
    const struct iw_stack *made;
    const struct ibv_comp_channel *channel;
    uint64_t queues, most; /* places of the queues of all its QPs, now and ever */
    bool shared;           /* an SRQ's receives come to it, too, and nobody knows how many */
    uint64_t outstanding;
    bool exceeded;    /* that was more than it holds */
    pthread_t poller; /* the last one */
    bool drained;     /* it found all that there was, and nobody has posted or polled since */
    bool armed;       /* and it has armed the CQ since */
};

struct iw_shadow_qp {
    char name[NAME];
    struct queue send, recv;
    uint32_t max_send, max_recv;
    bool sig_all;
    uint32_t unsignaled; /* posted since the last that signals */
    bool failed; /* a completion in error was polled: by whom, and at the how many-th poll */
    pthread_t failed_by;
    uint64_t failed_at;
    bool meant; /* the program itself has moved it into error */
};

static struct {
    struct lock lock; /* of all shadows */
    unsigned cqs, gone;
    struct list all;                 /* struct iw_shadow_cq.link */
    struct iw_shadow_qp *left[LEFT]; /* a ring: a poll in another thread may still be at them */
} shadows = {.lock = LOCK(LOCK_SHADOWS), .all = {&shadows.all, &shadows.all}};

static __thread uint64_t polls; /* of this thread */

/* ---- queues ---- */

static bool queue_init(struct queue *q, uint32_t max, struct iw_shadow_cq *cq)
{
    uint32_t places = 1;
    while (places < max)
        places *= 2;
    *q = (struct queue){.cq = cq, .mask = places - 1};
    q->ring = cq ? calloc(places, sizeof(*q->ring)) : NULL;
    return q->ring || !cq;
}

static void pop_locked(struct queue *q, uint32_t n)
{
    assert_held(&shadows.lock);
    q->head += n;
    q->cq->outstanding -= n;
}

static struct work *push_locked(struct queue *q)
{
    assert_held(&shadows.lock);
    if (q->tail - q->head > q->mask)
        pop_locked(q, 1);
    q->cq->outstanding++;
    struct work *w = &q->ring[q->tail++ & q->mask];
    *w = (struct work){0};
    return w;
}

static void clear_locked(struct queue *q)
{
    if (q->cq)
        pop_locked(q, q->tail - q->head);
}

/* ---- life ---- */

struct iw_shadow_cq *iw_shadow_cq_new(const struct ibv_cq *cq)
{
    struct iw_shadow_cq *c = iw_advice_on() ? calloc(1, sizeof(*c)) : NULL;
    if (!c)
        return NULL;
    c->cqe = cq->cqe;
    c->made = iw_stack_here();
    c->channel = cq->channel;
    lock_get_leaf(&shadows.lock);
    snprintf(c->name, sizeof(c->name), "CQ no. %u", ++shadows.cqs);
    list_add_tail(&shadows.all, &c->link);
    lock_put(&shadows.lock);
    return c;
}

/* What was outstanding beyond its size was told when it was posted. */
static void judge_sizing(const struct iw_shadow_cq *c)
{
    const uint64_t has = (uint64_t)c->cqe;
    if (c->exceeded)
        return;
    if (c->most > has)
        iw_advise(IW_FINDING_CQ_SIZE, c->name, c->made,
                  "the queues of its QPs hold %llu work requests, and the CQ has %d entries: it "
                  "is overrun if they are full",
                  (unsigned long long)c->most, c->cqe);
    else if (c->most && !c->shared && has > SPARE && has / 8 > c->most)
        iw_advise(IW_FINDING_CQ_SIZE, c->name, c->made,
                  "the CQ has %d entries, and the queues of its QPs hold no more than %llu work "
                  "requests",
                  c->cqe, (unsigned long long)c->most);
}

void iw_shadow_cq_free(struct iw_shadow_cq *c)
{
    if (!c)
        return;
    judge_sizing(c);
    lock_get_leaf(&shadows.lock);
    list_del(&c->link);
    lock_put(&shadows.lock);
    free(c);
}

void iw_shadow_cq_resized(struct iw_shadow_cq *c, int cqe)
{
    if (!c)
        return;
    lock_get_leaf(&shadows.lock);
    c->cqe = cqe;
    lock_put(&shadows.lock);
}

static void attach_locked(struct iw_shadow_cq *c, uint32_t places)
{
    assert_held(&shadows.lock);
    if (!c)
        return;
    c->queues += places;
    if (c->queues > c->most)
        c->most = c->queues;
}

static void detach_locked(struct iw_shadow_cq *c, uint32_t places)
{
    assert_held(&shadows.lock);
    if (c)
        c->queues -= places;
}

static void release(struct iw_shadow_qp *s)
{
    if (!s)
        return;
    free(s->send.ring);
    free(s->recv.ring);
    free(s);
}

struct iw_shadow_qp *iw_shadow_qp_new(const struct ibv_qp *qp, const struct ibv_qp_cap *cap,
                                      bool sig_all, struct iw_shadow_cq *send_cq,
                                      struct iw_shadow_cq *recv_cq)
{
    struct iw_shadow_qp *s = iw_advice_on() ? calloc(1, sizeof(*s)) : NULL;
    if (!s)
        return NULL;
    snprintf(s->name, sizeof(s->name), "QP 0x%06x", qp->qp_num);
    s->max_send = cap->max_send_wr;
    s->max_recv = cap->max_recv_wr;
    s->sig_all = sig_all;
    bool whole = queue_init(&s->send, cap->max_send_wr, send_cq);
    whole &= queue_init(&s->recv, cap->max_recv_wr, qp->srq ? NULL : recv_cq);
    if (!whole) {
        release(s);
        return NULL;
    }
    iw_placed_watched = true;
    lock_get_leaf(&shadows.lock);
    attach_locked(s->send.cq, s->max_send);
    attach_locked(s->recv.cq, s->max_recv);
    if (qp->srq && recv_cq)
        recv_cq->shared = true;
    lock_put(&shadows.lock);
    return s;
}

void iw_shadow_qp_free(struct iw_shadow_qp *s)
{
    if (!s)
        return;
    lock_get_leaf(&shadows.lock);
    clear_locked(&s->send);
    clear_locked(&s->recv);
    detach_locked(s->send.cq, s->max_send);
    detach_locked(s->recv.cq, s->max_recv);
    struct iw_shadow_qp **place = &shadows.left[shadows.gone++ % LEFT], *oldest = *place;
    *place = s;
    lock_put(&shadows.lock);
    release(oldest);
}

void iw_shadow_moved(struct iw_shadow_qp *s, enum ibv_qp_state state)
{
    if (!s)
        return;
    lock_get_leaf(&shadows.lock);
    s->meant |= state == IBV_QPS_ERR;
    if (state == IBV_QPS_RESET || state == IBV_QPS_RTS)
        s->failed = s->meant = false;
    if (state == IBV_QPS_RESET) {
        clear_locked(&s->send);
        clear_locked(&s->recv);
        s->unsignaled = 0;
    }
    lock_put(&shadows.lock);
}

const char *iw_shadow_name(const struct iw_shadow_qp *s)
{
    return s->name;
}

/* ---- posting ---- */

static void judge_failure(struct iw_shadow_qp *s, const struct iw_stack *by, const char *call)
{
    lock_get_leaf(&shadows.lock);
    bool known = s->failed && !s->meant && pthread_equal(s->failed_by, pthread_self()) &&
                 polls - s->failed_at > 1; /* the batch with the failure is done with */
    lock_put(&shadows.lock);
    if (known)
        iw_advise(IW_FINDING_POST_AFTER_FAILURE, s->name, by,
                  "%s() after a completion in error of this QP was polled: it is flushed", call);
}

static void judge_size(struct iw_shadow_cq *c, const struct iw_stack *by)
{
    lock_get_leaf(&shadows.lock);
    uint64_t outstanding = c->outstanding;
    int cqe = c->cqe;
    bool exceeded = outstanding > (uint64_t)cqe;
    c->exceeded |= exceeded;
    lock_put(&shadows.lock);
    if (exceeded)
        iw_advise(IW_FINDING_CQ_TOO_SMALL, c->name, by,
                  "%llu work requests are outstanding, which may all complete, and the CQ has %d "
                  "entries",
                  (unsigned long long)outstanding, cqe);
}

/** Nobody who sleeps is told of what is posted later: it has its completion after the arm. */
static void stir_locked(struct queue *q)
{
    assert_held(&shadows.lock);
    q->cq->drained = q->cq->armed = false;
}

static bool goes_out(const struct ibv_send_wr *wr)
{
    switch (wr->opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return !(wr->send_flags & IBV_SEND_INLINE);
    default:
        return false;
    }
}

static void take_parts(struct work *w, const struct ibv_send_wr *wr)
{
    for (int i = 0; goes_out(wr) && i < wr->num_sge && w->parts < PARTS; i++) {
        const void *at = (const void *)(uintptr_t)wr->sg_list[i].addr;
        size_t len = wr->sg_list[i].length;
        if (len)
            w->part[w->parts++] = (struct part){at, len, iw_sample(at, len)};
    }
}

void iw_shadow_send(struct iw_shadow_qp *s, const struct ibv_send_wr *wr, uint64_t heard)
{
    if (!s || !s->send.cq)
        return;
    struct work work = {.wr_id = wr->wr_id,
                        .signaled = s->sig_all || (wr->send_flags & IBV_SEND_SIGNALED),
                        .by = iw_stack_here(),
                        .heard = heard};
    take_parts(&work, wr);
    judge_failure(s, work.by, "ibv_post_send");
    lock_get_leaf(&shadows.lock);
    stir_locked(&s->send);
    *push_locked(&s->send) = work;
    s->unsignaled = work.signaled ? 0 : s->unsignaled + 1;
    bool never = s->unsignaled > s->max_send;
    lock_put(&shadows.lock);
    if (never)
        iw_advise(IW_FINDING_NEVER_SIGNALS, s->name, work.by,
                  "the last %u work requests were posted without IBV_SEND_SIGNALED, and the send "
                  "queue has %u: on adapters it stays full",
                  s->max_send + 1, s->max_send);
    judge_size(s->send.cq, work.by);
}

void iw_shadow_recv(struct iw_shadow_qp *s, const struct ibv_recv_wr *wr)
{
    if (!s || !s->recv.cq)
        return;
    const struct iw_stack *by = iw_stack_here();
    judge_failure(s, by, "ibv_post_recv");
    lock_get_leaf(&shadows.lock);
    stir_locked(&s->recv);
    struct work *w = push_locked(&s->recv);
    w->wr_id = wr->wr_id;
    w->by = by;
    w->signaled = true;
    lock_put(&shadows.lock);
    judge_size(s->recv.cq, by);
}

static void drop_newest(struct queue *q)
{
    lock_get_leaf(&shadows.lock);
    if (q->cq && q->tail != q->head) {
        q->tail--;
        q->cq->outstanding--;
    }
    lock_put(&shadows.lock);
}

void iw_shadow_unsent(struct iw_shadow_qp *s)
{
    if (s)
        drop_newest(&s->send);
}

void iw_shadow_unreceived(struct iw_shadow_qp *s)
{
    if (s)
        drop_newest(&s->recv);
}

const struct iw_stack *iw_shadow_posted(struct iw_shadow_qp *s, bool receive, uint64_t wr_id)
{
    const struct iw_stack *by = NULL;
    if (!s)
        return NULL;
    const struct queue *q = receive ? &s->recv : &s->send;
    lock_get_leaf(&shadows.lock);
    for (uint32_t i = q->head; i != q->tail && !by; i++)
        if (q->ring[i & q->mask].wr_id == wr_id)
            by = q->ring[i & q->mask].by;
    lock_put(&shadows.lock);
    return by;
}

/* ---- polling ---- */

/**
 * How many of the oldest a completion covers: up to the first that signals and has its number. In a
 * flush each has its own.
 */
static uint32_t covered_locked(const struct queue *q, const struct ibv_wc *wc)
{
    uint32_t n = q->tail - q->head;
    assert_held(&shadows.lock);
    for (uint32_t i = 0; i < n; i++) {
        const struct work *w = &q->ring[(q->head + i) & q->mask];
        if (w->wr_id == wc->wr_id && (w->signaled || wc->status != IBV_WC_SUCCESS))
            return i + 1;
    }
    return 0;
}

/**
 * A send buffer that was changed. If something of the peer has come in since it was posted, the
 * program may know in another way that it was free.
 */
static const struct part *changed(const struct work *w, uint64_t heard)
{
    for (unsigned i = 0; heard == w->heard && i < w->parts; i++)
        if (iw_sample_changed(&w->part[i].sample, w->part[i].at, w->part[i].len))
            return &w->part[i];
    return NULL;
}

static void judge_buffer(const struct iw_shadow_qp *s, const struct work *w, uint64_t heard)
{
    const struct part *p = changed(w, heard);
    if (p)
        iw_advise(IW_FINDING_SEND_CHANGED, s->name, w->by,
                  "the %zu bytes at %p that are posted here, wr_id 0x%llx, changed before the "
                  "completion was polled",
                  p->len, p->at, (unsigned long long)w->wr_id);
}

/** Takes the oldest off. @return whether there was one */
static bool take(struct queue *q, struct work *w)
{
    lock_get_leaf(&shadows.lock);
    bool any = q->head != q->tail;
    if (any) {
        *w = q->ring[q->head & q->mask];
        pop_locked(q, 1);
    }
    lock_put(&shadows.lock);
    return any;
}

void iw_shadow_completed(struct iw_shadow_qp *s, const struct ibv_wc *wc, uint64_t heard)
{
    struct work w;
    if (!s)
        return;
    struct queue *q = wc->opcode & IBV_WC_RECV ? &s->recv : &s->send;
    lock_get_leaf(&shadows.lock);
    if (wc->status != IBV_WC_SUCCESS && !s->failed) {
        s->failed = true;
        s->failed_by = pthread_self();
        s->failed_at = polls;
    }
    uint32_t n = q->cq ? covered_locked(q, wc) : 0;
    lock_put(&shadows.lock);
    for (; n > 0 && take(q, &w); n--)
        if (wc->status == IBV_WC_SUCCESS)
            judge_buffer(s, &w, heard);
}

void iw_shadow_polled(struct iw_shadow_cq *c, int asked, int got)
{
    polls++;
    if (!c)
        return;
    lock_get_leaf(&shadows.lock);
    c->poller = pthread_self();
    c->drained = got < asked;
    c->armed = false;
    lock_put(&shadows.lock);
}

void iw_shadow_armed(struct iw_shadow_cq *c)
{
    if (!c)
        return;
    lock_get_leaf(&shadows.lock);
    c->armed = c->drained && pthread_equal(c->poller, pthread_self());
    lock_put(&shadows.lock);
}

static bool may_miss_locked(const struct iw_shadow_cq *c, const struct ibv_comp_channel *channel)
{
    return c->channel == channel && c->armed && c->outstanding &&
           pthread_equal(c->poller, pthread_self());
}

void iw_shadow_sleeps(const struct ibv_comp_channel *channel)
{
    char name[NAME] = "";
    lock_get_leaf(&shadows.lock);
    list_for_each (l, &shadows.all) {
        struct iw_shadow_cq *c = container_of(l, struct iw_shadow_cq, link);
        if (may_miss_locked(c, channel))
            memcpy(name, c->name, sizeof(name));
    }
    lock_put(&shadows.lock);
    if (*name)
        iw_advise(IW_FINDING_LOST_WAKEUP, name, iw_stack_here(),
                  "this thread polled the CQ until it was empty, armed it, and waits for an event: "
                  "a completion from in between raises none");
}

void iw_shadow_fork(enum fork_step step)
{
    lock_fork(&shadows.lock, step);
}
