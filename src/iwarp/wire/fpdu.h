/* SPDX-License-Identifier: BSD-2-Clause */
/* FPDU arithmetic: length field, pad, CRC field, MULPDU and markers (RFC 5044 section 4). */
#ifndef ANYWARP_WIRE_FPDU_H
#define ANYWARP_WIRE_FPDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FPDU_LEN_FIELD     2
#define FPDU_CRC_FIELD     4
#define FPDU_TAIL          8     /* at least the longest pad, and the CRC field */
#define FPDU_ULPDU_MAX     64768 /* RFC 5044 section 4.5 */
#define FPDU_ULPDU_MIN     14    /* a zero-length tagged segment */
#define FPDU_MULPDU_MIN    128
#define FPDU_MAX           (FPDU_LEN_FIELD + FPDU_ULPDU_MAX + 2 + FPDU_CRC_FIELD) /* without markers */
#define FPDU_MARKER        4
#define FPDU_MARKER_PERIOD 512

/** Pad bytes behind a ULPDU of @p ulpdu bytes: (-(2 + ulpdu)) mod 4. */
static inline unsigned fpdu_pad(uint32_t ulpdu)
{
    return -(FPDU_LEN_FIELD + ulpdu) & 3u;
}

/** Bytes of the whole FPDU without markers; always a multiple of 4. */
static inline uint32_t fpdu_size(uint32_t ulpdu)
{
    return FPDU_LEN_FIELD + ulpdu + fpdu_pad(ulpdu) + FPDU_CRC_FIELD;
}

/** Largest ULPDU for an effective MSS (RFC 5044 section 4.5), within FPDU_MULPDU_MIN..ULPDU_MAX. */
uint32_t fpdu_mulpdu(uint32_t emss, bool markers);

/**
 * Copies @p len bytes of FPDU to @p dst and puts the markers in that are due (section 4.3).
 *
 * @param pos  stream offset of dst[0] since the start-up frame
 * @param fpdu_pos  stream offset of the length field of the FPDU that the bytes belong to; for
 *                  bytes that begin an FPDU, that of a marker in front of it or of the field itself
 * @param crc  running CRC over what is written, markers included; NULL for none
 * @return bytes written: len plus 4 for each marker
 */
size_t fpdu_mark(uint8_t *dst, const uint8_t *src, size_t len, uint64_t pos, uint64_t fpdu_pos,
                 uint32_t *crc);

/** Upper bound of what fpdu_mark() writes for @p len bytes. */
static inline size_t fpdu_marked_max(size_t len)
{
    return len + FPDU_MARKER * (len / (FPDU_MARKER_PERIOD - FPDU_MARKER) + 2);
}

#endif
