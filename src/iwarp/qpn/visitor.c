/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/visitor.h"

#include "qp/link.h"
#include "qpn/vouch.h"

#include <errno.h>
#include <string.h>

/** Whether the two QPs of a hello are the peer and this one. */
static bool names_locked(const struct iw_dial *d, const struct iw_hello *h)
{
    assert_held(&d->lock);
    return h->uc == d->qp->uc && h->from.qpn == d->peer.qpn &&
           memcmp(&h->from.gid, &d->peer.gid, sizeof(h->from.gid)) == 0 &&
           memcmp(&h->to.gid, &d->self.gid, sizeof(h->to.gid)) == 0;
}

/** Whether a hello is that of the peer, over a connection that may be its. */
static bool fits_locked(const struct iw_dial *d, const struct iw_hello *h, struct iw_cm *cm)
{
    struct sockaddr_storage own, peer;
    assert_held(&d->lock);
    iw_cm_addresses(cm, &own, &peer);
    return names_locked(d, h) && iw_path_fits(&d->path, &own, &peer);
}

static struct iw_cm *take_off_locked(struct iw_dial *d, struct iw_cm **place)
{
    struct iw_cm *cm = *place;
    assert_held(&d->lock);
    *place = NULL;
    return cm;
}

/** Takes the visitor in, which is the peer, and gives the lock back. */
static void let_in(struct iw_dial *d)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_cm *cm = take_off_locked(d, &d->visitor);
    assert_held(&d->lock);
    d->cm = cm;
    d->peer.epoch = d->asked.from.epoch;
    struct iw_hello h = {.kind = IW_HELLO_ANSWERS, .uc = d->qp->uc, .from = d->self, .to = d->peer};
    struct iw_cm_param p = iw_dial_param(d, bytes);
    iw_hello_encode(bytes, &h);
    lock_put(&d->lock);
    if (iw_cm_accept(cm, &p) == 0)
        return;
    lock_get(&d->lock);
    bool mine = d->cm == cm;
    if (mine)
        d->cm = NULL;
    lock_put(&d->lock);
    if (mine)
        iw_dial_drop(cm);
    iw_visitor_next(d);
}

static int on_verdict(void *owner, const struct iw_cm_event *event);

/** Asks the process of the visitor's number whether it is who calls; gives the lock back. */
static void doubt(struct iw_dial *d)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_cm *cm;
    assert_held(&d->lock);
    if (d->doubt || iw_cm_create(&cm, on_verdict, d)) {
        lock_put(&d->lock);
        return;
    }
    struct sockaddr_storage own = d->path.own, process = iw_dial_peers_port_locked(d);
    d->doubt = cm;
    d->doubted = (struct iw_hello){.kind = IW_HELLO_DOUBTS,
                                   .uc = d->qp->uc,
                                   .token = iw_vouch_draw(),
                                   .from = d->self,
                                   .to = d->asked.from};
    iw_hello_encode(bytes, &d->doubted);
    lock_put(&d->lock);
    int r = iw_cm_bind_active(cm, (struct sockaddr *)&own);
    if (!r)
        r = iw_cm_inquire(cm, (struct sockaddr *)&process, bytes, sizeof(bytes));
    if (!r)
        return;
    lock_get(&d->lock);
    bool mine = d->doubt == cm;
    struct iw_cm *visitor = mine ? take_off_locked(d, &d->visitor) : NULL;
    if (mine)
        d->doubt = NULL;
    lock_put(&d->lock);
    if (mine)
        iw_dial_drop(cm);
    iw_dial_drop(visitor);
}

void iw_visitor_take(struct iw_dial *d)
{
    assert_held(&d->lock);
    if (!d->visitor || d->cm || d->over || d->dials) {
        lock_put(&d->lock);
        return;
    }
    /* From a connection that was let in before: this one calls again. */
    bool parting = iw_qp_was_linked(d->qp);
    if (parting || !fits_locked(d, &d->asked, d->visitor)) {
        struct iw_cm *stranger = take_off_locked(d, &d->visitor);
        lock_put(&d->lock);
        iw_dial_drop(stranger);
        return;
    }
    struct sockaddr_storage process = iw_dial_peers_port_locked(d);
    if (d->vouched == d->asked.from.epoch || iw_vouch_is_given(&process, d->asked.token))
        let_in(d);
    else
        doubt(d);
}

void iw_visitor_next(struct iw_dial *d)
{
    if (!iw_dial_enter(d))
        return;
    if (d->begun)
        iw_visitor_take(d);
    else
        lock_put(&d->lock);
}

/** Whether the answer is that of the process that was asked, and yes. */
static bool is_vouched_for_locked(const struct iw_dial *d, const struct iw_cm_event *event)
{
    struct iw_hello h;
    assert_held(&d->lock);
    return event->type == IW_CM_REJECTED &&
           iw_hello_decode(event->private_data, event->private_data_len, &h) &&
           h.kind == IW_HELLO_VOUCHES && h.from.qpn == d->doubted.to.qpn &&
           h.from.epoch == d->doubted.to.epoch && h.to.epoch == d->self.epoch;
}

static int on_verdict(void *owner, const struct iw_cm_event *event)
{
    struct iw_dial *d = owner;
    if (!iw_dial_enter(d))
        return 0;
    iw_dial_pin(d);
    struct iw_cm *cm = take_off_locked(d, &d->doubt), *impostor = NULL;
    if (is_vouched_for_locked(d, event)) {
        struct sockaddr_storage process = iw_dial_peers_port_locked(d);
        iw_vouch_given(&process, d->doubted.token);
        d->vouched = d->doubted.to.epoch;
        iw_visitor_take(d);
    } else {
        impostor = take_off_locked(d, &d->visitor);
        lock_put(&d->lock);
    }
    iw_dial_drop(cm);
    iw_dial_drop(impostor);
    iw_dial_unpin(d);
    return 0;
}

static int nothing(void *owner, const struct iw_cm_event *event)
{
    (void)owner;
    (void)event;
    return 0;
}

/** Somebody asks whether a hello was ours. */
static int vouch(void *port, const struct iw_cm_event *event, const struct iw_hello *doubt)
{
    uint8_t bytes[IW_HELLO_BYTES];
    struct iw_dial *d = iw_number_find(port, doubt->to.qpn);
    if (!d)
        return -ENOENT;
    lock_get(&d->lock);
    bool yes = d->qp && d->begun && !d->leaving && d->dials && d->cm && names_locked(d, doubt) &&
               doubt->to.epoch == d->self.epoch;
    struct iw_hello h = {
        .kind = IW_HELLO_VOUCHES, .uc = doubt->uc, .from = d->self, .to = doubt->from};
    struct sockaddr_storage process = {0};
    if (yes)
        process = iw_dial_peers_port_locked(d);
    lock_put(&d->lock);
    iw_dial_unpin(d);
    if (!yes)
        return -EPERM;
    iw_vouch_got(&process, doubt->token);
    iw_hello_encode(bytes, &h);
    iw_cm_set_handler(event->request, nothing, NULL);
    iw_cm_reject(event->request, bytes, sizeof(bytes));
    iw_cm_destroy(event->request);
    return 0;
}

int iw_visitor_asked(void *port, const struct iw_cm_event *event)
{
    struct iw_hello h;
    if (event->type != IW_CM_CONNECT_REQUEST ||
        !iw_hello_decode(event->private_data, event->private_data_len, &h))
        return -EINVAL;
    if (h.kind == IW_HELLO_DOUBTS)
        return vouch(port, event, &h);
    if (h.kind != IW_HELLO_ASKS)
        return -EINVAL;
    struct iw_dial *d = iw_number_find(port, h.to.qpn);
    if (!d)
        return -ENOENT;
    lock_get(&d->lock);
    /* A stopped one may be on its way to another incarnation, which this one asks for. */
    bool wanted = d->qp && !(d->begun && !d->cm && !fits_locked(d, &h, event->request));
    struct iw_cm *before = d->visitor;
    if (!wanted) {
        lock_put(&d->lock);
        iw_dial_unpin(d);
        return -EPERM;
    }
    iw_cm_set_handler(event->request, iw_dial_on_event, d);
    d->visitor = event->request;
    d->asked = h;
    if (d->begun && !d->leaving)
        iw_visitor_take(d);
    else
        lock_put(&d->lock);
    iw_dial_drop(before);
    iw_dial_unpin(d);
    return 0;
}
