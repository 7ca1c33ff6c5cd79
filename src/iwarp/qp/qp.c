/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a QP, and the table of QP numbers. */
#include "qp/qp.h"

#include "advice/life.h"
#include "advice/shadow.h"
#include "common/patience.h"
#include "cq/counter.h"
#include "device/context.h"
#include "env/pool.h"
#include "env/random.h"
#include "mem/mw.h"
#include "qp/end.h"
#include "qp/link.h"
#include "qp/overrun.h"
#include "qp/reset.h"
#include "qp/rx_late.h"
#include "qp/rx_shared.h"
#include "qp/rx_stream.h"
#include "qp/tx_queue.h"

#include <errno.h>
#include <stdlib.h>

#define BUCKETS    4096
#define UNDIALLED  (1024 << 8) /* numbers from here on are a TCP port's, see qpn/number.h */
#define INLINE_MIN 64 /* always there: rdma_xclient posts inline on a QP that asked for none */

static struct {
    struct lock lock;
    struct iw_qp *bucket[BUCKETS];
} numbers = {.lock = LOCK(LOCK_NUMBERS)};

static struct lock_class rx_locks = LOCK_CLASS(rx_locks, LOCK_QP_RX);
static struct lock_class tx_locks = LOCK_CLASS(tx_locks, LOCK_QP_TX);

static struct iw_qp **find_locked(uint32_t qpn)
{
    struct iw_qp **p = &numbers.bucket[qpn % BUCKETS];
    assert_held(&numbers.lock);
    while (*p && (*p)->pub.qp_num != qpn)
        p = &(*p)->hash_next;
    return p;
}

/** @return whether it was free */
static bool number_enter(struct iw_qp *qp, uint32_t n)
{
    lock_get(&numbers.lock);
    struct iw_qp **p = find_locked(n);
    bool taken = *p != NULL;
    if (!taken) {
        qp->pub.qp_num = qp->pub.handle = n;
        *p = qp;
    }
    lock_put(&numbers.lock);
    return !taken;
}

/** Gives @p n, or a random number that is free and neither 0, 1 nor a port's. @return 0 or EIO */
static int number_take(struct iw_qp *qp, uint32_t n)
{
    if (n)
        return number_enter(qp, n) ? 0 : EIO;
    do {
        if (iw_random32(&n))
            return EIO;
        n %= UNDIALLED;
    } while (n < 2 || !number_enter(qp, n));
    return 0;
}

static void number_give(struct iw_qp *qp)
{
    lock_get(&numbers.lock);
    *find_locked(qp->pub.qp_num) = qp->hash_next;
    lock_put(&numbers.lock);
}

struct iw_qp *iw_qp_find(struct ibv_context *ctx, uint32_t qp_num, bool others)
{
    lock_get(&numbers.lock);
    struct iw_qp *qp = *find_locked(qp_num);
    lock_put(&numbers.lock);
    return qp && (qp->pub.context == ctx || (others && qp->pub.context->device == ctx->device))
               ? qp
               : NULL;
}

void iw_qps_visit(void (*f)(struct iw_qp *qp, void *arg), void *arg)
{
    lock_get(&numbers.lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct iw_qp *qp = numbers.bucket[i]; qp; qp = qp->hash_next)
            f(qp, arg);
    lock_put(&numbers.lock);
}

static bool uses(const struct iw_qp *qp, const struct iw_cq *cq)
{
    return qp->send_cq == cq || qp->recv_cq == cq;
}

struct iw_qp *iw_qp_pin_user(const struct iw_cq *cq, unsigned *bucket)
{
    struct iw_qp *qp = NULL;
    lock_get(&numbers.lock);
    for (; *bucket < BUCKETS; ++*bucket) {
        qp = numbers.bucket[*bucket];
        while (qp && (!uses(qp, cq) || atomic_load(&qp->end.over)))
            qp = qp->hash_next;
        if (qp)
            break;
    }
    if (qp)
        atomic_fetch_add(&qp->pins, 1);
    lock_put(&numbers.lock);
    return qp;
}

#define ATTACH "ibv_qp_attach_comp_cntr"

int iw_qp_count(struct iw_qp *qp, struct iw_counter *c, uint32_t ops)
{
    if (!ops || c->pub.context != qp->pub.context)
        return iw_refuse(ATTACH, VALUE, "no op_mask, or a counter of another context");
    if (ops & ~(uint32_t)IW_COUNTER_OPS)
        return iw_refuse(ATTACH, ATTRIBUTE, "op_mask");
    lock_get(&qp->tx.lock);
    bool early = qp->tx.state == IBV_QPS_RESET || qp->tx.state == IBV_QPS_INIT;
    int r = early ? iw_counter_attach(&qp->counters, c, ops) : EINVAL;
    lock_put(&qp->tx.lock);
    if (!early)
        return iw_refuse(ATTACH, VALUE, "a QP that is beyond INIT");
    return r == EBUSY ? iw_refuse(ATTACH, COUNTED) : r;
}

#define CREATE "ibv_create_qp"

static bool overrun(const struct ibv_cq *cq)
{
    return cq && atomic_load(&container_of(cq, const struct iw_cq, pub)->overrun);
}

static int check_cap(const struct ibv_qp_cap *c)
{
    const struct {
        const char *name;
        uint32_t asked, max;
    } caps[] = {
        {"max_send_wr", c->max_send_wr, IW_MAX_QP_WR},
        {"max_recv_wr", c->max_recv_wr, IW_MAX_QP_WR},
        {"max_send_sge", c->max_send_sge, IW_MAX_SGE},
        {"max_recv_sge", c->max_recv_sge, IW_MAX_SGE},
        {"max_inline_data", c->max_inline_data, IW_MAX_INLINE},
    };
    for (unsigned i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
        if (caps[i].asked > caps[i].max)
            return iw_refuse(CREATE, QP_SIZE, caps[i].name, caps[i].asked, caps[i].max);
    return 0;
}

static int check(const struct iw_pd *pd, const struct ibv_qp_init_attr *a)
{
    const struct ibv_context *ctx = pd->pub.context;
    if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC && a->qp_type != IBV_QPT_UD)
        return iw_refuse(CREATE, QP_TYPE, a->qp_type);
    int r = check_cap(&a->cap);
    if (r)
        return r;
    if (!a->send_cq && a->cap.max_send_wr)
        return iw_refuse(CREATE, QP_CQ, "send");
    if (!a->recv_cq && (a->cap.max_recv_wr || a->srq))
        return iw_refuse(CREATE, QP_CQ, "receive");
    if ((a->send_cq && a->send_cq->context != ctx) || (a->recv_cq && a->recv_cq->context != ctx))
        return iw_refuse(CREATE, OTHER_CONTEXT, "a completion queue");
    if (overrun(a->send_cq) || overrun(a->recv_cq))
        return iw_refuse(CREATE, CQ_OVERRUN);
    if (a->srq && a->srq->context != ctx)
        return iw_refuse(CREATE, OTHER_CONTEXT, "the SRQ");
    return 0;
}

static void cq_use(struct iw_cq *cq, int by)
{
    if (cq)
        atomic_fetch_add(&cq->users, by);
}

static void release(struct iw_qp *qp)
{
    iw_sq_fini(&qp->tx.sq);
    iw_rq_fini(&qp->own_rq);
    free(qp->tx.irq);
    free(qp->tx.orq);
    free(qp->builder);
    lock_fini(&qp->build_lock);
    lock_fini(&qp->tx.lock);
    lock_fini(&qp->rx.lock);
    pthread_mutex_destroy(&qp->pub.mutex);
    pthread_cond_destroy(&qp->pub.cond);
    iw_shadow_qp_free(qp->shadow);
    iw_life_end(qp);
}

/** What the program sees, but for the number. */
static void describe(struct iw_qp *qp, struct iw_pd *pd, const struct ibv_qp_init_attr *a)
{
    struct ibv_qp *q = &qp->pub;
    qp->pd = pd->root;
    q->context = qp->pd->pub.context;
    q->qp_context = a->qp_context;
    q->pd = &pd->pub;
    q->send_cq = a->send_cq;
    q->recv_cq = a->recv_cq;
    q->srq = a->srq;
    q->state = qp->tx.state = iw_device(q->context->device)->roce ? IBV_QPS_RESET : IBV_QPS_INIT;
    q->qp_type = a->qp_type;
    qp->uc = a->qp_type == IBV_QPT_UC;
}

static struct ibv_qp_cap true_cap(const struct ibv_qp_init_attr *a)
{
    struct ibv_qp_cap cap = a->cap;
    if (cap.max_inline_data < INLINE_MIN)
        cap.max_inline_data = INLINE_MIN;
    if (a->srq)
        cap.max_recv_wr = cap.max_recv_sge = 0;
    return cap;
}

/** Locks, queues and buffers. @return 0 or ENOMEM; release() is due after both */
static int prepare(struct iw_qp *qp, const struct ibv_qp_init_attr *a)
{
    const struct ibv_qp_cap *cap = &qp->cap;
    qp->send_cq = a->send_cq ? iw_cq(a->send_cq) : NULL;
    qp->recv_cq = a->recv_cq ? iw_cq(a->recv_cq) : NULL;
    list_init(&qp->rq_link);
    qp->rq = a->srq ? &iw_srq(a->srq)->rq : &qp->own_rq;
    qp->accessor.pd = qp->pd;
    qp->accessor.recv_pd = a->srq ? iw_srq(a->srq)->pd->root : qp->pd;
    qp->tx.deferred.run = iw_sq_run_deferred;
    qp->tx.deferred.home = (struct iw_home){
        {qp->send_cq ? &qp->send_cq->poller : NULL, qp->recv_cq ? &qp->recv_cq->poller : NULL}};
    iw_grace_init(&qp->tx.grace);
    lock_init(&qp->build_lock, LOCK_PROGRAM);
    lock_init_in(&qp->rx.lock, &rx_locks);
    lock_init_in(&qp->tx.lock, &tx_locks);
    pthread_mutex_init(&qp->pub.mutex, NULL);
    pthread_cond_init(&qp->pub.cond, NULL);
    int r = iw_sq_init(&qp->tx.sq, cap, a->sq_sig_all, qp->datagrams);
    int rr = iw_rq_init(&qp->own_rq, cap->max_recv_wr, cap->max_recv_sge);
    if (!r && !rr)
        r = iw_pool_reserve();
    return r ? r : rr;
}

static void use(struct iw_qp *qp, struct iw_pd *pd)
{
    cq_use(qp->send_cq, 1);
    cq_use(qp->recv_cq, 1);
    if (qp->rq->srq)
        atomic_fetch_add(&qp->rq->srq->users, 1);
    atomic_fetch_add(&pd->users, 1);
}

static void forget_threads(struct iw_qp *qp)
{
    if (atomic_load(&qp->pins))
        atomic_store(&qp->pins, 0);
    if (atomic_load(&qp->built))
        atomic_store(&qp->built, false);
    if (atomic_load(&qp->tx.deferred.state))
        atomic_store(&qp->tx.deferred.state, 0);
    if (!qp->was_linked)
        qp->cm = NULL;
}

void iw_qp_fork(enum fork_step step)
{
    if (step == FORK_PREPARE) {
        lock_class_fork(&rx_locks, step);
        lock_class_fork(&tx_locks, step);
        lock_get(&numbers.lock);
        return;
    }
    if (step == FORK_CHILD)
        for (int i = 0; i < BUCKETS; i++)
            for (struct iw_qp *qp = numbers.bucket[i]; qp; qp = qp->hash_next)
                forget_threads(qp);
    lock_put(&numbers.lock);
    lock_class_fork(&tx_locks, step);
    lock_class_fork(&rx_locks, step);
}

struct iw_qp *iw_qp_create(struct iw_pd *pd, struct ibv_qp_init_attr *attr, uint32_t number,
                           const struct iw_datagrams *datagrams)
{
    int r = check(pd, attr);
    struct iw_qp *qp = r ? NULL : calloc(1, sizeof(*qp));
    if (!qp) {
        errno = r ? r : ENOMEM;
        return NULL;
    }
    qp->cap = true_cap(attr);
    qp->datagrams = datagrams;
    describe(qp, pd, attr);
    r = prepare(qp, attr);
    if (!r)
        r = number_take(qp, number);
    if (r) {
        release(qp);
        errno = r;
        return NULL;
    }
    use(qp, pd);
    qp->stats = iw_stats_qp_take(qp->pub.qp_num, qp->send_cq ? qp->send_cq->stats : NULL,
                                 qp->recv_cq ? qp->recv_cq->stats : NULL);
    iw_stats_set(&qp->stats->state, (uint8_t)qp->tx.state);
    if (number) /* the program's own: as rdma-core shows it until it is moved or queried */
        qp->pub.state = IBV_QPS_RESET;
    bool roce = iw_device(qp->pub.context->device)->roce;
    iw_stats_set(&qp->stats->sq.kind, (qp->uc ? STATS_UC : 0u) | (qp->datagrams ? STATS_UD : 0u) |
                                          (roce ? STATS_ROCE : 0u));
    iw_stats_set(&qp->stats->sq.size, qp->cap.max_send_wr);
    iw_stats_set(&qp->stats->rq.size, qp->cap.max_recv_wr);
    if (!attr->srq)
        qp->own_rq.used = &qp->stats->rq.used;
    iw_cqs_check(qp);
    attr->cap = qp->cap;
    return qp;
}

/** A thread whose work has just completed may still hold a lock, or be about to pin the QP. */
static void wait_for_posters(struct iw_qp *qp)
{
    struct lock *locks[] = {&qp->tx.lock, &qp->rq->lock};
    for (int i = 0; i < 2; i++) {
        lock_get(locks[i]);
        lock_put(locks[i]);
    }
    for (unsigned i = 0; atomic_load(&qp->built) && lock_is_taken(&qp->build_lock); i++)
        patience(i);
    patience_for(&qp->pins);
}

void iw_qp_stop(struct iw_qp *qp)
{
    iw_qp_leave_owner(qp);
    number_give(qp);
    iw_rq_leave(qp);
    wait_for_posters(qp);
    iw_grace_drop(&qp->tx.grace);
    iw_deferred_wait(&qp->tx.deferred);
    iw_late_fini(qp);
    iw_rx_fini(qp);
    if (qp->ib || qp->datagrams)
        iw_qp_purge(qp);
    iw_mw_leave(&qp->accessor);
    atomic_fetch_sub(&iw_pd(qp->pub.pd)->users, 1);
}

void iw_qp_free(struct iw_qp *qp)
{
    cq_use(qp->send_cq, -1);
    cq_use(qp->recv_cq, -1);
    if (qp->rq->srq)
        atomic_fetch_sub(&qp->rq->srq->users, 1);
    iw_stats_qp_release(qp->stats);
    iw_counters_end(atomic_load_explicit(&qp->counters, memory_order_relaxed));
    release(qp);
}
