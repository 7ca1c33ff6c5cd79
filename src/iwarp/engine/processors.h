/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processors that threads of the program may run on. Each may be bound to some of its own, so
 * it is asked of those that need a shard.
 */
#ifndef ANYWARP_ENGINE_PROCESSORS_H
#define ANYWARP_ENGINE_PROCESSORS_H

#include <stdbool.h>

/** Adds those of this thread; one thread at a time. @return how many are known now */
unsigned iw_processors_add(void);

/**
 * Whether so many threads that poll take the processor from each other, or from the one that has
 * what they poll for, which may be of another process. The engine's thread alone asks.
 */
bool iw_processors_are_few(unsigned threads);

#endif
