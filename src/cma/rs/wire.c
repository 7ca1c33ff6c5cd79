/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma/rs/wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { FLAG_BIG_ENDIAN = 1, FLAG_MAPPINGS = 2 };

#if __BYTE_ORDER == __BIG_ENDIAN
#define OWN_ORDER FLAG_BIG_ENDIAN
#else
#define OWN_ORDER 0
#endif

uint8_t rs_encode_mappings(unsigned n)
{
    if (n <= 128)
        return (uint8_t)n;
    unsigned scaled = n >> 8 < 0x7f ? n >> 8 : 0x7f;
    return (uint8_t)(scaled ? 0x80 | scaled : 0x80);
}

unsigned rs_decode_mappings(uint8_t scaled)
{
    return scaled <= 128 ? scaled : (scaled & 0x7fU) << 8;
}

static void put_buffer(uint8_t *at, const struct rs_buffer *b)
{
    uint64_t addr = htobe64(b->addr);
    uint32_t key = htobe32(b->key), length = htobe32(b->length);
    memcpy(at, &addr, 8);
    memcpy(at + 8, &key, 4);
    memcpy(at + 12, &length, 4);
}

static void get_buffer(const uint8_t *at, struct rs_buffer *b)
{
    memcpy(&b->addr, at, 8);
    memcpy(&b->key, at + 8, 4);
    memcpy(&b->length, at + 12, 4);
    b->addr = be64toh(b->addr);
    b->key = be32toh(b->key);
    b->length = be32toh(b->length);
}

void rs_encode_hello(const struct rs_hello *hello, uint8_t out[RS_HELLO_SIZE])
{
    memset(out, 0, RS_HELLO_SIZE);
    out[0] = RS_VERSION;
    out[1] = OWN_ORDER | FLAG_MAPPINGS;
    out[2] = (uint8_t)(hello->credits >> 8);
    out[3] = (uint8_t)hello->credits;
    out[7] = rs_encode_mappings(hello->mappings);
    put_buffer(out + 8, &hello->tables);
    put_buffer(out + 24, &hello->data);
}

int rs_decode_hello(const void *private_data, size_t len, struct rs_hello *hello)
{
    const uint8_t *in = private_data;
    if (!in || len < RS_HELLO_SIZE)
        return -EPROTO;
    if (in[0] != RS_VERSION || (in[1] & FLAG_BIG_ENDIAN) != OWN_ORDER)
        return -ENOTSUP;
    hello->credits = (uint16_t)(in[2] << 8 | in[3]);
    hello->mappings = (uint16_t)(in[1] & FLAG_MAPPINGS ? rs_decode_mappings(in[7]) : 0);
    get_buffer(in + 8, &hello->tables);
    get_buffer(in + 24, &hello->data);
    return hello->credits && hello->tables.length ? 0 : -EPROTO;
}
