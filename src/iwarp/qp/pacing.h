/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pacing: whether posted work goes out now, at the next pass, or after it is completed, together
 * with what follows. One pure function decides by facts and a clock, and knows nothing of a QP; the
 * table of its thresholds is here. What it decides is tuning: whatever the answer, all that is
 * posted is either sent or left on the stack of deferred work (engine/deferred.h).
 *
 * A system call costs as much as fifty small messages, so that sending waits for the next pass
 * where a program polls, and posts again before it does. Not the first message after the peer was
 * heard, or after a poll that found nothing: that may be the one that somebody waits for. Nor where
 * messages have come one by one, and each poll has found the one before: nothing would follow. Nor
 * the first few that would wake the engine's thread (iw_deferred_pays()). What waits goes out, as a
 * rule, before what is posted later, to whatever QP; but not what is longer than a quantum, nor
 * what finds the socket full, as one QP shall not hold up the others.
 *
 * A program that waits for completions posts no more messages at a time than its queue holds. But a
 * completion only says that the memory may be used again (RFC 5040 section 5.1). So where a QP has
 * sent a lot without a word of the peer, so that nobody waits for an answer to a single message, a
 * pass completes what was posted instead of sending it: it is corked (tx_cork.h).
 *
 * Where work completes when the peer has acknowledged it (qp/ack.h), such a stream is sent as it is
 * posted, but polls that find nothing wait for acknowledgements: the message behind them is the
 * first of a window, and goes with the rest of it.
 */
#ifndef ANYWARP_QP_PACING_H
#define ANYWARP_QP_PACING_H

#include "conn/batch.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- thresholds ---- */

/*
 * Behind each is what another value costs or gains: a ratio, the median of five pairs of builds on
 * a virtual machine with two processors. Rates of 64 bytes have a spread of 0.6 to 1.6.
 */

/* Bytes that a work request counts for beside its own. 0: the rates of 64 bytes stay; it bounds a
 * stretch of small messages in time. */
#define IW_PACE_WR_WEIGHT   256
/* Bytes at a stretch beside another QP. 256 KB: its message waits 3.6 times as long, a stream of
 * 1 MB stays (1.02), four streams of 16 KB 0.73; 1 MB: 29 times, and 1.2. */
#define IW_PACE_QUANTUM_MIN (64 * 1024)
/* Bytes at a stretch alone. 256 KB: Writes of 1 MB 0.96, Sends 1.08. */
#define IW_PACE_QUANTUM_MAX IWC_BATCH_LIMIT
/* Bytes sent without a word of the peer are a stream. No stream at all: 64 bytes at depth 16 0.70,
 * at depth 128 0.54; 16 KB: 1.14 and 0.65. */
#define IW_PACE_STREAM_MIN  (256 * 1024)
/* Messages one by one, after which the next goes out at once. None ever does: 64 bytes at depth 1
 * in rings 0.51, over TCP 0.96. */
#define IW_PACE_SINGLES     8
/* Bytes at a stretch where work completes when the peer has acknowledged it, and to send takes no
 * system call: the peer is at some while the others are posted. A quantum: 64
 * bytes at depth 128 0.84; 2 KB: 0.90. */
#define IW_PACE_PIECE       (8 * 1024)
/* Bytes corked are enough to be sent. 16 KB: 64 bytes at depth 128 0.84. */
#define IW_PACE_CORK_MAX    (64 * 1024)
/* Fewer bytes at the time limit end the stream. 64 KB: 64 bytes stay (1.10, 1.07). */
#define IW_PACE_CORK_MIN    (4 * 1024)
/* How long a corked message waits for more. 25 us: 64 bytes at depth 16 0.84, at depth 128 0.87. */
#define IW_PACE_CORK_NS     250000

/* ---- the decision ---- */

struct iw_pace_facts {
    bool polled;           /* a program polls, and waits for events of none of the QP's CQs */
    bool heard;            /* the peer was heard since something was posted last */
    bool passed;           /* a poll found nothing since something was posted or sent last */
    bool single;           /* it is the only one since a poll, as were IW_PACE_SINGLES before it */
    bool cheap;            /* to send takes no system call */
    bool acked;            /* work completes when the peer has acknowledged it */
    bool busy;             /* something else has to go first, or nothing may: of a pass only */
    uint64_t unsent;       /* weight of what was posted since the last transmission */
    uint64_t quantum;      /* iw_pace_quantum() */
    uint64_t quiet;        /* bytes sent since the peer was heard, or the stream ended */
    uint32_t posted;       /* work requests that are not complete */
    uint32_t uncut;        /* of them, those that are in no batch yet */
    uint64_t corked;       /* bytes */
    uint64_t corked_since; /* time of the first of them; now, if there are none */
};

enum iw_pace {
    IW_PACE_SEND,
    IW_PACE_DEFER, /* to the next pass */
    IW_PACE_CORK,  /* complete all but the last work request, and send up to IW_PACE_CORK_MAX later
                    */
};

struct iw_paced {
    enum iw_pace what;
    bool stream; /* this is a one-way stream of messages, as far as is known */
    bool ends;   /* what there is to send is too little for one: it has to prove itself again */
};

/**
 * Whether somebody may wait for what was just posted: by what was heard, what passed, and how quiet
 * it is, where the program waits for acknowledgements. If so, the other facts do not matter.
 */
static inline bool iw_pace_is_awaited(const struct iw_pace_facts *f)
{
    return f->heard || (f->passed && !(f->acked && f->quiet >= IW_PACE_STREAM_MIN));
}

/** What becomes of work that was just posted: SEND or DEFER. */
enum iw_pace iw_pace_post(const struct iw_pace_facts *f);

/**
 * What becomes of deferred work in a pass: SEND or CORK.
 * @param now  ns of the clock of @p f
 */
struct iw_paced iw_pace_pass(const struct iw_pace_facts *f, uint64_t now);

/** How much a QP sends at a stretch that has sent so many bytes while no other QP moved any. */
uint64_t iw_pace_quantum(uint64_t alone);

#endif
