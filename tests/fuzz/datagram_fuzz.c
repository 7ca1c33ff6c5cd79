/* SPDX-License-Identifier: BSD-2-Clause */
/* What stands in front of a datagram, the addresses in a global route header, and packs. */
#include "fuzz/fuzz.h"
#include "ud/pack.h"

static void route(const uint8_t *p, const struct iw_ud_header *h)
{
    struct in6_addr from, to, from2, to2;
    uint8_t grh[IW_UD_GRH];
    iw_ud_grh_addresses(p, &from, &to);
    iw_ud_grh(grh, h, &from, &to, 1024);
    iw_ud_grh_addresses(grh, &from2, &to2);
    FUZZ_CHECK(memcmp(&from, &from2, sizeof(from)) == 0 && memcmp(&to, &to2, sizeof(to)) == 0);
}

static void unpack(const uint8_t *p, size_t size)
{
    struct iw_ud_packed one;
    struct iw_ud_header h;
    size_t at = 0, before = 0;
    while (iw_ud_unpack(p, size, &at, &one)) {
        FUZZ_CHECK(at > before && at <= size && one.bytes + one.len == p + at);
        iw_ud_header_decode(one.bytes, one.len, &h);
        before = at;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t again[IW_UD_HEADER], *p = fuzz_exact(data, size);
    struct iw_ud_header h;

    if (iw_ud_header_decode(p, size, &h)) {
        FUZZ_CHECK(size >= sizeof(again) && h.to >> 24 == 0 && h.from >> 24 == 0);
        iw_ud_header_encode(again, &h);
        FUZZ_CHECK(memcmp(again, p, sizeof(again)) == 0);
        if (size >= IW_UD_HEADER + IW_UD_GRH)
            route(p + IW_UD_HEADER, &h);
    }
    unpack(p, size);
    free(p);
    return 0;
}
