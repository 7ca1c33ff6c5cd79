/* SPDX-License-Identifier: BSD-2-Clause */
/* The datagrams by which ids of rdma_cm ask for queue pairs. */
#include "fuzz/fuzz.h"
#include "wire/sidr.h"

static bool same(const struct sidr *a, const struct sidr *b)
{
    return a->reply == b->reply && a->ib == b->ib && a->status == b->status && a->ps == b->ps &&
           a->id == b->id && a->qpn == b->qpn && a->qkey == b->qkey && a->data_len == b->data_len &&
           memcmp(a->data, b->data, a->data_len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t again[SIDR_BYTES], *p = fuzz_exact(data, size);
    struct sidr s, t;

    if (sidr_decode(p, size, &s)) {
        FUZZ_CHECK(size == SIDR_BYTES);
        FUZZ_CHECK(s.data_len <= (s.reply ? SIDR_REPLY_DATA : SIDR_REQUEST_DATA));
        FUZZ_CHECK(s.qpn >> 24 == 0);
        sidr_encode(again, &s);
        FUZZ_CHECK(sidr_decode(again, sizeof(again), &t) && same(&s, &t));
    }
    free(p);
    return 0;
}
