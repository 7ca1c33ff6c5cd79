/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/late_recv.h"

#include "common/list.h"
#include "engine/timer.h"
#include "qp/qp.h"
#include "verbs/ops.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LATE_US 3000

struct kept {
    struct kept *next;
    struct ibv_recv_wr wr;
    struct ibv_sge sge[];
};

struct queue {
    struct queue *next;
    struct ibv_qp *qp;
    struct iw_timer timer;
    struct kept *first, **last;
};

/* Held while they are posted, so that none overtakes another. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct queue *queues;

static struct queue *queue_of_locked(struct ibv_qp *qp)
{
    struct queue *q = queues;
    while (q && q->qp != qp)
        q = q->next;
    return q;
}

static struct queue *new_queue_locked(struct ibv_qp *qp)
{
    struct queue *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->qp = qp;
    q->last = &q->first;
    q->next = queues;
    queues = q;
    return q;
}

static void drop_first(struct queue *q)
{
    struct kept *k = q->first;
    q->first = k->next;
    if (!q->first)
        q->last = &q->first;
    free(k);
}

static void post(struct iw_timer *t)
{
    struct queue *q = container_of(t, struct queue, timer);
    struct ibv_recv_wr *bad;
    pthread_mutex_lock(&mutex);
    for (; q->first; drop_first(q))
        op_post_recv(q->qp, &q->first->wr, &bad);
    pthread_mutex_unlock(&mutex);
}

static struct kept *copy(const struct ibv_recv_wr *wr)
{
    size_t sges = (size_t)wr->num_sge * sizeof(struct ibv_sge);
    struct kept *k = malloc(sizeof(*k) + sges);
    if (!k)
        return NULL;
    k->next = NULL;
    k->wr = *wr;
    k->wr.next = NULL;
    k->wr.sg_list = k->sge;
    if (sges)
        memcpy(k->sge, wr->sg_list, sges);
    return k;
}

/** All or none. */
static bool keep_locked(struct queue *q, const struct ibv_recv_wr *wr)
{
    struct kept *first = NULL, **last = &first, *k;
    for (; wr && (k = *last = copy(wr)); wr = wr->next)
        last = &k->next;
    if (wr) {
        for (; (k = first); free(k))
            first = k->next;
        return false;
    }
    *q->last = first;
    q->last = last;
    return true;
}

/** Whether it would be taken now, as far as that is seen without a look at the queue. */
static bool is_sound(struct ibv_qp *qp, const struct ibv_recv_wr *wr)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    iw_qp_query(iw_qp(qp), &attr, &init);
    for (; wr; wr = wr->next)
        if (wr->num_sge < 0 || (uint32_t)wr->num_sge > init.cap.max_recv_sge)
            return false;
    return !qp->srq && attr.qp_state != IBV_QPS_RESET;
}

bool late_recv_keep(struct ibv_qp *qp, const struct ibv_recv_wr *wr, bool late)
{
    bool kept = false;
    pthread_mutex_lock(&mutex);
    struct queue *q = queue_of_locked(qp);
    if (!q && late)
        q = new_queue_locked(qp);
    if (q && (late || q->first) && is_sound(qp, wr))
        kept = keep_locked(q, wr);
    if (q && q->first)
        iw_timer_start_us(&q->timer, LATE_US, post);
    pthread_mutex_unlock(&mutex);
    return kept;
}

void late_recv_forget(struct ibv_qp *qp)
{
    pthread_mutex_lock(&mutex);
    struct queue **at = &queues;
    while (*at && (*at)->qp != qp)
        at = &(*at)->next;
    struct queue *q = *at;
    if (q)
        *at = q->next;
    pthread_mutex_unlock(&mutex);
    if (!q)
        return;
    iw_timer_cancel(&q->timer);
    while (q->first)
        drop_first(q);
    free(q);
}
