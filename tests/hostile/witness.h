/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What holds after every attack: the process lives, another connection of it goes on as if nothing
 * had happened, and a process that waits sleeps. The log goes to a file of its own.
 */
#ifndef ANYWARP_TESTS_WITNESS_H
#define ANYWARP_TESTS_WITNESS_H

#include "api/logfile.h"
#include "peer.h"

/** Group set-up and tear-down: opens the log and the other connection; closes it, checked. */
int witness_setup(void **state);
int witness_teardown(void **state);

/** A Send, a Write and a Read of the other connection go well, each way. */
void witness_goes_on(void);

/**
 * Sleeps: the rest of the process must sleep most of this time, too. What it was given to do it may
 * finish before, a sanitizer on a busy machine in some seconds.
 */
void witness_sleeps(int ms);

/** Resident memory of the process, in bytes; 0 under ThreadSanitizer, whose own it is mostly. */
size_t witness_memory(void);

/**
 * The victim's end after an attack: its @p receives posted ones, wr_id 51 on, are flushed,
 * DISCONNECTED comes once, and the log has this line (log_expect()), up to the counts.
 */
void witness_end(struct peer *p, unsigned receives, const char *line);

/** Fails the test unless all of the victim's registered bytes are @p fill. */
void witness_untouched(const struct peer *p, uint8_t fill);

#endif
