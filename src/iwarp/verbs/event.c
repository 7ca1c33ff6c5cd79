/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion channels, completion events, asynchronous events. */
#include "advice/life.h"
#include "advice/shadow.h"
#include "cq/cq.h"
#include "device/async.h"
#include "engine/waiter.h"
#include "env/eventfd.h"
#include "faults/chaos.h"
#include "observe/record.h"
#include "qp/await.h"
#include "verbs/export.h"

#define NO_EVENT UINT64_MAX /* none was got yet */

static struct ibv_comp_channel *create_comp_channel(struct ibv_context *context)
{
    if (!context)
        return null_errno(iw_refuse("ibv_create_comp_channel", ARGUMENT));
    if (iw_chaos(IW_FAULT_CREATE_COMP_CHANNEL, NULL))
        return null_errno(EMFILE);
    struct iw_channel *ch = iw_channel_create(context);
    if (!ch)
        return NULL;
    atomic_fetch_add(&iw_context(context)->users, 1);
    iw_life_begin(&ch->pub, "completion channel");
    return &ch->pub;
}

VERBS_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct iw_recorded r = iw_record(CREATE_COMP_CHANNEL, 0);
    struct ibv_comp_channel *channel = create_comp_channel(context);
    iw_record_made(r, channel, (uintptr_t)channel, errno);
    return channel;
}

static int destroy_comp_channel(struct ibv_comp_channel *channel)
{
    if (!channel)
        return iw_refuse("ibv_destroy_comp_channel", ARGUMENT);
    int r = iw_life_over(channel, "ibv_destroy_comp_channel");
    if (r)
        return r;
    struct iw_context *ctx = iw_context(channel->context);
    r = iw_channel_destroy(iw_channel(channel));
    if (!r)
        iw_context_put(ctx);
    return r;
}

VERBS_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct iw_recorded r = iw_record(DESTROY_COMP_CHANNEL, (uintptr_t)channel);
    return iw_record_end(r, destroy_comp_channel(channel));
}

static void leave_it(void *arg)
{
    iw_channel_leave(arg);
}

/** The next event, waiting for it if the descriptor does. @return NULL and errno EAGAIN, EINTR */
static struct iw_cq *next_event(struct iw_channel *ch)
{
    int fd = ch->pub.fd;
    for (;;) {
        pthread_cleanup_push(leave_it, ch);
        pthread_testcancel(); /* even if an event waits: it stays for the next one */
        pthread_cleanup_pop(0);
        struct iw_cq *cq = iw_channel_take(ch);
        if (cq)
            return cq;
        if (iw_eventfd_nonblocking(fd)) {
            iw_engine_pass();
            cq = iw_channel_take(ch);
            return cq ? cq : null_errno(EAGAIN);
        }
        if (iw_log_on(IW_LOG_WARN) || iw_advice_on())
            iw_channel_expect(ch, iw_await_look);
        int r = iw_engine_wait(fd);
        if (r)
            return null_errno(-r);
    }
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    if (!channel || !cq)
        return minus_errno(iw_refuse("ibv_get_cq_event", ARGUMENT));
    if (iw_chaos(IW_FAULT_GET_CQ_EVENT, NULL))
        return minus_errno(EINTR);
    if (iw_life_over(channel, "ibv_get_cq_event"))
        return minus_errno(EBADF);
    if (iw_advice_on() && !iw_eventfd_nonblocking(channel->fd))
        iw_shadow_sleeps(channel);
    struct iw_cq *next = next_event(iw_channel(channel));
    if (!next)
        return -1;
    *cq = &next->pub;
    if (cq_context)
        *cq_context = next->pub.cq_context;
    return 0;
}

VERBS_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
                                  void **cq_context)
{
    struct iw_recorded r = iw_record(GET_CQ_EVENT, 0, (uintptr_t)channel);
    int result = get_cq_event(channel, cq, cq_context);
    iw_record_made(r, result ? NULL : *cq, result ? 0 : (uintptr_t)*cq, errno);
    return result;
}

VERBS_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
    iw_record_note(ACK_CQ_EVENTS, (uintptr_t)cq, nevents);
    if (cq && nevents && !iw_life_over(cq, __func__))
        iw_cq_ack(iw_cq(cq), nevents);
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (!context || !event)
        return minus_errno(iw_refuse("ibv_get_async_event", ARGUMENT));
    if (iw_chaos(IW_FAULT_GET_ASYNC_EVENT, NULL))
        return minus_errno(EINTR);
    return iw_async_get(iw_context(context), event);
}

VERBS_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct iw_recorded r = iw_record(GET_ASYNC_EVENT, NO_EVENT, (uintptr_t)context);
    int result = get_async_event(context, event);
    iw_record_made(r, result ? NULL : event, result ? 0 : event->event_type, errno);
    return result;
}

static void count(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    pthread_mutex_lock(mutex);
    ++*completed;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

VERBS_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    if (!event)
        return;
    iw_record_note(ACK_ASYNC_EVENT, event->event_type);
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        cq = event->element.cq;
        count(&cq->mutex, &cq->cond, &cq->async_events_completed);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        qp = event->element.qp;
        count(&qp->mutex, &qp->cond, &qp->events_completed);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        srq = event->element.srq;
        count(&srq->mutex, &srq->cond, &srq->events_completed);
        break;
    default: /* of the port or the device: nobody waits */
        break;
    }
}
