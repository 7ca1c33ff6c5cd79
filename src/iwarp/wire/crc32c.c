/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/crc32c.h"

#include "wire/crc32c_fold.h"

#include <endian.h>
#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

#define INSTRUCTION_MAX 320 /* from here on ISA-L is faster than one instruction at a time */
#define ISAL_MAX        ((size_t)1 << 30) /* ISA-L takes an int */
/* Stays in the first cache between copy and CRC; shorter pieces gcc copies itself, at half the
 * rate. */
#define COPY_STEP       16384

#if defined(__x86_64__)

#include <nmmintrin.h>

#define CRC_TARGET __attribute__((target("sse4.2")))

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

CRC_TARGET static inline uint32_t step8(uint32_t crc, uint64_t v)
{
    return (uint32_t)_mm_crc32_u64(crc, v);
}

CRC_TARGET static inline uint32_t step1(uint32_t crc, uint8_t v)
{
    return _mm_crc32_u8(crc, v);
}

#elif defined(__aarch64__)

#include <asm/hwcap.h>
#include <sys/auxv.h>

#define CRC_TARGET

static bool has_instruction(void)
{
    return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

/* Assembly, because gcc and clang name the target and the intrinsics differently. */
static inline uint32_t step8(uint32_t crc, uint64_t v)
{
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(v));
    return crc;
}

static inline uint32_t step1(uint32_t crc, uint8_t v)
{
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(v));
    return crc;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

CRC_TARGET static uint32_t add_short(uint32_t crc, const uint8_t *p, size_t len)
{
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        crc = step8(crc, le64toh(v));
    }
    for (; len > 0; p++, len--)
        crc = step1(crc, *p);
    return crc;
}

#else

static bool has_instruction(void)
{
    return false;
}

static uint32_t add_short(uint32_t crc, const uint8_t *p, size_t len)
{
    return crc32_iscsi((unsigned char *)p, (int)len, crc);
}

#endif

uint32_t crc32c_add(uint32_t running, const void *p, size_t len)
{
    const uint8_t *at = p;

    if (len < INSTRUCTION_MAX && has_instruction())
        return add_short(running, at, len);
    while (len > 0) {
        size_t n = len < ISAL_MAX ? len : ISAL_MAX;
        running = crc32_iscsi((unsigned char *)at, (int)n, running);
        at += n;
        len -= n;
    }
    return running;
}

uint32_t crc32c_copy(uint32_t running, void *dst, const void *src, size_t len)
{
    size_t done = crc32c_fold_copy(&running, dst, src, len);
    uint8_t *to = (uint8_t *)dst + done;
    const uint8_t *from = (const uint8_t *)src + done;

    for (len -= done; len > 0;) {
        size_t n = len < COPY_STEP ? len : COPY_STEP;
        memcpy(to, from, n);
        running = crc32c_add(running, to, n); /* of the copy: the program may change the source */
        to += n;
        from += n;
        len -= n;
    }
    return running;
}
