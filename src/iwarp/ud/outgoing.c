/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/outgoing.h"

#include "qp/explain.h"
#include "qp/tx_queue.h"
#include "ud/socket.h"
#include "ud/ud.h"

#include <string.h>

#define OWN_QKEY 0x80000000u /* a Q_Key with this bit stands for the QP's */
#define QPN_MAX  0xffffffu
#define FRONT    (IW_UD_PACK_BEGIN + IW_UD_PACK_LENGTH)

static void add_control(struct msghdr *m, struct iw_ud_to *t, int level, int type, const void *data,
                        size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)(t->control + m->msg_controllen);
    m->msg_control = t->control;
    m->msg_controllen += CMSG_SPACE(len);
    *c = (struct cmsghdr){.cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(len)};
    memcpy(CMSG_DATA(c), data, len);
}

static void address_ipv4(struct msghdr *m, struct iw_ud_to *t, const struct iw_route *r,
                         uint16_t port)
{
    struct in_pktinfo from = {.ipi_ifindex = (int)r->ifindex};
    t->name.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&t->name.four.sin_addr, r->to.s6_addr + 12, 4);
    memcpy(&from.ipi_spec_dst, r->from.s6_addr + 12, 4);
    m->msg_namelen = sizeof(t->name.four);
    add_control(m, t, IPPROTO_IP, IP_PKTINFO, &from, sizeof(from));
}

static void address(struct msghdr *m, struct iw_ud_to *t, const struct iw_route *r, uint16_t port,
                    bool ipv4)
{
    int hops = r->hop_limit;
    bool mapped = IN6_IS_ADDR_V4MAPPED(&r->to);
    m->msg_name = &t->name;
    if (ipv4) {
        address_ipv4(m, t, r, port);
    } else {
        struct in6_pktinfo from = {.ipi6_addr = r->from, .ipi6_ifindex = r->ifindex};
        t->name.six = (struct sockaddr_in6){.sin6_family = AF_INET6,
                                            .sin6_port = htons(port),
                                            .sin6_addr = r->to,
                                            .sin6_scope_id = r->ifindex};
        m->msg_namelen = sizeof(t->name.six);
        if (r->ifindex || !IN6_IS_ADDR_UNSPECIFIED(&r->from))
            add_control(m, t, IPPROTO_IPV6, IPV6_PKTINFO, &from, sizeof(from));
    }
    if (r->group && hops > 1) /* as the kernel has it by itself */
        add_control(m, t, mapped ? IPPROTO_IP : IPPROTO_IPV6, mapped ? IP_TTL : IPV6_HOPLIMIT,
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
        .to = e->remote_qpn & QPN_MAX,
        .from = qp->pub.qp_num,
        .qkey = e->remote_qkey & OWN_QKEY ? qp->attr.qkey : e->remote_qkey,
        .imm = e->opcode == IBV_WR_SEND_WITH_IMM ? e->imm_or_inv : 0,
        .flow_label = r->flow_label,
    };
}

/** The payload. @param n  [out] how many places of @p iov it takes */
static enum iw_err gather_locked(struct iw_qp *qp, uint32_t i, struct iovec *iov, unsigned *n)
{
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    const struct ibv_sge *sge = iw_sq_sge(&qp->tx.sq, i);
    assert_held(&qp->tx.lock);
    if (e->flags & IBV_SEND_INLINE) {
        iov[0] = (struct iovec){.iov_base = iw_sq_inline(&qp->tx.sq, i), .iov_len = e->len};
        *n = 1;
        return IW_OK;
    }
    for (*n = 0; *n < e->nsge; ++*n) {
        const struct ibv_sge *one = &sge[*n];
        uint8_t *at;
        enum iw_err err =
            iw_region_check(one->lkey, &qp->accessor, IW_USE_GATHER, one->addr, one->length, &at);
        if (err) {
            iw_qp_explain_sge(qp, err, IW_USE_GATHER, sge, *n, e->nsge, 0, one->length);
            return err;
        }
        iov[*n] = (struct iovec){.iov_base = at, .iov_len = one->length};
    }
    return IW_OK;
}

/** What stands in front of the payload, of a packed one its length first. */
static struct iovec front(uint8_t *head, size_t datagram, bool first, bool packed)
{
    size_t skip = !packed ? FRONT : first ? 0 : IW_UD_PACK_BEGIN;
    if (packed && first)
        iw_ud_pack_begin(head);
    if (packed)
        iw_ud_pack_length(head + IW_UD_PACK_BEGIN, datagram);
    return (struct iovec){.iov_base = head + skip, .iov_len = IW_UD_OUT_HEAD - skip};
}

/** Whether the datagram of the work request at @p i goes with the last message. */
static bool joins_locked(const struct iw_qp *qp, const struct iw_ud_outgoing *o, uint32_t i,
                         size_t datagram)
{
    const struct iw_sq *sq = &qp->tx.sq;
    assert_held(&qp->tx.lock);
    return o->messages && !o->single && sq->routes[i & sq->mask].here &&
           ((iw_sq_at(sq, i)->remote_qpn ^ iw_sq_at(sq, i - 1)->remote_qpn) & QPN_MAX) == 0 &&
           o->bytes + IW_UD_PACK_LENGTH + datagram <= IW_UD_PACK_MAX;
}

/** The last message becomes a pack, if it is none. */
static void pack(struct iw_ud_outgoing *o)
{
    unsigned last = o->messages - 1;
    struct iovec *first = o->msg[last].msg_hdr.msg_iov;
    if (o->of[last] == 1)
        *first = front(o->head[o->datagrams - 1], o->bytes - FRONT, true, true);
}

static void begin(struct iw_ud_outgoing *o, const struct iw_route *r, uint32_t to, bool ipv4)
{
    struct iw_ud_to *t = &o->to[o->messages];
    struct msghdr *m = &o->msg[o->messages++].msg_hdr;
    *m = (struct msghdr){.msg_iov = &o->iov[o->iovs]};
    o->of[o->messages - 1] = 0;
    o->bytes = IW_UD_PACK_BEGIN;
    if (r->here) {
        m->msg_name = &t->name;
        m->msg_namelen = iw_ud_local_name(&t->name.local, to);
    } else {
        address(m, t, r, r->group ? IW_UD_GROUP_PORT : iw_number_tcp_port(to), ipv4);
    }
}

enum iw_err iw_ud_add_locked(struct iw_qp *qp, uint32_t i, struct iw_ud_outgoing *o)
{
    const struct iw_sqe *e = iw_sq_at(&qp->tx.sq, i);
    const struct iw_route *r = &qp->tx.sq.routes[i & qp->tx.sq.mask];
    struct iw_ud_header h = header_of(qp, e, r);
    uint8_t *head = o->head[o->datagrams];
    size_t datagram = IW_UD_HEADER + IW_UD_GRH + e->len;
    unsigned payload;
    assert_held(&qp->tx.lock);
    enum iw_err err = gather_locked(qp, i, &o->iov[o->iovs + 1], &payload);
    if (err)
        return err;
    bool joins = joins_locked(qp, o, i, datagram);
    if (joins)
        pack(o);
    else
        begin(o, r, h.to, iw_ud(qp)->ipv4);
    iw_ud_header_encode(head + FRONT, &h);
    o->iov[o->iovs] = front(head, datagram, false, joins);
    if (r->here)
        iw_ud_grh(head + FRONT + IW_UD_HEADER, &h, &r->from, &r->to, e->len);
    else
        o->iov[o->iovs].iov_len -= IW_UD_GRH;
    o->iovs += 1 + payload;
    o->msg[o->messages - 1].msg_hdr.msg_iovlen += 1 + payload;
    o->bytes += IW_UD_PACK_LENGTH + datagram;
    o->of[o->messages - 1]++;
    o->datagrams++;
    return IW_OK;
}

bool iw_ud_has_room(const struct iw_ud_outgoing *o)
{
    return o->messages < IW_UD_OUT_MESSAGES && o->datagrams < IW_UD_OUT_DATAGRAMS &&
           o->iovs + 1 + IW_MAX_SGE <= IW_UD_OUT_IOVS;
}
