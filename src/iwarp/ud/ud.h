/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs of type UD: datagrams to any QP of that type, without a connection.
 *
 * To another host they go by UDP, from and to the ports of the QPs' numbers (qpn/number.h); to a
 * process of this host through an abstract unix socket named by the number, so that none is lost
 * while the receiver runs (send.h says how long one waits for it). Multicast groups are those of
 * IP, on one port for all (group.h).
 *
 * The QP is a struct iw_qp with its queues; what is different begins in qp->datagrams: transmission
 * is send.h's. What comes in is receive.h's, run by the engine for each socket. A work request
 * completes when the kernel has the datagram. One that is at fault moves the QP to SQE, a receive
 * at fault to ERR.
 *
 * What librdmacm needs is there by public verbs: the number is ibv_qp.qp_num, the Q_Key what
 * ibv_query_qp() says, an address handle what ibv_create_ah() makes of a GID of the peer's address
 * (IPv4 as IPv4-mapped) and an own GID; IW_UD_MULTICAST and ibv_attach_mcast() are for groups. What
 * is sent to a number before its QP is in RTR is lost.
 *
 * Locks: fields are constant or under the QP's rx.lock or tx.lock, as said there; the list of all
 * is under a leaf. In the child of a fork() the sockets are closed, and what is sent is lost.
 */
#ifndef ANYWARP_UD_UD_H
#define ANYWARP_UD_UD_H

#include "engine/source.h"
#include "engine/timer.h"
#include "qp/qp.h"
#include "qpn/number.h"

#define IW_UD_INPUT   (EPOLLIN | EPOLLRDHUP)
#define IW_UD_STOPPED 8 /* receivers that are remembered to take nothing */

struct iw_ud;
struct iw_ud_burst;

enum iw_ud_way {
    IW_UD_NET,   /* UDP, on the port of the number */
    IW_UD_LOCAL, /* of this host */
    IW_UD_GROUP, /* UDP, on the port of groups; opened when the first is joined */
    IW_UD_WAYS,
};

struct iw_ud_socket {
    struct iw_ud *ud;
    enum iw_ud_way way;
    int fd; /* -1: none */
    struct iw_source source;
    /* under rx.lock; see receive.h */
    unsigned burst;           /* messages to ask for */
    struct iw_ud_burst *kept; /* what was read before there were receives for it all */
};

struct iw_ud {
    struct iw_datagrams datagrams; /* qp->datagrams */
    struct iw_number number;
    struct iw_qp *qp;
    struct iw_ud_socket in[IW_UD_WAYS];
    bool ipv4;       /* in[IW_UD_NET] is of IPv4 alone */
    bool block_self; /* what it sends to a group does not come back to it */
    bool watched;    /* by the engine; under tx.lock */
    bool stopping;   /* nothing is sent any more; under tx.lock */
    struct list link;
    struct list groups; /* see group.h */

    /* under rx.lock; see receive.h */
    bool rests, drops;
    struct iw_timer over;

    /* under tx.lock */
    int out;             /* to this host; -1: not open */
    uint64_t full_since; /* iw_now() when the datagram at sq.cut found no room; 0: it did */
    uint64_t tried;      /* iw_now() of the last try that found none; 0: long ago */
    uint64_t gathers;    /* iw_now() when a pack began to fill; 0: none does */
    bool renewed;        /* out is new since then */
    uint32_t single;     /* datagrams from sq.cut on that are not packed */
    uint32_t stopped[IW_UD_STOPPED]; /* numbers of those that took nothing for as long */
    struct iw_timer again;
};

static inline struct iw_ud *iw_ud(const struct iw_qp *qp)
{
    return container_of(qp->datagrams, struct iw_ud, datagrams);
}

/**
 * Sockets and number for a QP, which is made with &ud->datagrams and ud->number.qpn, and then
 * attached.
 * @param max  payload bytes of a datagram: the active MTU
 * @return NULL and errno
 */
struct iw_ud *iw_ud_new(uint32_t max);
void iw_ud_attach(struct iw_ud *ud, struct iw_qp *qp);
/** The QP was moved: from INIT on its sockets are looked at. @return 0 or a positive errno */
int iw_ud_moved(struct iw_ud *ud);
/** Before the QP is stopped: nothing comes in, or goes out, any more. */
void iw_ud_stop(struct iw_ud *ud);
/** The QP is gone, or never was. */
void iw_ud_free(struct iw_ud *ud);

/** What the module does about fork(); see process/atfork.h. */
void iw_ud_fork(enum fork_step step);
/** In the child of a fork(), with no lock held: closes the parent's sockets. */
void iw_ud_disown(void);

#endif
