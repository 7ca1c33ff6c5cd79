/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/sidr.h"

#include "wire/bytes.h"

#include <string.h>

#define MAGIC     "AWSR"
#define MAGIC_LEN 4
#define VERSION   1
#define REQUEST   1
#define REPLY     2
#define DATA      32
#define QPN_MAX   0xffffff

void sidr_encode(uint8_t bytes[SIDR_BYTES], const struct sidr *s)
{
    memset(bytes, 0, SIDR_BYTES);
    memcpy(bytes, MAGIC, MAGIC_LEN);
    bytes[4] = VERSION;
    bytes[5] = s->reply ? REPLY : REQUEST;
    bytes[6] = s->reply ? (uint8_t)s->status : s->ib;
    bytes[7] = s->data_len;
    put_be64(bytes + 8, s->id);
    put_be16(bytes + 16, s->ps);
    put_be32(bytes + 20, s->qpn);
    put_be32(bytes + 24, s->qkey);
    memcpy(bytes + DATA, s->data, s->data_len);
}

static bool good_request(const struct sidr *s, uint8_t ib)
{
    return ib <= 1 && s->data_len <= SIDR_REQUEST_DATA && !s->qpn && !s->qkey;
}

static bool good_reply(const struct sidr *s, uint8_t status)
{
    if (status >= SIDR_STATUS_END || s->data_len > SIDR_REPLY_DATA)
        return false;
    return status == SIDR_SUCCESS ? s->qpn > 1 && s->qpn <= QPN_MAX : !s->qpn && !s->qkey;
}

bool sidr_decode(const uint8_t *bytes, size_t len, struct sidr *s)
{
    if (len != SIDR_BYTES || memcmp(bytes, MAGIC, MAGIC_LEN) != 0 || bytes[4] != VERSION ||
        (bytes[5] != REQUEST && bytes[5] != REPLY))
        return false;
    s->reply = bytes[5] == REPLY;
    s->data_len = bytes[7];
    s->id = get_be64(bytes + 8);
    s->ps = get_be16(bytes + 16);
    s->qpn = get_be32(bytes + 20);
    s->qkey = get_be32(bytes + 24);
    if (!(s->reply ? good_reply(s, bytes[6]) : good_request(s, bytes[6])))
        return false;
    s->ib = !s->reply && bytes[6];
    s->status = s->reply ? (enum sidr_status)bytes[6] : SIDR_SUCCESS;
    memcpy(s->data, bytes + DATA, s->data_len);
    return true;
}
