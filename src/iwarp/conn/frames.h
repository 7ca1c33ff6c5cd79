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
    uint64_t pos;      /* since the start-up frame, of buf[0] */
    uint8_t *buf;      /* a frame in progress; NULL until there is one */
    size_t len, size;
};

#define IWC_FRAMES_MAX 65536 /* bytes of a frame given out; in fact a few less */

/**
 * Gives out every frame that is whole with these bytes.
 * @return false without memory: then bytes are lost, and nothing may be given any more
 */
bool iwc_frames_add(struct iwc_frames *f, const uint8_t *p, size_t len,
                    void (*out)(void *arg, const uint8_t *p, size_t len), void *arg);

/** Gives out what is left of a frame that was not finished, and frees. */
void iwc_frames_end(struct iwc_frames *f, void (*out)(void *arg, const uint8_t *p, size_t len),
                    void *arg);

#endif
