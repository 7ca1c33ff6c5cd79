/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the fuzz targets share. Each is one LLVMFuzzerTestOneInput(), linked either with libFuzzer
 * (make fuzz) or with replay.c, which runs the corpus (make check) or files that libFuzzer left. A
 * target depends on its input alone and leaves nothing behind.
 */
#ifndef ANYWARP_TESTS_FUZZ_H
#define ANYWARP_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A broken promise ends the process, so that the fuzzer keeps the input. */
#define FUZZ_CHECK(cond)                                                                           \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);                   \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/** Input that is used up from the front; what is missing reads as zeros. */
struct fuzz_in {
    const uint8_t *p;
    size_t left;
};

static inline uint8_t fuzz_u8(struct fuzz_in *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->p++;
}

static inline uint16_t fuzz_u16(struct fuzz_in *in)
{
    uint16_t high = fuzz_u8(in);
    return (uint16_t)(high << 8 | fuzz_u8(in));
}

/** At most @p len bytes. */
static inline const uint8_t *fuzz_bytes(struct fuzz_in *in, size_t len, size_t *got)
{
    const uint8_t *p = in->p;
    *got = len < in->left ? len : in->left;
    in->p += *got;
    in->left -= *got;
    return p;
}

/** A copy that ends where its allocation ends, so that ASan sees a read beyond it; to be freed. */
static inline uint8_t *fuzz_exact(const uint8_t *p, size_t len)
{
    uint8_t *copy = calloc(len, 1);
    FUZZ_CHECK(copy || len == 0);
    if (len)
        memcpy(copy, p, len);
    return copy;
}

#endif
