/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two QPs that are connected by number tell each other of themselves: the private data of the
 * MPA Request (hello) and of the Reply (accept). Functions over bytes.
 *
 *      0  magic "AWQPN"       8  the sender's QP number     16  the sender's epoch
 *      5  version            12  the QP number it is for    20  the epoch it answers, 0: none
 *      6  zeros              24  the sender's GID           40  the GID it is for
 */
#ifndef ANYWARP_QPN_HELLO_H
#define ANYWARP_QPN_HELLO_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_HELLO_BYTES 56

/** One end of a connection. */
struct iw_hello_end {
    uint32_t qpn;
    uint32_t epoch; /* of this incarnation of the QP, not 0; of the other end: 0 if not known */
    union ibv_gid gid;
};

struct iw_hello {
    struct iw_hello_end from, to;
};

void iw_hello_encode(uint8_t bytes[IW_HELLO_BYTES], const struct iw_hello *h);

/** @return false if this is no hello, or one of another version, or says what cannot be */
bool iw_hello_decode(const void *bytes, size_t len, struct iw_hello *h);

#endif
