/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MPA negotiation (RFC 5044 section 7.1, RFC 6581) as a machine without I/O: bytes of the peer and
 * decisions of the program go in, frames to send and one result come out. Single owner, no locks.
 * Time limits are the caller's: it calls mpa_nego_timeout().
 *
 * The machine is the table in nego.c: state x event -> action, next state; an illegal pair is a
 * row.
 */
#ifndef ANYWARP_CONN_NEGO_H
#define ANYWARP_CONN_NEGO_H

#include "wire/error.h"
#include "wire/mpa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_NEGO_STATES(X)                                                                         \
    X(IDLE)          /* nothing sent or expected yet */                                            \
    X(WAIT_REPLY)    /* initiator: Request sent */                                                 \
    X(WAIT_REQUEST)  /* responder: nothing received yet, or a part */                              \
    X(WAIT_DECISION) /* responder: Request in, the program has not answered */                     \
    X(AGREED)        /* both: FPDUs follow, n->result holds */                                     \
    X(REJECTED)      /* Reply with R was sent or received */                                       \
    X(FAILED)        /* n->error says why */

enum mpa_nego_state {
#define X(name) MPA_NEGO_##name,
    MPA_NEGO_STATES(X)
#undef X
};

const char *mpa_nego_state_name(enum mpa_nego_state s);

/** What this side offers. */
struct mpa_conf {
    uint8_t rev;       /* initiator: revision to ask with, 1 or 2 */
    bool crc;          /* C: this side wants CRC */
    bool ext;          /* offer and answer the anywarp extension bit */
    bool p2p;          /* initiator: A, peer-to-peer with RTR */
    uint8_t rtr;       /* MPA_RTR_* this side can send (initiator) or receive (responder) */
    uint16_t ird, ord; /* up to MPA_DEPTH_MAX */
    uint32_t qpn;      /* responder, when it accepts: of its QP, told to an anywarp; 0: not told */
    bool shm;          /* between anywarps, without CRC and markers: ask for rings, offer them */
    uint8_t offer[MPA_OFFER]; /* responder, with shm: where it can be met */
    bool full; /* responder, when it rejects: as its backlog is full; told to an anywarp */
};

/**
 * What both sides agreed on; valid in state AGREED, of REJECTED full alone. After IRD_SHORT and
 * NO_RTR, rev, crc and tx_markers hold for the Terminate that follows.
 */
struct mpa_result {
    bool full; /* REJECTED: by a full backlog, which an anywarp tells */
    uint8_t rev;
    bool enhanced;            /* IRD/ORD were exchanged */
    bool crc;                 /* generate and check */
    bool tx_markers;          /* the peer asked for markers in what we send */
    bool ext;                 /* the peer is anywarp */
    bool shm;                 /* the stream may go on in rings */
    uint8_t offer[MPA_OFFER]; /* initiator, with shm: where to meet the responder */
    bool p2p;
    uint8_t rtr;       /* p2p: the one MPA_RTR_* the initiator sends; 0 without p2p */
    uint16_t ird, ord; /* reads and atomics: that we serve at once, that we may have outstanding */
    uint32_t peer_qpn; /* of the peer's QP, 0 if it does not tell; an initiator tells with its
                          RTR, which the RNIC sees */
};

struct mpa_nego {
    enum mpa_nego_state state;
    bool initiator;
    struct mpa_conf conf;
    struct mpa_result result;
    struct mpa_start peer; /* the peer's frame, from WAIT_DECISION, AGREED, REJECTED on; its private
                              data points into in[] */
    enum iw_err error;     /* FAILED: START_FRAME, IRD_SHORT, NO_RTR, LLP_CLOSED, MPA_LOCAL */
    bool timed_out;        /* FAILED by mpa_nego_timeout() */
    uint32_t out_len;      /* frame to send now, 0 for none; the caller sends it and zeroes this */
    uint32_t in_len;
    uint8_t out[MPA_START_MAX];
    uint8_t in[MPA_START_MAX];
};

/**
 * Starts as initiator: the Request stands in n->out.
 * @param pd_len  0..508 with revision 2, 0..512 with revision 1
 * @return 0, or -EINVAL for a depth or private data over its limit
 */
int mpa_nego_connect(struct mpa_nego *n, const struct mpa_conf *conf, const void *pd,
                     uint16_t pd_len);

/**
 * Both sides are this one: agrees at once, without a frame or private data; as neither side is the
 * one that must not send first, without an RTR.
 * @return 0, or -EINVAL for a depth over its limit
 */
int mpa_nego_with_itself(struct mpa_nego *n, const struct mpa_conf *conf);

/** Starts as responder. */
void mpa_nego_listen(struct mpa_nego *n, const struct mpa_conf *conf);

/**
 * Takes bytes of the peer; look at n->state afterwards.
 *
 * Initiator: bytes behind the Reply are not used, they begin the FPDU stream (tolerated, RFC 5044
 * section 7.1.2 rule 4 forbids peers to send them). Responder: bytes behind the Request are an
 * error (rule 3). A Reply with R ends in REJECTED with its private data; so does one that is
 * well-formed and has another revision only if the revision is one we asked for or lower, else
 * FAILED. If the negotiated depths or RTR types do not match, FAILED with IRD_SHORT or NO_RTR: the
 * caller sends the Terminate, then closes.
 *
 * @return bytes used, <= len
 */
size_t mpa_nego_input(struct mpa_nego *n, const uint8_t *p, size_t len);

/** The peer's FIN, or a reset, in any state before AGREED: FAILED with LLP_CLOSED. */
void mpa_nego_closed(struct mpa_nego *n);

/** The time limit of the present state ran out: FAILED with LLP_CLOSED and timed_out. */
void mpa_nego_timeout(struct mpa_nego *n);

/**
 * Responder accepts (state WAIT_DECISION -> AGREED): the Reply stands in n->out.
 *
 * The Reply has the Request's revision and S; C is set if either side wants CRC; the extension is
 * answered if the Request offered it and conf.ext, with conf.qpn if it asked for that; A and RTR
 * types as RFC 6581 section 9.2 says, Write preferred. With an enhanced Request the result is ird =
 * @p ird, but 1 for 0 if the RTR is a Read, and ord = min(@p ord, the peer's IRD); a depth that the
 * peer leaves to the program (MPA_DEPTH_MAX) is answered with MPA_DEPTH_MAX.
 *
 * @param ird, ord  the program's, up to MPA_DEPTH_MAX
 * @return 0; -EINVAL in another state or for private data or depths over their limits
 */
int mpa_nego_accept(struct mpa_nego *n, uint16_t ird, uint16_t ord, const void *pd,
                    uint16_t pd_len);

/**
 * Responder rejects (state WAIT_DECISION -> REJECTED): the Reply with R stands in n->out; it
 * carries S and the block whenever the Request did (siw cuts 4 bytes off in any case).
 * @return 0; -EINVAL in another state or for private data over its limit
 */
int mpa_nego_reject(struct mpa_nego *n, const void *pd, uint16_t pd_len);

/** Whether the first byte of a Reply has been received: after that, no fall-back to revision 1. */
static inline bool mpa_nego_heard(const struct mpa_nego *n)
{
    return n->in_len > 0;
}

#endif
