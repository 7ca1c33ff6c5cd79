/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of an iWARP stream for tests: negotiation, receive and transmit halves over a memory
 * stream, with upcalls that place into plain buffers between guards.
 */
#ifndef ANYWARP_TESTS_END_H
#define ANYWARP_TESTS_END_H

#include "conn/nego.h"
#include "conn/rx.h"
#include "conn/tx.h"
#include "wire/fpdu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The memory of an end: a part that peers read, a part that they write, both under one STag. */
#define END_STAG      0x77
#define END_BASE      0x1000u
#define END_READ      8192
#define END_WRITE     8192
#define END_MEM       (END_READ + END_WRITE)
#define END_SINK_STAG 0x55
#define END_SINK      8192
#define END_RECV      16384
#define END_GUARD     64
#define END_IRD       4

/** What an end does after the handshake, one after another. */
struct end_op {
    uint8_t opcode; /* RDMAP_WRITE, READ_REQUEST, Send kinds, IMM, ATOMIC_REQUEST, TERMINATE */
    uint32_t at;    /* offset in the peer's write part, or in its read part and our sink */
    uint32_t len;
};

struct end {
    /* Set by the test. */
    struct iwc_stream *s;
    bool want_markers; /* M in our start frame; markers are taken out here */
    bool reject;       /* responder */
    bool hold;         /* every second offer of a Send is held */
    uint64_t split;    /* received bytes are cut here, 0: nowhere */
    uint64_t cut_off;  /* received bytes end here, 0: nowhere */
    uint32_t mulpdu;
    const struct end_op *ops;
    unsigned nops;
    const void *pd;
    uint16_t pd_len;

    /* The state. */
    struct mpa_nego nego;
    struct iwc_rx rx;
    struct iwc_tx tx;
    bool data;                      /* FPDUs flow */
    uint32_t start_len, start_sent; /* our start frame */
    unsigned next;
    bool rtr_due;
    struct iwc_msg msg; /* in progress */
    bool busy;
    struct iovec iov[2];
    uint8_t hdr[TERMINATE_MAX];
    struct end_read {
        uint32_t to, len;
    } reads[END_IRD]; /* outstanding */
    unsigned nreads;
    uint32_t read_got;
    struct end_response {
        bool atomic;
        struct rdmap_read_request read;
        struct rdmap_atomic_response result;
    } responses[END_IRD * 2]; /* to send */
    unsigned nresponses;
    uint64_t received, unmarked; /* stream bytes; those of marked FPDUs taken out */
    size_t raw_len, in_len;
    bool offered; /* hold: the next offer is taken */
    bool fin;     /* the peer's */
    bool term_sent;
    enum iw_err error;     /* the first one; PEER_TERMINATE if it came from the peer */
    struct terminate term; /* the peer's */

    /* What arrived. */
    unsigned nrecv, nimm, natomic;
    uint32_t recv_len;
    uint8_t recv_opcodes[16];
    uint64_t atomic_result;

    uint8_t guard0[END_GUARD], mem[END_MEM];
    uint8_t guard1[END_GUARD], sink[END_SINK];
    uint8_t guard2[END_GUARD], recv[END_RECV];
    uint8_t guard3[END_GUARD];

    struct iwc_batch batch; /* from here on nothing needs to be zeroed */
    uint8_t raw[2 * FPDU_MAX], in[2 * FPDU_MAX];
};

/** The byte at @p i of what an end's program sends and lets others read. */
static inline uint8_t end_pattern(uint32_t i)
{
    return (i * 2654435761u) >> 13;
}

void end_connect(struct end *e, const struct mpa_conf *conf);
void end_listen(struct end *e, const struct mpa_conf *conf);

/** Does what can be done without waiting. @return whether that was anything */
bool end_step(struct end *e);

/** The program goes: FIN behind what was sent. */
void end_shutdown(struct end *e);

/** Whether all of the ops are out, nothing is due to the peer and no read is outstanding. */
bool end_idle(const struct end *e);

bool end_guards_intact(const struct end *e);

#endif
