/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/stats.h"

#include "common/addr.h"
#include "env/conf.h"
#include "observe/stats_map.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define NOT_SHOWN 0 /* the id of a row that all share who find the table full */

/** Which rows of a table are free: below @p high those on the stack, above it all. */
struct rows {
    uint16_t *free;
    uint32_t nfree, high, max;
};

static struct lock lock = LOCK(LOCK_STATS);
static uint16_t free_cqs[STATS_CQS], free_listeners[STATS_LISTENERS], free_qps[STATS_QPS];
static struct rows cqs = {.free = free_cqs, .max = STATS_CQS};
static struct rows listeners = {.free = free_listeners, .max = STATS_LISTENERS};
static struct rows qps = {.free = free_qps, .max = STATS_QPS};
static struct stats_qp qp_not_shown;
static struct stats_listener listener_not_shown;
static uint32_t cq_id, listener_id;
static atomic_bool settled; /* what memory is the file's will stay so; a child begins anew */

static struct stats_page *page(void)
{
    return iw_stats_page();
}

static uint64_t now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- rows ---- */

static bool take_locked(struct rows *r, uint32_t *i)
{
    assert_held(&lock);
    if (!r->nfree && r->high == r->max)
        return false;
    *i = r->nfree ? r->free[--r->nfree] : r->high++;
    return true;
}

static void give_locked(struct rows *r, uint32_t i)
{
    assert_held(&lock);
    r->free[r->nfree++] = (uint16_t)i;
}

/** Around the change of a row: readers do not believe what they see in between. */
static void begin_locked(uint32_t *seq)
{
    assert_held(&lock);
    iw_stats_set(seq, *seq + 1);
    __sync_synchronize(); /* what follows comes later; ThreadSanitizer knows no weaker fence */
}

static void end_locked(uint32_t *seq)
{
    assert_held(&lock);
    __atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
}

/** The row @p i of @p of, whose @p id says whether it is shown, is free again. */
static void free_row(struct rows *of, uint32_t i, uint32_t *seq, uint32_t *id)
{
    lock_get(&lock);
    begin_locked(seq);
    *id = 0;
    end_locked(seq);
    give_locked(of, i);
    lock_put(&lock);
}

/* ---- the file ---- */

void iw_stats_publish(void)
{
    if (atomic_load_explicit(&settled, memory_order_acquire))
        return;
    lock_get(&lock);
    if (iw_stats_map_wanted())
        iw_stats_map_open(&page()->qps[qps.high] - page()->qps);
    atomic_store_explicit(&settled, true, memory_order_release);
    lock_put(&lock);
}

/** The parent's traffic and errors are not the child's. */
static void forget_parent_locked(void)
{
    struct stats_page *p = page();
    assert_held(&lock);
    iw_stats_map_leave();
    atomic_store(&settled, false);
    p->head.out = p->head.in = (struct iwc_flow){0};
    for (uint32_t i = 0; i < qps.high; i++) {
        p->qps[i].out = p->qps[i].in = (struct iwc_flow){0};
        p->qps[i].binds = 0;
        p->qps[i].flags |= STATS_INHERITED;
    }
    for (enum stats_gauge g = STATS_connects; g < STATS_GAUGE_COUNT; g++)
        p->head.gauge[g] = 0;
    p->head.error_next = 0;
}

void iw_stats_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        forget_parent_locked();
    lock_fork(&lock, step);
}

/* ---- gauges ---- */

void iw_stats_gauge(enum stats_gauge g, int64_t by)
{
    int64_t *p = &page()->head.gauge[g];
    /* What is counted while memory becomes a file's would be lost. */
    bool may_move = !atomic_load_explicit(&settled, memory_order_acquire);
    if (may_move)
        lock_get(&lock);
    __atomic_fetch_add(p, by, __ATOMIC_RELAXED);
    if (may_move)
        lock_put(&lock);
}

int64_t iw_stats_gauge_of(enum stats_gauge g)
{
    return __atomic_load_n(&page()->head.gauge[g], __ATOMIC_RELAXED);
}

/* ---- CQs ---- */

struct stats_cq *iw_stats_cq_take(struct stats_cq *own, uint32_t cqe)
{
    struct stats_cq *row = own;
    uint32_t i;
    iw_stats_publish();
    lock_get(&lock);
    if (take_locked(&cqs, &i)) {
        row = &page()->cqs[i];
        begin_locked(&row->seq);
        row->id = ++cq_id;
        row->cqe = cqe;
        row->head = row->tail = 0;
        end_locked(&row->seq);
        iw_stats_set(&page()->head.cq_rows, cqs.high);
    }
    lock_put(&lock);
    iw_stats_gauge(STATS_cq, 1);
    return row;
}

void iw_stats_cq_resized(struct stats_cq *row, uint32_t cqe)
{
    iw_stats_set(&row->cqe, cqe);
}

void iw_stats_cq_release(struct stats_cq *row)
{
    iw_stats_gauge(STATS_cq, -1);
    if (row->id != NOT_SHOWN)
        free_row(&cqs, (uint32_t)(row - page()->cqs), &row->seq, &row->id);
}

/* ---- listeners ---- */

static void address(const struct sockaddr *from, uint8_t ip[16], uint16_t *port, uint8_t *flags)
{
    if (!from)
        return;
    addr_ip(from, ip);
    *port = addr_port(from);
    if (from->sa_family == AF_INET6)
        *flags |= STATS_IPV6;
}

struct stats_listener *iw_stats_listener_take(const struct sockaddr *local, uint32_t backlog)
{
    struct stats_listener *row = &listener_not_shown;
    uint32_t i;
    iw_stats_publish();
    lock_get(&lock);
    if (take_locked(&listeners, &i)) {
        row = &page()->listeners[i];
        begin_locked(&row->seq);
        uint32_t seq = row->seq;
        *row = (struct stats_listener){.seq = seq, .id = ++listener_id, .backlog = backlog};
        address(local, row->local, &row->local_port, &row->flags);
        end_locked(&row->seq);
        iw_stats_set(&page()->head.listener_rows, listeners.high);
    }
    lock_put(&lock);
    return row;
}

void iw_stats_listener_release(struct stats_listener *row)
{
    if (row->id != NOT_SHOWN)
        free_row(&listeners, (uint32_t)(row - page()->listeners), &row->seq, &row->id);
}

/* ---- QPs ---- */

struct stats_qp *iw_stats_qp_take(uint32_t qp_num, const struct stats_cq *send_cq,
                                  const struct stats_cq *recv_cq)
{
    struct stats_qp *row = &qp_not_shown;
    uint32_t i;
    iw_stats_publish();
    lock_get(&lock);
    if (take_locked(&qps, &i)) {
        row = &page()->qps[i];
        iw_stats_map_grow(i + 1);
        begin_locked(&row->seq);
        uint32_t seq = row->seq;
        *row = (struct stats_qp){
            .seq = seq,
            .qp_num = qp_num,
            .send_cq = send_cq ? send_cq->id : 0,
            .recv_cq = recv_cq ? recv_cq->id : 0,
        };
        end_locked(&row->seq);
        iw_stats_set(&page()->head.qp_rows, qps.high);
    }
    lock_put(&lock);
    iw_stats_gauge(STATS_qp, 1);
    return row;
}

void iw_stats_qp_release(struct stats_qp *row)
{
    struct stats_head *head = &page()->head;
    iw_stats_gauge(STATS_qp, -1);
    if (row->qp_num == NOT_SHOWN)
        return;
    lock_get(&lock);
    begin_locked(&row->seq);
    iwc_flow_add(&head->out, &row->out);
    iwc_flow_add(&head->in, &row->in);
    iw_stats_set(&head->gauge[STATS_binds], head->gauge[STATS_binds] + row->binds);
    row->qp_num = 0;
    end_locked(&row->seq);
    give_locked(&qps, (uint32_t)(row - page()->qps));
    lock_put(&lock);
}

void iw_stats_qp_link(struct stats_qp *row, const struct iw_stats_link *l)
{
    iw_stats_gauge(l->flags & STATS_INITIATOR ? STATS_connects : STATS_accepts, 1);
    if (row->qp_num == NOT_SHOWN)
        return;
    lock_get(&lock);
    begin_locked(&row->seq);
    row->flags = l->flags | STATS_LINKED;
    row->rev = l->rev;
    row->ird = l->ird;
    row->ord = l->ord;
    if (l->tls)
        row->tls = *l->tls;
    address(l->local, row->local, &row->local_port, &row->flags);
    address(l->peer, row->peer, &row->peer_port, &row->flags);
    end_locked(&row->seq);
    lock_put(&lock);
}

/* ---- errors ---- */

void iw_stats_error(const struct stats_qp *row, uint32_t qp_num, const char *text)
{
    lock_get(&lock);
    bool inherited = row->flags & STATS_INHERITED;
    lock_put(&lock);
    if (inherited)
        return;
    iw_stats_gauge(STATS_errors, 1);
    lock_get(&lock);
    struct stats_head *head = &page()->head;
    struct stats_error *e = &page()->errors[head->error_next % STATS_ERRORS];
    begin_locked(&e->seq);
    e->qp_num = qp_num;
    e->at = now();
    strncpy(e->text, text, sizeof(e->text) - 1); /* the last byte is never written */
    end_locked(&e->seq);
    iw_stats_set(&head->error_next, head->error_next + 1);
    lock_put(&lock);
}
