/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/pack.h"

#include "wire/bytes.h"
#include "wire/range.h"

#define VERSION 1
#define LEAST   (IW_UD_HEADER + IW_UD_GRH)

static const uint8_t magic[IW_UD_PACK_BEGIN] = {'A', 'W', 'P', VERSION};

void iw_ud_pack_begin(uint8_t bytes[IW_UD_PACK_BEGIN])
{
    memcpy(bytes, magic, sizeof(magic));
}

void iw_ud_pack_length(uint8_t bytes[IW_UD_PACK_LENGTH], size_t length)
{
    put_be32(bytes, (uint32_t)length);
}

bool iw_ud_unpack(const uint8_t *bytes, size_t len, size_t *at, struct iw_ud_packed *out)
{
    if (*at >= len)
        return false;
    if (!*at && (len < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0)) {
        *out = (struct iw_ud_packed){.bytes = bytes, .len = len};
        *at = len;
        return true;
    }
    size_t begin = (*at ? *at : sizeof(magic));
    if (!range_fits(len, begin, IW_UD_PACK_LENGTH))
        return false;
    size_t one = get_be32(bytes + begin);
    begin += IW_UD_PACK_LENGTH;
    if (one < LEAST || one > IW_UD_DATAGRAM || !range_fits(len, begin, one))
        return false;
    *out = (struct iw_ud_packed){.bytes = bytes + begin, .len = one};
    *at = begin + one;
    return true;
}
