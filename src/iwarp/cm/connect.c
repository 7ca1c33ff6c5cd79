/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active side: TCP connect, and again where nobody listens yet, Request, Reply, and the second
 * attempt with revision 1.
 */
#include "cm/endpoint.h"

#include "cm/failure.h"
#include "cm/reason.h"
#include "common/addr.h"
#include "common/sys.h"
#include "conn/stream_tcp.h"
#include "conn/tx.h"
#include "device/context.h"
#include "engine/engine.h"
#include "env/conf.h"
#include "env/pool.h"
#include "faults/chaos.h"
#include "faults/stream.h"
#include "observe/pcap.h"
#include "observe/record_stream.h"
#include "qp/link.h"
#include "qp/qp.h"
#include "wire/fpdu.h"
#include "wire/terminate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TRIES 16 /* local ports, if that one is taken for this very peer */
/*
 * Programs tell each other over another connection that it is time to connect, and only then does
 * the server listen. An adapter takes long enough for that; we would be refused.
 */
#define REFUSALS      6 /* that are not the outcome yet: another try after 1, 2, 4 to 32 ms */

/** cm->nego of the active side: what further attempts need, too. */
struct asking {
    struct mpa_nego nego; /* the first: it is freed as that */
    uint8_t pd_len;
    uint8_t pd[IW_CM_PRIVATE_DATA_MAX];
};

static enum iw_cm_event_type outcome(int status)
{
    switch (-status) {
    case ECONNREFUSED:
    case ECONNRESET:
        return IW_CM_REJECTED;
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return IW_CM_UNREACHABLE;
    default:
        return IW_CM_CONNECT_ERROR;
    }
}

/** Whether TCP has connected: over loopback it has when connect() returns, but does not say so. */
static bool is_there(const struct iw_cm *cm)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof(peer);
    return sys_getpeername(cm->fd, (struct sockaddr *)&peer, &len) == 0;
}

static int connect_tcp(struct iw_cm *cm)
{
    if (cm->itself)
        iw_cm_addresses(cm, &cm->dst, NULL);
    const struct sockaddr *dst = (const struct sockaddr *)&cm->dst;
    return (int)sys_connect(cm->fd, dst, addr_len(dst));
}

/**
 * Begins the TCP connection, and watches it once it has begun.
 * @return 1 if it is there already, 0 if not, or a negative errno
 */
static int begin_tcp(struct iw_cm *cm)
{
    int r = connect_tcp(cm);
    for (int i = 0; i < CONNECT_TRIES && r == -EADDRNOTAVAIL && cm->any_port; i++) {
        r = iw_cm_rebind(cm, true);
        if (!r)
            r = connect_tcp(cm);
    }
    if (r && r != -EINPROGRESS)
        return r;
    int there = is_there(cm); /* now: another thread can move on, and close it */
    iw_cm_set_timer(cm, iw_conf()->connect_ms);
    iw_cm_expect_answer(cm);
    r = iw_cm_watch(cm, EPOLLOUT);
    return r ? r : there;
}

void iw_cm_tell_failed(struct iw_cm *cm)
{
    int status = cm->status;
    struct iw_qp *qp = cm->reserved;
    struct iw_cm_event ev = {.type = outcome(status), .status = status};
    /* Of another outcome another thread may still be at work on the negotiation. */
    if (status == -ECONNREFUSED && cm->nego->state == MPA_NEGO_REJECTED && cm->nego->peer.pd_len) {
        ev.private_data = cm->nego->peer.pd;
        ev.private_data_len = cm->nego->peer.pd_len;
    }
    /* Who destroys the QP is not held up by a Request that is on its way. */
    __atomic_store_n(&cm->reserved, NULL, __ATOMIC_RELAXED);
    if (qp) {
        iw_cm_log_failure(cm, status, qp->pub.qp_num);
        iw_qp_unreserve(qp, !cm->hands_off);
    }
    iw_cm_raise(cm, &cm->outcome, &ev);
}

static void fail(struct iw_cm *cm, int status)
{
    lock_get(&cm->lock);
    struct iw_cm_row row = iw_cm_take_locked(cm, IW_CM_EV_FAILED);
    if (row.kind == IW_CM_STEP && !row.status)
        cm->status = status;
    lock_put(&cm->lock);
    iw_cm_carry_out(cm, row);
}

static void refused(struct iw_cm *cm)
{
    if (cm->refusals == REFUSALS)
        fail(cm, -ECONNREFUSED);
    else
        iw_cm_step(cm, IW_CM_EV_REFUSED);
}

void iw_cm_pause(struct iw_cm *cm)
{
    iw_timer_cancel(&cm->timer);
    iw_source_del(&cm->source);
    unsigned ms = 1u << cm->refusals++;
    int r = -iw_engine_start(); /* it runs the timer */
    if (r)
        fail(cm, r);
    else if (iw_cm_step(cm, IW_CM_EV_RESTED).next == IW_CM_S_RESTING)
        iw_cm_set_timer(cm, ms);
}

/* Connects the same socket anew: a new one, which only a port that was taken meanwhile calls for,
 * would be made in the network namespace of whatever thread this is. */
void iw_cm_connect_again(struct iw_cm *cm)
{
    int r = iw_cm_socket_again(cm->fd);
    if (!r)
        r = begin_tcp(cm);
    if (r < 0 && r != -ECONNREFUSED) {
        fail(cm, r);
        return;
    }
    iw_cm_step(cm, IW_CM_EV_AGAIN);
    if (r < 0)
        refused(cm);
}

/** Reserves the QP, if there is one, and takes the endpoint out of BOUND. */
static int enter(struct iw_cm *cm, struct iw_qp *qp, uint8_t ack_timeout)
{
    int r = qp ? iw_qp_reserve(qp, cm, &iw_cm_owner, ack_timeout) : 0;
    if (r == -EINVAL)
        iw_refuse("rdma_connect", QP_TAKEN);
    if (!r && iw_cm_step(cm, IW_CM_EV_CONNECT).kind != IW_CM_STEP) {
        if (qp)
            iw_qp_unreserve(qp, false);
        r = -EINVAL;
    }
    return r;
}

static void undo(struct iw_cm *cm, struct iw_qp *qp, struct asking *asking)
{
    iw_cm_step(cm, IW_CM_EV_UNDO);
    cm->nego = NULL;
    cm->initiator = false;
    cm->reserved = NULL;
    free(asking);
    if (qp)
        iw_qp_unreserve(qp, false);
}

/** @param qp  NULL: no connection is wanted, but the peer's private data */
static int attempt(struct iw_cm *cm, const struct sockaddr *dst, struct iw_qp *qp,
                   const struct iw_cm_param *param)
{
    struct asking *asking = calloc(1, sizeof(*asking));
    if (!asking)
        return -ENOMEM;
    int r = enter(cm, qp, param->ack_timeout);
    if (r) {
        free(asking);
        return r;
    }
    cm->nego = &asking->nego;
    cm->initiator = true;
    cm->reserved = qp;
    cm->depth[0] = param->initiator_depth;
    cm->depth[1] = param->responder_resources;
    asking->pd_len = iw_cm_private_data(param, qp, asking->pd);
    cm->ib = param->ib;
    cm->hands_off = param->ib && !param->qp;
    cm->retry_count = param->terms.retry_count;
    memcpy(&cm->dst, dst, addr_len(dst));
    cm->itself = param->itself;
    iw_cm_get(cm);
    r = begin_tcp(cm);
    if (r > 0) /* Requests leave in the order in which the program asks for them */
        iw_cm_step(cm, IW_CM_EV_READY);
    else if (r == -ECONNREFUSED) /* at once: an event all the same, if not of this attempt */
        refused(cm);
    iw_cm_put(cm);
    if (r > 0 || r == -ECONNREFUSED)
        return 0;
    if (r)
        undo(cm, qp, asking);
    return r;
}

int iw_cm_connect(struct iw_cm *cm, const struct sockaddr *dst, const struct iw_cm_param *param)
{
    struct iw_qp *qp = iw_cm_param_qp(param, "rdma_connect");
    if (!qp || !addr_len(dst))
        return -EINVAL;
    int r = param->itself ? 0 : iw_cm_tls_may_connect("rdma_connect", dst);
    return r ? r : attempt(cm, dst, qp, param);
}

int iw_cm_inquire(struct iw_cm *cm, const struct sockaddr *dst, const void *private_data,
                  uint8_t len)
{
    const struct iw_cm_param param = {.private_data = private_data, .private_data_len = len};
    int r = iw_cm_tls_may_connect("ibv_modify_qp", dst);
    return r ? r : attempt(cm, dst, NULL, &param);
}

/* ---- the handshake ---- */

static int request(struct iw_cm *cm)
{
    struct mpa_conf conf = {
        .rev = cm->retried ? 1 : 2,
        .crc = iw_cm_wants_crc(cm),
        .ext = iw_conf()->ext && !cm->retried,
        .p2p = !cm->retried,
        .shm = iw_cm_shm_may(cm, __atomic_load_n(&cm->reserved, __ATOMIC_RELAXED)),
        .rtr = MPA_RTR_WRITE | MPA_RTR_READ,
        .ird = cm->depth[1],
        .ord = cm->depth[0],
    };
    if (cm->itself)
        return mpa_nego_with_itself(cm->nego, &conf);
    const struct asking *asking = container_of(cm->nego, struct asking, nego);
    int r = mpa_nego_connect(cm->nego, &conf, asking->pd, asking->pd_len);
    return r ? r : iw_cm_send_frame(cm);
}

/** A failure on request, as a positive errno. */
static int chaos(void)
{
    return iw_chaos(IW_FAULT_REJECTED, NULL)        ? ECONNRESET
           : iw_chaos(IW_FAULT_UNREACHABLE, NULL)   ? ETIMEDOUT
           : iw_chaos(IW_FAULT_CONNECT_ERROR, NULL) ? EPROTO
                                                    : 0;
}

static void link_up(struct iw_cm *cm, const uint8_t *early, size_t early_len)
{
    iw_timer_cancel(&cm->timer);
    int r = 0;
    if (!cm->reserved) /* nobody asked for it */
        r = -EPROTO;
    if (cm->ib && !iw_cm_take_terms(cm))
        r = -EPROTONOSUPPORT;
    if (!r)
        r = iw_cm_link(cm, early, early_len);
    if (r) {
        fail(cm, r);
        return;
    }
    iw_cm_wait_first(cm);
    iw_cm_step(cm, IW_CM_EV_LINKED);
}

/** Both ends are here: what they would tell each other does not travel. */
static void go_on_alone(struct iw_cm *cm)
{
    if (iw_cm_step(cm, IW_CM_EV_REPLY).kind != IW_CM_STEP)
        return;
    iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
    link_up(cm, NULL, 0);
}

void iw_cm_send_request(struct iw_cm *cm)
{
    int error = 0;
    socklen_t len = sizeof(error);
    sys_getsockopt(cm->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (!error) {
        iw_cm_socket_connected(cm->fd);
        cm->same_host = iw_cm_same_host(cm->fd);
        error = chaos();
        if (!error)
            error = -iw_cm_tls_connect(cm);
        if (!error)
            error = -request(cm);
    }
    if (error == ECONNREFUSED) {
        refused(cm);
        return;
    }
    if (error) {
        fail(cm, -error);
        return;
    }
    atomic_store(&cm->requested, true);
    if (cm->itself) {
        go_on_alone(cm);
        return;
    }
    iw_cm_set_timer(cm, iw_conf()->connect_ms);
    iw_cm_expect_answer(cm);
    if (iw_cm_step(cm, IW_CM_EV_SENT).kind == IW_CM_STEP)
        iw_source_want(&cm->source, EPOLLIN | EPOLLRDHUP);
}

/* Once, for a peer that hung up on revision 2 without a word. */
void iw_cm_revision_1(struct iw_cm *cm)
{
    cm->retried = true;
    iw_timer_cancel(&cm->timer);
    iw_source_del(&cm->source);
    iw_record_detach(cm->stream, true);
    iw_pcap_detach(cm->stream, true);
    iw_cm_connect_again(cm);
}

/** Tells the peer why the agreement failed (RFC 6581 section 8). */
static void send_terminate(struct iw_cm *cm)
{
    struct iwc_batch *b = iw_pool_get(IW_POOL_BATCH);
    if (!b)
        return;
    uint8_t bytes[TERMINATE_MAX];
    struct terminate t;
    struct iwc_tx tx;
    terminate_from_error(&t, cm->nego->error, NULL, 0);
    struct iwc_msg m = {
        .opcode = RDMAP_TERMINATE, .hdr = bytes, .hdr_len = (uint8_t)terminate_encode(bytes, &t)};
    bool crc = cm->nego->conf.crc || (cm->nego->peer.flags & MPA_FLAG_C);
    iwc_tx_init(&tx, crc, cm->nego->peer.flags & MPA_FLAG_M, FPDU_MULPDU_MIN);
    iwc_batch_init(b, IWC_BATCH_LIMIT);
    iwc_tx_cut(&tx, b, &m);
    iwc_tx_send(&tx, b, cm->stream);
    iw_pool_put(IW_POOL_BATCH, b);
}

static int failed_status(struct iw_cm *cm)
{
    int status = iw_cm_reason_status(cm->nego);
    if (status == -EINVAL)
        send_terminate(cm);
    return status;
}

/** What the state of the negotiation is to the endpoint; not WAIT_REPLY. */
static enum iw_cm_ev reply(const struct iw_cm *cm)
{
    const struct mpa_nego *n = cm->nego;
    if (n->state == MPA_NEGO_AGREED)
        return IW_CM_EV_REPLY;
    bool dumb = n->state == MPA_NEGO_FAILED && n->error == IW_ERR_LLP_CLOSED && !mpa_nego_heard(n);
    return dumb && !cm->retried && !cm->tls ? IW_CM_EV_DUMB : IW_CM_EV_FAILED;
}

void iw_cm_read_reply(struct iw_cm *cm)
{
    uint8_t buf[2048];
    size_t used = 0;
    lock_get(&cm->lock);
    if (!iw_cm_may_locked(cm, IW_CM_EV_REPLY)) {
        lock_put(&cm->lock);
        return;
    }
    struct mpa_nego *n = cm->nego;
    ssize_t r = cm->stream->ops->recv(cm->stream, buf, sizeof(buf));
    if (r > 0)
        used = mpa_nego_input(n, buf, (size_t)r);
    else if (r != -EAGAIN)
        mpa_nego_closed(n);
    if (n->state == MPA_NEGO_WAIT_REPLY) {
        lock_put(&cm->lock);
        return;
    }
    enum iw_cm_ev ev = reply(cm);
    struct iw_cm_row row = iw_cm_take_locked(cm, ev);
    lock_put(&cm->lock);
    if (ev == IW_CM_EV_FAILED) {
        if (!cm->reserved) /* else it is told with the outcome */
            iw_cm_tls_log(cm, "connection attempt failed");
        cm->status = failed_status(cm);
    }
    iw_cm_carry_out(cm, row);
    if (ev == IW_CM_EV_REPLY)
        link_up(cm, buf + used, (size_t)r - used);
}

void iw_cm_give_up(struct iw_cm *cm)
{
    mpa_nego_timeout(cm->nego);
}
