/* SPDX-License-Identifier: BSD-2-Clause */
/* The passive side: listeners, their children up to the program's decision, accept and reject. */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "conn/stream_tcp.h"
#include "device/context.h"
#include "env/conf.h"
#include "env/error_text.h"
#include "env/fd.h"
#include "env/log.h"
#include "faults/stream.h"
#include "observe/pcap.h"
#include "observe/stats.h"
#include "qp/link.h"
#include "qp/qp.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#define BACKLOG_DEFAULT 1024
#define CHILDREN_MAX    1024 /* of one listener that are not accepted, or its backlog if larger */
#define ACCEPTS_A_PASS  32
#define REQUEST_MS      5000
#define STRANGER_MS     1000 /* who says nothing for so long waits for the other side to begin */
#define PAUSE_MS        100  /* nothing can be accepted: look again then */

/*
 * Programs pair connections by the order in which they were asked for: one thread at a time accepts
 * a connection, or reads a Request and queues its event. Taken before cm.lock, by sources only, for
 * which fork() waits. No child is ended under it: its source may be waiting here.
 */
static struct lock in_order = LOCK(LOCK_IN_ORDER);

/** What the backlog bounds, and "anywarp stat" shows. */
static void count_undecided_locked(struct iw_cm *listener, int by)
{
    assert_held(&listener->lock);
    listener->undecided += (unsigned)by;
    if (listener->stats)
        iw_stats_set(&listener->stats->waiting, listener->undecided);
}

/** In "anywarp stat"; there may be requests already. */
static void show(struct iw_cm *cm)
{
    struct sockaddr_storage local;
    iw_cm_addresses(cm, &local, NULL);
    struct stats_listener *row =
        iw_stats_listener_take((struct sockaddr *)&local, (uint32_t)cm->backlog);
    lock_get(&cm->lock);
    cm->stats = row;
    count_undecided_locked(cm, 0);
    lock_put(&cm->lock);
}

void iw_cm_hide(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    struct stats_listener *row = cm->stats;
    cm->stats = NULL;
    lock_put(&cm->lock);
    if (row)
        iw_stats_listener_release(row);
}

int iw_cm_listen(struct iw_cm *cm, int backlog)
{
    int r = iw_cm_tls_may("rdma_listen");
    if (r)
        return r;
    if (backlog <= 0)
        backlog = BACKLOG_DEFAULT;
    if (iw_cm_step(cm, IW_CM_EV_LISTEN).kind != IW_CM_STEP)
        return -EINVAL;
    cm->backlog = backlog;
    iw_cm_socket_connected(cm->fd); /* what it accepts inherits it */
    r = (int)sys_listen(cm->fd, backlog);
    if (!r)
        r = iw_cm_watch(cm, EPOLLIN);
    if (r)
        iw_cm_step(cm, IW_CM_EV_UNDO);
    else
        show(cm);
    return r;
}

void iw_cm_go_on(struct iw_cm *cm)
{
    iw_source_want(&cm->source, EPOLLIN);
}

/* ---- children ---- */

void iw_cm_orphan(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    struct iw_cm *listener = cm->listener;
    cm->listener = NULL;
    lock_put(&cm->lock);
    if (!listener)
        return;
    lock_get(&listener->lock);
    list_del(&cm->child_link);
    if (cm->child == IW_CM_UNDECIDED) {
        listener->decisions++;
        count_undecided_locked(listener, -1);
    }
    listener->children--;
    cm->child = IW_CM_NO_CHILD;
    lock_put(&listener->lock);
    iw_cm_put(listener);
}

/* A child that the program rejects counts until it is closed. */
void iw_cm_turn_away(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    struct iw_cm *listener = cm->listener;
    if (listener)
        iw_cm_get(listener);
    lock_put(&cm->lock);
    if (!listener)
        return;
    lock_get(&listener->lock);
    if (cm->child == IW_CM_UNDECIDED) {
        count_undecided_locked(listener, -1);
        listener->decisions++;
        cm->child = IW_CM_TURNED_AWAY;
        list_add_tail(&listener->endable, &cm->child_link);
    }
    lock_put(&listener->lock);
    iw_cm_put(listener);
}

/** The first child on the list, referenced; NULL if there is none. */
static struct iw_cm *oldest_locked(struct iw_cm *listener, bool half_open)
{
    assert_held(&listener->lock);
    list_for_each (l, &listener->endable) {
        struct iw_cm *cm = container_of(l, struct iw_cm, child_link);
        if (half_open && cm->child != IW_CM_HALF_OPEN)
            continue;
        iw_cm_get(cm);
        return cm;
    }
    return NULL;
}

void iw_cm_drop_children(struct iw_cm *listener)
{
    for (;;) {
        lock_get(&listener->lock);
        struct iw_cm *child = oldest_locked(listener, true);
        lock_put(&listener->lock);
        if (!child)
            return;
        iw_cm_step(child, IW_CM_EV_DROP);
        iw_cm_put(child);
        sched_yield(); /* another thread may be the one that ends it */
    }
}

void iw_cm_no_request(struct iw_cm *cm)
{
    if (!iw_cm_hand_out(cm))
        iw_log(IW_LOG_WARN, "connection dropped: no MPA Request in time");
}

/* ---- new ones ---- */

static unsigned children_max(const struct iw_cm *listener)
{
    unsigned backlog = (unsigned)listener->backlog;
    return backlog > CHILDREN_MAX ? backlog : CHILDREN_MAX;
}

/** Whether there is no connection, or what is wrong is wrong with this one alone: accept(2) passes
 * on what the network said of it. */
static bool is_of_one(long error)
{
    switch (error) {
    case -EAGAIN:
    case -EINTR:
    case -ECONNABORTED:
    case -EHOSTDOWN:
    case -EHOSTUNREACH:
    case -ENETDOWN:
    case -ENETUNREACH:
    case -ENONET:
    case -ENOPROTOOPT:
    case -EOPNOTSUPP:
    case -EPROTO:
        return true;
    default:
        return false;
    }
}

/** @return as accept4(); -EAGAIN, too, if none can be accepted: then the listener pauses */
static long accept_fd(struct iw_cm *listener)
{
    char text[IW_ERROR_TEXT_MAX];
    long fd;
    do
        fd = sys_accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd == -EMFILE && iw_fd_more());
    if (fd >= 0 || is_of_one(fd))
        return fd;
    iw_error_text((int)-fd, text);
    iw_log(IW_LOG_WARN, "listener pauses: it cannot accept a connection: %s", text);
    iw_source_want(&listener->source, 0);
    iw_cm_set_timer(listener, PAUSE_MS);
    return -EAGAIN;
}

/**
 * Makes it a child. With too many the oldest that the program does not know, or has rejected, makes
 * room: had the newcomers to go, whoever opens connections and says nothing would keep everybody
 * out.
 * @param leaves  [out] a child that has to be ended, referenced, if there is one
 * @return false if the listener is gone
 */
static bool adopt(struct iw_cm *listener, struct iw_cm *cm, struct iw_cm **leaves)
{
    lock_get(&listener->lock);
    bool wanted = listener->state == IW_CM_S_LISTEN;
    if (wanted) {
        cm->child = IW_CM_HALF_OPEN;
        list_add_tail(&listener->endable, &cm->child_link);
        if (++listener->children > children_max(listener))
            *leaves = oldest_locked(listener, false);
    }
    lock_put(&listener->lock);
    return wanted;
}

/** From now on the child waits for the MPA Request. */
static void await_request(struct iw_cm *listener, struct iw_cm *cm, int fd)
{
    iw_cm_get(listener);
    cm->listener = listener;
    cm->state = IW_CM_S_WAIT_REQUEST;
    cm->fd = iw_fd_high(fd);
    cm->tos = listener->tos;
    cm->tos_set = listener->tos_set;
    iwc_stream_tcp_init(&cm->tcp, cm->fd);
    iw_chaos_attach(&cm->tcp.base);
    cm->same_host = iw_cm_same_host(cm->fd);
    struct mpa_conf conf = {
        .crc = iw_cm_wants_crc(cm),
        .ext = iw_conf()->ext,
        .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
        .ird = IW_MAX_DEPTH,
        .ord = IW_MAX_DEPTH,
    };
    mpa_nego_listen(cm->nego, &conf);
    cm->may_be_stranger = listener->strangers && iw_conf()->tls != IW_TLS_REQUIRE;
    iw_cm_set_timer(cm, iw_cm_patience(cm->may_be_stranger ? STRANGER_MS : REQUEST_MS));
    if (iw_cm_watch(cm, EPOLLIN | EPOLLRDHUP))
        iw_cm_step(cm, IW_CM_EV_DROP);
}

/**
 * Takes one connection.
 * @param leaves  as adopt()
 * @return false if no more can be accepted now
 */
static bool accept_in_order(struct iw_cm *listener, struct iw_cm **leaves)
{
    assert_held(&in_order);
    long fd = accept_fd(listener);
    if (fd < 0)
        return fd != -EAGAIN;
    if (!iw_cm_access_knock((int)fd)) {
        sys_close((int)fd);
        return true;
    }
    struct iw_cm *cm = iw_cm_new();
    if (cm)
        cm->nego = malloc(sizeof(*cm->nego));
    if (!cm || !cm->nego) {
        iw_log(IW_LOG_WARN, "connection dropped: no memory");
    } else if (adopt(listener, cm, leaves)) {
        await_request(listener, cm, (int)fd);
        return true;
    }
    sys_close((int)fd);
    if (cm)
        iw_cm_put(cm);
    return true;
}

static bool accept_one(struct iw_cm *listener)
{
    struct iw_cm *oldest = NULL;
    lock_get(&in_order);
    bool more = accept_in_order(listener, &oldest);
    lock_put(&in_order);
    if (oldest) {
        iw_log(IW_LOG_WARN, "connection dropped: too many are not accepted, the oldest goes");
        iw_cm_step(oldest, IW_CM_EV_DROP);
        iw_cm_put(oldest);
    }
    return more;
}

void iw_cm_take_in(struct iw_cm *cm)
{
    for (int i = 0; i < ACCEPTS_A_PASS; i++)
        if (!accept_one(cm))
            return;
}

/* ---- Requests ---- */

/** A depth as the program sees it; a Request of revision 1 names none, so there is no limit but
 * ours. */
static uint8_t depth_seen(const struct mpa_start *peer, uint16_t depth)
{
    return peer->enhanced && depth < IW_MAX_DEPTH ? (uint8_t)depth : IW_MAX_DEPTH;
}

static void expect_decision_locked(struct iw_cm *listener);

/** A second ago there was a request. Since then the program has answered none. */
static void nobody_decides(struct iw_timer *t)
{
    struct iw_cm *listener = container_of(t, struct iw_cm, unmet);
    lock_get(&listener->lock);
    unsigned waiting = listener->undecided;
    bool idle = listener->decisions == listener->decisions_before;
    if (waiting && idle)
        listener->unmet_told = true;
    else if (waiting)
        expect_decision_locked(listener);
    lock_put(&listener->lock);
    if (waiting && idle)
        iw_cm_unmet(
            "rdma_listen: %u connection requests wait for an answer (rdma_get_cm_event, then "
            "rdma_accept or rdma_reject)",
            waiting);
}

/** For who reads the log. */
static void expect_decision_locked(struct iw_cm *listener)
{
    assert_held(&listener->lock);
    if (!iw_log_on(IW_LOG_WARN) || listener->unmet_told || listener->state != IW_CM_S_LISTEN)
        return;
    listener->decisions_before = listener->decisions;
    iw_timer_set(&listener->unmet, IW_UNMET_MS, nobody_decides);
}

/**
 * Moves a child, just in DECISION, to the undecided ones, and queues its CONNECT_REQUEST.
 * @return the listener, referenced; NULL if nobody is there to decide, or the backlog is full
 */
static struct iw_cm *queue_request(struct iw_cm *cm)
{
    const struct mpa_start *peer = &cm->nego->peer;
    cm->ib = iw_cm_take_terms(cm);
    struct iw_cm_event ev = {
        .type = IW_CM_CONNECT_REQUEST,
        .peer_qpn = cm->terms.qpn,
        .ib = cm->ib,
        .terms = cm->terms,
        .private_data = peer->pd_len ? peer->pd : NULL,
        .private_data_len = peer->pd_len,
        /* As the receiver sees them: what it may ask for is what the peer serves. */
        .initiator_depth = depth_seen(peer, peer->ird),
        .responder_resources = depth_seen(peer, peer->ord),
        .request = cm,
    };
    struct iw_cm *listener = cm->listener;
    assert_held(&in_order);
    lock_get(&listener->lock);
    bool room = listener->undecided < (unsigned)listener->backlog;
    if (!room) {
        cm->nego->conf.full = true;
        iw_log(IW_LOG_WARN, "connection refused: backlog is full");
    }
    bool queued = room && iw_cm_queue_locked(listener, cm, &cm->asked, &ev);
    cm->child = queued ? IW_CM_UNDECIDED : IW_CM_TURNED_AWAY;
    if (queued) {
        iw_cm_get(listener);
        if (listener->undecided == 0)
            expect_decision_locked(listener);
        count_undecided_locked(listener, 1);
        list_del(&cm->child_link);
    }
    lock_put(&listener->lock);
    return queued ? listener : NULL;
}

/** Lets go of a child that does not speak MPA. */
static void part(struct iw_cm *cm, struct iw_cm_row row)
{
    iw_cm_hand_out(cm);
    iw_cm_carry_out(cm, row);
}

/**
 * What comes before the Request: nobody else waits for a handshake.
 * @return 0: a Request may be there; -EAGAIN; 1: it does not speak MPA; another negative errno
 */
static int greet_locked(struct iw_cm *cm)
{
    int r = iw_cm_is_stranger_locked(cm);
    if (!r)
        r = iw_cm_tls_accept_locked(cm);
    if (!r && cm->tls)
        r = iwc_stream_tls_shake_hands(cm->tls);
    return r;
}

/** Reads the Request, if it is there, in its turn. @param r  0, or why there will be none */
static void take_request(struct iw_cm *cm, ssize_t r)
{
    struct iw_cm *listener = NULL;
    uint8_t buf[MPA_START_MAX];
    lock_get(&in_order);
    lock_get(&cm->lock);
    if (!iw_cm_may_locked(cm, IW_CM_EV_REQUEST)) {
        lock_put(&cm->lock);
        lock_put(&in_order);
        return;
    }
    struct mpa_nego *n = cm->nego;
    if (!r)
        r = cm->stream->ops->recv(cm->stream, buf, sizeof(buf));
    if (r > 0)
        mpa_nego_input(n, buf, (size_t)r);
    else if (r != -EAGAIN)
        mpa_nego_closed(n);
    enum mpa_nego_state state = n->state;
    if (state == MPA_NEGO_WAIT_DECISION)
        iw_cm_take_locked(cm, IW_CM_EV_REQUEST);
    lock_put(&cm->lock);
    if (state == MPA_NEGO_WAIT_DECISION) {
        iw_timer_cancel(&cm->timer);
        /* The peer may not send before the Reply: only its going away is of interest. */
        iw_source_want(&cm->source, EPOLLRDHUP);
        listener = queue_request(cm);
    }
    lock_put(&in_order);

    if (listener) {
        iw_cm_deliver(listener);
        iw_cm_put(listener);
    } else if (state == MPA_NEGO_WAIT_DECISION) {
        iw_cm_destroy(cm); /* with a Reply, so that it does not try revision 1 */
    } else if (state == MPA_NEGO_FAILED) {
        iw_cm_tls_log(cm, "connection dropped");
        if (r > 0 && !cm->tls && buf[0] == IWC_TLS_RECORD_TYPE)
            iw_log(IW_LOG_WARN, "connection dropped: the peer speaks TLS, ANYWARP_TLS=off here");
        else if (r > 0)
            iw_log(IW_LOG_WARN, "connection dropped: %s", iw_err_info(n->error)->text);
        iw_cm_step(cm, IW_CM_EV_DROP);
    }
}

void iw_cm_read_request(struct iw_cm *cm)
{
    struct iw_cm_row row = {0};
    lock_get(&cm->lock);
    int r = iw_cm_may_locked(cm, IW_CM_EV_REQUEST) ? greet_locked(cm) : -EAGAIN;
    if (r > 0)
        row = iw_cm_take_locked(cm, IW_CM_EV_DROP);
    lock_put(&cm->lock);
    if (r > 0)
        part(cm, row);
    else if (r != -EAGAIN)
        take_request(cm, r);
}

/** The program has decided. @return 0, -EINVAL (not asked), -ECONNRESET (the peer has gone) */
static int decide(struct iw_cm *cm, enum iw_cm_ev ev)
{
    struct iw_cm_row row = iw_cm_step(cm, ev);
    if (row.kind != IW_CM_STEP)
        return -EINVAL;
    return row.next == IW_CM_S_DEAD ? -ECONNRESET : 0;
}

/** The program said yes; state ACCEPTED. */
static int answer(struct iw_cm *cm, struct iw_qp *qp, const struct iw_cm_param *param)
{
    struct mpa_nego *n = cm->nego;
    uint8_t data[IW_CM_PRIVATE_DATA_MAX], len = iw_cm_private_data(param, qp, data);
    cm->reserved = qp;
    cm->hands_off = param->ib && !param->qp;
    n->conf.qpn = qp->pub.qp_num;
    iw_cm_shm_offer(cm, qp);
    int r = mpa_nego_accept(n, param->responder_resources, param->initiator_depth, data, len);
    if (!r)
        r = iw_cm_link(cm, NULL, 0);
    if (!r)
        r = iw_cm_send_frame(cm);
    if (r) {
        if (cm->reserved)
            iw_qp_unreserve(qp, !cm->hands_off);
        iw_cm_step(cm, IW_CM_EV_BROKEN);
        return r;
    }
    iw_cm_negotiated(cm); /* the peer's private data came with the request */
    iw_cm_wait_first(cm);
    if (!cm->agreed.p2p)
        iw_cm_step(cm, IW_CM_EV_QP_READY);
    iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
    return 0;
}

int iw_cm_accept(struct iw_cm *cm, const struct iw_cm_param *param)
{
    struct iw_qp *qp = iw_cm_param_qp(param, "rdma_accept");
    if (!qp)
        return -EINVAL;
    int r = iw_qp_reserve(qp, cm, &iw_cm_owner, param->ack_timeout);
    if (r == -EINVAL)
        iw_refuse("rdma_accept", QP_TAKEN);
    if (r)
        return r;
    r = decide(cm, IW_CM_EV_ACCEPT);
    if (r) {
        iw_qp_unreserve(qp, false);
        return r;
    }
    iw_cm_get(cm); /* another thread may end what it is told of */
    r = answer(cm, qp, param);
    iw_cm_put(cm);
    return r;
}

static int send_reject(struct iw_cm *cm, const void *private_data, uint8_t len)
{
    int r = mpa_nego_reject(cm->nego, private_data, len);
    if (!r)
        iw_cm_send_frame(cm);
    iw_cm_shutdown(cm);
    iw_cm_set_timer(cm, REQUEST_MS);
    iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
    return r;
}

void iw_cm_turn_down(struct iw_cm *cm)
{
    send_reject(cm, NULL, 0);
}

int iw_cm_reject(struct iw_cm *cm, const void *private_data, uint8_t len)
{
    int r = len > IW_CM_PRIVATE_DATA_MAX ? -EINVAL : decide(cm, IW_CM_EV_REJECT);
    if (r)
        return r == -ECONNRESET ? 0 : r;
    return send_reject(cm, private_data, len);
}
