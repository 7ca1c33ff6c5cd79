/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CM port: the only door between librdmacm and the RNIC. One endpoint (struct iw_cm) is a bound
 * address, a listener or one connection; it owns its TCP socket from bind to the end of the close.
 *
 * Every function may be called from any thread with no lock of the caller's held that its handler
 * also takes. Functions return 0 or a negative errno and never block on the network.
 *
 * Events come through the handler: from the engine thread or from any thread that makes progress,
 * with no lock of the RNIC held; those of one endpoint one at a time and in order. What an event
 * points to lives until the handler returns.
 */
#ifndef ANYWARP_CM_PORT_H
#define ANYWARP_CM_PORT_H

#include "advice/list.h"
#include "cm/sidr.h"
#include "cm/terms.h"
#include "common/lock.h"
#include "device/netif.h"
#include "engine/waiter.h"
#include "env/eventfd.h"
#include "env/refuse.h"
#include "env/unmet.h"
#include "faults/list.h"
#include "observe/record_page.h"
#include "qp/retry.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct iw_cm;

enum iw_cm_event_type {
    IW_CM_CONNECT_REQUEST, /* a listener's: event->request is the new endpoint */
    IW_CM_ESTABLISHED,     /* status 0 */
    IW_CM_REJECTED,        /* -ECONNREFUSED: refused by TCP or rejected by the peer's program (then
                              with its private data); -ECONNRESET: closed before a Reply */
    IW_CM_UNREACHABLE,     /* -ETIMEDOUT, -EHOSTUNREACH, -ENETUNREACH */
    IW_CM_CONNECT_ERROR,   /* any other negative errno */
    IW_CM_DISCONNECTED,    /* exactly once after ESTABLISHED, however the connection ended. If the
                              peer was first, our FIN follows when the handler has returned; if we
                              are, it is out already, and the peer's is not waited for */
    IW_CM_STRANGER,        /* a listener's that asked for it: somebody has connected and does not
                              speak MPA. The status is a descriptor of the socket, which nobody has
                              read from; it is the handler's */
};

struct iw_cm_event {
    enum iw_cm_event_type type;
    int status;
    const void *private_data;  /* NULL if private_data_len is 0 */
    uint16_t private_data_len; /* up to 512 */
    /* CONNECT_REQUEST and ESTABLISHED, from the view of the one who gets the event: reads and
     * atomics it may have outstanding, and must serve. Up to 255. */
    uint8_t initiator_depth, responder_resources;
    uint32_t peer_qpn;     /* number of the peer's QP, 0 if it does not tell */
    bool initiator;        /* ESTABLISHED: of this end */
    bool ib;               /* InfiniBand manners; then */
    struct iw_terms terms; /* the peer's */
    struct iw_cm *request; /* CONNECT_REQUEST: now the handler's; iw_cm_set_handler() it */
    /* of an endpoint of datagrams, cm/sidr.h */
    struct iw_sidr *datagrams; /* CONNECT_REQUEST: now the handler's */
    uint32_t qkey;             /* ESTABLISHED */
};

/**
 * @return 0; a nonzero value says that the handler did not take the new endpoint of
 * CONNECT_REQUEST, which is then rejected and destroyed here, or the descriptor of STRANGER, which
 * is closed
 */
typedef int iw_cm_handler(void *owner, const struct iw_cm_event *event);

/* More than this makes the kernel's Soft-iWARP count its 8-bit lengths round. */
#define IW_CM_PRIVATE_DATA_MAX 251

struct iw_cm_param {
    const void *private_data;
    uint8_t private_data_len;
    uint8_t initiator_depth, responder_resources; /* up to the device's limits */
    uint8_t ack_timeout;                          /* for ibv_query_qp alone; 0: none was set */
    struct ibv_qp *qp; /* the QP to connect; NULL: find qp_num of ctx's device,
                          which its program moves if it is to be ib */
    uint32_t qp_num;
    struct ibv_context *ctx;
    bool itself; /* the QP is its own peer, see iw_cm_connect() */
    /*
     * InfiniBand manners; the QP is of a RoCE device, and its number is not in the terms yet. A
     * CONNECT_REQUEST tells what it is for.
     */
    bool ib;
    struct iw_terms terms;
};

/** Of struct iw_cm_param: the terms of InfiniBand manners need room beside it. */
static inline unsigned iw_cm_private_data_max(bool ib)
{
    return IW_CM_PRIVATE_DATA_MAX - (ib ? IW_TERMS_BYTES : 0);
}

/** A new endpoint without address. */
IW_CM_EXPORT int iw_cm_create(struct iw_cm **cm, iw_cm_handler *handler, void *owner);

/** Gives the endpoint of a CONNECT_REQUEST, or any other, a new handler. */
IW_CM_EXPORT void iw_cm_set_handler(struct iw_cm *cm, iw_cm_handler *handler, void *owner);

/**
 * Binds a TCP socket, so that the port is ours from here on. The zero address is the wildcard; port
 * 0 lets the kernel choose.
 * @param afonly  IPv6 wildcard: no IPv4
 * @return -EINVAL (already bound), -EAFNOSUPPORT, -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EMFILE,
 * ...
 */
IW_CM_EXPORT int iw_cm_bind(struct iw_cm *cm, const struct sockaddr *addr, bool afonly);

/**
 * The same for an endpoint that is going to connect: port 0 is one that only the whole connection
 * has to itself, and iw_cm_connect() takes another if a connection of this kind exists.
 */
IW_CM_EXPORT int iw_cm_bind_active(struct iw_cm *cm, const struct sockaddr *addr);

/**
 * Changes whether a bound IPv6 wildcard takes no IPv4. Call with nothing else under way.
 * @return -EINVAL (not bound, or past that), -EADDRINUSE, ...
 */
IW_CM_EXPORT int iw_cm_set_afonly(struct iw_cm *cm, bool afonly);

/** IP_TOS or IPV6_TCLASS of the socket; before bind it is kept for it. Children inherit it. */
IW_CM_EXPORT int iw_cm_set_tos(struct iw_cm *cm, uint8_t tos);

/** @param backlog  connections that wait for iw_cm_accept(), <= 0 for the default of 1024 */
IW_CM_EXPORT int iw_cm_listen(struct iw_cm *cm, int backlog);

/**
 * Before iw_cm_listen(): who says something else than an MPA Request, or nothing for a second, is
 * a STRANGER, not dropped. Not where ANYWARP_TLS=require.
 */
IW_CM_EXPORT void iw_cm_take_strangers(struct iw_cm *cm);

/**
 * Begins to connect; the outcome is one event, also for a port that refuses. What connects to
 * itself is its own peer: @p dst is not looked at, and no event tells of private data.
 * @return -EINVAL (not bound, already connecting, no such QP, QP connected or in error, depth or
 *         private data over the limit), -ENOMEM, or what TCP said at once other than a refusal
 */
IW_CM_EXPORT int iw_cm_connect(struct iw_cm *cm, const struct sockaddr *dst,
                               const struct iw_cm_param *param);

/**
 * Asks a listener something: its Reply rejects, and the event has the answer as its private data.
 * No QP is connected; one that accepts has failed.
 * @return as iw_cm_connect()
 */
int iw_cm_inquire(struct iw_cm *cm, const struct sockaddr *dst, const void *private_data,
                  uint8_t len);

/**
 * Answers a CONNECT_REQUEST. ESTABLISHED follows.
 * @return -EINVAL as for connect or if answered already, -ECONNRESET if the peer has gone
 */
IW_CM_EXPORT int iw_cm_accept(struct iw_cm *cm, const struct iw_cm_param *param);

/** @return -EINVAL if this is no unanswered CONNECT_REQUEST, or @p len is over its limit */
IW_CM_EXPORT int iw_cm_reject(struct iw_cm *cm, const void *private_data, uint8_t len);

/**
 * Graceful close: what was posted goes out, then FIN; the QP goes to error and its work requests
 * are flushed; DISCONNECTED follows. Work that waits for answers of the peer (behind a fence, or
 * for a place among the outstanding reads) does not go out: like an adapter, this side waits for no
 * answer once it leaves. During a handshake the close begins when ESTABLISHED has been raised, if
 * ever. 0 also when the peer was first, or nothing was ever established. If the peer takes nothing
 * of what was sent for about a second, the connection ends with a reset.
 * @return -EINVAL for a listener or an endpoint that never began to connect
 */
IW_CM_EXPORT int iw_cm_disconnect(struct iw_cm *cm);

/**
 * Ends the endpoint: an established connection is closed and its QP goes to error, an unanswered
 * request is rejected, a listener stops. Waits for a handler that is running, unless it is the
 * caller; afterwards none runs. What TCP still has to send goes on without the endpoint.
 */
IW_CM_EXPORT void iw_cm_destroy(struct iw_cm *cm);

/**
 * How long the peer's TCP may leave what was sent unanswered before the connection is lost, if that
 * is less than ANYWARP_SILENCE_S. A peer that answers, with its window closed or stopped, lives.
 * @param ms  0: as ANYWARP_SILENCE_S says
 */
void iw_cm_set_silence(struct iw_cm *cm, unsigned ms);

/** The program is about to move a QP to RTR for this CONNECT_REQUEST; harmless for others. */
IW_CM_EXPORT void iw_cm_will_move(struct iw_cm *cm);

/**
 * Whether a program here is about to move a QP for an unanswered CONNECT_REQUEST of a QP of this
 * number, at this address of whatever port. What anybody can send is not enough: the QP is not
 * dialled then.
 */
bool iw_cm_will_accept(const struct sockaddr *peer, uint32_t qpn);

/** Local and peer address as TCP has them now; either may be NULL; zeroed if there is none. */
IW_CM_EXPORT void iw_cm_addresses(struct iw_cm *cm, struct sockaddr_storage *local,
                                  struct sockaddr_storage *peer);

/**
 * librdmacm's part in fork(), see process/atfork.h: called with every step, holding its locks in
 * between. They come before all of the RNIC's.
 */
IW_CM_EXPORT void iw_cm_at_fork(void (*outer)(enum fork_step));

/**
 * A listener that a child of fork() has inherited rests, as its parent may go on with it: until
 * this call, or until the parent has ended. Harmless for any other endpoint. Takes no lock of the
 * caller's kind and calls no handler.
 */
IW_CM_EXPORT void iw_cm_resume(struct iw_cm *cm);

/**
 * The contexts that ids share, one for each device; opened at first use, never closed.
 * @return NULL-terminated; NULL and errno (ENODEV: no device)
 */
IW_CM_EXPORT struct ibv_context *const *iw_cm_contexts(void);

/**
 * ibv_create_qp_ex() for a QP that endpoints alone connect: no port goes with its number.
 * @return NULL and errno as there
 */
IW_CM_EXPORT struct ibv_qp *iw_cm_create_qp(struct ibv_context *context,
                                            struct ibv_qp_init_attr_ex *attr);

enum iw_cm_kind_of_device { IW_CM_ANY_DEVICE, IW_CM_IWARP_DEVICE, IW_CM_ROCE_DEVICE };

/**
 * That of the first device whose interface has a local address, else of the first that is for all
 * of the host. Loopback belongs to every device: it is the first one's if none is for it.
 * @return NULL and errno (ENODEV: no device has it)
 */
IW_CM_EXPORT struct ibv_context *iw_cm_context_of(const struct sockaddr *local,
                                                  enum iw_cm_kind_of_device kind);

/**
 * The addresses of all interfaces now, loopback included.
 * @param list  [out] the caller's to free()
 * @return how many, or a negative errno
 */
IW_CM_EXPORT int iw_cm_locals(struct iw_cm_local **list);

/** Whether the interface that the device is for exists now; one for all of them is always there. */
IW_CM_EXPORT bool iw_cm_device_present(struct ibv_context *ctx);

/**
 * From now on calls @p changed, some 20 ms after interfaces or addresses changed, once for what
 * happened together; where the kernel does not tell, never. It runs in the engine thread, with no
 * lock held. One caller a process.
 */
IW_CM_EXPORT void iw_cm_watch_host(void (*changed)(void));

/**
 * Whether something may go over the network that has no TLS: not with ANYWARP_TLS=require, which
 * the log tells of.
 */
IW_CM_EXPORT bool iw_cm_in_the_clear(const char *call);

/** Whether a fault is to happen, counted for @p object, NULL: the process; see faults/chaos.h. */
IW_CM_EXPORT bool iw_cm_chaos(enum iw_fault fault, const void *object);

/** Writes a finding about @p object, from the caller's stack; see advice/advice.h. */
IW_CM_EXPORT void iw_cm_advise(enum iw_finding finding, const char *object, const char *sentence);

/* The life of an object of librdmacm that the program knows; see advice/life.h. */
IW_CM_EXPORT void iw_cm_life_begin(const void *object, const char *kind);
/** Frees @p object. */
IW_CM_EXPORT void iw_cm_life_end(void *object);
/** A copy of the event's private data, for the program; see advice/loan.h. */
IW_CM_EXPORT void *iw_cm_lend(const void *data, size_t len);
IW_CM_EXPORT void iw_cm_lend_over(void *lent);
/** The flight recorder, see observe/record.h: a call that begins, on an id or a channel. */
IW_CM_EXPORT struct iw_recorded iw_cm_record(const char *call, const void *object);
/** It has returned. @param result  0 or an errno */
IW_CM_EXPORT void iw_cm_record_end(struct iw_recorded r, int result);
/** An event is raised for an id, or the program has got it. */
IW_CM_EXPORT void iw_cm_record_raised(const char *event, const void *id, int status);
IW_CM_EXPORT void iw_cm_record_got(const char *event, const void *id, int status);

/** @return whether it is destroyed, which is told */
IW_CM_EXPORT bool iw_cm_life_over(const void *object, const char *call);

#endif
