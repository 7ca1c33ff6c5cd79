/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32c (RFC 5044 section 4.4) over scattered bytes: start with CRC32C_INIT, add pieces in order,
 * finish. Short pieces use the CPU's own instruction where it has one, long ones ISA-L.
 */
#ifndef ANYWARP_WIRE_CRC32C_H
#define ANYWARP_WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_INIT 0xffffffffu

/** Adds @p len bytes at @p p to the running value. */
uint32_t crc32c_add(uint32_t running, const void *p, size_t len);

/** Copies @p len bytes from @p src to @p dst, and adds them. */
uint32_t crc32c_copy(uint32_t running, void *dst, const void *src, size_t len);

/** The CRC of what was added; it goes on the wire with put_le32(). */
static inline uint32_t crc32c_done(uint32_t running)
{
    return ~running;
}

#endif
