/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/rdmap.h"

#include "wire/bytes.h"

#include <string.h>

#define AOP_MASK 0xf

void rdmap_read_request_decode(const uint8_t *p, struct rdmap_read_request *out)
{
    out->sink_stag = get_be32(p);
    out->sink_to = get_be64(p + 4);
    out->size = get_be32(p + 12);
    out->source_stag = get_be32(p + 16);
    out->source_to = get_be64(p + 20);
}

void rdmap_read_request_encode(uint8_t *p, const struct rdmap_read_request *in)
{
    put_be32(p, in->sink_stag);
    put_be64(p + 4, in->sink_to);
    put_be32(p + 12, in->size);
    put_be32(p + 16, in->source_stag);
    put_be64(p + 20, in->source_to);
}

void rdmap_atomic_request_decode(const uint8_t *p, struct rdmap_atomic_request *out)
{
    out->aop = get_be32(p) & AOP_MASK;
    out->id = get_be32(p + 4);
    out->stag = get_be32(p + 8);
    out->to = get_be64(p + 12);
    out->data = get_be64(p + 20);
    out->data_mask = get_be64(p + 28);
    out->compare = get_be64(p + 36);
    out->compare_mask = get_be64(p + 44);
}

void rdmap_atomic_request_encode(uint8_t *p, const struct rdmap_atomic_request *in)
{
    put_be32(p, in->aop & AOP_MASK);
    put_be32(p + 4, in->id);
    put_be32(p + 8, in->stag);
    put_be64(p + 12, in->to);
    put_be64(p + 20, in->data);
    put_be64(p + 28, in->data_mask);
    put_be64(p + 36, in->compare);
    put_be64(p + 44, in->compare_mask);
}

void rdmap_atomic_response_decode(const uint8_t *p, struct rdmap_atomic_response *out)
{
    out->id = get_be32(p);
    out->original = get_be64(p + 4);
}

void rdmap_atomic_response_encode(uint8_t *p, const struct rdmap_atomic_response *in)
{
    put_be32(p, in->id);
    put_be64(p + 4, in->original);
}

/** Adds field by field; a bit of @p tops is the top bit of a field, whose carry is dropped. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
    return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

uint64_t rdmap_atomic_apply(const struct rdmap_atomic_request *r, uint64_t original)
{
    switch (r->aop) {
    case RDMAP_AOP_FETCH_ADD:
        return add_fields(original, r->data, r->data_mask);
    case RDMAP_AOP_CMP_SWAP:
        if ((r->compare ^ original) & r->compare_mask)
            return original;
        return (original & ~r->data_mask) | (r->data & r->data_mask);
    default:
        return original;
    }
}
