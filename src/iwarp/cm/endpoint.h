/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CM endpoints inside the RNIC: table.h their life as a table, endpoint.c its steps and the linked
 * QP, end.c the end of connections, event.c what the handler hears, listen.c the passive side,
 * connect.c the active side, stranger.c who does not speak MPA, socket.c the TCP socket, tcp.c what
 * TCP knows of the peer, tls.c which connections are TLS, shm.c which go on in shared memory,
 * access.c who may be the peer, sidr.c what there is of all this for datagrams, terms.c what ends
 * with RoCE devices tell each other, move.c for which requests programs move QPs, host.c news of
 * the host's addresses, all.c what happens to all of them at fork() and exit(). The public face is
 * port.h.
 *
 * An endpoint lives while somebody refers to it: the program (until iw_cm_destroy), its socket
 * (until that is closed), events under way. cm.lock is the outermost lock of the project, but for
 * the one that keeps Requests in order (listen.c); no handler, QP function or source removal is
 * called with it held. Whoever takes a step carries its actions out: two threads never do the same
 * one.
 */
#ifndef ANYWARP_CM_ENDPOINT_H
#define ANYWARP_CM_ENDPOINT_H

#include "cm/port.h"
#include "cm/table.h"
#include "common/list.h"
#include "common/lock.h"
#include "conn/nego.h"
#include "conn/stream_shm.h"
#include "conn/stream_tcp.h"
#include "conn/stream_tls.h"
#include "engine/source.h"
#include "engine/timer.h"
#include "local/meeting.h"
#include "local/pages.h"

#include <pthread.h>
#include <stdatomic.h>

struct iw_qp;

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

/** What is known of the end beside the state. */
struct iw_cm_end {
    atomic_bool asked; /* for by the program; during the handshake: once there is a QP */
    bool reset;        /* no FIN: the peer takes nothing, or is dead, or has got half a Reply */
    unsigned looks;    /* at what TCP has not delivered */
    long unacked;      /* bytes at the last of them; 0: there was none */
};

/** Rings beside TCP; see shm.c. */
struct iw_cm_shm {
    bool may; /* the stream is this one: both ends are on this host, and nothing is in the way */
    int bell; /* -1: none; changed under cm.lock */
    struct iwc_stream_shm stream;
    struct iw_pages pages; /* changed under cm.lock */
    struct iw_offer offer;
    struct iw_source source; /* the bell */
    struct iw_timer timer;   /* it is time to go and meet the responder, or to let pages go */
};

/** A program has asked how to move its QP for this, in DECISION; see move.c. */
struct iw_cm_move {
    bool listed; /* under cm.lock */
    struct list link;
    uint8_t peer[16]; /* IPv4 as IPv4-mapped IPv6 */
    uint32_t qpn;     /* the peer's */
};

struct iw_cm {
    struct lock lock;
    struct lock_cond idle; /* no handler runs any more */
    atomic_uint refs;
    enum iw_cm_state state;

    iw_cm_handler *handler; /* NULL: destroyed, or nobody took the child */
    void *owner;
    struct list events; /* struct iw_cm_pending */
    bool delivering;
    pthread_t deliverer;
    struct iw_cm_pending asked;   /* CONNECT_REQUEST or STRANGER, for the listener */
    struct iw_cm_pending outcome; /* of the handshake */
    struct iw_cm_pending ended;   /* DISCONNECTED */
    struct iw_cm_end end;

    int fd;                    /* -1: none */
    struct iwc_stream_tcp tcp; /* owns fd once connected */
    struct iwc_stream *tls;    /* over it, or NULL */
    struct iwc_stream *stream; /* the upper one */
    bool sorted;               /* a child: its first byte has told whether it speaks TLS */
    bool may_be_stranger;      /* a child: its first bytes have not told that it speaks MPA */
    uint8_t peeked;            /* so many have come, and may be MPA's */
    struct iw_cm_shm shm;
    struct iw_source source;
    struct iw_timer timer;
    atomic_uint awaits;    /* those of the QP when the timer was set */
    struct iw_timer stall; /* a linked QP's: iw_qp_stalled() */
    atomic_bool requested; /* the MPA Request is with TCP */
    struct iw_timer
        unmet; /* a linked QP's: iw_qp_unmet(); a listener's: nobody decides; or nobody answers */
    struct iw_timer watch; /* a linked QP's, while TCP waits for answers */
    struct iw_cm_silence silence;
    atomic_uint silence_ms; /* 0: as the configuration says */
    uint8_t tos;
    bool tos_set;
    bool afonly;   /* IPv6: no IPv4 */
    bool any_port; /* active side: the port was ours to choose, another will do */
    bool same_host;
    bool ib;        /* the connection has, or is to have, InfiniBand manners */
    bool hands_off; /* with ib: the program moves the QP */
    struct iw_cm_move move;
    struct iw_terms terms; /* the peer's, with ib; once the Request or Reply is in */

    struct mpa_nego *nego; /* during the handshake, until iw_cm_negotiated() */
    bool initiator;
    struct mpa_result agreed; /* from iw_cm_link() on */
    struct iw_qp *_Atomic qp; /* linked: gets the socket's events; changed under lock */
    struct iw_qp *reserved;   /* during the handshake */
    bool watched;             /* the source holds a reference */
    atomic_bool released;     /* the hold of our first FPDU is over */
    atomic_uint nudges;       /* so many are left; the timer is theirs then */

    /* active side, for further attempts */
    struct sockaddr_storage dst;
    bool itself;         /* the socket is its own peer, and nobody is asked */
    uint8_t retry_count; /* with ib */
    bool retried;        /* with revision 1 */
    int status;          /* that they failed with */
    unsigned refusals;   /* of TCP */
    uint8_t depth[2];    /* initiator_depth, responder_resources */

    /* listener */
    int backlog;
    unsigned children;                    /* from accept() to close(), or to iw_cm_accept() */
    unsigned undecided;                   /* of them */
    struct stats_listener *stats;         /* its row, while it listens */
    unsigned decisions, decisions_before; /* of the program: all in all, and a second ago */
    bool unmet_told;                      /* that it makes none */
    bool strangers;                       /* iw_cm_take_strangers() */
    struct list endable;                  /* child_link of the others, oldest first */
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

/** Whether an event means something now. */
bool iw_cm_may_locked(const struct iw_cm *cm, enum iw_cm_ev ev);
/** Moves the state as the table says; the caller has the row carried out. */
struct iw_cm_row iw_cm_take_locked(struct iw_cm *cm, enum iw_cm_ev ev);
/** The row's actions, in order; @p cm lives as long. No lock is held. */
void iw_cm_carry_out(struct iw_cm *cm, struct iw_cm_row row);
/** Both. @return the row: of what it does not say, the caller owns what follows */
struct iw_cm_row iw_cm_step(struct iw_cm *cm, enum iw_cm_ev ev);

#define X(name, function) void iw_cm_##function(struct iw_cm *cm);
IW_CM_ACTIONS(X)
#undef X

/** Calls @p f with the linked QP, which is not freed meanwhile. @return false if there is none */
bool iw_cm_with_qp(struct iw_cm *cm, void (*f)(struct iw_cm *, struct iw_qp *));
/**
 * Takes the QP off the endpoint, and from its stream; no thread's ready() uses it afterwards.
 * @return whether it was this thread that did so
 */
bool iw_cm_unlink(struct iw_cm *cm);
/** The endpoint of a QP, in this life if not NULL, referenced. @return NULL: it has none any more
 */
struct iw_cm *iw_cm_of(struct iw_qp *qp, const uint32_t *life);
/** The QP stalls, or sends, or holds a Send: sets the timer that looks at that. */
void iw_cm_set_stall(struct iw_cm *cm);
void iw_cm_set_unmet(struct iw_cm *cm);
void iw_cm_set_watch(struct iw_cm *cm);

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

/** Hears the news of linked QPs. */
extern const struct iw_qp_owner iw_cm_owner;

/** The QP of @p param for a new connection. @return NULL if there is none, or a limit is passed */
struct iw_qp *iw_cm_param_qp(const struct iw_cm_param *param, const char *call);

/** Adds the socket to the engine; the source holds a reference. @return 0 or a negative errno */
int iw_cm_watch(struct iw_cm *cm, uint32_t events);
/** Sets one of its timers; not of an endpoint that is dead: nobody would unset it. */
void iw_cm_arm(struct iw_cm *cm, struct iw_timer *t, unsigned ms, void (*fire)(struct iw_timer *));
/** Starts the time limit of the present state; nothing if that is DEAD. */
void iw_cm_set_timer(struct iw_cm *cm, unsigned ms);
/** The time limit of an active peer's part of the handshake: @p ms, or less if the knob says so. */
unsigned iw_cm_patience(unsigned ms);
/** Starts the time limit of the hold: for the first FPDU, or until the peer is ready for ours. */
void iw_cm_wait_first(struct iw_cm *cm);

/** Puts our terms, for @p qp, in front of the private data. @return bytes in all */
uint8_t iw_cm_private_data(const struct iw_cm_param *param, const struct iw_qp *qp,
                           uint8_t data[IW_CM_PRIVATE_DATA_MAX]);
/** Takes the peer's terms off the private data of its frame. @return false: there are none */
bool iw_cm_take_terms(struct iw_cm *cm);

/** Hands a negotiated stream to the reserved QP. @return 0 or -ENOMEM */
int iw_cm_link(struct iw_cm *cm, const uint8_t *early, size_t early_len);
/** Of a linked connection: nobody looks at nego any more, nor at private data in it. It goes, as an
 * idle connection has no use for its buffers. */
void iw_cm_negotiated(struct iw_cm *cm);

/* ---- listen.c ---- */

/** A listener is over: "anywarp stat" does not show it any more. Harmless for others. */
void iw_cm_hide(struct iw_cm *cm);

/* ---- move.c ---- */

/** It is not in DECISION any more: iw_cm_will_accept() does not find it. */
void iw_cm_decided_locked(struct iw_cm *cm);
/** See process/atfork.h. */
void iw_cm_move_fork(enum fork_step step);

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
    IW_CM_DEAD, /* none came for as long as it may take, though asked for again */
};

/** Notes what TCP has heard for the next look, in iw_cm_watch_ms(). cm.lock. */
enum iw_cm_answer iw_cm_answer_locked(struct iw_cm *cm);
/** Between two looks at one endpoint; NULL: at those without a limit of their own. */
unsigned iw_cm_watch_ms(const struct iw_cm *cm);

/* ---- stranger.c ---- */

/**
 * Looks at what a child has sent, without taking it.
 * @return 1: it does not speak MPA, and its listener takes such; 0; -EAGAIN: no telling yet;
 * another negative errno
 */
int iw_cm_is_stranger_locked(struct iw_cm *cm);
/**
 * Gives the socket of a child to the handler of its listener, if that takes strangers and this may
 * be one. @return false if not
 */
bool iw_cm_hand_out(struct iw_cm *cm);

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
/** Whether these two are, as far as addresses of one family tell. */
bool iw_cm_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/**
 * Sends the frame that stands in nego->out. @return 0 or a negative errno; -ECONNRESET if another
 * thread has found the peer gone, and closed the socket
 */
int iw_cm_send_frame(struct iw_cm *cm);
/** Sends FIN, unless the socket is closed. */
void iw_cm_shutdown(struct iw_cm *cm);
/* ---- access.c ---- */

/**
 * Whether this process may connect there.
 * @param knows  it will be proven who is there, and asked again
 * @return 0 or -EACCES
 */
int iw_cm_access_to(const char *call, const struct sockaddr *dst, bool knows);
/** Whether who was accepted at @p fd may come in, as far as its address tells. */
bool iw_cm_access_knock(int fd);
/** Whether a datagram from @p peer to @p own is heard. */
bool iw_cm_access_hear(const struct sockaddr_storage *own, const struct sockaddr_storage *peer);
/** Whether the peer may be connected with. @param identity  "": it has none */
bool iw_cm_access_judge(const struct iw_cm *cm, const char *identity);

/* ---- tls.c ---- */

/** Whether the policy, and the keys that it needs, let connections be made. @return 0 or -EACCES */
int iw_cm_tls_may(const char *call);
/** The same for one to @p dst, by the rules, too. */
int iw_cm_tls_may_connect(const char *call, const struct sockaddr *dst);
/** Puts the stream of an active endpoint on its socket. @return 0 or a negative errno */
int iw_cm_tls_connect(struct iw_cm *cm);
/**
 * Puts the stream of a child on its socket, when its first byte tells what it speaks.
 * @return 0, -EAGAIN as there is none yet, -EACCES if that is not wanted, or another negative errno
 */
int iw_cm_tls_accept_locked(struct iw_cm *cm);
/** Says why the handshake failed, if it did. */
void iw_cm_tls_log(struct iw_cm *cm, const char *what);

/* ---- shm.c ---- */

/** Puts a stream that can go on in rings on the socket, if this connection may have some. */
void iw_cm_shm_begin(struct iw_cm *cm);
/** So much was moved that rings pay, or they are used again: has the timer's thread see to them. */
void iw_cm_shm_due(struct iw_cm *cm);
/** Whether to ask for that, for the QP; NULL: no. */
bool iw_cm_shm_may(const struct iw_cm *cm, const struct iw_qp *qp);
/** Why a negotiated connection is not in rings. */
enum stats_tcp iw_cm_shm_why_not(const struct iw_cm *cm);
/** As iw_cm_shm_may(), and offers it: nego->conf. */
void iw_cm_shm_offer(struct iw_cm *cm, const struct iw_qp *qp);
/** The QP has left: what is shared goes. */
void iw_cm_shm_end(struct iw_cm *cm);
/** In a forked child: it is the parent's. */
void iw_cm_shm_forget(struct iw_cm *cm);

/** Whether CRC is to be asked for. */
bool iw_cm_wants_crc(const struct iw_cm *cm);

#endif
