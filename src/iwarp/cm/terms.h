/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two ends whose connection is to have InfiniBand manners tell each other beside MPA, in front
 * of the private data of Request and Reply. Functions over bytes.
 *
 *      0  magic "AWIB"                    5  rnr_retry: how often the peer may retry
 *      4  version                         6  retry_count, a Request's
 *      7  1: receives are of an SRQ       8  the sender's QP number
 */
#ifndef ANYWARP_CM_TERMS_H
#define ANYWARP_CM_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IW_TERMS_BYTES     12
#define IW_TERMS_RETRY_MAX 7 /* of both counts; of rnr_retry: for ever */

struct iw_terms {
    uint32_t qpn;
    uint8_t rnr_retry, retry_count; /* up to IW_TERMS_RETRY_MAX */
    bool srq;
};

void iw_terms_encode(uint8_t bytes[IW_TERMS_BYTES], const struct iw_terms *t);

/** @return false if private data does not begin with terms, or with some that cannot be */
bool iw_terms_decode(const void *data, size_t len, struct iw_terms *t);

#endif
