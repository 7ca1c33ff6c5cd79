/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair: its two queues, the reads in flight each way, and the iWARP stream it runs on.
 *
 * Files: qp.c life and numbers, state.c the ibv state table, modify.c what its transitions
 * do, tx_queue.c posting, tx_cut.c messages into FPDUs, tx_send.c transmission, rx_stream.c
 * reception (the upcalls of conn/rx.h), rx_place.c Sends into receives and held early ones,
 * tx_requests.c reads and atomics we ask for, tx_answers.c the peer's, rx_early.c early messages,
 * rx_stall.c what comes behind them, rx_scatter.c memory, rx_late.c Writes that land late, mem/mw.c
 * windows, mem/quiesce.h who may still copy, end.c errors and flush, reset.c a new life, explain.c
 * what the log says of them, rx_queue.c receive queues, link.c attach, close and detach of the
 * stream, rings.c its way into rings, overrun.c the end of a CQ, pacing.c when what was posted goes
 * out, tx_quantum.c how much of it at a stretch, tx_cork.c what waits for more, tx_taken.c what has
 * gone before what came, ack.c and rnr.c the manners of one by number, route.h where
 * datagrams go, which are ud/'s.
 *
 * Locks: rx.lock before tx.lock, then that of the receive queue, then those of CQs; the order of
 * all that there are is in common/lock_rank.h. A function that takes a part of a QP, struct
 * iw_qp_tx or iw_qp_rx, needs that part's lock and no other; one that takes the QP needs what its
 * contract says.
 *
 * Copies from and to registered memory are made in sections (mem/quiesce.h), each under one of the
 * QP's first two locks; in a section no lock is taken but that of observe/pcap.c. Nobody waits for
 * the end of other threads' sections with one of these locks held: a work request that takes memory
 * away stays at sq.cut until they have ended.
 *
 * Posting takes tx.lock or rq.lock, and tries rx.lock. That may be waited for only by tear-down and
 * by iw_qp_settle(), with no other lock held. No callback, descriptor write or user-visible call is
 * made with any of them held; what they cause goes through struct iw_wakes.
 */
#ifndef ANYWARP_QP_QP_H
#define ANYWARP_QP_QP_H

#include "common/list.h"
#include "common/lock.h"
#include "conn/close.h"
#include "conn/nego.h"
#include "conn/rx.h"
#include "conn/stream_shm.h"
#include "conn/tx.h"
#include "cq/cq.h"
#include "cq/slots.h"
#include "engine/deferred.h"
#include "engine/source.h"
#include "env/limits.h"
#include "env/refuse.h"
#include "mem/mw.h"
#include "mem/quiesce.h"
#include "mem/region.h"
#include "observe/stats.h"
#include "qp/ack.h"
#include "qp/route.h"
#include "qp/tx_taken.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct iw_cm;
struct iw_dial;
struct iw_qp;
struct iw_srq;

/**
 * Signals to give when no QP lock is held any more: those of CQs, asynchronous events of the QP,
 * and the news for its CM endpoint. Initialise with {0}.
 */
struct iw_wakes {
    struct iw_cq_wakes cqs;
    struct iw_qp *qp;         /* whose events and news these are, pinned; NULL: there are none */
    unsigned async;           /* bit set of enum ibv_event_type */
    struct iw_srq *srq_limit; /* an SRQ whose limit event is due */
    unsigned cm;              /* bit set of enum iw_qp_news */
    uint32_t life;            /* that of qp which they are about; set if cm is not 0 */
};

/** Places of a ring with free-running indices that holds @p n: a power of two. */
static inline uint32_t iw_ring_places(uint32_t n)
{
    uint32_t places = 1;
    while (places < n)
        places *= 2;
    return places;
}

/* ---- receive queue: a QP's own, or a shared one ---- */

struct iw_rqe {
    uint64_t wr_id;
    uint32_t nsge;
};

struct iw_rq {
    struct lock lock;
    uint32_t max_wr, max_sge; /* as advertised */
    uint32_t mask;            /* ring size - 1 */
    uint32_t head, tail;      /* free-running */
    struct iw_rqe *ring;      /* NULL if max_wr is 0 */
    struct ibv_sge *sge;      /* max_sge for each ring entry */
    struct iw_slots *slots;   /* places of receives that are taken and not polled */
    bool flushing;            /* the QP failed: what is posted completes flushed */
    struct iw_srq *srq;       /* that this is the queue of; NULL: a QP's own */
    uint32_t limit;           /* SRQ: fewer receives than this raise its event, once; 0: disarmed */
    struct list waiting;      /* SRQ: struct iw_qp.rq_link, those with early messages */
    struct iw_refused refused;
    uint32_t *used; /* of a QP's own: where "anywarp stat" finds how many are posted; or NULL */
};

/** @return 0 or ENOMEM; iw_rq_fini() is due after both */
int iw_rq_init(struct iw_rq *rq, uint32_t max_wr, uint32_t max_sge);
void iw_rq_fini(struct iw_rq *rq);
/** Forgets what is posted. */
void iw_rq_clear(struct iw_rq *rq);
/** What the module does about fork(); see process/atfork.h. */
void iw_rq_fork(enum fork_step step);
/** Copies one WR in. @return 0, EINVAL (too many SGEs), ENOMEM (full) */
int iw_rq_push_locked(struct iw_rq *rq, const struct ibv_recv_wr *wr);

/** The receive that a message is being placed into. */
struct iw_recv {
    bool taken;
    uint64_t wr_id;
    uint32_t nsge;
    __be32 imm; /* of a Send with immediate */
    bool solicited;
    struct ibv_sge sge[IW_MAX_SGE];
};

/** What UC drops of what comes in. */
struct iw_loss {
    bool send;   /* the rest of this Send */
    bool write;  /* the rest of this Write, and the immediate behind it */
    bool ended;  /* the Write: the next is another one */
    bool always; /* what finds no receive, without waiting: one has not come in time */
};

/**
 * Takes the oldest receive into qp->rx.recv, and ends the wait for it; an SRQ's limit event is
 * noted in @p w. @return false if there is none, or others have waited for it longer
 */
bool iw_rq_pop(struct iw_qp *qp, struct iw_wakes *w);
/**
 * A QP that got no receive waits for one, behind those that wait already.
 * @return true if there is one for it by now: then it does not begin to wait, and tries again
 */
bool iw_rq_wait(struct iw_qp *qp);
/** Ends the wait. */
void iw_rq_leave(struct iw_qp *qp);

/* ---- send queue ---- */

struct iw_sqe {
    uint64_t wr_id;
    union {
        struct {
            uint64_t remote_addr;
            uint64_t compare_add, swap;
        };
        struct {
            uint32_t remote_qpn, remote_qkey; /* of a datagram */
        };
        struct iw_bind bind; /* of a window */
    };
    uint64_t len;        /* payload bytes */
    uint64_t cut;        /* of them, or of the request, cut into FPDUs */
    uint64_t end_pos;    /* tx position behind the last byte, once all is cut */
    uint32_t rkey;       /* of a bind: the window's new one */
    uint32_t imm_or_inv; /* imm_data as given, or the key to invalidate */
    uint8_t opcode;      /* enum ibv_wr_opcode */
    uint8_t flags;       /* IBV_SEND_* of the WR; SIGNALED also by sq_sig_all */
    uint8_t nsge;        /* 0 with inline data */
    bool begun;          /* first segment is cut */
    uint8_t stage;       /* 1 once the Write of one with immediate is cut, or a local one is done */
    bool answered;       /* read or atomic: the response is in */
    uint8_t status;      /* enum ibv_wc_status of the WR at fault, 0 for the others */
};

struct iw_sq {
    uint32_t max_wr, max_sge, max_inline;
    uint32_t mask;
    uint32_t head;          /* oldest not completed */
    uint32_t cut;           /* oldest not wholly cut into FPDUs */
    uint32_t tail;          /* next to post */
    uint32_t drain;         /* state SQD: the tail when it began; nothing from here on goes out */
    bool tell_drained;      /* raise SQ_DRAINED when head gets there */
    struct iw_slots *slots; /* places of work requests that are completed and not polled */
    struct iw_sqe *ring;
    struct ibv_sge *sge;
    uint8_t *inline_data;    /* max_inline for each entry; pages are touched when used */
    struct iw_route *routes; /* one for each entry, of UD; else NULL */
    bool sig_all;
};

/** A read or atomic that waits for its response, in order. */
struct iw_orq_entry {
    uint32_t sqe;      /* index in the send queue; unused for rtr */
    bool rtr;          /* the zero-length read of connection set-up */
    uint64_t received; /* bytes of the response */
};

/** A read or atomic of the peer that waits for its response to be sent, in order. */
struct iw_irq_entry {
    bool is_atomic; /* done already; only its response is due */
    bool begun;
    union {
        struct rdmap_read_request read;
        struct rdmap_atomic_response atomic;
    };
    const uint8_t *from; /* once begun: a window may be bound elsewhere under the same key */
    uint64_t cut;
    uint64_t end_pos; /* once all is cut; kept until sent, as its memory may be gathered */
};

/** A small ring of at most IW_MAX_DEPTH entries. */
struct iw_depth {
    uint32_t limit; /* agreed IRD or ORD */
    uint32_t mask;
    uint32_t head, tail; /* free-running */
};

/** A one-way stream of small messages; see tx_cork.h. */
struct iw_cork {
    bool on;             /* there is one, as far as is known */
    uint64_t quiet_from; /* sent_pos at which the peer was heard last, or messages were few */
    uint64_t since;      /* iw_now() of the first message that is corked */
    uint64_t copied_pos; /* up to this cut_pos messages are done, though they may be unsent */
};

#define IW_SAYS_SWITCH 0x20 /* beside the MPA_RTR_* in iw_qp_tx.says */

/** See rings.h. */
struct iw_rings {
    struct iwc_stream_shm *shm; /* the stream, if it may go on in rings; else NULL */
    bool told;                  /* that they are there; under tx.lock */
};

/** Whether messages come one by one: a poll between each and the next. */
struct iw_singles {
    uint8_t n;      /* those that did, without another kind between; saturated */
    uint32_t taken; /* completions of the send CQ, when something was posted last */
};

/** When a poster was last asked to look at what came in. */
struct iw_checked {
    uint64_t pos;    /* sent_pos */
    uint32_t passes; /* of the CQs */
};

/* ---- the QP ---- */

enum iw_qp_news {
    IW_QP_NEWS_READY = 1 << 0,        /* the first FPDU came in: a responder is established */
    IW_QP_NEWS_DISCONNECTED = 1 << 1, /* the stream ended */
    IW_QP_NEWS_CLOSED = 1 << 2,       /* the socket can go, once DISCONNECTED was heard */
    IW_QP_NEWS_RESET = 1 << 3,        /* with CLOSED: by a reset */
    IW_QP_NEWS_FIN_HELD = 1 << 4,     /* the peer's FIN waits 1 s for a receive to be posted */
    IW_QP_NEWS_STALLS = 1 << 5,       /* iw_qp_stalled() is due in IW_STALL_MS */
    IW_QP_NEWS_SENDS = 1 << 6,        /* it has sent something and is not watched; now it is */
    IW_QP_NEWS_UNMET = 1 << 7,  /* a Send finds no receive: iw_qp_unmet() is due in a second */
    IW_QP_NEWS_RINGS = 1 << 10, /* so much was moved that rings pay, or they are used again */
    /* Not the CM's, but of a QP by number: */
    IW_QP_NEWS_STRANDED = 1 << 8,  /* work is posted or not done, and there is no connection */
    IW_QP_NEWS_NOT_READY = 1 << 9, /* a message waits for a receive: iw_qp_not_ready() is due */
};

/* See cq/counter.h. */
struct iw_counter;
struct iw_counters;

/** A segment of an early message, kept until a receive is posted ; see rx_early.h. */
struct iw_early;

/** What a connection took in while no receives were posted; see rx_stall.h. */
struct iw_stall {
    uint64_t since; /* iw_now() when reception paused first with the socket not empty; 0: it is */
    bool timed;     /* iw_qp_stalled() is going to be called */
    bool takes_in;  /* the socket is read in a pause, too */
    struct iw_stall_block *head, *tail;
    uint32_t blocks, bytes;
};

/** What has come of Writes and has not landed; see rx_late.h. */
struct iw_late;

/** The work requests being built; one block of heap. */
struct iw_builder;

/** What goes out. */
struct iw_qp_tx {
    struct lock lock;
    struct iw_sq sq;
    struct iw_depth ord, ird;
    struct iw_orq_entry *orq; /* allocated with the link */
    struct iw_irq_entry *irq;
    uint32_t irq_cut; /* oldest response not wholly cut */
    bool irq_next;    /* the next message is a response: neither side starves */
    struct iwc_tx half;
    struct iwc_batch *batch; /* only while something is unsent */
    uint64_t mss_check;      /* look at the segment size again when cut_pos gets there */
    uint64_t alone_from; /* sent_pos since which no other QP has moved bytes; see tx_quantum.h */
    struct iw_cork cork;
    struct iw_checked checked;
    struct iw_singles singles;
    uint64_t unflushed;    /* weight of what was posted since the last transmission */
    uint32_t empty;        /* polls of the CQs, when something was posted or transmitted last */
    bool blocked;          /* TCP is full */
    bool watched;          /* the CM looks whether TCP gets answers */
    uint8_t retries;       /* left to pollers while it is; 0: EPOLLOUT is asked for */
    bool rx_paused;        /* the socket is not read: only its end is of interest */
    bool rx_takes_in;      /* paused, and yet it is read */
    bool rx_ended;         /* the peer's FIN is read, and done with */
    bool hold;             /* responder before the first FPDU: nothing may be sent */
    uint8_t says;          /* before anything else: an MPA_RTR_*, IW_SAYS_* */
    uint16_t sent_beyond;  /* bit 1 << opcode for each beyond RFC 5040 that was sent */
    struct iw_grace grace; /* of the local work request at sq.cut, if that is done */
    struct iw_deferred deferred; /* posted and not transmitted; needs no lock */
    enum ibv_qp_state state;
    bool linked; /* a stream is attached and not released yet */
    struct iw_source *source;
};

/** How it ends; under tx.lock, but for what is atomic. */
struct iw_qp_end {
    enum iwc_close_state close;
    bool term_queued; /* the Terminate goes next, then nothing */
    uint8_t term_len;
    uint8_t term[TERMINATE_MAX];
    bool untold;                 /* the program has yet to hear of it: nothing is flushed before */
    enum iw_err error;           /* the first cause; IW_OK while all is well */
    bool flushed;                /* all posted work is completed; changed under rx.lock, too */
    bool forgets;                /* is being reset: what is left does not complete */
    atomic_bool over;            /* error is set: what still comes in is dropped */
    atomic_bool explained;       /* explanation is written, by whoever was first */
    enum iw_err explained_error; /* that it is about */
    bool unmapped;               /* it is about memory that is not mapped any more */
    char explanation[256];       /* English: keys, ranges, rights; what a peer's Terminate said */
};

/** Bytes of one segment that go from the stream to where they belong; see rx_direct.h. */
struct iw_direct {
    uint32_t left; /* that come before what is staged goes on; 0: none */
    uint32_t key;
    uint64_t to; /* of the first of them */
    enum iw_use use;
};

/** What comes in. */
struct iw_qp_rx {
    struct lock lock;
    struct iwc_rx half;
    uint8_t *staging;   /* from the pool, only while it holds a partial FPDU */
    uint32_t staged;    /* bytes in it not used yet */
    uint32_t staged_at; /* offset of the first */
    struct iw_direct direct;
    struct iw_recv recv; /* the Send in progress */
    struct iw_loss loss; /* of one that is unreliable */
    struct iw_early *early_head, *early_tail;
    size_t early_bytes;         /* with what keeps them */
    uint32_t early, early_data; /* messages, and their bytes */
    uint64_t early_since;       /* iw_now() when the first of them began to wait */
    bool unmet_timed;           /* iw_qp_unmet() is going to be called */
    bool unmet_told;
    struct iw_stall stall;
    struct iw_late *late;  /* NULL: Writes land as they come; see rx_late.h */
    uint32_t writing;      /* bytes so far of the Write that comes in */
    uint32_t written;      /* bytes of the last one, if no Send or Immediate came in after it */
    uint32_t peer_qpn;     /* responder: that an anywarp told with its RTR, 0: none */
    uint8_t recv_status;   /* of the receive at fault, 0 if it is not */
    atomic_bool starved;   /* Sends wait for a posted receive; posting reads it without the lock */
    bool paused;           /* and the socket is not read: the bound is reached */
    atomic_uint awaits;    /* times that receives were awaited anew, with fin_known */
    bool fin_seen;         /* the peer's FIN is read, and waits behind held Sends */
    bool rtr_first;        /* the first FPDU is one of connection set-up; of a link */
    bool work;             /* reception made something ready to complete or send */
    struct iw_wakes wakes; /* of this stretch with the lock */
};

/** Written and read under any lock or none: a wrong one costs time only. */
struct iw_qp_hints {
    atomic_bool heard;        /* bytes came in since something was posted */
    atomic_bool looked_heard; /* bytes came in since a poster was asked to look */
};
struct iw_qp_owner;
struct iw_shadow_qp;

/** What is in place of a stream for a QP of type UD. */
struct iw_datagrams {
    /** Transmission, as iw_qp_transmit_locked(): a work request that is with the kernel, or lost,
     * is behind sq.cut. tx.lock */
    void (*transmit)(struct iw_qp *qp, struct iw_wakes *w);
    /** A receive was posted while rx.starved was set. rx.lock */
    void (*resume)(struct iw_qp *qp);
    uint32_t max; /* payload bytes of one */
};

struct iw_qp {
    union {
        struct ibv_qp pub;
        struct ibv_qp_ex pub_ex;
    };
    struct iw_pd *pd;                /* a root; pub.pd may be a parent domain */
    struct iw_accessor accessor;     /* to memory; constant */
    struct iw_qp *hash_next;         /* QP number table */
    struct iw_cq *send_cq, *recv_cq; /* NULL only for a queue of size 0 */
    struct iw_rq *rq;                /* own_rq, or that of the SRQ */
    struct iw_rq own_rq;
    struct list rq_link; /* rq->waiting */
    struct ibv_qp_cap cap;
    struct stats_qp *stats;

    struct iw_qp_tx tx;
    struct iw_qp_end end;
    struct iw_qp_rx rx;
    struct iw_qp_hints hints;
    struct iw_refused refused; /* of its posts */
    struct iw_acks acks;       /* of one by number */
    struct iw_rings rings;
    struct iw_sent sent; /* between the halves: given to TCP and not completed yet */

    /* under tx.lock */
    unsigned access;         /* qp_access_flags; 0 from the CM means remote write and read */
    struct ibv_qp_attr attr; /* what modify_qp set */
    bool uc;                 /* type UC: nothing is acknowledged, nothing fails at the peer */
    bool ib; /* InfiniBand manners: moved to RTR with a GID and a number, or by rdma_cm on a RoCE
                device */
    struct iw_cm *cm;                        /* gets the news; its reference is the CM's business */
    const struct iw_qp_owner *_Atomic owner; /* tells it; kept when cm is gone; NULL: none yet */

    const struct iw_datagrams *datagrams; /* of type UD; else NULL. Constant; see ud/ud.h */

    /* of a QP that is not rdma_create_qp()'s; constant; see qpn/dial.h */
    struct iw_dial *dial;
    void (*dial_news)(struct iw_qp *qp, unsigned news);

    /* changed under rx.lock and tx.lock, so that either is enough to read it */
    struct iwc_stream *stream;
    bool same_host, ext; /* what is known of the peer */
    bool was_linked;     /* a QP connects once in a life */
    bool silent;         /* no FPDU came in yet, and the CM wants to know of the first */
    bool fin_known;      /* the peer's FIN came in, maybe behind unread bytes */
    uint32_t life;       /* how often it was reset */

    struct lock build_lock;     /* of the extended view, while work requests are being built */
    atomic_bool built;          /* and whoever has that lock posts them: destroy waits */
    struct iw_builder *builder; /* verbs/qp_ex.c; NULL: the QP has no such view */

    _Atomic(struct iw_counters *) counters; /* NULL: none; set under tx.lock, once */

    struct iw_shadow_qp *shadow; /* what a check knows of it; NULL: none goes on */
    atomic_uint pins;            /* threads that tell of it, or look; destroy waits */
    unsigned async_events_read;  /* by the program; under the context's lock */
};

static inline struct iw_qp *iw_qp(struct ibv_qp *q)
{
    return container_of(q, struct iw_qp, pub);
}

/* ---- for layer verbs ---- */

/**
 * Creates a QP in state RESET, on an iWARP device in INIT, as others of node type RNIC do, and
 * writes the true caps back to @p attr.
 * @param number  that nobody else has; 0: one that no port goes with
 * @param datagrams  what sends, of type UD; else NULL
 * @return NULL and errno: EOPNOTSUPP (neither RC, UC nor UD), EINVAL (caps over the limits, missing
 * CQ), ENOMEM, EIO
 */
struct iw_qp *iw_qp_create(struct iw_pd *pd, struct ibv_qp_init_attr *attr, uint32_t number,
                           const struct iw_datagrams *datagrams);
/** Closes the stream; what was posted goes out first, at most 1 s. Nothing uses the QP afterwards.
 */
void iw_qp_stop(struct iw_qp *qp);
/** Frees a QP that is stopped and has no asynchronous event of its own left anywhere. */
void iw_qp_free(struct iw_qp *qp);
/** By number, in this context, or in others of the device, too. Valid while the program does not
 * destroy it. */
struct iw_qp *iw_qp_find(struct ibv_context *ctx, uint32_t qp_num, bool others);
/** Calls @p f for each QP of the process; it takes no lock before that of the numbers, but tries.
 */
void iw_qps_visit(void (*f)(struct iw_qp *qp, void *arg), void *arg);

/**
 * The next QP that uses @p cq and has not failed, pinned; @p bucket is 0 at first.
 * @return NULL if there is none
 */
struct iw_qp *iw_qp_pin_user(const struct iw_cq *cq, unsigned *bucket);

/**
 * From now on @p c counts the operations @p ops of a QP in state RESET or INIT.
 * @return 0, EINVAL (another state, no operation, another context), ENOTSUP (not in
 * IW_COUNTER_OPS), EBUSY (one of them is counted already), ENOMEM; then nothing has changed
 */
int iw_qp_count(struct iw_qp *qp, struct iw_counter *c, uint32_t ops);

/** @return 0; EINVAL or, for unknown bits of the mask, EOPNOTSUPP, and then nothing has changed */
int iw_qp_modify(struct iw_qp *qp, const struct ibv_qp_attr *attr, int mask);
void iw_qp_query(struct iw_qp *qp, struct ibv_qp_attr *attr, struct ibv_qp_init_attr *init);

enum iw_post {
    IW_POST_EACH,  /* those before a bad one stay posted */
    IW_POST_ALL,   /* all or none */
    IW_POST_BIND_1 /* as EACH, but windows of type 1 are bound */
};

/** @return 0; EINVAL (state, opcode, flags, SGEs, window), EPERM (bind: domains), ENOMEM (full),
 * EOPNOTSUPP; *bad_wr is set then
 */
int iw_post_send(struct iw_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr,
                 enum iw_post how);
/** Binds a window of type 1 and gives @p mw its new rkey. @return as iw_post_send(), EPERM */
int iw_post_bind(struct iw_qp *qp, struct iw_mw *mw, const struct ibv_mw_bind *bind);
/** @return 0; EINVAL (state, SGEs, a QP with an SRQ), ENOMEM (full); *bad_wr is set then */
int iw_post_recv(struct iw_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);

/**
 * What the module does about fork(); see process/atfork.h. In the child no thread is inside a QP
 * any more and no attempt to connect one goes on.
 */
void iw_qp_fork(enum fork_step step);

/* What the CM calls is in link.h. */

#endif
