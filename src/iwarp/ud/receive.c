/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/receive.h"

#include "common/sys.h"
#include "cq/visibility.h"
#include "env/pool.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/rx_place.h"
#include "qp/rx_scatter.h"
#include "qp/section.h"
#include "ud/access.h"
#include "ud/pack.h"

#include <sched.h>
#include <string.h>

#define BURST   32 /* messages of one system call, but of this host */
#define PACKS   4  /* of this host */
/* What adapters of RoCE v2 say in place of a service level, and UCX asks for: by UDP, and which IP.
 */
#define SL_IPV6 9
#define SL_IPV4 10
#define REST_MS 100 /* without a receive */
#define CONTROL (CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo)))

/** Messages that were read, each into as many bytes as one of its socket may have. */
struct iw_ud_burst {
    unsigned n, i;  /* messages; that of the next datagram */
    size_t at, was; /* where in it that is, and where the last one was */
    uint64_t now;   /* iw_now() since it was read; 0: not known yet */
    struct mmsghdr msg[BURST];
    struct iovec iov[BURST];
    struct sockaddr_in6 from[BURST];
    _Alignas(struct cmsghdr) uint8_t control[BURST][CONTROL];
    union {
        uint8_t net[BURST][IW_UD_DATAGRAM], local[PACKS][IW_UD_PACK_MAX];
    } bytes;
};
_Static_assert(sizeof(struct iw_ud_burst) <= IW_STAGING_BYTES, "it fits into a staging buffer");

/** A datagram that came in, as far as it is looked at. */
struct arrival {
    struct iw_ud_header h;
    uint8_t grh[IW_UD_GRH];
    const uint8_t *payload;
    size_t len;
};

/* ---- what it is ---- */

static void map(struct in6_addr *out, const void *ipv4)
{
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(out->s6_addr + 12, ipv4, 4);
}

static void sender_of(const struct sockaddr_in6 *name, struct in6_addr *from, uint16_t *port)
{
    *port = ntohs(name->sin6_port); /* at the same place in both families */
    if (name->sin6_family == AF_INET6)
        *from = name->sin6_addr;
    else
        map(from, &((const struct sockaddr_in *)name)->sin_addr);
}

/** Where it was sent to. @return false: the kernel does not say */
static bool destination_of(struct msghdr *m, struct in6_addr *to)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            memcpy(to, CMSG_DATA(c), sizeof(*to)); /* ipi6_addr is the first */
            return true;
        }
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            map(to, CMSG_DATA(c) + offsetof(struct in_pktinfo, ipi_addr));
            return true;
        }
    }
    return false;
}

static bool is_group(const struct in6_addr *a)
{
    return IN6_IS_ADDR_MULTICAST(a) || (IN6_IS_ADDR_V4MAPPED(a) && (a->s6_addr[12] & 0xf0) == 0xe0);
}

/** From UDP: the port has to be that of the number which it says to be from. */
static bool look_at_udp(const struct iw_ud_socket *s, struct msghdr *m, struct arrival *a,
                        struct in6_addr *from)
{
    struct in6_addr to;
    uint16_t port;
    sender_of(m->msg_name, from, &port);
    if (!destination_of(m, &to) || is_group(&to) != (s->way == IW_UD_GROUP) ||
        port != iw_number_tcp_port(a->h.from))
        return false;
    a->len = a->len - IW_UD_HEADER;
    iw_ud_grh(a->grh, &a->h, from, &to, a->len);
    return true;
}

/** On this host anybody may have written the bytes: of the header the addresses alone are taken. */
static bool look_at_local(const uint8_t *bytes, struct arrival *a, struct in6_addr *from)
{
    struct in6_addr to;
    if (a->len < IW_UD_HEADER + IW_UD_GRH)
        return false;
    iw_ud_grh_addresses(bytes + IW_UD_HEADER, from, &to);
    a->payload += IW_UD_GRH;
    a->len -= IW_UD_HEADER + IW_UD_GRH;
    iw_ud_grh(a->grh, &a->h, from, &to, a->len);
    return true;
}

/** Whether it is a datagram for this QP. */
static bool is_ours(const struct iw_ud_socket *s, struct iw_ud_burst *b,
                    const struct iw_ud_packed *one, struct arrival *a, struct in6_addr *from)
{
    const struct iw_ud *ud = s->ud;
    if (s->way != IW_UD_LOCAL && one->len != b->msg[b->i].msg_len)
        return false; /* packs are for this host */
    if (!iw_ud_header_decode(one->bytes, one->len, &a->h) ||
        a->h.to != (s->way == IW_UD_GROUP ? IW_UD_MULTICAST : ud->qp->pub.qp_num))
        return false;
    a->payload = one->bytes + IW_UD_HEADER;
    a->len = one->len;
    bool whole = s->way == IW_UD_LOCAL ? look_at_local(one->bytes, a, from)
                                       : look_at_udp(s, &b->msg[b->i].msg_hdr, a, from);
    return whole && a->len <= ud->datagrams.max;
}

/** Whether one is taken. @param why  [out] if not; STATS_DROP_COUNT: nobody misses it */
static bool look_at(const struct iw_ud_socket *s, struct iw_ud_burst *b,
                    const struct iw_ud_packed *one, struct arrival *a, enum stats_drop *why)
{
    const struct iw_qp *qp = s->ud->qp;
    struct in6_addr from;
    *why = STATS_DROP_NOT_OURS;
    if (!is_ours(s, b, one, a, &from))
        return false;
    *why = STATS_DROP_COUNT;
    if (s->ud->block_self && a->h.from == qp->pub.qp_num && s->way == IW_UD_GROUP)
        return false;
    *why = STATS_DROP_Q_KEY;
    if (a->h.qkey != __atomic_load_n(&qp->attr.qkey, __ATOMIC_RELAXED))
        return false;
    *why = STATS_DROP_REFUSED;
    if (!b->now)
        b->now = iw_now();
    return iw_ud_access_from(&from, s->way == IW_UD_LOCAL, iw_number_tcp_port(qp->pub.qp_num),
                             b->now);
}

/** The next datagram, maybe one of several in a message. */
static bool next_of(struct iw_ud_burst *b, struct iw_ud_packed *one)
{
    for (; b->i < b->n; b->i++, b->at = 0) {
        const struct mmsghdr *m = &b->msg[b->i];
        const uint8_t *bytes = m->msg_hdr.msg_iov->iov_base;
        b->was = b->at;
        if (!(m->msg_hdr.msg_flags & MSG_TRUNC) && iw_ud_unpack(bytes, m->msg_len, &b->at, one))
            return true;
    }
    return false;
}

/* ---- into a receive ---- */

static bool takes_locked(const struct iw_qp *qp)
{
    enum ibv_qp_state state = __atomic_load_n(&qp->tx.state, __ATOMIC_RELAXED);
    assert_held(&qp->rx.lock);
    return !atomic_load(&qp->end.over) && state >= IBV_QPS_RTR && state <= IBV_QPS_SQE;
}

static void complete_locked(struct iw_qp *qp, const struct arrival *a, struct iw_wakes *w)
{
    struct ibv_wc wc = {
        .opcode = IBV_WC_RECV,
        .byte_len = (uint32_t)(IW_UD_GRH + a->len),
        .imm_data = a->h.imm,
        .sl = iw_ud_grh_is_ipv4(a->grh) ? SL_IPV4 : SL_IPV6,
        .src_qp = a->h.from,
        .wc_flags = IBV_WC_GRH | (a->h.has_imm ? IBV_WC_WITH_IMM : 0),
    };
    assert_held(&qp->rx.lock);
    iwc_count(&qp->stats->in.messages[IWC_KIND_SEND], 1);
    iwc_count(&qp->stats->in.bytes[IWC_KIND_SEND], a->len);
    iw_sent_before(&qp->sent);
    iw_recv_complete(qp, &wc, a->h.solicited, w);
}

static void fail_locked(struct iw_qp *qp, enum iw_err err, struct iw_wakes *w)
{
    assert_held(&qp->rx.lock);
    qp->rx.recv_status = (uint8_t)iw_err_info(err)->status;
    lock_get(&qp->tx.lock);
    iw_qp_fail_locked(qp, err, NULL, 0, w);
    lock_put(&qp->tx.lock);
}

/** @return false: there is no receive for it */
static bool place_locked(struct iw_qp *qp, const struct arrival *a, struct iw_wakes *w)
{
    struct iw_recv *r = &qp->rx.recv;
    assert_held(&qp->rx.lock);
    if (!iw_rq_pop(qp, w))
        return false;
    uint64_t room = iw_sge_bytes(r->sge, r->nsge);
    enum iw_err err = IW_OK;
    if (room < IW_UD_GRH + a->len) {
        err = IW_ERR_DATAGRAM_LENGTH;
        iw_qp_explain(qp, err, "%zu bytes behind the %d of the GRH, receive of %llu", a->len,
                      IW_UD_GRH, (unsigned long long)room);
    }
    if (!err)
        err = iw_scatter(qp, IW_USE_RECEIVE, r->sge, r->nsge, 0, a->grh, IW_UD_GRH);
    if (!err)
        err = iw_scatter(qp, IW_USE_RECEIVE, r->sge, r->nsge, IW_UD_GRH, a->payload, a->len);
    if (err)
        fail_locked(qp, err, w);
    else
        complete_locked(qp, a, w);
    return true;
}

static void drop_locked(struct iw_qp *qp, enum stats_drop why)
{
    assert_held(&qp->rx.lock);
    if (why != STATS_DROP_COUNT)
        iwc_count(&qp->stats->rq.dropped[why], 1);
}

/** What was read, up to one that has to wait for a receive. @return whether none has */
static bool deliver_locked(struct iw_qp *qp, const struct iw_ud_socket *s, struct iw_ud_burst *b,
                           struct iw_wakes *w)
{
    struct iw_ud_packed one;
    struct arrival a;
    enum stats_drop why;
    assert_held(&qp->rx.lock);
    while (next_of(b, &one)) {
        if (!look_at(s, b, &one, &a, &why)) {
            drop_locked(qp, why);
        } else if (takes_locked(qp) && place_locked(qp, &a, w)) {
            continue;
        } else if (takes_locked(qp) && !s->ud->drops) {
            b->at = b->was;
            return false;
        } else {
            drop_locked(qp, STATS_DROP_NO_RECEIVE);
        }
    }
    return true;
}

/* ---- reading ---- */

/** What is kept tells by the room for output, which there always is. */
static void watch_locked(struct iw_ud *ud)
{
    assert_held(&ud->qp->rx.lock);
    for (unsigned way = 0; way < IW_UD_WAYS; way++) {
        struct iw_ud_socket *s = &ud->in[way];
        uint32_t events = IW_UD_INPUT | (s->kept ? EPOLLOUT : 0u);
        iw_source_want(&s->source, ud->rests ? 0 : events);
    }
}

static void end_rest_locked(struct iw_ud *ud)
{
    assert_held(&ud->qp->rx.lock);
    if (!ud->rests)
        return;
    ud->rests = false;
    atomic_store(&ud->qp->rx.starved, false);
    iw_rq_leave(ud->qp);
    watch_locked(ud);
}

void iw_ud_resume(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    iw_timer_unset(&iw_ud(qp)->over);
    end_rest_locked(iw_ud(qp));
}

static void rested(struct iw_timer *t)
{
    struct iw_ud *ud = container_of(t, struct iw_ud, over);
    lock_get(&ud->qp->rx.lock);
    ud->drops = ud->rests;
    end_rest_locked(ud);
    lock_put(&ud->qp->rx.lock);
}

static uint32_t posted_locked(struct iw_qp *qp)
{
    assert_held(&qp->rx.lock);
    lock_get(&qp->rq->lock);
    uint32_t posted = qp->rq->tail - qp->rq->head;
    lock_put(&qp->rq->lock);
    return posted;
}

/** No receive is posted. @return whether the sockets rest, until one is */
static bool rest_locked(struct iw_qp *qp)
{
    struct iw_ud *ud = iw_ud(qp);
    assert_held(&qp->rx.lock);
    if (ud->rests || ud->drops)
        return ud->rests;
    atomic_store(&qp->rx.starved, true);
    if (iw_rq_wait(qp)) { /* meanwhile */
        atomic_store(&qp->rx.starved, false);
        return false;
    }
    ud->rests = true;
    watch_locked(ud);
    iw_timer_set(&ud->over, REST_MS, rested);
    return true;
}

/** How many messages to read: no more than there are receives, if there are any. */
static unsigned burst_locked(struct iw_qp *qp, const struct iw_ud_socket *s)
{
    unsigned most = s->way == IW_UD_LOCAL ? PACKS : BURST, n = s->burst < most ? s->burst : most;
    uint32_t posted = posted_locked(qp);
    assert_held(&qp->rx.lock);
    if (!takes_locked(qp))
        return n;
    if (!posted)
        return rest_locked(qp) ? 0 : n;
    iw_ud(qp)->drops = false;
    return posted < n ? posted : n;
}

static long read_burst(const struct iw_ud_socket *s, struct iw_ud_burst *b, unsigned n)
{
    bool local = s->way == IW_UD_LOCAL;
    for (unsigned i = 0; i < n; i++) {
        b->iov[i].iov_base = local ? b->bytes.local[i] : b->bytes.net[i];
        b->iov[i].iov_len = local ? IW_UD_PACK_MAX : IW_UD_DATAGRAM;
        b->msg[i].msg_hdr = (struct msghdr){.msg_iov = &b->iov[i], .msg_iovlen = 1};
        if (local)
            continue;
        b->msg[i].msg_hdr.msg_name = &b->from[i];
        b->msg[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
        b->msg[i].msg_hdr.msg_control = b->control[i];
        b->msg[i].msg_hdr.msg_controllen = CONTROL;
    }
    long got = sys_recvmmsg(s->fd, b->msg, n, MSG_DONTWAIT);
    b->n = got > 0 ? (unsigned)got : 0;
    b->i = 0;
    b->at = 0;
    b->now = 0;
    return got;
}

/** What is kept, or else what can be read. @return NULL: nothing, or no memory */
static struct iw_ud_burst *take_locked(struct iw_qp *qp, struct iw_ud_socket *s, unsigned n)
{
    struct iw_ud_burst *b = s->kept;
    assert_held(&qp->rx.lock);
    s->kept = NULL;
    if (b)
        return b;
    b = iw_pool_get(IW_POOL_STAGING);
    if (!b)
        return NULL;
    long got = read_burst(s, b, n);
    iw_sent_note(&qp->sent);
    s->burst = got == n ? 2 * n : got > 0 ? (unsigned)got + 1 : 1;
    if (got > 0)
        return b;
    iw_pool_put(IW_POOL_STAGING, b);
    return NULL;
}

static bool receive_locked(struct iw_qp *qp, struct iw_ud_socket *s, struct iw_wakes *w)
{
    unsigned n = burst_locked(qp, s);
    struct iw_ud_burst *b = n ? take_locked(qp, s, n) : NULL;
    assert_held(&qp->rx.lock);
    if (!b)
        return false;
    if (deliver_locked(qp, s, b, w)) {
        iw_pool_put(IW_POOL_STAGING, b);
    } else {
        s->kept = b;
        rest_locked(qp);
    }
    watch_locked(s->ud);
    return true;
}

void iw_ud_forget(struct iw_ud *ud)
{
    for (unsigned way = 0; way < IW_UD_WAYS; way++)
        iw_pool_put(IW_POOL_STAGING, ud->in[way].kept);
}

bool iw_ud_ready(struct iw_source *source, uint32_t events)
{
    struct iw_ud_socket *s = container_of(source, struct iw_ud_socket, source);
    struct iw_qp *qp = s->ud->qp;
    (void)events;
    if (!lock_try(&qp->rx.lock)) {
        iw_visibility_busy();
        sched_yield(); /* whoever has it may wait for this very processor */
        return false;
    }
    struct iw_wakes w = {0};
    iw_source_move(source, &qp->tx.deferred.home);
    bool moved = receive_locked(qp, s, &w);
    iw_qp_leave_rx(qp, &w);
    return moved;
}
