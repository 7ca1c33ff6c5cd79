/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/frames.h"

#include "wire/bytes.h"
#include "wire/fpdu.h"
#include "wire/mpa.h"

#include <stdlib.h>
#include <string.h>

#define ROOM_FIRST 2048
#define FLAGS_AT   16
#define LENGTH_AT  18

_Static_assert(IWC_FRAMES_KEEP >= MPA_START_HDR && IWC_FRAMES_KEEP >= FPDU_MARKER + FPDU_LEN_FIELD,
               "");
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

static size_t marker_at(const struct iwc_frames *f)
{
    return f->markers && f->pos % FPDU_MARKER_PERIOD == 0 ? FPDU_MARKER : 0;
}

/** Bytes that tell how long the frame in progress is. */
static size_t head_size(const struct iwc_frames *f)
{
    return f->stage == IWC_FRAMES_START   ? MPA_START_HDR
           : f->stage == IWC_FRAMES_FPDUS ? marker_at(f) + FPDU_LEN_FIELD
                                          : 0;
}

/** Size of the frame whose head is kept, 0: it is none, and @p f->stage is OTHER from now on. */
static size_t frame_size(struct iwc_frames *f)
{
    const uint8_t *p = f->buf;
    if (f->stage == IWC_FRAMES_START) {
        size_t pd = get_be16(p + LENGTH_AT);
        if (!memcmp(p, "MPA ID Re", 9) && pd <= MPA_START_PD_MAX)
            return MPA_START_HDR + pd;
    }
    if (f->stage == IWC_FRAMES_FPDUS) {
        uint32_t ulpdu = get_be16(p + marker_at(f));
        if (ulpdu >= FPDU_ULPDU_MIN && ulpdu <= FPDU_ULPDU_MAX)
            return f->markers ? marked(f->pos, fpdu_size(ulpdu)) : fpdu_size(ulpdu);
    }
    f->stage = IWC_FRAMES_OTHER;
    return 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t kept(const struct iwc_frames *f)
{
    return f->keep ? least(f->seen, f->keep) : f->seen;
}

static bool append(struct iwc_frames *f, const uint8_t *p, size_t len)
{
    size_t have = kept(f), more = f->keep ? least(len, f->keep - have) : len;
    size_t room = f->room ? f->room : ROOM_FIRST;
    while (room < have + more)
        room *= 2;
    if (!f->keep && room != f->room) {
        uint8_t *buf = realloc(f->buf, room);
        if (!buf)
            return false;
        f->buf = buf;
        f->room = room;
    }
    memcpy(f->buf + have, p, more);
    f->seen += len;
    return true;
}

static void give(struct iwc_frames *f, iwc_frame_out *out, void *arg)
{
    out(arg, f->buf, kept(f), f->seen);
    if (f->stage == IWC_FRAMES_START) {
        f->asks_markers = f->buf[FLAGS_AT] & MPA_FLAG_M;
        f->stage = IWC_FRAMES_FPDUS;
    } else {
        f->pos += f->seen;
    }
    f->size = f->seen = 0;
}

bool iwc_frames_add(struct iwc_frames *f, const uint8_t *p, size_t len, iwc_frame_out *out,
                    void *arg)
{
    while (len) {
        size_t head = head_size(f), n = len;
        if (f->seen < head)
            n = least(n, head - f->seen);
        else if (f->size)
            n = least(n, f->size - f->seen);
        else
            n = least(n, IWC_FRAMES_MAX / 2);
        if (!append(f, p, n))
            return false;
        p += n;
        len -= n;
        if (head && f->seen == head)
            f->size = frame_size(f);
        if (f->stage == IWC_FRAMES_OTHER ? !len || f->seen >= IWC_FRAMES_MAX / 2
                                         : f->seen == f->size)
            give(f, out, arg);
    }
    return true;
}

void iwc_frames_end(struct iwc_frames *f, iwc_frame_out *out, void *arg)
{
    size_t have = kept(f);
    if (f->stage != IWC_FRAMES_START || f->seen)
        f->stage = IWC_FRAMES_OTHER;
    for (size_t at = 0, n; at < f->seen; at += n) {
        n = least(f->seen - at, IWC_FRAMES_MAX / 2);
        out(arg, f->buf + at, at < have ? least(have - at, n) : 0, n);
    }
    if (!f->keep)
        free(f->buf);
    *f = (struct iwc_frames){
        .stage = IWC_FRAMES_OTHER, .keep = f->keep, .buf = f->keep ? f->buf : NULL};
}
