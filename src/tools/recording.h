/* SPDX-License-Identifier: BSD-2-Clause */
/* The record of a process, read from the file that the flight recorder leaves. */
#ifndef ANYWARP_TOOLS_RECORDING_H
#define ANYWARP_TOOLS_RECORDING_H

#include "observe/record_page.h"

#include <stdbool.h>
#include <stdio.h>

struct recording {
    struct record_page *page;           /* as it was, every field of it within bounds */
    const struct record_event **events; /* those that are whole, in the order of time */
    size_t n;
    size_t unfinished; /* that were being written when the process ended, or the file was read */
    bool running;      /* the process has the file open */
};

/**
 * Reads the file; that of a process that runs, too.
 * @param wrong  [out] why not, in case of failure
 * @return false if it is no record, or one that is damaged
 */
bool recording_read(struct recording *r, const char *path, char *wrong, size_t size);
void recording_free(struct recording *r);

/** Opens the record of a process that runs. @param path  [out] @return false if it has none */
bool recording_find(unsigned long pid, char *path, size_t size);

/** When it was, in ns since 1970. */
uint64_t recording_time(const struct recording *r, uint64_t ns);

/** @return NULL if its row is another connection's by now */
const struct record_conn *recording_conn(const struct recording *r, uint32_t id);

/** Bytes of a frame that are there. */
uint32_t recording_kept(const struct record_frame *f);

/** "10.0.0.1:7471", the peer's address if @p peer. */
void recording_address(const struct record_conn *c, bool peer, char *text, size_t size);

/** Prints what is known, an event a line. */
void recording_print(FILE *f, const struct recording *r);

/**
 * Writes the frames as a capture. Of those that are longer than what was kept the rest is zeros,
 * and a comment says so.
 * @return false and errno
 */
bool recording_capture(FILE *f, const struct recording *r);

#endif
