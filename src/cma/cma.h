/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm, table of contents: the objects and, under the name of its file, what each file offers
 * to the others. The public functions are documented in <rdma/rdma_cma.h>; the transport behind
 * them is cm/port.h.
 *
 * Locks, outermost first:
 * - id->lock: one call at a time on an id: its state, options and public fields. Held across those
 *   iw_cm_*() functions and verbs that do not wait. No iw_cm handler takes it.
 * - cma_events: one for the process: event queues, the channel of each id, the counters of events,
 *   bound ports. Handlers take it. With it held nothing is called but iw_eventfd_raise(),
 *   iw_eventfd_drain(), iw_cm_resume() and iw_cm_device_present().
 * Waiting, be it for an event, an acknowledgement or the end of a handler, is done with neither.
 */
#ifndef ANYWARP_CMA_H
#define ANYWARP_CMA_H

#include "cm/port.h"
#include "cma/state.h"
#include "common/addr.h"
#include "common/list.h"
#include "common/lock.h"

#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#pragma GCC visibility pop

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cma_channel {
    struct rdma_event_channel pub;
    struct list events; /* struct cma_event, oldest first */
    struct list ids;    /* struct cma_id */
    bool rests;         /* inherited by fork(): its listeners wait for iw_cm_resume() */
};

/* Room for what the 8-bit length of struct rdma_conn_param can describe. */
#define CMA_PRIVATE_DATA_MAX 255

struct cma_event {
    struct rdma_cm_event pub;
    struct list link;
    struct cma_id
        *owner;    /* whose destruction waits for the acknowledgement; a request's listener */
    void *lent;    /* a copy of private_data that the program has instead, NULL: none */
    uint32_t join; /* MULTICAST_JOIN: which one */
    uint8_t room;  /* for private data: CMA_PRIVATE_DATA_MAX, or 0 */
    uint8_t private_data[];
};

/* A multicast group that an id has joined, or is about to: the event was not taken yet. */
struct cma_group {
    struct list link; /* in the id's groups */
    union ibv_gid gid;
    uint32_t join;  /* unique in the id */
    bool send_only; /* the QP is not to hear it */
    bool attached;  /* the QP hears it */
};

/* What of the host an id depends on. */
struct cma_host_id {
    struct list link;  /* among those that are watched */
    union ibv_gid gid; /* the local address */
    unsigned scope;    /* the interface of a link-local one, else 0 */
    bool present;      /* the device was there at the last look */
};

/** Of an id on a RoCE device, whose connection has InfiniBand manners. */
struct cma_ib {
    bool on;             /* the device is one; of a request: has to be */
    uint32_t peer_qpn;   /* 0: not known yet; else this is, too: */
    uint8_t rnr_retry;   /* how often the peer lets us */
    uint8_t retry_count; /* that goes for both ends */
};

struct cma_id {
    struct rdma_cm_id pub;
    struct lock lock;
    struct iw_recorded recorded; /* the call in progress, by the holder of the lock */
    enum cma_state state;
    bool sync;            /* has a private channel */
    bool established;     /* ESTABLISHED was taken, or CONNECT_RESPONSE */
    bool moves;           /* its program moves the QP: rdma_connect() found none in the id */
    struct iw_cm *cm;     /* of connections; or */
    struct iw_sidr *sidr; /* of datagrams */
    uint32_t qkey;        /* of datagrams; 0: not chosen yet */
    struct list groups;   /* struct cma_group */
    uint32_t joins;       /* so far */

    /* options; afonly < 0: as the system's default */
    bool reuseaddr;
    int afonly;
    uint8_t ack_timeout, tos;
    int (*take_stranger)(void *context, int fd); /* cma_take_strangers() */

    struct sockaddr_storage source;               /* for route.addr once ADDR_RESOLVED is taken */
    uint8_t initiator_depth, responder_resources; /* what the peer offers, all if not known yet */
    struct cma_ib ib;
    struct cma_default_pd *default_pd; /* that it holds a reference to (device.c) */

    /* endpoints (ep.c) */
    struct ibv_qp_init_attr *request_qp; /* a QP for each request, in the id's PD */
    void *connect_data;                  /* goes before the private data of rdma_connect() */
    uint8_t connect_data_len;

    /* under cma_events */
    struct list link;  /* in its channel's ids */
    struct list spare; /* events put aside for the handler */
    struct list port;  /* in the port space */
    struct cma_host_id host;
    struct sockaddr_storage bound;
    struct cma_lookup *lookup;   /* in progress (lookup.c), or NULL */
    struct rdma_addrinfo *found; /* by the last one, until the program asks for it */
    int backlog, waiting;        /* listener: requests that may wait, and do */
    uint32_t taken, acked;
    struct lock_cond all_acked;
};

static inline struct cma_id *cma_id(struct rdma_cm_id *id)
{
    return container_of(id, struct cma_id, pub);
}

static inline struct cma_channel *cma_channel(struct rdma_event_channel *channel)
{
    return container_of(channel, struct cma_channel, pub);
}

/** Whether it is for datagrams: nothing is connected. */
static inline bool cma_datagrams(const struct cma_id *id)
{
    return id->pub.qp_type == IBV_QPT_UD;
}

/** A call without the handle it needs: the one case of a result other than 0 and -1. */
static inline int cma_no_handle(const char *call)
{
    errno = iw_refuse(call, ARGUMENT);
    return -errno;
}

/** @return -1, with errno set to @p err */
static inline int cma_fail(int err)
{
    errno = err;
    return -1;
}

/** Turns 0 or a negative errno into 0, or -1 and errno. */
static inline int cma_result(int r)
{
    return r < 0 ? cma_fail(-r) : 0;
}

/** The record of a call that cma_enter() let in, for who gives the lock back before the call ends.
 */
static inline struct iw_recorded cma_recorded(struct cma_id *id)
{
    struct iw_recorded recorded = id->recorded;
    id->recorded = (struct iw_recorded){NULL, 0};
    return recorded;
}

/** How a call ends that cma_enter() let in. @param r 0 or a negative errno */
static inline int cma_leave(struct cma_id *id, int r)
{
    iw_cm_record_end(cma_recorded(id), -r);
    lock_put(&id->lock);
    return cma_result(r);
}

/** What a call returns that its handle, state or arguments do not allow; the log has told why. */
static inline int cma_refused(const struct rdma_cm_id *pub)
{
    if (pub)
        return cma_fail(EINVAL);
    errno = EINVAL;
    return -EINVAL;
}

/* fork.c */

/** The locks of all ids. */
extern struct lock_class cma_ids;

/* event.c */

extern struct lock cma_events;

/** A new event of @p type for @p id. @return NULL if there is no memory */
struct cma_event *cma_event_create(struct cma_id *id, enum rdma_cm_event_type type);

/**
 * Puts events aside for the handler, so that none is lost for want of memory: one for an outcome,
 * and with @p ends one for the end, which brings no private data and is kept for as long as the
 * connection lasts.
 * @return 0 or -ENOMEM
 */
int cma_event_reserve(struct cma_id *id, bool ends);
/** Takes one of them, which has room if there is private data. @return NULL if there is none */
struct cma_event *cma_event_spare_locked(struct cma_id *id, size_t private_data);
/** Frees those that were not used. */
void cma_event_unreserve(struct cma_id *id);

/** Copies what the transport tells: status, depths, private data. */
void cma_event_fill(struct cma_event *event, const struct iw_cm_event *from);
/** The program gets it: under a check with a copy of the private data that ends with the event. */
void cma_event_lend(struct cma_event *event);

/** Queues an event on its owner's channel. @return false if that has none: it is still the caller's
 */
bool cma_event_queue_locked(struct cma_event *event);
/** As cma_event_queue_locked(), but the event is freed then. */
bool cma_event_queue(struct cma_event *event);

/** Takes an event off its channel; drains the descriptor with the last. */
void cma_event_unlink_locked(struct cma_channel *channel, struct cma_event *event);

/** Makes a request's event, which was taken, that of the new id, which holds it from now on. */
void cma_event_adopt(struct rdma_cm_event *event);

/** Moves the id's waiting events from its channel to the list @p to, in order. */
void cma_events_move_locked(struct cma_id *id, struct list *to);

/** Waits until the events of @p id that were taken so far are acknowledged. */
void cma_event_wait_acked_locked(struct cma_id *id);

/* channel.c */

/** Puts an id on a channel, off the one it is on. NULL: on none. */
void cma_channel_attach_locked(struct cma_id *id, struct cma_channel *channel);
void cma_channel_attach(struct cma_id *id, struct rdma_event_channel *channel);

/** Makes an id synchronous: gives it its own channel. @return 0 or a negative errno */
int cma_channel_own(struct cma_id *id);

/* deliver.c */

/**
 * Ends a call that began an operation, or failed to: gives the lock back. An asynchronous id may be
 * gone then, as another thread may have got the event and destroyed it; a synchronous one waits for
 * the event, which goes to id->event.
 * @param r 0 or a negative errno
 * @return what the call returns
 */
int cma_complete(struct cma_id *id, int r);

/** What an event says about its operation. @return 0, or -1 and errno */
int cma_event_result(const struct rdma_cm_event *event);

/** Acknowledges the event that a synchronous id holds, if any. */
void cma_drop_held_event(struct cma_id *id);

/* handler.c */

/** The handler of every id: turns what the transport tells into events. */
iw_cm_handler cma_on_event;

/* transport.c: the calls that an id's transport of either kind has, as cm/port.h has them */

int cma_transport_open(struct cma_id *id, iw_cm_handler *handler);
/** Harmless if there is none. No handler runs afterwards. */
void cma_transport_close(struct cma_id *id);
int cma_transport_bind(struct cma_id *id, const struct sockaddr *addr, bool active);
int cma_transport_listen(struct cma_id *id, int backlog);
int cma_transport_set_afonly(struct cma_id *id, bool afonly);
int cma_transport_set_tos(struct cma_id *id, uint8_t tos);
/** The local address; zeroed if there is none. */
void cma_transport_bound(struct cma_id *id, struct sockaddr_storage *local);

/* life.c */

/** A new id without transport and channel. @return NULL if there is no memory */
struct cma_id *cma_id_alloc(enum cma_state state, enum rdma_port_space ps,
                            enum ibv_qp_type qp_type);

/** Ends the transport and frees an id that has no events and is on no channel. */
void cma_id_free(struct cma_id *id);

/** Frees events that no program has seen, each with the id that a CONNECT_REQUEST brings. */
void cma_events_discard(struct list *gone);

/* id.c */

/** rdma_create_id() with the QP type given. */
int cma_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **out, void *context,
                  enum rdma_port_space ps, enum ibv_qp_type qp_type);

/* device.c */

/**
 * Gives an id the device that has this local address, port number and PD, if it has none.
 * @param kind  of device
 * @return 0 or a negative errno
 */
int cma_device_get(struct cma_id *id, const struct sockaddr *local, enum iw_cm_kind_of_device kind);

/** Takes them away again. */
void cma_device_put(struct cma_id *id);

/** What device.c does about fork(). */
void cma_device_fork(enum fork_step step);

/* host.c */

/**
 * Watches the device of an id and its local address: from now on the id gets ADDR_CHANGE each time
 * the address is taken away, moves to another interface, or its interface gets another MAC; and
 * DEVICE_REMOVAL each time the interface that its device is for goes away. These are hints, as on
 * adapters: the id and its connection stay, for the program to end them. Not for an id that is
 * being destroyed.
 */
void cma_host_watch(struct cma_id *id, const struct sockaddr *addr);

/** No such event is queued afterwards; harmless if it was not watched. */
void cma_host_unwatch(struct cma_id *id);

/* vector.c */

/** The GID that stands for an IP address. */
union ibv_gid cma_gid_of(const struct sockaddr *addr);

/** How to send to a GID from the address that the id has. */
void cma_address_vector(const struct cma_id *id, const union ibv_gid *to, struct ibv_ah_attr *ah);

/* datagram.c */

/** The Q_Key of the id, which is the usual one from now on if none was chosen. */
uint32_t cma_qkey(struct cma_id *id);

/**
 * rdma_connect(), rdma_accept(), rdma_reject() of an id for datagrams. Lock held.
 * @return 0 or a negative errno
 */
int cma_ask_locked(struct cma_id *id, const struct rdma_conn_param *conn);
int cma_answer_locked(struct cma_id *id, const struct rdma_conn_param *conn);
int cma_turn_down_locked(struct cma_id *id, const void *private_data, uint8_t len);

/** The answer to the question of @p id is taken: completes the event, which may fail now. */
void cma_answered(struct cma_id *id, struct rdma_cm_event *event);

/* group.c */

/** The group that the id has joined with this number; with @p gid not NULL: of that GID. */
struct cma_group *cma_group_find_locked(struct cma_id *id, uint32_t join, const union ibv_gid *gid);

/** MULTICAST_JOIN is taken: the QP hears the group from now on, or the event fails. */
void cma_joined(struct cma_id *id, struct cma_event *event);

/* route.c */

/** Copies an address, which may overlap, and zeroes the rest. */
void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);

/** Whether it is 0.0.0.0 or ::. */
bool cma_addr_any(const struct sockaddr *addr);

/** Whether two addresses of one family are the same but for the port. */
bool cma_addr_same(const struct sockaddr *a, const struct sockaddr *b);

/** Whether it is a link-local IPv6 address that does not say on which link. */
bool cma_addr_lacks_scope(const struct sockaddr *addr);

/** The zero address of @p family with port 0. */
void cma_addr_wildcard(sa_family_t family, struct sockaddr_storage *addr);

/** Turns an IPv4-mapped IPv6 address into the IPv4 address it is. */
void cma_addr_unmap(struct sockaddr_storage *addr);

/**
 * Makes a destination that can be connected to: loopback for the zero address, the link of @p src
 * (of the same family) for a link-local one.
 * @return 0, or -EINVAL if the link is not known
 */
int cma_addr_complete(struct sockaddr_storage *dst, const struct sockaddr *src);

/**
 * The local address that packets to @p dst leave from; sends none.
 * @param src     address to use if it can be, may be the wildcard
 * @param source  receives it, with the port of @p src
 * @return 0 or a negative errno: -ENETUNREACH, -EHOSTUNREACH, -EADDRNOTAVAIL, ...
 */
int cma_route_source(const struct sockaddr *src, const struct sockaddr *dst,
                     struct sockaddr_storage *source);

/* addr.c */

/** Binds the transport of an idle id, for a connection to be made if @p active, and enters
 * id->bound. Lock held. @return 0 or a negative errno */
int cma_bind_locked(struct cma_id *id, const struct sockaddr *addr, bool active);

/** Moves an id on that cma_enter() let in to RESOLVE_ROUTE. @return 0 or a negative errno */
int cma_route_resolved_locked(struct cma_id *id);

/* lookup.c */

/** Nobody wants the answer of a lookup any more; no event about one is queued afterwards. */
void cma_lookup_end(struct cma_id *id);

/** In a child of fork(), where the thread of a lookup is not: it has failed. cma_events held. */
void cma_lookup_lost_locked(struct cma_id *id);

/* port.c */

/** Whether an IPv6 wildcard of this id takes no IPv4. */
bool cma_afonly(const struct cma_id *id);

/** Whether no other id of this process is in the way of @p id at @p addr. TCP has the last word. */
bool cma_port_free(const struct cma_id *id, const struct sockaddr *addr);

/** Enters id->bound into the port space; takes it out, also if it never was in. */
void cma_port_claim(struct cma_id *id);
void cma_port_release(struct cma_id *id);

/* connect.c */

/** Whether ids of this kind and port space make connections, or ask for queue pairs. */
bool cma_connects(const struct cma_id *id);

#endif
