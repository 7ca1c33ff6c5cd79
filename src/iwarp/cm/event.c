/* SPDX-License-Identifier: BSD-2-Clause */
/* Events on their way to the handler of an endpoint: one at a time, in order. */
#include "cm/endpoint.h"

#include "common/sys.h"

void iw_cm_set_handler(struct iw_cm *cm, iw_cm_handler *handler, void *owner)
{
    lock_get(&cm->lock);
    cm->handler = handler;
    cm->owner = owner;
    lock_put(&cm->lock);
}

/** An event was delivered, or never will be; what it brought and nobody took goes with it. */
static void event_done(struct iw_cm_pending *p, bool taken)
{
    struct iw_cm *subject = p->subject;
    if (p->event.type == IW_CM_CONNECT_REQUEST && !taken)
        iw_cm_destroy(p->event.request);
    if (p->event.type == IW_CM_STRANGER && !taken)
        sys_close(p->event.status);
    if (p->event.type == IW_CM_ESTABLISHED && p->event.initiator)
        iw_cm_negotiated(subject);
    if (p->event.type == IW_CM_DISCONNECTED)
        iw_cm_step(subject, IW_CM_EV_HEARD);
    iw_cm_put(subject);
}

/** Delivers what is queued, in order, unless another thread is at it. cm.lock is held. */
static void deliver_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    if (cm->delivering)
        return;
    cm->delivering = true;
    cm->deliverer = pthread_self();
    while (cm->handler && !list_empty(&cm->events)) {
        struct iw_cm_pending *p = container_of(list_pop(&cm->events), struct iw_cm_pending, link);
        iw_cm_handler *handler = cm->handler;
        void *owner = cm->owner;
        lock_put(&cm->lock);
        event_done(p, handler(owner, &p->event) == 0);
        lock_get(&cm->lock);
    }
    cm->delivering = false;
    lock_wake_all(&cm->idle);
}

bool iw_cm_queue_locked(struct iw_cm *cm, struct iw_cm *subject, struct iw_cm_pending *p,
                        const struct iw_cm_event *event)
{
    assert_held(&cm->lock);
    if (!cm->handler)
        return false;
    iw_cm_get(subject);
    p->subject = subject;
    p->event = *event;
    list_add_tail(&cm->events, &p->link);
    return true;
}

void iw_cm_deliver(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    deliver_locked(cm);
    lock_put(&cm->lock);
}

void iw_cm_raise(struct iw_cm *cm, struct iw_cm_pending *p, const struct iw_cm_event *event)
{
    lock_get(&cm->lock);
    bool queued = iw_cm_queue_locked(cm, cm, p, event);
    if (queued)
        deliver_locked(cm);
    lock_put(&cm->lock);
    if (!queued && event->type == IW_CM_DISCONNECTED)
        iw_cm_step(cm, IW_CM_EV_HEARD);
}

static uint8_t depth8(uint16_t d)
{
    return d > UINT8_MAX ? UINT8_MAX : (uint8_t)d;
}

void iw_cm_tell_up(struct iw_cm *cm)
{
    struct iw_cm_event ev = {
        .type = IW_CM_ESTABLISHED,
        .initiator_depth = depth8(cm->agreed.ord),
        .responder_resources = depth8(cm->agreed.ird),
        .peer_qpn = cm->ib ? cm->terms.qpn : cm->agreed.peer_qpn,
        .initiator = cm->initiator,
        .ib = cm->ib,
        .terms = cm->terms,
    };
    if (cm->initiator && cm->nego->peer.pd_len) {
        ev.private_data = cm->nego->peer.pd;
        ev.private_data_len = cm->nego->peer.pd_len;
    }
    iw_cm_raise(cm, &cm->outcome, &ev);
    iw_cm_step(cm, IW_CM_EV_TOLD);
}

void iw_cm_forget_handler(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    cm->handler = NULL;
    while (cm->delivering && !pthread_equal(cm->deliverer, pthread_self()))
        lock_wait(&cm->lock, &cm->idle);
    struct list *l;
    while ((l = list_pop(&cm->events))) {
        lock_put(&cm->lock);
        event_done(container_of(l, struct iw_cm_pending, link), false);
        lock_get(&cm->lock);
    }
    lock_put(&cm->lock);
}
