/* SPDX-License-Identifier: BSD-2-Clause */
/* The private data by which queue pairs that connect by number know each other. */
#include "fuzz/fuzz.h"
#include "qpn/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t again[IW_HELLO_BYTES], *p = fuzz_exact(data, size);
    struct iw_hello h;

    if (iw_hello_decode(p, size, &h)) {
        FUZZ_CHECK(size == sizeof(again));
        FUZZ_CHECK(h.from.epoch != 0 && h.from.qpn >> 24 == 0 && h.to.qpn >> 24 == 0);
        iw_hello_encode(again, &h);
        FUZZ_CHECK(memcmp(again, p, sizeof(again)) == 0);
    }
    free(p);
    return 0;
}
