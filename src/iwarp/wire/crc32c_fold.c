/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/crc32c_fold.h"

#if defined(__x86_64__)

#include "wire/crc32c.h"

#include <immintrin.h>
#include <stdbool.h>

#define LANES       4
#define LANE        sizeof(__m512i)
#define BLOCK       (LANES * LANE)
#define FOLD_TARGET __attribute__((target("avx512f,pclmul,vpclmulqdq")))

/* What 128 bits are multiplied with to stand one block later: x^(2048 + 32) for the first half,
 * x^(2048 - 32) for the second, modulo the polynomial, bits reflected, shifted left by one. */
#define BLOCK_ON_FIRST  0xdcb17aa4
#define BLOCK_ON_SECOND 0xb9e02b86

static bool can(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq");
}

/** Copies one lane. What was read once is both stored and returned, whoever changes the source. */
FOLD_TARGET static inline __m512i copy_lane(uint8_t *dst, const uint8_t *src)
{
    __m512i v = _mm512_loadu_si512(src);
    __asm__("" : "+v"(v)); /* so that the compiler does not read it again */
    _mm512_storeu_si512(dst, v);
    return v;
}

/** @param len  a multiple of BLOCK, not 0 */
FOLD_TARGET static uint32_t fold_copy(uint32_t running, uint8_t *to, const uint8_t *from,
                                      size_t len)
{
    const __m512i on = _mm512_broadcast_i32x4(_mm_set_epi64x(BLOCK_ON_SECOND, BLOCK_ON_FIRST));
    __m512i lanes[LANES];

    for (size_t i = 0; i < LANES; i++)
        lanes[i] = copy_lane(to + i * LANE, from + i * LANE);
    lanes[0] = _mm512_xor_si512(lanes[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)running)));
    for (size_t at = BLOCK; at < len; at += BLOCK) {
#pragma GCC unroll 4
        for (size_t i = 0; i < LANES; i++) {
            __m512i next = copy_lane(to + at + i * LANE, from + at + i * LANE);
            __m512i first = _mm512_clmulepi64_epi128(lanes[i], on, 0x00);
            __m512i second = _mm512_clmulepi64_epi128(lanes[i], on, 0x11);
            lanes[i] = _mm512_xor_si512(_mm512_xor_si512(first, second), next);
        }
    }
    return crc32c_add(0, lanes, sizeof(lanes));
}

size_t crc32c_fold_copy(uint32_t *running, void *dst, const void *src, size_t len)
{
    size_t whole = len - len % BLOCK;

    if (!whole || !can())
        return 0;
    *running = fold_copy(*running, dst, src, whole);
    return whole;
}

#else

size_t crc32c_fold_copy(uint32_t *running, void *dst, const void *src, size_t len)
{
    (void)running, (void)dst, (void)src, (void)len;
    return 0;
}

#endif
