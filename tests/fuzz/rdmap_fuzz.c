/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMAP headers: which one, then its bytes; of an Atomic Request, also the word it meets. */
#include "fuzz/fuzz.h"
#include "wire/bytes.h"
#include "wire/rdmap.h"

static void read_request(const uint8_t *p)
{
    uint8_t again[RDMAP_READ_REQUEST_HDR];
    struct rdmap_read_request r;
    rdmap_read_request_decode(p, &r);
    rdmap_read_request_encode(again, &r);
    FUZZ_CHECK(memcmp(p, again, sizeof(again)) == 0);
}

/** RFC 7306 section 5.1, bit by bit: a carry stops behind a bit that is set in the mask. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t mask)
{
    uint64_t sum = 0;
    unsigned carry = 0;
    for (unsigned i = 0; i < 64; i++) {
        unsigned bits = (a >> i & 1) + (b >> i & 1) + carry;
        sum |= (uint64_t)(bits & 1) << i;
        carry = mask >> i & 1 ? 0 : bits >> 1;
    }
    return sum;
}

static void atomic_request(const uint8_t *p, uint64_t word)
{
    uint8_t again[RDMAP_ATOMIC_REQUEST_HDR];
    struct rdmap_atomic_request r;
    rdmap_atomic_request_decode(p, &r);
    rdmap_atomic_request_encode(again, &r);
    FUZZ_CHECK(r.aop <= 0xf && (p[3] & 0xf) == r.aop);
    FUZZ_CHECK(memcmp(p + 4, again + 4, sizeof(again) - 4) == 0);
    uint64_t left = rdmap_atomic_apply(&r, word);
    if (r.aop == RDMAP_AOP_FETCH_ADD)
        FUZZ_CHECK(left == add_fields(word, r.data, r.data_mask));
    else if (r.aop == RDMAP_AOP_CMP_SWAP && ((word ^ r.compare) & r.compare_mask) == 0)
        FUZZ_CHECK(left == ((word & ~r.data_mask) | (r.data & r.data_mask)));
    else if (r.aop == RDMAP_AOP_CMP_SWAP)
        FUZZ_CHECK(left == word);
}

static void atomic_response(const uint8_t *p)
{
    uint8_t again[RDMAP_ATOMIC_RESPONSE_HDR];
    struct rdmap_atomic_response r;
    rdmap_atomic_response_decode(p, &r);
    rdmap_atomic_response_encode(again, &r);
    FUZZ_CHECK(memcmp(p, again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t need[] = {RDMAP_READ_REQUEST_HDR, RDMAP_ATOMIC_REQUEST_HDR,
                                  RDMAP_ATOMIC_RESPONSE_HDR};
    struct fuzz_in in = {data, size};
    unsigned kind = fuzz_u8(&in) % 3;
    size_t len;
    const uint8_t *bytes = fuzz_bytes(&in, need[kind], &len);
    if (len < need[kind])
        return 0;
    uint8_t word[8] = {0};
    for (unsigned i = 0; i < sizeof(word); i++)
        word[i] = fuzz_u8(&in);
    uint8_t *p = fuzz_exact(bytes, len);
    if (kind == 0)
        read_request(p);
    else if (kind == 1)
        atomic_request(p, get_be64(word));
    else
        atomic_response(p);
    free(p);
    return 0;
}
