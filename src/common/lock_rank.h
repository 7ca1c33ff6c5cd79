/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of locks, written once: who holds one takes none that stands before it or beside it.
 * Builds with a sanitizer assert that, for each library by itself: librdmacm calls libibverbs with
 * its own locks held, and is called with none.
 *
 * Not in the list, as nothing is waited for under them but memory: the mutexes of lock classes, of
 * the program's own objects (ibv_qp.mutex ...), and of mem/quiesce.c's reserve.
 */
#ifndef ANYWARP_LOCK_RANK_H
#define ANYWARP_LOCK_RANK_H

enum lock_rank {
    /* librdmacm */
    LOCK_CMA_ID,
    LOCK_CMA_EVENTS, /* queues of events, lists of ids */
    LOCK_CMA_PD,     /* default protection domains */

    /*
     * Held by the program between two calls, several of them in an order of its own: a QP's
     * build_lock, the extended view's work requests; a CQ's poll_lock.
     */
    LOCK_PROGRAM,
    LOCK_IN_ORDER, /* cm/listen.c: connections are told of in the order in which they came */
    LOCK_DIALS,    /* the ports that QPs are dialled by, and who is found there */
    LOCK_DIAL,     /* the connection by number of one QP */
    LOCK_CM,       /* a CM endpoint's state */
    LOCK_MOVES,    /* cm/move.c: for which requests programs move QPs */
    LOCK_SIDR,     /* an endpoint of datagrams */
    LOCK_PD,       /* the windows of a protection domain */
    LOCK_QP_RX,    /* everything received, struct iw_qp_rx; progress only tries it */
    LOCK_QP_TX,    /* everything sent, and the end: struct iw_qp_tx, struct iw_qp_end */
    LOCK_NUMBERS,  /* of QPs */
    LOCK_RQ,       /* the receive queue, or the SRQ */
    LOCK_CQ,

    /* Leaves towards what is above; some are taken in one another. */
    LOCK_UD_ACCESS, /* whose datagrams are taken */
    LOCK_CHANNEL,
    LOCK_NETWATCH, /* held while its watchers are told */
    LOCK_CONTEXT,  /* asynchronous events */
    LOCK_GRANTS,   /* what the keys of a protection domain give */
    LOCK_STAGS,
    LOCK_UDS,       /* all QPs of datagrams */
    LOCK_UD_GROUPS, /* the multicast groups that they have joined */
    LOCK_MEETING,   /* who offers rings, and who comes for them */
    LOCK_VOUCH,     /* who has vouched for their numbers */
    LOCK_RANDOM,
    LOCK_POOL_STAGING,
    LOCK_POOL_BATCH,
    LOCK_TIMERS,
    LOCK_ENGINE,
    LOCK_ADOPTED, /* the source that a poller has to itself */
    LOCK_SOURCES, /* their table */
    LOCK_SOURCE,  /* a place in it */
    LOCK_STATS,
    LOCK_PCAP,
    LOCK_TLS,     /* of one stream; sending and receiving share its state */
    LOCK_QUIESCE, /* who waits for copies to end */
    LOCK_CHAOS,   /* which faults were asked for */
    LOCK_SHADOWS, /* what the program knows of its queues */
    LOCK_LIVES,   /* objects that are made, and destroyed */
    LOCK_ADVICE,  /* findings */
    LOCK_STACKS,  /* where they are from */
    LOCK_RECORD,  /* the file of the flight recorder */
    LOCK_RANKS
};

#endif
