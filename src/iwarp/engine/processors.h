/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processors that threads of the program may run on. Each may be bound to some of its own, so
 * each thread that polls is asked.
 */
#ifndef ANYWARP_ENGINE_PROCESSORS_H
#define ANYWARP_ENGINE_PROCESSORS_H

#include <stdbool.h>

/** Adds those of this thread; one thread at a time. */
void iw_processors_add(void);
/** How many are known. */
unsigned iw_processors(void);

/**
 * Whether so many threads that poll take the processor from each other, or from the one that has
 * what they poll for, which may be of another process. The engine's thread alone asks.
 */
bool iw_processors_are_few(unsigned threads);

#endif
