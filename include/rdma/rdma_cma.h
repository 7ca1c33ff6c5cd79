/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA connection manager: finds the device behind an IP address and makes reliable connections
 * between queue pairs, much as sockets do between byte streams.
 *
 * An id (struct rdma_cm_id) is to RDMA what a socket is to TCP. Its operations only start
 * something; how they went is told by an event on the id's channel:
 *
 *     active side                                passive side
 *     rdma_create_id                             rdma_create_id
 *     rdma_resolve_addr  -> ADDR_RESOLVED        rdma_bind_addr
 *     rdma_resolve_route -> ROUTE_RESOLVED       rdma_listen     -> CONNECT_REQUEST with a new id
 *     rdma_create_qp                             rdma_create_qp on the new id
 *     rdma_connect       -> ESTABLISHED          rdma_accept     -> ESTABLISHED
 *     rdma_disconnect    -> DISCONNECTED         rdma_disconnect -> DISCONNECTED
 *
 * An id made without a channel is synchronous: its operations return when their event has come, and
 * leave that event in id->event until the next one.
 *
 * Unless said otherwise a function returns 0, or -1 with errno set; one that gives a pointer
 * returns NULL with errno set. A null id gives -EINVAL, with errno EINVAL. A call that does not fit
 * the state of its id fails with EINVAL. All functions may be called from any thread. With
 * RDMA_AIX_ERRORS defined the rules are those of <rdma/rdma_aix.h>.
 */
#ifndef RDMA_CMA_H
#define RDMA_CMA_H

#include <netinet/in.h>
#include <sys/socket.h>

#include <infiniband/verbs.h>

#include <infiniband/sa.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Events ---- */

enum rdma_cm_event_type {
    RDMA_CM_EVENT_ADDR_RESOLVED,    /* rdma_resolve_addr(): the id has its device now */
    RDMA_CM_EVENT_ADDR_ERROR,       /* rdma_resolve_addr() failed */
    RDMA_CM_EVENT_ROUTE_RESOLVED,   /* rdma_resolve_route() */
    RDMA_CM_EVENT_ROUTE_ERROR,      /* rdma_resolve_route() failed */
    RDMA_CM_EVENT_CONNECT_REQUEST,  /* on a listener: event->id is new, event->listen_id listens */
    RDMA_CM_EVENT_CONNECT_RESPONSE, /* InfiniBand only */
    RDMA_CM_EVENT_CONNECT_ERROR,    /* connecting failed for another reason than the next two */
    RDMA_CM_EVENT_UNREACHABLE,      /* no such host, or no answer in time */
    RDMA_CM_EVENT_REJECTED,         /* the peer said no; its private data may say why */
    RDMA_CM_EVENT_ESTABLISHED,      /* connected: the queue pair is ready to send */
    RDMA_CM_EVENT_DISCONNECTED,     /* an established connection has ended; once on each side */
    RDMA_CM_EVENT_DEVICE_REMOVAL,
    RDMA_CM_EVENT_MULTICAST_JOIN,
    RDMA_CM_EVENT_MULTICAST_ERROR,
    RDMA_CM_EVENT_ADDR_CHANGE,
    RDMA_CM_EVENT_TIMEWAIT_EXIT, /* never on iWARP */
    RDMA_CM_EVENT_ADDRINFO_RESOLVED,
    RDMA_CM_EVENT_ADDRINFO_ERROR,
    RDMA_CM_EVENT_USER,    /* of rdma_write_cm_event() */
    RDMA_CM_EVENT_INTERNAL /* never seen */
};

/* ---- Port spaces ---- */

enum rdma_port_space {
    RDMA_PS_IPOIB = 0x0002,
    RDMA_PS_TCP = 0x0106, /* reliable connections */
    RDMA_PS_UDP = 0x0111, /* datagrams */
    RDMA_PS_IB = 0x013F
};

#define RDMA_IB_IP_PS_MASK   0xFFFFFFFFFFFF0000ULL
#define RDMA_IB_IP_PORT_MASK 0x000000000000FFFFULL
#define RDMA_IB_IP_PS_TCP    0x0000000001060000ULL
#define RDMA_IB_IP_PS_UDP    0x0000000001110000ULL
#define RDMA_IB_PS_IB        0x00000000013F0000ULL

/** The Q_Key of every datagram queue pair made through rdma_create_qp(). */
#define RDMA_UDP_QKEY 0x01234567

/* ---- Addresses, ids and channels ---- */

struct rdma_ib_addr {
    union ibv_gid sgid;
    union ibv_gid dgid;
    __be16 pkey;
};

struct rdma_addr {
    union {
        struct sockaddr src_addr;
        struct sockaddr_in src_sin;
        struct sockaddr_in6 src_sin6;
        struct sockaddr_storage src_storage;
    };
    union {
        struct sockaddr dst_addr;
        struct sockaddr_in dst_sin;
        struct sockaddr_in6 dst_sin6;
        struct sockaddr_storage dst_storage;
    };
    union {
        struct rdma_ib_addr ibaddr;
    } addr;
};

struct rdma_route {
    struct rdma_addr addr;
    struct ibv_sa_path_rec *path_rec; /* NULL on iWARP */
    int num_paths;                    /* 0 on iWARP */
};

/** Where events arrive. May be polled: readable while an event waits; O_NONBLOCK is honoured. */
struct rdma_event_channel {
    int fd;
};

struct rdma_cm_id {
    struct ibv_context *verbs;          /* NULL until the id has a device */
    struct rdma_event_channel *channel; /* private to the id if it is synchronous */
    void *context;                      /* the program's */
    struct ibv_qp *qp;                  /* set by rdma_create_qp() */
    struct rdma_route route;
    enum rdma_port_space ps;
    uint8_t port_num;            /* port of the device, counted from 1 */
    struct rdma_cm_event *event; /* synchronous ids: event of the last operation */
    struct ibv_comp_channel *send_cq_channel;
    struct ibv_cq *send_cq; /* made by rdma_create_qp() if it was given none */
    struct ibv_comp_channel *recv_cq_channel;
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq; /* set by rdma_create_srq() */
    struct ibv_pd *pd;   /* a default one, or that of the queue pair */
    enum ibv_qp_type qp_type;
};

/* For either field below: as much as the device can do. */
enum { RDMA_MAX_RESP_RES = 0xFF, RDMA_MAX_INIT_DEPTH = 0xFF };

/**
 * What one side tells the other when connecting. In an event the depths are seen from the side that
 * gets the event.
 */
struct rdma_conn_param {
    const void *private_data;
    uint8_t private_data_len;    /* bytes */
    uint8_t responder_resources; /* RDMA Reads and atomics that the peer may have outstanding */
    uint8_t initiator_depth;     /* RDMA Reads and atomics that this side may have outstanding */
    /* The next four mean nothing on iWARP; the last two are taken from id->qp where there is one.
     */
    uint8_t flow_control;
    uint8_t retry_count; /* not in an answer */
    uint8_t rnr_retry_count;
    uint8_t srq;
    /* The queue pair to connect when id->qp is NULL. In an ESTABLISHED: the number of the peer's, 0
     * if it does not tell. */
    uint32_t qp_num;
};

struct rdma_ud_param {
    const void *private_data;
    uint8_t private_data_len;
    struct ibv_ah_attr ah_attr;
    uint32_t qp_num;
    uint32_t qkey;
};

struct rdma_cm_event {
    struct rdma_cm_id *id;
    struct rdma_cm_id *listen_id; /* CONNECT_REQUEST only */
    enum rdma_cm_event_type event;
    int status; /* 0, or a negative errno */
    union {
        struct rdma_conn_param conn; /* valid until the event is acknowledged */
        struct rdma_ud_param ud;
        uint64_t arg; /* of RDMA_CM_EVENT_USER */
    } param;
};

/* ---- Address information ---- */

#define RAI_PASSIVE     0x00000001 /* to listen with */
#define RAI_NUMERICHOST 0x00000002 /* node is an address, do not look it up */
#define RAI_NOROUTE     0x00000004
#define RAI_FAMILY      0x00000008 /* ai_family of the hints counts */
#define RAI_SA          0x00000010 /* ask InfiniBand's subnet administrator: none on iWARP */
#define RAI_DNS         0x00000020 /* rdma_resolve_addrinfo(): the resolver, as without it */

struct rdma_addrinfo {
    int ai_flags;
    int ai_family;
    int ai_qp_type;
    int ai_port_space;
    socklen_t ai_src_len;
    socklen_t ai_dst_len;
    struct sockaddr *ai_src_addr;
    struct sockaddr *ai_dst_addr;
    char *ai_src_canonname;
    char *ai_dst_canonname;
    size_t ai_route_len;
    void *ai_route;
    size_t ai_connect_len;
    void *ai_connect;
    struct rdma_addrinfo *ai_next;
};

/* ---- Multicast ---- */

enum rdma_cm_join_mc_attr_mask {
    RDMA_CM_JOIN_MC_ATTR_ADDRESS = 1 << 0,
    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS = 1 << 1,
    RDMA_CM_JOIN_MC_ATTR_RESERVED = 1 << 2
};

enum rdma_cm_mc_join_flags {
    RDMA_MC_JOIN_FLAG_FULLMEMBER,
    RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
    RDMA_MC_JOIN_FLAG_RESERVED
};

struct rdma_cm_join_mc_attr_ex {
    uint32_t comp_mask;  /* which of the fields below count */
    uint32_t join_flags; /* enum rdma_cm_mc_join_flags */
    struct sockaddr *addr;
};

/* ---- Channels and their events ---- */

/**
 * Opens an event channel.
 * @return NULL and errno: ENODEV (no RDMA device here), EMFILE, ENFILE, ENOMEM
 */
struct rdma_event_channel *rdma_create_event_channel(void);

/** Closes a channel, after all its ids are destroyed and its events acknowledged. */
void rdma_destroy_event_channel(struct rdma_event_channel *channel);

/**
 * Takes the oldest event off a channel, waiting for one unless channel->fd is O_NONBLOCK. A
 * cancellation point. Each event goes to one caller, who must acknowledge it.
 * @return -1 and errno: EAGAIN (none there, and O_NONBLOCK), EINTR, EINVAL
 */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/** Gives an event back, exactly once; it and its private data are gone. -1, EINVAL for NULL. */
int rdma_ack_cm_event(struct rdma_cm_event *event);

/**
 * Queues an event of the program's own on the channel of @p id, for rdma_get_cm_event(): a thread
 * that waits there wakes up.
 * @param event   RDMA_CM_EVENT_USER
 * @param status  for the event's status
 * @param arg     for its param.arg
 * @return -1 and errno: EINVAL (another event, a synchronous id, an id without a channel), ENOMEM
 */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event, int status,
                        uint64_t arg);

/** The name of an event, "UNKNOWN EVENT" for what is none. Never NULL. */
const char *rdma_event_str(enum rdma_cm_event_type event);

/* ---- Ids ---- */

/**
 * Makes an id.
 * @param channel  where its events go; NULL for a synchronous id
 * @param id       receives the id
 * @param context  stored in id->context
 * @param ps       RDMA_PS_TCP for reliable connections
 * @return errno EINVAL (unknown port space), ENODEV, ENOMEM, EMFILE
 */
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps);

/**
 * Ends an id: what it was doing stops, its connection is closed, and its events that nobody has
 * taken yet vanish. Waits until the events that were taken are acknowledged, so acknowledge first:
 * a CONNECT_REQUEST counts for the listener. The queue pair is the program's to destroy, before
 * this.
 */
int rdma_destroy_id(struct rdma_cm_id *id);

/**
 * Moves an id and its waiting events, in order, to another channel, then waits until events of it
 * taken from the old one are acknowledged.
 * @param channel  NULL makes the id synchronous; EINVAL if it is so already
 */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/* Levels and names for rdma_set_option(). */
enum { RDMA_OPTION_ID = 0, RDMA_OPTION_IB = 1 };

enum {
    RDMA_OPTION_ID_TOS = 0,         /* uint8_t: type of service of the connection */
    RDMA_OPTION_ID_REUSEADDR = 1,   /* int: share the port with other ids that say so */
    RDMA_OPTION_ID_AFONLY = 2,      /* int: an IPv6 id takes no IPv4 */
    RDMA_OPTION_ID_ACK_TIMEOUT = 3, /* uint8_t: for ibv_query_qp; TCP has its own timers */
    RDMA_OPTION_IB_PATH = 1         /* struct ibv_path_data[]: stands in for rdma_resolve_route() */
};

/**
 * Sets an option of an id.
 * @param optval  the value, @param optlen its size in bytes
 * @return errno ENOSYS (no such option), EINVAL (wrong size, wrong state of the id)
 */
int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/* ---- Addresses and routes ---- */

/**
 * Gives an id its local address. A specific address also gives it its device.
 * @param addr  IPv4 or IPv6; the zero address is all of them, port 0 any free one
 * @return errno EINVAL, EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL, EACCES (port below 1024)
 */
int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/**
 * Finds the device and the local address that lead to a destination, and binds the id to them.
 * ADDR_RESOLVED or ADDR_ERROR follows; id->verbs, pd and port_num are set when that is taken.
 * @param src_addr    local address to use, or NULL; ignored if the id is bound
 * @param dst_addr    IPv4 or IPv6 address of the peer
 * @param timeout_ms  without effect: a look at the routing table does not wait. That nobody answers
 *                    there shows when connecting
 * @return errno EINVAL (also: families differ), or as rdma_bind_addr()
 */
int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms);

/**
 * Finds the route, which on iWARP needs no work. ROUTE_RESOLVED follows.
 * @param timeout_ms  in milliseconds; 0 is an error (EINVAL)
 */
int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/** Local port in network byte order, 0 if there is none. */
__be16 rdma_get_src_port(struct rdma_cm_id *id);

/** Port of the peer in network byte order, 0 if there is none. */
__be16 rdma_get_dst_port(struct rdma_cm_id *id);

/** Local address of an id; family 0 if it has none. */
static inline struct sockaddr *rdma_get_local_addr(struct rdma_cm_id *id)
{
    return &id->route.addr.src_addr;
}

/** Address of the peer; family 0 if there is none. */
static inline struct sockaddr *rdma_get_peer_addr(struct rdma_cm_id *id)
{
    return &id->route.addr.dst_addr;
}

/**
 * Name and service to an address, the first that getaddrinfo(3) finds. Always an IP address: there
 * is none of InfiniBand (AF_IB) here, and no route that would have to be found for it.
 * @param node     host name or address, may be NULL
 * @param service  service name or port number, may be NULL
 * @param hints    what is wanted, may be NULL; but one of the three must be there
 * @param res      receives the result, for rdma_freeaddrinfo()
 * @return 0; -1 and errno; or an EAI_ code, which gai_strerror(3) explains
 */
int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res);

/** Frees a result of rdma_getaddrinfo() or rdma_query_addrinfo(); NULL is fine. */
void rdma_freeaddrinfo(struct rdma_addrinfo *res);

/**
 * rdma_getaddrinfo() without waiting: ADDRINFO_RESOLVED or ADDRINFO_ERROR tells of its end, the
 * latter with a negative errno as its status. A synchronous id waits for it. One at a time.
 * @return -1 and errno: EINVAL (as rdma_getaddrinfo(); RAI_SA with RAI_DNS), EOPNOTSUPP (RAI_SA),
 * EBUSY (one is in progress), EAGAIN (no thread for it), ENOMEM
 */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node, const char *service,
                          const struct rdma_addrinfo *hints);

/** Hands over what was found, once, for rdma_freeaddrinfo(). -1 and ENODATA if there is nothing. */
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);

/* ---- Queue pairs ---- */

/**
 * Makes a queue pair for an id and moves it to INIT, so that receives can be posted. Without CQs in
 * @p qp_init_attr it makes them too, each with a completion channel, and puts them in the id.
 * @param pd            NULL for the id's
 * @param qp_init_attr  what is wanted; receives what there is
 * @return errno EINVAL (no device yet, has a queue pair, wrong attributes), or of ibv_create_qp()
 */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/** As rdma_create_qp(); the protection domain is in @p qp_init_attr. */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);

/** Destroys the queue pair of an id, and the CQs and channels made with it. Harmless without one.
 */
void rdma_destroy_qp(struct rdma_cm_id *id);

/**
 * For programs that move a queue pair themselves.
 * @param qp_attr       qp_state says for which state; the rest is filled
 * @param qp_attr_mask  receives the mask for ibv_modify_qp()
 */
int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/* ---- Connections ---- */

/**
 * Begins to connect. ESTABLISHED, REJECTED, UNREACHABLE or CONNECT_ERROR follows: UNREACHABLE with
 * -ETIMEDOUT after 20 s (ANYWARP_CONNECT_MS) without an answer of TCP, or then of the other
 * program.
 * @param conn_param  NULL for the defaults, if the id has a queue pair
 * @return errno EINVAL (depth over the device's, no such queue pair), ENOMEM, or an error of TCP
 */
int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/**
 * For ids without a queue pair of their own, whose program has moved its queue pair to RTS. On
 * iWARP nothing is left to do when ESTABLISHED was taken.
 * @return errno EINVAL (the id has a queue pair, or is not connected)
 */
int rdma_establish(struct rdma_cm_id *id);

/**
 * Waits for connections in the background: a CONNECT_REQUEST each.
 * @param backlog  requests that may be undecided, more are refused; 0: the maximum
 * @return errno EINVAL, EADDRINUSE
 */
int rdma_listen(struct rdma_cm_id *id, int backlog);

/**
 * Takes the next request off a synchronous listener; the new id is synchronous as well.
 * @param listen  the listener, @param id receives the new id
 * @return errno EINVAL (not synchronous), or as rdma_get_cm_event() and rdma_create_qp()
 */
int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/**
 * Accepts the connection that the id of a CONNECT_REQUEST stands for. ESTABLISHED follows.
 * @param conn_param  NULL for the defaults, if the id has a queue pair
 * @return errno EINVAL, ECONNRESET (the peer has gone; destroy the id)
 */
int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/**
 * Refuses it. No event follows here; the id is still to be destroyed.
 * @param private_data      told to the peer, may be NULL
 * @param private_data_len  bytes
 */
int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/** As rdma_reject(): on InfiniBand it names vendor options as the reason. */
int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/**
 * Ends a connection: what was posted is sent, unless it waits for an answer of the other side
 * (behind a fence, or for its turn among the reads); the queue pair goes to error, its other work
 * requests are flushed. DISCONNECTED follows on both sides. While the other side has not answered a
 * connect, this takes effect behind ESTABLISHED, if that comes. Harmless on a connection that has
 * ended.
 * @return errno EINVAL (nothing was ever connected)
 */
int rdma_disconnect(struct rdma_cm_id *id);

/** Tells of an asynchronous event of the queue pair; on iWARP without effect. */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/** Vendor options for a connection whose queue pair is not the id's; iWARP does not carry them. */
int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* ---- Endpoints: an id with all that goes with it ---- */

/**
 * Makes a synchronous id from a result of rdma_getaddrinfo(): bound if that is passive, otherwise
 * with address and route resolved, which may take some seconds.
 * @param id            receives the id
 * @param pd            for its queue pair, or those of the requests; NULL for the default
 * @param qp_init_attr  NULL: no queue pair. Active: made now; passive: one for each request
 */
int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *qp_init_attr);

/** Destroys the id, its queue pair and its shared receive queue. */
void rdma_destroy_ep(struct rdma_cm_id *id);

/* ---- Multicast: ids for datagrams only ---- */

/**
 * Joins a group. MULTICAST_JOIN follows, with the way to the group in param.ud: the queue pair of the
 * id hears the group from when that is taken.
 * @param addr     of the group, IPv4, IPv6 or, as AF_IB, its GID
 * @param context  the event's private_data
 * @return errno EINVAL
 */
int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);
/** @return errno EINVAL, ENOTSUP (unknown mask or flags) */
int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
                           void *context);
/** @return errno EINVAL, EADDRNOTAVAIL (was not joined) */
int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

/* ---- Devices ---- */

/**
 * The opened contexts that ids use: the same pointers each time.
 * @param num_devices  receives their number, may be NULL
 * @return NULL-terminated, for rdma_free_devices(); NULL and errno: ENODEV, ENOMEM
 */
struct ibv_context **rdma_get_devices(int *num_devices);

/** Frees the array; the contexts stay open. */
void rdma_free_devices(struct ibv_context **list);

#ifdef __cplusplus
}
#endif

#ifdef RDMA_AIX_ERRORS
#include <rdma/rdma_aix.h>
#endif

#endif
