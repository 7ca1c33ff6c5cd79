/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/fpdu.h"

#include "wire/bytes.h"
#include "wire/crc32c.h"

#include <string.h>

uint32_t fpdu_mulpdu(uint32_t emss, bool markers)
{
    uint64_t over = FPDU_LEN_FIELD + FPDU_CRC_FIELD + emss % 4;

    if (markers)
        over += FPDU_MARKER * (((uint64_t)emss + FPDU_MARKER_PERIOD - 1) / FPDU_MARKER_PERIOD);
    if (emss < over + FPDU_MULPDU_MIN)
        return FPDU_MULPDU_MIN;
    if (emss > over + FPDU_ULPDU_MAX)
        return FPDU_ULPDU_MAX;
    return emss - (uint32_t)over;
}

size_t fpdu_mark(uint8_t *dst, const uint8_t *src, size_t len, uint64_t pos, uint64_t fpdu_pos,
                 uint32_t *crc)
{
    /* No length field stands where a marker is due. */
    uint64_t field = fpdu_pos % FPDU_MARKER_PERIOD ? fpdu_pos : fpdu_pos + FPDU_MARKER;
    uint8_t *p = dst;

    while (len > 0) {
        if (pos % FPDU_MARKER_PERIOD == 0) {
            put_be32(p, pos > field ? (uint16_t)(pos - field) : 0);
            p += FPDU_MARKER;
            pos += FPDU_MARKER;
        }
        size_t room = FPDU_MARKER_PERIOD - pos % FPDU_MARKER_PERIOD;
        size_t n = len < room ? len : room;
        memcpy(p, src, n);
        p += n;
        src += n;
        pos += n;
        len -= n;
    }
    if (crc)
        *crc = crc32c_add(*crc, dst, (size_t)(p - dst));
    return (size_t)(p - dst);
}
