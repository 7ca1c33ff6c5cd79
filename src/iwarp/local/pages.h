/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of a pair of rings, as a descriptor that one process makes and another maps: a page of
 * control lines, then the data of both, each mapped twice in a row. Neither can make it smaller
 * behind the other's back: it is sealed. Not inherited by forked children.
 *
 * Of all pairs together a process has 1,024 at most, and 256 MB or an eighth of the memory that the
 * machine has and its control groups let it have, whichever is less: what is used of it counts as
 * theirs.
 */
#ifndef ANYWARP_LOCAL_PAGES_H
#define ANYWARP_LOCAL_PAGES_H

#include "conn/stream_shm.h"

struct iw_pages {
    uint8_t *base; /* NULL: none */
    size_t mapped; /* bytes */
    size_t ring;   /* bytes of one */
};

/**
 * @param ring  a power of two, pages
 * @return a descriptor, the caller's; or a negative errno: -ENOSPC if the process shares enough
 */
int iw_pages_make(struct iw_pages *p, size_t ring);

/**
 * Maps what another process has made, if it is what it should be.
 * @return 0, or a negative errno: -EPERM if it could be taken away, or is no memory; -ENOSPC
 */
int iw_pages_open(struct iw_pages *p, int fd, size_t ring);

/** The rings in it. @param made  this is the side that made it */
struct iwc_shm_rings iw_pages_rings(const struct iw_pages *p, bool made, int bell);

/** Unmaps. Harmless without any. */
void iw_pages_close(struct iw_pages *p);

/** In a forked child: they are not mapped there. */
void iw_pages_forget(struct iw_pages *p);

#endif
