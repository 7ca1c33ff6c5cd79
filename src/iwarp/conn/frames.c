/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/frames.h"

#include "wire/bytes.h"
#include "wire/fpdu.h"
#include "wire/mpa.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_FIRST 2048
#define FLAGS_AT   16
#define LENGTH_AT  18

_Static_assert(IWC_FRAMES_MAX > FPDU_MAX + FPDU_MARKER * (FPDU_MAX / FPDU_MARKER_PERIOD + 2), "");

/** Bytes of an FPDU on the wire, with the markers that are due from @p pos on. */
static size_t marked(uint64_t pos, size_t len)
{
    size_t n = 0;
    while (len) {
        size_t marker = pos % FPDU_MARKER_PERIOD ? 0 : FPDU_MARKER;
        size_t room = FPDU_MARKER_PERIOD - (pos + marker) % FPDU_MARKER_PERIOD;
        size_t take = len < room ? len : room;
        n += marker + take;
        pos += marker + take;
        len -= take;
    }
    return n;
}

/** Size of the frame at @p p, 0 if that is not known yet; what is none ends the cutting. */
static size_t frame_size(struct iwc_frames *f, const uint8_t *p, size_t len)
{
    if (f->stage == IWC_FRAMES_START) {
        if (len < MPA_START_HDR)
            return 0;
        size_t pd = get_be16(p + LENGTH_AT);
        if (!memcmp(p, "MPA ID Re", 9) && pd <= MPA_START_PD_MAX)
            return MPA_START_HDR + pd;
        f->stage = IWC_FRAMES_OTHER;
    }
    if (f->stage == IWC_FRAMES_FPDUS) {
        size_t skip = f->markers && f->pos % FPDU_MARKER_PERIOD == 0 ? FPDU_MARKER : 0;
        if (len < skip + FPDU_LEN_FIELD)
            return 0;
        uint32_t ulpdu = get_be16(p + skip);
        if (ulpdu >= FPDU_ULPDU_MIN && ulpdu <= FPDU_ULPDU_MAX)
            return f->markers ? marked(f->pos, fpdu_size(ulpdu)) : fpdu_size(ulpdu);
        f->stage = IWC_FRAMES_OTHER;
    }
    return len < IWC_FRAMES_MAX / 2 ? len : IWC_FRAMES_MAX / 2;
}

static bool append(struct iwc_frames *f, const uint8_t *p, size_t len)
{
    size_t size = f->size ? f->size : SIZE_FIRST;
    while (size < f->len + len)
        size *= 2;
    uint8_t *buf = size == f->size ? f->buf : realloc(f->buf, size);
    if (!buf)
        return false;
    f->buf = buf;
    f->size = size;
    memcpy(buf + f->len, p, len);
    f->len += len;
    return true;
}

bool iwc_frames_add(struct iwc_frames *f, const uint8_t *p, size_t len,
                    void (*out)(void *arg, const uint8_t *p, size_t len), void *arg)
{
    size_t at = 0, n;
    if (!append(f, p, len))
        return false;
    while (at < f->len && (n = frame_size(f, f->buf + at, f->len - at)) && n <= f->len - at) {
        out(arg, f->buf + at, n);
        if (f->stage == IWC_FRAMES_START) {
            f->asks_markers = f->buf[at + FLAGS_AT] & MPA_FLAG_M;
            f->stage = IWC_FRAMES_FPDUS;
        } else {
            f->pos += n;
        }
        at += n;
    }
    f->len -= at;
    if (f->len)
        memmove(f->buf, f->buf + at, f->len);
    return true;
}

void iwc_frames_end(struct iwc_frames *f, void (*out)(void *arg, const uint8_t *p, size_t len),
                    void *arg)
{
    if (f->stage != IWC_FRAMES_START || f->len)
        f->stage = IWC_FRAMES_OTHER;
    for (size_t at = 0, n; at < f->len; at += n) {
        n = frame_size(f, f->buf + at, f->len - at);
        out(arg, f->buf + at, n);
    }
    free(f->buf);
    *f = (struct iwc_frames){.stage = IWC_FRAMES_OTHER};
}
