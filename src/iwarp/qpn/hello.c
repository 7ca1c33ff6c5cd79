/* SPDX-License-Identifier: BSD-2-Clause */
#include "qpn/hello.h"

#include "wire/bytes.h"

#include <string.h>

#define MAGIC     "AWQPN"
#define MAGIC_LEN 5
#define VERSION   2
#define QPN_MAX   0xffffff

void iw_hello_encode(uint8_t bytes[IW_HELLO_BYTES], const struct iw_hello *h)
{
    memset(bytes, 0, IW_HELLO_BYTES);
    memcpy(bytes, MAGIC, MAGIC_LEN);
    bytes[MAGIC_LEN] = VERSION;
    bytes[6] = (uint8_t)h->kind;
    bytes[7] = h->uc;
    put_be32(bytes + 8, h->from.qpn);
    put_be32(bytes + 12, h->to.qpn);
    put_be32(bytes + 16, h->from.epoch);
    put_be32(bytes + 20, h->to.epoch);
    memcpy(bytes + 24, h->from.gid.raw, 16);
    memcpy(bytes + 40, h->to.gid.raw, 16);
    put_be64(bytes + 56, h->token);
}

bool iw_hello_decode(const void *data, size_t len, struct iw_hello *h)
{
    const uint8_t *bytes = data;
    if (len != IW_HELLO_BYTES || memcmp(bytes, MAGIC, MAGIC_LEN) != 0 ||
        bytes[MAGIC_LEN] != VERSION || bytes[6] >= IW_HELLO_KINDS || bytes[7] > 1)
        return false;
    h->kind = bytes[6];
    h->uc = bytes[7];
    h->from.qpn = get_be32(bytes + 8);
    h->to.qpn = get_be32(bytes + 12);
    h->from.epoch = get_be32(bytes + 16);
    h->to.epoch = get_be32(bytes + 20);
    memcpy(h->from.gid.raw, bytes + 24, 16);
    memcpy(h->to.gid.raw, bytes + 40, 16);
    h->token = get_be64(bytes + 56);
    return h->from.epoch != 0 && h->from.qpn <= QPN_MAX && h->to.qpn <= QPN_MAX;
}
