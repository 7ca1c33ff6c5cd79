/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A raw TCP socket that speaks MPA, DDP and RDMAP by hand to a QP of this process, the victim, and
 * may say what no peer should. It shares no code with the libraries: fields are written as the RFCs
 * give them. A test takes a right segment, changes what it wants to be wrong, and sends it.
 *
 * Every function fails the test if something does that is not the test's subject.
 */
#ifndef ANYWARP_TESTS_PEER_H
#define ANYWARP_TESTS_PEER_H

#include "api/pair.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum peer_op {
    PEER_WRITE = 0x0,
    PEER_READ_REQUEST = 0x1,
    PEER_READ_RESPONSE = 0x2,
    PEER_SEND = 0x3,
    PEER_SEND_INV = 0x4,
    PEER_TERMINATE = 0x7,
    PEER_IMM = 0x8,
    PEER_ATOMIC_REQUEST = 0xa,
    PEER_ATOMIC_RESPONSE = 0xb,
    PEER_SEND_IMM = 0xf, /* of anywarp */
};

#define PEER_ULPDU_MAX 64768
#define PEER_FPDU_MAX  65536
#define PEER_QUEUES    4
#define PEER_REPLY_MAX 24
#define PEER_SENT      128 /* segments that are remembered, for what a Terminate quotes */
#define PEER_HEADERS   (18 + 28)

struct peer {
    struct side victim;
    struct rdma_cm_id *listener; /* the victim's, if it is the passive side */
    int listening;               /* our socket, if the victim is the active side, else -1 */
    int fd;
    uint8_t rev;               /* of the Request that was taken last */
    bool crc;                  /* both sides use it: one of them asked */
    bool markers;              /* we ask for them */
    uint32_t msn[PEER_QUEUES]; /* of our next message */
    uint8_t in[2 * PEER_FPDU_MAX];
    size_t in_len;
    bool reset; /* the victim ended the stream so */
    struct {
        uint8_t bytes[PEER_HEADERS]; /* DDP header, and what may be an RDMAP one */
        uint16_t ulpdu_len;
    } sent[PEER_SENT];
    unsigned nsent;
    int quoted; /* the segment, counted from 0, that the Terminate quotes; -1: none */
};

/** Byte 0 and 1 of a DDP header. */
#define PEER_TAGGED   0x80
#define PEER_LAST     0x40
#define PEER_DDP_V1   0x01
#define PEER_RDMAP_V1 0x40

/** One segment as it goes out; what is not of its kind (tagged, untagged) is not written. */
struct peer_seg {
    uint8_t ddp, rdmap; /* control bytes */
    uint32_t stag;
    uint64_t to;
    uint32_t inval, qn, msn, mo;
    const void *payload; /* NULL: zeros */
    size_t len;
    /* lies */
    bool lie_len;
    uint16_t ulpdu_len; /* with lie_len: what the length field says */
    uint32_t crc_xor;
};

struct peer_conf {
    struct pair_conf side;
    bool no_crc;
    bool silent;       /* peer_open() sends no FPDU */
    uint16_t ird, ord; /* of ours; 0: 4. With side.no_reads both are 0 */
    bool small_window; /* we take a few KB at a time only */
    bool markers;      /* we want them; the victim's stream cannot be read by peer_next() then */
};

/**
 * Connects to a listening victim with MPA revision 2; both are established then. The victim serves
 * side.depth reads at once, 4 if it is 0.
 */
void peer_open(struct peer *p, const struct peer_conf *conf);
/** Destroys the victim, canaries checked, and closes the sockets. */
void peer_close(struct peer *p);

/** A victim that is to connect to @p addr, up to where rdma_connect() comes next. */
void peer_prepare(struct peer *p, const struct sockaddr_in *addr, const struct pair_conf *conf);
/** Listens, and prepares a victim to connect to that. */
void peer_listen(struct peer *p, const struct peer_conf *conf);
/** The victim's rdma_connect() to us. */
void peer_called(struct peer *p);
/** Takes the connection that the victim makes; the one before, if any, is closed. */
void peer_take(struct peer *p);
/** Takes its Request as well. */
void peer_take_request(struct peer *p);
/** Makes the right Reply to the last Request. @return its size, at most PEER_REPLY_MAX */
size_t peer_reply(const struct peer *p, uint8_t *out);
/** All of that: connected, and both are established. */
void peer_open_active(struct peer *p, const struct peer_conf *conf);

/** Closes the socket, if it is open: with a RST or with a FIN. */
void peer_hang_up(struct peer *p, bool reset);

void peer_put16(uint8_t *p, uint16_t v);
void peer_put32(uint8_t *p, uint32_t v);
void peer_put64(uint8_t *p, uint64_t v);
uint32_t peer_get32(const uint8_t *p);
uint64_t peer_get64(const uint8_t *p);

/* ---- sending ---- */

void peer_send(struct peer *p, const void *bytes, size_t len);

/** A right, last, untagged segment of a new message, which takes its MSN. */
struct peer_seg peer_untagged(struct peer *p, enum peer_op op, const void *payload, size_t len);
struct peer_seg peer_tagged(enum peer_op op, uint32_t stag, uint64_t to, const void *payload,
                            size_t len);
/** The 28 bytes behind the header of a Read Request. */
void peer_read_request(uint8_t out[28], uint32_t sink_stag, uint64_t sink_to, uint32_t size,
                       uint32_t source_stag, uint64_t source_to);
/** The 52 bytes of an Atomic Request, a fetch and add of 1 unless @p aop is another. */
void peer_atomic_request(uint8_t out[52], uint8_t aop, uint32_t id, uint32_t stag, uint64_t to);

/** Makes an FPDU of any bytes. @return its size, at most PEER_FPDU_MAX */
size_t peer_frame(const struct peer *p, const void *ulpdu, size_t len, uint8_t *out);
/** Whether the last 4 of the bytes are the CRC of the others. */
bool peer_crc_good(const uint8_t *bytes, size_t len);
/** Makes the FPDU. @return its size, at most PEER_FPDU_MAX */
size_t peer_fpdu(struct peer *p, const struct peer_seg *s, uint8_t *out);
void peer_send_seg(struct peer *p, const struct peer_seg *s);

/* ---- receiving ---- */

/**
 * Waits for the next FPDU, whose length, pad and CRC must be right.
 * @param s  its payload is good until the next call
 * @return false if the stream ended instead
 */
bool peer_next(struct peer *p, struct peer_seg *s);

/** A Terminate: layer, type and code as 0xLTCC. */
#define PEER_TERM(layer, etype, code) ((unsigned)((layer) << 12 | (etype) << 8 | (code)))
#define PEER_NO_TERM                  0xffffu
/**
 * Reads up to the end of the stream. A Terminate is well-formed, quotes one of our segments or
 * nothing, as figure 10 of RFC 5040 says, is the last message, and a FIN follows.
 * @return the Terminate, or PEER_NO_TERM; see p->quoted, too
 */
unsigned peer_terminate(struct peer *p);

#endif
