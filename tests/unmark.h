/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a peer that asked for markers does with the stream (RFC 5044 section 4.3): takes them out
 * and checks each. Written apart from the code under test, which has no such receiver.
 */
#ifndef ANYWARP_TESTS_UNMARK_H
#define ANYWARP_TESTS_UNMARK_H

#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum unmark { UNMARK_OK, UNMARK_MORE, UNMARK_BAD_MARKER, UNMARK_BAD_CRC };

/**
 * Takes one FPDU off a marked stream and writes it without markers, its CRC made anew.
 *
 * @param pos   stream offset of p[0], where an FPDU or the marker in front of one begins
 * @param out   at least FPDU_MAX bytes; @p out_len their number
 * @param used  [out] bytes of @p p that the FPDU took
 */
static inline enum unmark unmark_fpdu(const uint8_t *p, size_t len, uint64_t pos, bool crc,
                                      uint8_t *out, size_t *out_len, size_t *used)
{
    size_t at = 0, n = 0, want = FPDU_LEN_FIELD, field = 0;
    bool known = false;

    while (n < want) {
        if ((pos + at) % 512 == 0) {
            if (len - at < 4)
                return UNMARK_MORE;
            uint16_t pointer = n == 0 ? 0 : at - field;
            if (get_be16(p + at) != 0 || get_be16(p + at + 2) != pointer)
                return UNMARK_BAD_MARKER;
            at += 4;
        }
        if (at == len)
            return UNMARK_MORE;
        if (n == 0)
            field = at;
        out[n++] = p[at++];
        if (n == FPDU_LEN_FIELD && !known) {
            want = fpdu_size(get_be16(out));
            known = true;
        }
    }
    uint32_t sum = crc32c_done(crc32c_add(CRC32C_INIT, p, at - FPDU_CRC_FIELD));
    if (crc && sum != get_le32(p + at - FPDU_CRC_FIELD))
        return UNMARK_BAD_CRC;
    put_le32(out + n - 4, crc32c_done(crc32c_add(CRC32C_INIT, out, n - FPDU_CRC_FIELD)));
    *out_len = n;
    *used = at;
    return UNMARK_OK;
}

#endif
