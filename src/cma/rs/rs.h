/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rsockets: what a socket is, and what each file offers to the others.
 *
 * A socket has one mutex, `lock`; it is held across verbs and rdma_cm calls, none of which waits.
 * rs_service_lock() is taken before it; a child's lock before its listener's `queue_lock`. Whoever
 * calls moves a socket on: rs_progress() handles what completed and what the CM tells. Who has to
 * wait registers a waiter, arms the CQ and sleeps with no lock held; who moves a socket on wakes
 * all others that wait for it. A service thread does what has to happen without a call: it accepts,
 * connects, hears of disconnection and keeps alive.
 */
#ifndef ANYWARP_RS_H
#define ANYWARP_RS_H

#include "cma/rs/wire.h"
#include "common/list.h"

#pragma GCC visibility push(default)
#include <rdma/rdma_cma.h>
#include <rdma/rsocket.h>
#pragma GCC visibility pop

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum rs_phase {
    RS_NEW,
    RS_BOUND,
    RS_LISTENING,
    RS_CONNECTING,
    RS_CONNECTED, /* from here on there is, or was, a connection */
    RS_FAILED,    /* to connect */
    RS_CLOSED     /* rpoll() may look at it for a moment longer */
};

/** Sizes as options set them, fixed when the connection begins. */
struct rs_sizes {
    uint32_t rbuf, sbuf; /* bytes */
    uint16_t sq, rq, inlined;
    uint16_t mappings; /* that the peer may make */
};

/** A connection that is no rsocket's, for raccept(). */
struct rs_plain {
    struct list link;
    int fd;
};

struct rs_waiter {
    struct list link; /* in waiters of the socket, under its lock */
    int wake;         /* eventfd of the thread that waits */
};

/** A mapping of our memory that the peer may write to, or that is our own alone. */
struct rs_iomap {
    struct list link;
    struct ibv_mr *mr;
    void *buf;
    size_t len;
    off_t offset;
    int slot;     /* in the peer's table; -1: not told */
    bool pending; /* the peer was not told yet */
};

struct rs {
    pthread_mutex_t lock;
    atomic_uint refs; /* its number, and each rpoll() that looks at it */
    int fd;           /* the socket's number: the descriptor of its event channel */
    enum rs_phase phase;
    struct rs_sizes sizes;
    int flags;                        /* O_NONBLOCK */
    int so_error;                     /* told once by SO_ERROR */
    uint32_t opts;                    /* bit (1 << SO_...) of the flags that are only kept */
    bool nodelay, v6only, reuse, six; /* six: of AF_INET6 */
    struct linger linger;
    int keepalive_s, keepalive_timer; /* descriptor or -1 */
    struct list waiters;

    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;

    /* listener */
    pthread_mutex_t queue_lock;
    struct list children; /* in order of arrival, ready or not */
    struct list child;    /* our link there */
    struct rs *listener;  /* of a child that was not accepted yet */
    bool arrived;         /* child: may be accepted; under queue_lock */
    bool takes_tcp;       /* RS_TAKE_TCP */
    struct list plain;    /* struct rs_plain: who came by TCP alone; under queue_lock */
    unsigned waiting;     /* in both; under queue_lock */

    /* endpoint */
    struct ibv_comp_channel *comp;
    struct ibv_cq *cq;
    struct ibv_mr *rmr, *smr, *tmr;
    uint8_t *rbuf, *sbuf, *tables;
    bool readable, writable; /* directions that are open */
    bool hung_up; /* both ended, writing by us; or the listener, then under queue_lock, too */
    bool disconnected, disconnect_posted;
    bool end_due;           /* the peer is to be told what is shut, when there is room for that */
    int err;                /* what ended the connection, or 0 */
    bool watched, watching; /* the service knows comp; it waits for that */

    /* what the peer offers */
    struct rs_hello peer;
    struct rs_buffer target[RS_TARGETS];
    unsigned target_at, target_next; /* used now; entry that the peer tells next */

    /* sending */
    unsigned sqe, ctrl;       /* work requests that may be posted: data, control */
    uint16_t sseq, sseq_comp; /* messages sent; limit */
    uint32_t sbuf_at, sbuf_free;
    uint64_t posted, completed; /* all work requests with a completion */

    /* receiving */
    uint32_t *messages; /* lengths, a ring of `slots` */
    unsigned slots, message_head, message_count;
    uint32_t rbuf_at, rbuf_in;       /* where reading goes on; where the next data lies */
    uint32_t unread, granted, freed; /* bytes: to be read; that may come; not granted again yet */
    uint32_t grant_at;
    unsigned grant_index;
    uint16_t rseq, rseq_comp; /* messages read; when credits are due */

    /* mappings */
    struct list iomaps;
    struct rs_mapping *peer_maps; /* sizes.mappings of them */
    unsigned mapped;              /* times that the peer was told */
    bool iomap_pending;
};

#define RS_OVERLAP        65536
#define RS_FIRST_STEP     2048
#define RS_EXTRA_RECEIVES 16
#define RS_CTRL_SLOTS     4

/* table.c */

/** The socket of this number, or NULL. It stays until rclose() of it, which must not run beside. */
struct rs *rs_get(int fd);
/** A new socket with its channel, that nobody finds yet; @return NULL and errno */
struct rs *rs_create(const struct rs_sizes *sizes);
/** Puts a socket that has its id into the table. */
void rs_publish(struct rs *rs);
/**
 * Takes a socket from the table, frees what it holds, and wakes who waits for it in rpoll(), where
 * it is RS_CLOSED from then on. Its lock free.
 */
void rs_destroy(struct rs *rs);
/** As rs_get(), and it stays until rs_release() whoever closes it. */
struct rs *rs_hold(int fd);
void rs_release(struct rs *rs);
/** In a child of fork(): the sockets stay with the parent, and what they hold is lost. */
void rs_forget_all(void);

/* config.c */

struct rs_config {
    struct rs_sizes sizes;
    unsigned polling_us;
};
/** The files of /etc/rdma/rsocket, read once. ANYWARP_RSOCKET_CONF names another folder. */
const struct rs_config *rs_config(void);

/* endpoint.c */

/** Queues, memory and receives for rs->id. @return 0 or a negative errno */
int rs_endpoint_create(struct rs *rs);
/** All of them, or what there is. */
void rs_endpoint_destroy(struct rs *rs);
void rs_hello_of(const struct rs *rs, uint8_t out[RS_HELLO_SIZE]);

/* message.c: with the lock held */

/** What a socket may send and receive at first, by its sizes. */
void rs_begin(struct rs *rs);
/** Takes what the peer told. */
void rs_meet(struct rs *rs, const struct rs_hello *peer);

/** Handles what completed. @return whether there was something */
bool rs_harvest(struct rs *rs);
/** Tells the peer of room that became free, if it is time. */
void rs_give_credits(struct rs *rs);
/** Tells the peer of the end that is due, behind what was sent. */
void rs_give_end(struct rs *rs);
/** Posts a message behind the Write of @p sge to @p to, if there is one. @return 0 or -errno */
int rs_post(struct rs *rs, uint64_t wr_id, const struct ibv_sge *sge, int nsge, bool inlined,
            const struct rs_buffer *to, uint32_t message);
int rs_post_write(struct rs *rs, uint64_t wr_id, const struct ibv_sge *sge, int nsge, bool inlined,
                  uint64_t addr, uint32_t key);
/** A wr_id: what comes back when it completes. */
uint64_t rs_wr_data(uint32_t sbuf_bytes, unsigned sqe);
#define RS_WR_CTRL(n) (UINT64_C(1) << 62 | (uint64_t)(n))
/** The connection is over, for the reason @p err, 0: the peer or we ended it. */
void rs_hang_up(struct rs *rs, int err);

/* connect.c: with the lock held */

/** Handles what the CM tells. @return whether there was something */
bool rs_step(struct rs *rs);

/* socket.c */

/** RS_ANEW. Lock held. @return 0 or -errno */
int rs_renew(struct rs *rs);

/* interrupt.c */

/** This thread's eventfd; -1 if there are no more descriptors, or keys of threads. */
int rs_wake_fd(void);
/** In a child of fork(): the eventfd is the parent's, too, whose wake-ups are not to be taken. */
void rs_wake_forked(void);
/** Whether this thread was interrupted, and may be. */
bool rs_is_interrupted(void);

/* wait.c */

/** Moves a socket on and wakes who waits for it. Lock held. */
void rs_progress(struct rs *rs);
void rs_wake_all(struct rs *rs);
void rs_wake_drain(int fd);
void rs_wake(int fd);
/** Asks for a wake-up when something completes. Lock held. */
void rs_arm(struct rs *rs);
/**
 * Waits, giving up the lock meanwhile, until @p ready(rs).
 * @param timeout_ms  -1: until then, but rs_interrupt() ends it, and a signal unless every handler
 *                    has SA_RESTART; else time alone does
 * @return 0, -EAGAIN, -EINTR
 */
int rs_wait(struct rs *rs, bool (*ready)(const struct rs *rs), bool nonblock, int timeout_ms);
/** How long to sleep, of @p ms, with @p wake of rs_wake_fd(): without one, only briefly. */
int rs_nap_ms(int wake, int ms);
uint64_t rs_now_us(void);
/** Adds a waiter, or takes it off. Lock held; queue_lock guards the list, too. */
void rs_enlist(struct rs *rs, struct rs_waiter *w, int wake);
void rs_delist(struct rs *rs, struct rs_waiter *w);
/** poll(), that no program interposes. @return its result or -errno */
int rs_sleep(struct pollfd *fds, nfds_t n, int timeout_ms);

/* service.c */

int rs_service_add(struct rs *rs);
/** Lets the service look once when something completes: it has to, and nobody may call. */
void rs_service_watch(struct rs *rs);
/** In a child of fork(): the thread is not there. */
void rs_service_forked(void);
void rs_service_remove(struct rs *rs);
void rs_service_lock(void);
void rs_service_unlock(void);
/** Takes a socket from the service and destroys it. */
void rs_forget(struct rs *rs);
/** Lets the service send a keepalive each rs->keepalive_s seconds. */
void rs_service_keepalive(struct rs *rs);

/* accept.c */

bool rs_accept_ready(const struct rs *rs);
/** A request came to a listener. */
void rs_take_in(struct rs *listener, struct rdma_cm_event *event);
/** A child is connected or has failed. Its lock held. */
void rs_arrived(struct rs *child);
/** Closes whom a listener has accepted and raccept() has not asked for. */
void rs_close_queue(struct rs *listener);
/** Closes those that are no rsockets. No more come. */
void rs_close_plain(struct rs *listener);
/** No more come, and raccept() fails with EINVAL; who is in the queue is closed. */
void rs_shut_listener(struct rs *listener);

/* send.c, recv.c, poll.c */

bool rs_can_send(const struct rs *rs);
bool rs_can_recv(const struct rs *rs);
short rs_revents(struct rs *rs, short events);
/** What may change meanwhile, and how it was. */
struct rs_version {
    const atomic_uint *now;
    unsigned seen;
};
/**
 * rpoll() that also ends when another version is there than @p v, and this thread was woken.
 * @param v  or NULL
 * @return its result, -errno
 */
int rs_poll(struct pollfd *fds, nfds_t n, int timeout, const struct rs_version *v);
/** Tells the peer of mappings it does not know yet. @return 0 or -errno; -EAGAIN: no room now */
int rs_tell_iomaps(struct rs *rs);
/** Sends from user memory one piece of at most @p len bytes. @return bytes or -errno */
ssize_t rs_send_piece(struct rs *rs, const void *buf, size_t len, const struct rs_buffer *to,
                      bool message);

/* repoll.c */

/** Closes a set of repoll_create(). @return false if @p fd is none */
bool rs_repoll_close(int fd);
/** Takes a number that is about to be closed from all sets. */
void rs_repoll_forget(int fd);
/** In a child of fork(): the sets stay with the parent. */
void rs_repoll_forked(void);

static inline int rs_fail(int err)
{
    errno = err;
    return -1;
}

#endif
