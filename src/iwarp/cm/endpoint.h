/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM endpoints inside the RNIC: endpoint.c life and the end of connections, event.c what the
 * handler hears, listen.c the passive side, connect.c the active side, socket.c the TCP socket,
 * tcp.c what TCP knows of the peer, host.c news of the host's addresses, all.c what
 * happens to all of them at fork() and exit(). The public face is port.h.
 *
 * An endpoint lives while somebody refers to it: the program (until iw_cm_destroy), its socket
 * (until that is closed), events under way. cm.lock is the outermost lock of the project, but for
 * the one that keeps Requests in order (listen.c); no handler, QP function or source removal is
 * called with it held. Whoever moves the state owns the step that follows: two threads never carry
 * out the same one.
 */
#ifndef ANYWARP_CM_ENDPOINT_H
#define ANYWARP_CM_ENDPOINT_H

#include "cm/port.h"
#include "common/list.h"
#include "common/lock.h"
#include "conn/nego.h"
#include "conn/stream.h"
#include "engine/engine.h"

#include <pthread.h>
#include <stdatomic.h>

struct iw_qp;

#define IW_CM_STATES(X)                                                                            \
    X(IDLE) /* no socket */                                                                        \
    X(BOUND)                                                                                       \
    X(LISTEN)                                                                                      \
    X(CONNECTING)   /* TCP, or the rest after a refusal */                                         \
    X(WAIT_REPLY)   /* MPA Request sent */                                                         \
    X(RETRY)        /* TCP anew, or revision 1: the thread that found out is at it */              \
    X(WAIT_REQUEST) /* a listener's child, unknown to the program */                               \
    X(DECISION)     /* CONNECT_REQUEST given to the program */                                     \
    X(ACCEPTED)     /* Reply sent; the first FPDU is waited for */                                 \
    X(ESTABLISHED)                                                                                 \
    X(CLOSING) /* DISCONNECTED is raised; the socket drains */                                     \
    X(CLOSED)

enum iw_cm_state {
#define X(name) IW_CM_S_##name,
    IW_CM_STATES(X)
#undef X
};

/**
 * An event under way. Each endpoint raises each kind at most once, so all of them are its own: an
 * event is never lost for want of memory.
 */
struct iw_cm_pending {
    struct list link;      /* in the events of the endpoint that hears of it */
    struct iw_cm *subject; /* whose it is; a reference while it is queued or being delivered */
    struct iw_cm_event event;
};

/** What a listener's child is to its account. */
enum iw_cm_child {
    IW_CM_NO_CHILD,
    IW_CM_HALF_OPEN,   /* WAIT_REQUEST */
    IW_CM_UNDECIDED,   /* DECISION, known to the program */
    IW_CM_TURNED_AWAY, /* waits for the peer to hang up */
};

/** What TCP had heard at the last look at a peer that owes it an answer; see tcp.c. */
struct iw_cm_silence {
    unsigned looks;   /* since it heard anything */
    uint32_t segs_in; /* all that came in */
    uint32_t retrans; /* all that was sent again, when something came in last */
};

struct iw_cm {
    struct lock lock;
    pthread_cond_t idle; /* no handler runs any more */
    atomic_uint refs;
    enum iw_cm_state state;

    iw_cm_handler *handler; /* NULL: destroyed, or nobody took the child */
    void *owner;
    struct list events; /* struct iw_cm_pending */
    bool delivering;
    pthread_t deliverer;
    struct iw_cm_pending asked;   /* CONNECT_REQUEST, for the listener */
    struct iw_cm_pending outcome; /* of the handshake */
    struct iw_cm_pending ended;   /* DISCONNECTED */
    bool told;                    /* outcome is queued: ended may follow */
    bool end_waits;               /* ended is due as soon as outcome is queued */
    bool end_heard;               /* ended is delivered, or nobody listens any more */
    unsigned closed;              /* IW_QP_NEWS_CLOSED, maybe with RESET, once the QP says so */
    bool stuck;                   /* the peer takes nothing, or is dead: the end is a reset */
    unsigned looks;               /* CLOSING: at what TCP has not delivered */
    long unacked;                 /* bytes at the last of them; 0: there was none */

    int fd;                    /* -1: none */
    struct iwc_stream_tcp tcp; /* owns fd once connected */
    struct iw_source source;
    struct iw_timer timer;
    atomic_uint awaits;    /* those of the QP when the timer was set */
    struct iw_timer stall; /* a linked QP's: iw_qp_stalled() */
    struct iw_timer watch; /* a linked QP's, while TCP waits for answers */
    struct iw_cm_silence silence;
    uint8_t tos;
    bool tos_set;
    bool afonly;   /* IPv6: no IPv4 */
    bool any_port; /* active side: the port was ours to choose, another will do */
    bool same_host;

    struct mpa_nego *nego;    /* during the handshake */
    struct iw_qp *_Atomic qp; /* linked: gets the socket's events; changed under lock */
    struct iw_qp *reserved;   /* during the handshake */
    bool destroyed;           /* by the program: nobody hears of events */
    bool hang_up;             /* the program disconnected during the handshake: at its end, then */
    bool watched;             /* the source holds a reference */
    bool busy;                /* CONNECTING: a thread has taken the sending of the Request */
    bool peer_gone;           /* DECISION: found out before the program decided */
    bool abandoned;           /* RETRY: nobody waits for the outcome any more */
    atomic_bool closing;      /* iw_cm_disconnect() was called */
    atomic_bool released;     /* the hold of our first FPDU is over */
    atomic_uint nudges;       /* so many are left; the timer is theirs then */

    /* active side, for further attempts */
    struct sockaddr_storage dst;
    bool retried;      /* with revision 1 */
    bool resting;      /* CONNECTING: refused, the timer is that of the next attempt */
    unsigned refusals; /* of TCP */
    uint8_t depth[2];  /* initiator_depth, responder_resources */
    uint8_t pd_len;
    uint8_t pd[IW_CM_PRIVATE_DATA_MAX];

    /* listener */
    int backlog;
    unsigned children;   /* from accept() to close(), or to iw_cm_accept() */
    unsigned undecided;  /* of them */
    struct list endable; /* child_link of the others, oldest first */
    /* child */
    struct iw_cm *listener; /* a reference, while it counts there */
    struct list child_link; /* under listener->lock */
    enum iw_cm_child child; /* under listener->lock */

    struct iw_cm *next_chosen; /* all.c */
};

/* ---- endpoint.c ---- */

struct iw_cm *iw_cm_new(void);
void iw_cm_get(struct iw_cm *cm);
void iw_cm_put(struct iw_cm *cm);
/** The locks of all endpoints, and so all endpoints; some have no references any more. */
extern struct lock_class iw_cm_locks;

/** Moves the state if it is @p from. @return whether it was: the caller owns what follows */
bool iw_cm_move(struct iw_cm *cm, enum iw_cm_state from, enum iw_cm_state to);

/**
 * Queues an event of @p subject for the handler of @p cm, whose lock is held.
 * @param p      the place of this kind of event in subject
 * @param event  its private data is that of subject->nego
 * @return false if nobody hears of events any more
 */
bool iw_cm_queue_locked(struct iw_cm *cm, struct iw_cm *subject, struct iw_cm_pending *p,
                        const struct iw_cm_event *event);
/** Delivers what is queued. A CONNECT_REQUEST that the handler does not take is destroyed. */
void iw_cm_deliver(struct iw_cm *cm);
/** Queues and delivers an event of @p cm for its own handler. */
void iw_cm_raise(struct iw_cm *cm, struct iw_cm_pending *p, const struct iw_cm_event *event);

/** From now on nobody hears of events: drops those that are queued, waits for one being handled. */
void iw_cm_forget_handler(struct iw_cm *cm);

/**
 * DISCONNECTED was delivered, or never will be. Only now does the socket of a connection go that
 * the peer closed first: whoever sees our FIN, and goes on, comes later than the event.
 */
void iw_cm_end_heard(struct iw_cm *cm);

/** Removes source and timer, closes the socket, frees the handshake, state CLOSED. */
void iw_cm_release(struct iw_cm *cm, bool reset);

/** The connection is up: raises ESTABLISHED with the peer's private data and the agreed depths. */
void iw_cm_established(struct iw_cm *cm);

/**
 * News of a linked QP (enum iw_qp_news), in any order, with no lock held. Those of a life that it
 * has left, as a thread may bring them late, are dropped.
 */
void iw_cm_news(struct iw_qp *qp, uint32_t life, unsigned news);

/**
 * The QP is going to be freed, or as new: what was posted goes out (1 s), the endpoint drains on
 * its own.
 */
void iw_cm_qp_leaves(struct iw_qp *qp);

/** The connection, if it is one, ends here and now: its socket is of no use. */
void iw_cm_lose(struct iw_cm *cm);

/** The QP of @p param for a new connection. @return NULL if there is none, or a limit is passed */
struct iw_qp *iw_cm_param_qp(const struct iw_cm_param *param);

/** Adds the socket to the engine; the source holds a reference. @return 0 or a negative errno */
int iw_cm_watch(struct iw_cm *cm, uint32_t events);
/** Starts the time limit of the present state; nothing if that is CLOSED. */
void iw_cm_set_timer(struct iw_cm *cm, unsigned ms);
/** The time limit of an active peer's part of the handshake: @p ms, or less if the knob says so. */
unsigned iw_cm_patience(unsigned ms);
/** Starts the time limit of the hold: for the first FPDU, or until the peer is ready for ours. */
void iw_cm_wait_first(struct iw_cm *cm);

/** Hands a negotiated stream to the reserved QP. @return 0 or -ENOMEM */
int iw_cm_link(struct iw_cm *cm, const uint8_t *early, size_t early_len);

/* ---- listen.c, connect.c: the handshake steps, called by the source and the timer ---- */

void iw_cm_listen_ready(struct iw_cm *cm);
void iw_cm_listen_resume(struct iw_cm *cm);
void iw_cm_request_ready(struct iw_cm *cm);
void iw_cm_decision_ready(struct iw_cm *cm, uint32_t events);
void iw_cm_request_expired(struct iw_cm *cm);
/** Ends the half-open children. */
void iw_cm_drop_children(struct iw_cm *listener);
/** Takes a child off its listener's accounts; harmless when done. */
void iw_cm_orphan(struct iw_cm *cm);
void iw_cm_connect_ready(struct iw_cm *cm);
void iw_cm_reply_ready(struct iw_cm *cm);
void iw_cm_connect_expired(struct iw_cm *cm);
void iw_cm_reply_expired(struct iw_cm *cm);
/** Ends an attempt that nobody waits for any more. */
void iw_cm_abandon(struct iw_cm *cm);

/* ---- all.c ---- */

/**
 * What the endpoints do about fork(); see process/atfork.h. In the child the sockets of connections
 * are closed, without shutdown(), and listeners rest.
 */
void iw_cm_fork(enum fork_step step);
/** In the child, with no lock held: ends the connections whose sockets were closed. */
void iw_cm_disown(void);

/** Begins to close every connection. */
void iw_cm_disconnect_all(void);
/**
 * Whether everything that was posted is with the peer's TCP, on every connection. Only tries locks:
 * one that is taken means no.
 */
bool iw_cm_all_delivered(void);

/**
 * Connections whose peer has taken nothing since the last call, because its window is closed, end
 * with a reset when the process does. Only tries locks.
 */
void iw_cm_reset_stuck(void);

/* ---- tcp.c ---- */

/** How far the peer's TCP is with what was sent. */
enum iw_cm_delivery {
    IW_CM_DELIVERED, /* it has all of it; a FIN may be under way */
    IW_CM_DELIVERS,  /* it has more than at the last look, or there was none */
    IW_CM_STUCK,     /* it has no more, as its window is closed */
    IW_CM_SILENT,    /* it has no more, for whatever reason */
};

/** cm.lock. */
bool iw_cm_delivered_locked(const struct iw_cm *cm);
/** Notes the state for the next look. cm.lock. */
enum iw_cm_delivery iw_cm_delivery_locked(struct iw_cm *cm);

enum iw_cm_answer {
    IW_CM_NONE_DUE, /* all that was sent is acknowledged */
    IW_CM_DUE,
    IW_CM_DEAD, /* none came for as long as iw_conf()->silence_s says, though asked for again */
};

/** Notes what TCP has heard for the next look, in iw_cm_watch_ms(). cm.lock. */
enum iw_cm_answer iw_cm_answer_locked(struct iw_cm *cm);
unsigned iw_cm_watch_ms(void);

/* ---- socket.c ---- */

/** A TCP socket with our options. @return descriptor above 1023 if possible, or negative errno */
int iw_cm_socket(int family, const struct iw_cm *cm);
/** A fresh socket in place of the present one, which stays if that fails. The caller owns the
 * state. @return 0 or a negative errno */
int iw_cm_rebind(struct iw_cm *cm, bool other_port);
/** Options of a connected socket: how it asks a silent peer. */
void iw_cm_socket_connected(int fd);
void iw_cm_socket_tos(int fd, uint8_t tos);
/** A connected socket is as before connect() again, bound as it was. @return 0 or negative errno */
int iw_cm_socket_again(int fd);
/** Whether both ends of the connected socket are this host. */
bool iw_cm_same_host(int fd);
/**
 * Sends the frame that stands in nego->out. @return 0 or a negative errno; -ECONNRESET if another
 * thread has found the peer gone, and closed the socket
 */
int iw_cm_send_frame(struct iw_cm *cm);
/** Sends FIN, unless the socket is closed. */
void iw_cm_shutdown(struct iw_cm *cm);
/** Whether CRC is to be asked for. */
bool iw_cm_wants_crc(const struct iw_cm *cm);

#endif
