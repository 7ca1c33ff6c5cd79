/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cuts the bytes of one direction of an MPA connection, from its first one on, into the start-up
 * frame and FPDUs, for those that look on. What is no such thing is given out as it comes.
 */
#ifndef ANYWARP_CONN_FRAMES_H
#define ANYWARP_CONN_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iwc_frames {
    enum { IWC_FRAMES_START, IWC_FRAMES_FPDUS, IWC_FRAMES_OTHER } stage;
    bool asks_markers; /* the start-up frame asked for markers in the other direction */
    bool markers;      /* they are in this one; set by the owner before the first FPDU */
    size_t keep;       /* 0, or: buf has so many bytes and is the owner's, and no frame is kept
                          beyond them; at least IWC_FRAMES_KEEP */
    uint64_t pos;      /* since the start-up frame, of the frame in progress */
    size_t size;       /* of that; 0 if it is not known yet */
    size_t seen;       /* bytes of it */
    uint8_t *buf;      /* what is kept of it; NULL until there is one */
    size_t room;       /* of buf, if that is not the owner's */
};

#define IWC_FRAMES_MAX  65536 /* bytes of a frame given out; in fact a few less */
#define IWC_FRAMES_KEEP 20    /* tell how long any frame is */

/** Gets the first @p kept bytes of a frame of @p len. */
typedef void iwc_frame_out(void *arg, const uint8_t *p, size_t kept, size_t len);

/**
 * Gives out every frame that is whole with these bytes, of which it reads what it keeps.
 * @return false without memory, which it needs with keep 0 alone: then bytes are lost, and nothing
 * may be given any more
 */
bool iwc_frames_add(struct iwc_frames *f, const uint8_t *p, size_t len, iwc_frame_out *out,
                    void *arg);

/** Gives out what is left of a frame that was not finished, and frees. */
void iwc_frames_end(struct iwc_frames *f, iwc_frame_out *out, void *arg);

#endif
