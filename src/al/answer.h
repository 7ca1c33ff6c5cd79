/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that wait until the answer of the peer has been told, on the thread of callbacks:
 * IB_FLAGS_SYNC. The lock is answer.c's own, and is taken last. In a child of fork() nobody waits.
 */
#ifndef ANYWARP_AL_ANSWER_H
#define ANYWARP_AL_ANSWER_H

#include <stdbool.h>

/** An answer, and who waits for it: one at a time; all zero: nobody. */
struct al_answer {
    bool *told;
};

/** @param told false, and there until al_answer_await(); NULL: nobody waits */
void al_answer_expect(struct al_answer *a, bool *told);

/** It has come, or will not. */
void al_answer(struct al_answer *a);

/** Waits for al_answer(). The answer itself may be gone by now, with its connection. */
void al_answer_await(const bool *told);

#endif
