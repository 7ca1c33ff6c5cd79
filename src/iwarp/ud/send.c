/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/send.h"

#include "common/sys.h"
#include "engine/engine.h"
#include "qp/end.h"
#include "qp/explain.h"
#include "qp/link.h"
#include "qp/section.h"
#include "qp/tx_queue.h"
#include "ud/header.h"
#include "ud/socket.h"

#include <string.h>

#define BURST    16          /* datagrams of one system call */
#define PATIENCE 10000000    /* ns that a receiver may be full */
#define ALONE    200000000   /* if nothing waits behind it that is for another */
#define PAUSE    5000        /* ns between two tries, however often one posts and polls */
#define AGAIN_US 100         /* until the next look, if nobody polls */
#define OWN_QKEY 0x80000000u /* a Q_Key with this bit stands for the QP's */
#define CONTROL  (CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(int)))

/** A datagram, ready for sendmsg(). */
struct parcel {
    uint8_t head[IW_UD_HEADER + IW_UD_GRH];
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        struct sockaddr_un local;
    } name;
    _Alignas(struct cmsghdr) uint8_t control[CONTROL];
    struct iovec iov[1 + IW_MAX_SGE];
};

/* ---- what goes out ---- */

static void add_control(struct msghdr *m, struct parcel *p, int level, int type, const void *data,
                        size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(p->control + m->msg_controllen);
    m->msg_control = p->control;
    m->msg_controllen += CMSG_SPACE(len);
    *c = (struct cmsghdr){.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(len)};
    memcpy(CMSG_DATA(c), data, len);
}

static void address_ipv4(struct msghdr *m, struct parcel *p, const struct iw_route *r,
                         uint16_t port)
{
    struct in_pktinfo from = {.ipi_ifindex = (int)r->ifindex};
    p->name.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&p->name.four.sin_addr, r->to.s6_addr + 12, 4);
    memcpy(&from.ipi_spec_dst, r->from.s6_addr + 12, 4);
    m->msg_namelen = sizeof(p->name.four);
    add_control(m, p, IPPROTO_IP, IP_PKTINFO, &from, sizeof(from));
}

static void address(struct msghdr *m, struct parcel *p, const struct iw_route *r, uint16_t port,
                    bool ipv4)
{
    int hops = r->hop_limit;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&r->to);
    m->msg_name = &p->name;
    if (ipv4) {
        address_ipv4(m, p, r, port);
    } else {
        struct in6_pktinfo from = {.ipi6_addr = r->from, .ipi6_ifindex = r->ifindex};
        p->name.six = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                            .sin6_port = htons(port),
                                            .sin6_addr = r->to,
                                            .sin6_scope_id = r->ifindex};
        m->msg_namelen = sizeof(p->name.six);
        if (r->ifindex || !IN6_IS_ADDR_UNSPECIFIED(&r->from))
            add_control(m, p, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
    }
    if (r->group && hops > 1) /* as the kernel has it by itself */
        add_control(m, p, mapped ? IPPROTO_IP : IPPROTO_IPV6, mapped ? IP_TTL : IPV6_HOPLIMIT,
                    &hops, sizeof(hops));
}

static struct iw_ud_header header_of(const struct iw_qp *qp, const struct iw_sqe *e,
                                     const struct iw_route *r)
{
    return (struct iw_ud_header){
        .has_imm = e->opcode == IBV_WR_SEND_WITH_IMM,
        .solicited = e->flags & IBV_SEND_SOLICITED,
        .traffic_class = r->traffic_class,
        .hop_limit = r->hop_limit,
        .to = e->remote_qpn & 0xffffff,
        .from = qp->pub.qp_num,
        .qkey = e->remote_qkey & OWN_QKEY ? qp->attr.qkey : e->remote_qkey,
        .imm = e->opcode == IBV_WR_SEND_WITH_IMM ? e->imm_or_inv : 0,
        .flow_label = r->flow_label,
    };
}

/** The payload behind iov[0]. @return IW_OK or LOCAL_PROT */
static enum iw_err gather_locked(struct iw_qp *qp, uint32_t i, struct msghdr *m, struct parcel *p)
{
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, i);
    assert_held(&qp->tx.lock);
    if (e->flags & IBV_SEND_INLINE) {
        p->iov[1] = (struct iovec){.iov_base = iw_sq_inline(&qp->tx.sq, i), .iov_len = e->len};
        m->msg_iovlen = 2;
        return IW_OK;
    }
    for (unsigned k = 0; k < e->nsge; k++) {
        uint8_t *at;
        enum iw_err err = iw_region_check(sge[k].lkey, &qp->accessor, IW_USE_GATHER, sge[k].addr,
                                          sge[k].length, &at);
        if (err) {
            iw_qp_explain_sge(qp, err, IW_USE_GATHER, sge, k, e->nsge, 0, sge[k].length);
            return err;
        }
        p->iov[1 + k] = (struct iovec){.iov_base = at, .iov_len = sge[k].length};
    }
    m->msg_iovlen = 1 + e->nsge;
    return IW_OK;
}

/** Describes the datagram of the work request at @p i. @return as gather_locked() */
static enum iw_err describe_locked(struct iw_qp *qp, uint32_t i, struct msghdr *m, struct parcel *p)
{
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    const struct iw_route *r = &qp->tx.sq.routes[i & qp->tx.sq.mask];
    struct iw_ud_header h = header_of(qp, e, r);
    *m = (struct msghdr){.msg_iov = p->iov};
    iw_ud_header_encode(p->head, &h);
    p->iov[0] = (struct iovec){.iov_base = p->head, .iov_len = IW_UD_HEADER};
    if (r->here) {
        iw_ud_grh(p->head + IW_UD_HEADER, &h, &r->from, &r->to, e->len);
        p->iov[0].iov_len += IW_UD_GRH;
        m->msg_name = &p->name;
        m->msg_namelen = iw_ud_local_name(&p->name.local, h.to);
    } else {
        address(m, p, r, r->group ? IW_UD_GROUP_PORT : iw_number_tcp_port(h.to), iw_ud(qp)->ipv4);
    }
    return gather_locked(qp, i, m, p);
}

/* ---- what becomes of it ---- */

/** The place where a receiver that takes nothing is remembered. */
static uint32_t *stopped_at(struct iw_ud *ud, uint32_t qpn)
{
    return &ud->stopped[(qpn ^ qpn >> 8) % IW_UD_STOPPED];
}

static void taken_locked(struct iw_qp *qp, uint32_t n)
{
    struct iw_ud *ud = iw_ud(qp);
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    for (; n; n--, sq->cut++) {
        uint32_t qpn = iw_sq_at(sq, sq->cut)->remote_qpn, *stopped = stopped_at(ud, qpn);
        if (*stopped == qpn)
            *stopped = 0;
    }
    ud->full_since = 0;
    ud->renewed = false;
}

static void lose_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    qp->tx.sq.cut++;
    iw_ud(qp)->full_since = 0;
    iw_ud(qp)->renewed = false;
}

enum full { WAIT, RETRY, LOSE };

/** Whether all that waits has the same receiver. */
static bool is_for_one_locked(const struct iw_sq *sq, uint32_t qpn)
{
    uint32_t i = sq->cut;
    while (i != sq->tail && iw_sq_at(sq, i)->remote_qpn == qpn)
        i++;
    return i == sq->tail;
}

/**
 * There is no room for the datagram at sq.cut. What lies with a receiver that is stopped counts for
 * our socket: before that is believed of this one, another socket tries.
 */
static enum full full_locked(struct iw_qp *qp)
{
    struct iw_ud *ud = iw_ud(qp);
    uint32_t i = qp->tx.sq.cut, qpn = iw_sq_at(&qp->tx.sq, i)->remote_qpn;
    uint32_t *stopped = stopped_at(ud, qpn);
    bool here = qp->tx.sq.routes[i & qp->tx.sq.mask].here;
    uint64_t now = iw_now();
    assert_held(&qp->tx.lock);
    ud->tried = now;
    if (!ud->full_since)
        ud->full_since = now;
    uint64_t waited = now - ud->full_since;
    bool stops = here && *stopped == qpn;
    bool more = waited < PATIENCE || (waited < ALONE && is_for_one_locked(&qp->tx.sq, qpn));
    if (!stops && more)
        return WAIT;
    if (!here)
        return LOSE;
    if (!ud->renewed) {
        sys_close(ud->out);
        ud->out = -1;
        ud->renewed = true;
        return RETRY;
    }
    *stopped = qpn;
    return LOSE;
}

static void again(struct iw_timer *t)
{
    struct iw_qp *qp = container_of(t, struct iw_ud, again)->qp;
    struct iw_wakes w;
    iw_qp_enter(qp, &w);
    iw_qp_transmit_locked(qp, &w);
    iw_qp_leave(qp, &w);
}

static void try_later_locked(struct iw_qp *qp)
{
    assert_held(&qp->tx.lock);
    if (iw_engine_leased(iw_home_shard(&qp->tx.deferred.home)))
        iw_deferred_again(&qp->tx.deferred);
    else
        iw_timer_set_us(&iw_ud(qp)->again, AGAIN_US, again);
}

/** The work request at sq.cut is at fault: it completes so, what is behind it is flushed. */
static void fail_locked(struct iw_qp *qp, enum iw_err err, struct iw_wakes *w)
{
    struct iw_sqe *e = iw_sq_at(&qp->tx.sq, qp->tx.sq.cut);
    assert_held(&qp->tx.lock);
    iw_sq_retire_locked(qp, w);
    e->status = (uint8_t)iw_err_info(err)->status;
    iw_qp_log_stop_locked(qp, err);
    iw_qp_set_state_locked(qp, IBV_QPS_SQE);
    iw_sq_flush_locked(qp, w);
    iw_ud(qp)->full_since = 0;
}

/** The socket for the work request at @p i. @return -1: there is none */
static int socket_for_locked(struct iw_qp *qp, uint32_t i)
{
    struct iw_ud *ud = iw_ud(qp);
    assert_held(&qp->tx.lock);
    if (!qp->tx.sq.routes[i & qp->tx.sq.mask].here || ud->in[IW_UD_NET].fd < 0)
        return ud->in[IW_UD_NET].fd;
    if (ud->out < 0)
        ud->out = iw_ud_open_out();
    return ud->out < 0 ? -1 : ud->out;
}

/* ---- sending ---- */

/** One system call, and what became of it. @return whether there may be more to send now */
static bool send_locked(struct iw_qp *qp, uint32_t end, struct iw_wakes *w)
{
    struct mmsghdr msg[BURST];
    struct parcel parcel[BURST];
    uint32_t first = qp->tx.sq.cut;
    unsigned n = 0;
    enum iw_err err = IW_OK;
    int fd = socket_for_locked(qp, first);
    assert_held(&qp->tx.lock);
    if (fd < 0) {
        lose_locked(qp);
        iw_sq_retire_locked(qp, w);
        return true;
    }
    iw_copy_begin(qp->pd);
    while (n < BURST && first + n != end && socket_for_locked(qp, first + n) == fd) {
        err = describe_locked(qp, first + n, &msg[n].msg_hdr, &parcel[n]);
        if (err)
            break;
        n++;
    }
    iw_sent_begin(&qp->sent);
    long r = n ? sys_sendmmsg(fd, msg, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    iw_copy_end();
    if (r > 0)
        taken_locked(qp, (uint32_t)r);
    bool faulty = err && r == n;
    if (r == -EFAULT) {
        err = IW_ERR_LOCAL_GONE;
        faulty = true;
    }
    enum full full = r == -EAGAIN ? full_locked(qp) : LOSE;
    if (faulty)
        fail_locked(qp, err, w);
    else if (r < 0 && full == LOSE)
        lose_locked(qp);
    iw_sq_retire_locked(qp, w);
    iw_sent_end(&qp->sent);
    if (full == WAIT)
        try_later_locked(qp);
    return full != WAIT && !faulty;
}

void iw_ud_transmit(struct iw_qp *qp, struct iw_wakes *w)
{
    struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    if (qp->end.error)
        return;
    if (qp->tx.state == IBV_QPS_SQE)
        iw_sq_flush_locked(qp, w);
    bool draining = qp->tx.state == IBV_QPS_SQD;
    if (qp->tx.state != IBV_QPS_RTS && !draining)
        return;
    uint32_t end = draining ? sq->drain : sq->tail;
    if (sq->cut != end && iw_ud(qp)->full_since && iw_now() - iw_ud(qp)->tried < PAUSE) {
        try_later_locked(qp);
        return;
    }
    while (sq->cut != end && send_locked(qp, end, w))
        ;
    qp->tx.unflushed = 0;
}
