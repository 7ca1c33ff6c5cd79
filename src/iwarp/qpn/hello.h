/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two QPs that are connected by number tell each other of themselves, as private data of MPA
 * Requests and Replies. Functions over bytes.
 *
 *      0  magic "AWQPN"       8  the sender's QP number     16  the sender's epoch
 *      5  version            12  the QP number it is for    20  the epoch it answers, 0: none
 *      6  kind               24  the sender's GID           40  the GID it is for
 *      7  1: UC                                              56  a token, 0: none (vouch.h)
 */
#ifndef ANYWARP_QPN_HELLO_H
#define ANYWARP_QPN_HELLO_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_HELLO_BYTES 64

/** One end of a connection. */
struct iw_hello_end {
    uint32_t qpn;
    uint32_t epoch; /* of this incarnation of the QP, not 0; of the other end: 0 if not known */
    union ibv_gid gid;
};

enum iw_hello_kind {
    IW_HELLO_ASKS,    /* a Request of the QP that dials */
    IW_HELLO_ANSWERS, /* the Reply that accepts it */
    IW_HELLO_DOUBTS,  /* a Request to the port of the number that asked: was it you? */
    IW_HELLO_VOUCHES, /* the Reply to that, which rejects, as no connection is wanted: yes */
    IW_HELLO_KINDS
};

struct iw_hello {
    enum iw_hello_kind kind;
    bool uc;        /* the type of the QPs, else RC */
    uint64_t token; /* ASKS: that the peer's process has given; DOUBTS: that it gives; else 0 */
    struct iw_hello_end from, to;
};

void iw_hello_encode(uint8_t bytes[IW_HELLO_BYTES], const struct iw_hello *h);

/** @return false if this is no hello, or one of another version, or says what cannot be */
bool iw_hello_decode(const void *bytes, size_t len, struct iw_hello *h);

#endif
