/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copy and CRC by folding, on any processor: the source is compiled here over instructions that are
 * spelled out bit by bit, and over the processor's own where it has them.
 */
#include "wire/crc32c_fold.h"

#include "vectors.h"

#include <stdbool.h>
#include <stdio.h>

#if defined(__x86_64__)

#include "wire/crc32c.h"

/* ---- what <immintrin.h> has ---- */

#define _IMMINTRIN_H_INCLUDED
#define __IMMINTRIN_H

typedef struct {
    uint64_t q[2];
} __m128i;

typedef struct {
    __m128i part[4];
} __m512i;

static bool capable;

static __m512i load(const void *p)
{
    __m512i v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static void store(void *p, __m512i v)
{
    memcpy(p, &v, sizeof(v));
}

static __m128i pair(uint64_t high, uint64_t low)
{
    return (__m128i){{low, high}};
}

static __m512i broadcast(__m128i v)
{
    return (__m512i){{v, v, v, v}};
}

static __m512i extend(__m128i v)
{
    return (__m512i){{v}};
}

static __m512i exclusive_or(__m512i a, __m512i b)
{
    for (int i = 0; i < 8; i++)
        a.part[i / 2].q[i % 2] ^= b.part[i / 2].q[i % 2];
    return a;
}

/** The product of polynomials over GF(2). */
static __m128i multiply(uint64_t a, uint64_t b)
{
    __m128i r = {{0}};
    for (int bit = 0; bit < 64; bit++)
        if (b >> bit & 1) {
            r.q[0] ^= a << bit;
            r.q[1] ^= bit ? a >> (64 - bit) : 0;
        }
    return r;
}

static __m512i multiply_halves(__m512i a, __m512i b, int which)
{
    __m512i r;
    for (int i = 0; i < 4; i++)
        r.part[i] = multiply(a.part[i].q[which & 1], b.part[i].q[which >> 4 & 1]);
    return r;
}

#define _mm512_loadu_si512                  load
#define _mm512_storeu_si512                 store
#define _mm_set_epi64x                      pair
#define _mm_cvtsi32_si128(v)                pair(0, (uint32_t)(v))
#define _mm512_broadcast_i32x4              broadcast
#define _mm512_zextsi128_si512              extend
#define _mm512_xor_si512                    exclusive_or
#define _mm512_clmulepi64_epi128(a, b, imm) multiply_halves(a, b, imm)

/* ---- the source, under another name ---- */

#define crc32c_fold_copy          emulated
#define __builtin_cpu_supports(x) capable
#define __asm__(...)
#define __attribute__(x)
#include "../../src/iwarp/wire/crc32c_fold.c"
#undef __attribute__
#undef __asm__
#undef crc32c_fold_copy

#define MOST (5 * BLOCK)

static void each_length(size_t (*copy)(uint32_t *, void *, const void *, size_t), bool can)
{
    static uint8_t from[MOST + 1], to[sizeof(from) + 1];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(from); i++)
        from[i] = (x = x * 1664525 + 1013904223) >> 24;
    for (size_t len = 0; len <= MOST; len += len % BLOCK == 1 ? BLOCK - 2 : 1) {
        uint32_t running = CRC32C_INIT - (uint32_t)len;
        size_t done = can ? len - len % BLOCK : 0;
        uint32_t want = crc32c_add(running, from + 1, done);
        memset(to, 0xee, sizeof(to));
        assert_int_equal(copy(&running, to, from + 1, len), done);
        assert_int_equal(running, want);
        assert_memory_equal(to, from + 1, done);
        for (size_t i = done; i < sizeof(to); i++)
            assert_int_equal(to[i], 0xee);
    }
}

static void spelled_out(void **state)
{
    (void)state;
    capable = true;
    each_length(emulated, true);
}

static void a_processor_that_cannot(void **state)
{
    (void)state;
    capable = false;
    each_length(emulated, false);
}

#undef __builtin_cpu_supports

static void this_processor(void **state)
{
    (void)state;
    bool can = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
    print_message("this processor %s\n", can ? "folds" : "cannot fold");
    each_length(crc32c_fold_copy, can);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spelled_out),
        cmocka_unit_test(a_processor_that_cannot),
        cmocka_unit_test(this_processor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void nothing_is_done(void **state)
{
    uint8_t from[1024] = {1}, to[1024] = {2};
    uint32_t running = 3;
    (void)state;
    assert_int_equal(crc32c_fold_copy(&running, to, from, sizeof(to)), 0);
    assert_int_equal(running, 3);
    assert_int_equal(to[0], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_done)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
