/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The statistics of a process as they stand in its file; shared with the tool that reads them.
 *
 * Everything is in host byte order and naturally aligned. A row with a seq is rewritten as a whole
 * between two increments of it, so seq is odd meanwhile; state, error, binds, head, tail, waiting,
 * the counters and the use of queues change at any time, each by one store. A reader takes a row
 * twice and believes it if both copies have the same even seq and the same constant part
 * (stats_same()).
 *
 * The file grows with the number of rows in use; what is behind its end is not there.
 */
#ifndef ANYWARP_OBSERVE_STATS_PAGE_H
#define ANYWARP_OBSERVE_STATS_PAGE_H

#include "conn/flow.h"
#include "conn/tls_peer.h"

#include <stddef.h>
#include <stdint.h>

#define STATS_MAGIC   "anywarp"
#define STATS_VERSION 6

#define STATS_ERRORS    32    /* the newest ones are kept */
#define STATS_CQS       512   /* rows; what there are more of is not shown */
#define STATS_LISTENERS 64    /* " */
#define STATS_QPS       16384 /* " */

/* X(name, what it is; in the order of the output) */
#define STATS_GAUGES(X)                                                                            \
    X(pd, "protection domains")                                                                    \
    X(mr, "memory regions")                                                                        \
    X(mr_bytes, "bytes registered")                                                                \
    X(mw, "memory windows")                                                                        \
    X(cq, "completion queues")                                                                     \
    X(srq, "shared receive queues")                                                                \
    X(qp, "queue pairs")                                                                           \
    X(connects, "connections made, active side")                                                   \
    X(accepts, "connections made, passive side")                                                   \
    X(errors, "queue pairs that failed")                                                           \
    X(binds, "memory windows bound by QPs that are gone")

enum stats_gauge {
#define X(name, text) STATS_##name,
    STATS_GAUGES(X)
#undef X
        STATS_GAUGE_COUNT,
};

struct stats_head {
    char magic[8];
    uint32_t version;
    uint32_t error_next; /* errors so far: the next goes to errors[error_next % STATS_ERRORS] */
    uint32_t cq_rows, qp_rows; /* that were ever in use; those of them with id 0 are free */
    uint32_t pid, uid;
    uint64_t start;   /* of the process, in ticks after boot; with pid and ns it names a process */
    uint64_t ns;      /* of its PID namespace, the inode number */
    uint64_t began;   /* ns, CLOCK_REALTIME */
    char release[16]; /* of anywarp */
    char command[64];
    char devices[512]; /* "anywarp0", or "aw0=eth0 aw1=eth1" */
    int64_t gauge[STATS_GAUGE_COUNT];
    struct iwc_flow out, in; /* of QPs that are gone */
    uint32_t exited;         /* 1: the process called exit(), with errors */
    uint32_t listener_rows;  /* as cq_rows */
};

struct stats_error {
    uint32_t seq;
    uint32_t qp_num;
    uint64_t at; /* ns, CLOCK_REALTIME */
    char text[496];
};

struct stats_cq {
    uint32_t seq;
    uint32_t id;         /* a number from 1 on; 0: the row is free */
    uint32_t cqe;        /* entries */
    uint32_t head, tail; /* completions polled, completions added; free-running */
    uint32_t spare[11];  /* no line is shared with another CQ */
};

struct stats_listener {
    uint32_t seq;
    uint32_t id; /* a number from 1 on; 0: the row is free */
    uint8_t local[16];
    uint16_t local_port;
    uint8_t flags; /* STATS_IPV6, or 0 */
    uint8_t unused;
    uint32_t backlog; /* requests that may wait for the program's answer */
    uint32_t waiting; /* and do; changes at any time */
    uint32_t spare[7];
};

enum stats_flags {
    STATS_LINKED = 1 << 0,    /* addresses and what was negotiated are there */
    STATS_CRC = 1 << 1,       /* CRCs are generated and checked */
    STATS_MARKERS = 1 << 2,   /* the peer asked for markers */
    STATS_ANYWARP = 1 << 3,   /* the peer is anywarp */
    STATS_INITIATOR = 1 << 4, /* active side */
    STATS_IPV6 = 1 << 5,
    STATS_P2P = 1 << 6,       /* RFC 6581 peer-to-peer */
    STATS_INHERITED = 1 << 7, /* a forked child's, and its parent uses it */
};

enum stats_kind {
    STATS_UC = 1 << 0,   /* neither this nor UD: RC */
    STATS_ROCE = 1 << 1, /* of a RoCE device, else of an iWARP one */
    STATS_UD = 1 << 2,
};

/* X(name, how stat says it): where a QP by number is with its peer. */
#define STATS_DIALS(X)                                                                             \
    X(NONE, "none")                                                                                \
    X(CALLS, "calls") /* it is the one that connects */                                            \
    X(WAITS, "waits") /* for the peer to connect */                                                \
    X(MET, "connected")                                                                            \
    X(OVER, "over") /* it was, and will not be again before RESET */

enum stats_dial {
#define X(name, text) STATS_DIAL_##name,
    STATS_DIALS(X)
#undef X
        STATS_DIAL_COUNT,
};

/* X(name, how stat says it): why a connection within this host goes over TCP. */
#define STATS_TCPS(X)                                                                              \
    X(NONE, "none") /* it does not, or is not within this host */                                  \
    X(OFF, "off")   /* ANYWARP_SHM is, here */                                                     \
    X(TLS, "tls")                                                                                  \
    X(CRC, "crc")                                                                                  \
    X(CHAOS, "chaos")                                                                              \
    X(PEER, "peer")     /* it does not want rings */                                               \
    X(FEW, "few")       /* messages so far */                                                      \
    X(ASKED, "asked")   /* the peer was, and has not come */                                       \
    X(USER, "user")     /* the peer is of another */                                               \
    X(AWAY, "away")     /* it is not found: another network namespace, say */                      \
    X(MEMORY, "memory") /* there is none to share */                                               \
    X(LIMIT, "limit")   /* of what a process shares */

enum stats_tcp {
#define X(name, text) STATS_TCP_##name,
    STATS_TCPS(X)
#undef X
        STATS_TCP_COUNT,
};

/* X(name, how stat says it): why a datagram that came in is dropped. */
#define STATS_DROPS(X)                                                                             \
    X(NO_RECEIVE, "no_receive") /* is posted, or the QP is in no state to take it */               \
    X(Q_KEY, "q_key")           /* is another */                                                   \
    X(REFUSED, "refused")       /* ANYWARP_ACCESS */                                               \
    X(NOT_OURS, "not_ours")     /* no datagram of an anywarp for this QP */

enum stats_drop {
#define X(name, text) STATS_DROP_##name,
    STATS_DROPS(X)
#undef X
        STATS_DROP_COUNT,
};

struct stats_qp {
    uint32_t seq;
    uint32_t qp_num; /* 0: the row is free */
    uint16_t ird, ord;
    uint16_t local_port, peer_port;
    uint32_t send_cq, recv_cq;   /* their ids, 0: none or no row */
    uint8_t local[16], peer[16]; /* as on the wire; IPv4: the first four */
    uint8_t flags;               /* enum stats_flags */
    uint8_t rev;                 /* of MPA */
    uint8_t state;               /* enum ibv_qp_state */
    uint8_t error;               /* enum iw_err, the first cause; 0: none */
    uint32_t binds;              /* of windows */
    struct iwc_flow out, in;
    struct {
        uint32_t size, used; /* work requests that fit, and are posted and not complete */
        uint32_t dial;       /* enum stats_dial; NONE: not by number */
        uint32_t peer_qpn;   /* by number */
        uint32_t ring;       /* 1: what goes out goes through a ring in shared memory */
        uint32_t kind;       /* enum stats_kind */
        uint64_t lost;       /* datagrams that the kernel did not take */
        uint32_t spare[8];
    } sq;
    struct {
        uint32_t size, used;       /* receives, likewise; 0 with an SRQ */
        uint32_t held, held_bytes; /* messages of the peer that wait for one, and their bytes */
        uint32_t ring;             /* 1: what comes in comes through one */
        uint32_t tcp;              /* enum stats_tcp, while nothing goes through one */
        uint64_t dropped[STATS_DROP_COUNT]; /* datagrams */
        uint32_t spare[2];
    } rq;
    struct tls_peer_name tls; /* empty: no TLS */
};

struct stats_page {
    union {
        struct stats_head head;
        uint8_t head_room[4096];
    };
    struct stats_error errors[STATS_ERRORS];
    struct stats_cq cqs[STATS_CQS];
    struct stats_listener listeners[STATS_LISTENERS];
    struct stats_qp qps[STATS_QPS];
};

_Static_assert(sizeof(struct stats_head) <= 4096, "the head has a page");
_Static_assert(sizeof(struct stats_qp) == 640, "whole cache lines");
_Static_assert(sizeof(struct stats_cq) == 64, "a cache line");
_Static_assert(sizeof(struct stats_listener) == 64, "a cache line");
_Static_assert(offsetof(struct stats_qp, out) == 64, "written by others than the rest");

#endif
