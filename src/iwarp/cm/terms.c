/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/terms.h"

#include "wire/bytes.h"

#include <string.h>

#define MAGIC     "AWIB"
#define MAGIC_LEN 4
#define VERSION   1
#define QPN_MAX   0xffffff

void iw_terms_encode(uint8_t bytes[IW_TERMS_BYTES], const struct iw_terms *t)
{
    memcpy(bytes, MAGIC, MAGIC_LEN);
    bytes[4] = VERSION;
    bytes[5] = t->rnr_retry;
    bytes[6] = t->retry_count;
    bytes[7] = t->srq;
    put_be32(bytes + 8, t->qpn);
}

bool iw_terms_decode(const void *data, size_t len, struct iw_terms *t)
{
    const uint8_t *bytes = data;
    if (len < IW_TERMS_BYTES || memcmp(bytes, MAGIC, MAGIC_LEN) != 0 || bytes[4] != VERSION ||
        bytes[5] > IW_TERMS_RETRY_MAX || bytes[6] > IW_TERMS_RETRY_MAX || bytes[7] > 1)
        return false;
    t->rnr_retry = bytes[5];
    t->retry_count = bytes[6];
    t->srq = bytes[7];
    t->qpn = get_be32(bytes + 8);
    return t->qpn > 1 && t->qpn <= QPN_MAX;
}
