/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tie between a QP and its stream. What the CM does with a QP:
 *
 *     reserve -> link -> (ready, close, ...) -> unlink       or       reserve -> unreserve
 *
 * None of these is called with a lock held unless its name says so.
 */
#ifndef ANYWARP_QP_LINK_H
#define ANYWARP_QP_LINK_H

#include "qp/qp.h"

/** What the CM wants to hear, with no lock held. */
struct iw_qp_owner {
    /** News (enum iw_qp_news) of a life of the QP; they may come late, in any order. */
    void (*news)(struct iw_qp *qp, uint32_t life, unsigned news);
    /** The QP is going to be freed, or as new: gives it back. */
    void (*leave)(struct iw_qp *qp);
};

/**
 * Reserves the QP for one connection attempt of @p cm, in the name of @p owner, which is constant.
 * @param ack_timeout  what queries tell as its timeout; 0 leaves that as it is
 * @return 0 or -EINVAL (in error, connected before, reserved)
 */
int iw_qp_reserve(struct iw_qp *qp, struct iw_cm *cm, const struct iw_qp_owner *owner,
                  uint8_t ack_timeout);

/** Has the CM give the QP back; then no thread that came through the CM is inside it. */
void iw_qp_leave_owner(struct iw_qp *qp);

/** Forgets the CM; if the attempt had begun and @p failed, the QP goes to error. */
void iw_qp_unreserve(struct iw_qp *qp, bool failed);

/** What the ends of a connection with InfiniBand manners have told each other. */
struct iw_link_ib {
    uint32_t peer_qpn;
    uint8_t retry_cnt, rnr_retry; /* of our requests */
    bool moves;                   /* the QP to RTS; else its program does */
};

/** What the CM hands over. */
struct iw_link {
    struct iwc_stream *stream;
    struct iwc_stream_shm *shm; /* the stream, or what is below a tap on it, if it may go on in
                                   rings; else NULL */
    struct iw_source *source;
    const struct mpa_result *agreed;
    const struct sockaddr *local, *peer; /* for the statistics; NULL: unknown */
    const struct tls_peer *tls;          /* who the peer is; NULL: nobody has proven it */
    const struct iw_link_ib *ib;         /* InfiniBand manners; NULL: iWARP's */
    bool same_host;
    enum stats_tcp tcp;   /* for the statistics: why not through rings, at first */
    bool responder;       /* the CM wants to know of the first FPDU, which also ends the hold */
    bool hold;            /* nothing is sent before iw_qp_release() */
    uint8_t rtr;          /* initiator: the MPA_RTR_* to send first, 0 for none */
    const uint8_t *early; /* bytes that came in behind the Reply */
    size_t early_len;
};

/**
 * Attaches a negotiated stream: state RTS. The caller adds the source afterwards.
 * @return 0, -ENOMEM, or -ECONNABORTED: the QP is in error
 */
int iw_qp_link(struct iw_qp *qp, const struct iw_link *l);

/** Ends the hold. */
void iw_qp_release(struct iw_qp *qp);

/**
 * Sends a zero-length RDMA Write, which every peer must take and no program sees, if something was
 * sent, all of it, and no FPDU came in yet.
 * @return whether no FPDU came in yet
 */
bool iw_qp_nudge(struct iw_qp *qp);

/**
 * The stream is readable, writable or gone, or may be any of it: the ready() of a connection.
 * @return whether bytes moved
 */
bool iw_qp_ready(struct iw_qp *qp, uint32_t events);

/** Begins a graceful close, or moves a connected QP to error and closes. */
void iw_qp_close(struct iw_qp *qp, bool abrupt);

/**
 * The time limit of the close, or of a FIN behind held Sends, ran out.
 * @param awaits  qp->rx.awaits when it began: of a FIN that has got more time since, it is no
 * matter
 */
void iw_qp_expired(struct iw_qp *qp, unsigned awaits);

/** The connection stalls for IW_STALL_MS now, if the socket was not empty since. */
void iw_qp_stalled(struct iw_qp *qp);

/**
 * The time of a QP by number is over: if it has no connection, what is posted fails with
 * IBV_WC_RETRY_EXC_ERR, and the QP with it.
 * @param why  for the log
 */
void iw_qp_unreached(struct iw_qp *qp, const char *why);

/** Notes whether the CM looks at what TCP has sent; if not, IW_QP_NEWS_SENDS tells of more. */
void iw_qp_watched(struct iw_qp *qp, bool watched);

/** The stream is lost without a word to or from the peer: negative errno @p error. */
void iw_qp_lose(struct iw_qp *qp, int error);

/** Whether the peer has begun: as the first FPDU is in, or none has to be. */
bool iw_qp_heard(struct iw_qp *qp);

/** Whether a stream was ever attached. */
bool iw_qp_was_linked(struct iw_qp *qp);

/** Whether everything is sent that will be: the stream may be taken away. */
bool iw_qp_closed_enough(struct iw_qp *qp);

/** Whether our FIN is out, and the peer's is waited for. */
bool iw_qp_drains(struct iw_qp *qp);

/**
 * Whether no more will be sent, but for a FIN that closing the socket, or the end of the process,
 * sends. Only tries the lock: taken means no.
 */
bool iw_qp_try_sent(struct iw_qp *qp);

/** The event of the end is where the program finds it: what waited for that is flushed. */
void iw_qp_end_is_told(struct iw_qp *qp);

/** Forgets the stream and the CM. The source must be gone: no pass is inside the QP. */
void iw_qp_unlink(struct iw_qp *qp);

/* ---- tx.lock held ---- */

/** Sends what can be sent now. */
void iw_qp_transmit_locked(struct iw_qp *qp, struct iw_wakes *w);
/** What is unsent no longer refers to the program's memory, which it may free from now on. */
void iw_qp_own_unsent_locked(struct iw_qp *qp, struct iw_wakes *w);
/** Asks epoll for what the QP waits for. */
void iw_qp_want_locked(struct iw_qp *qp);
/** After the peer's FIN the socket stays readable: stop asking. */
void iw_qp_stop_reading_locked(struct iw_qp *qp);
/** FPDU size by ANYWARP_FPDU, the peer, and the segment size now. */
void iw_qp_set_mulpdu_locked(struct iw_qp *qp);
/** The only place that changes the state, in the QP and in what the program sees. */
void iw_qp_set_state_locked(struct iw_qp *qp, enum ibv_qp_state state);

#endif
