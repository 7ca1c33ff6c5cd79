/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a program's calls are that can fail: a file that its processes share, for "anywarp chaos
 * --sweep". A place is a call, its error and the stack that leads to it.
 *
 * Whoever makes the file gives it its whole size, in zeros. A process takes places by next, and
 * writes only to its own; one that is killed leaves what it has written.
 *
 * Where nothing else is said, callers hold one lock.
 */
#ifndef ANYWARP_FAULTS_PLACES_H
#define ANYWARP_FAULTS_PLACES_H

#include "faults/plan.h"

#define IW_PLACES       4096
#define IW_STACK_FRAMES 32
#define IW_STACK_TEXT   1800

struct iw_place {
    uint32_t whole;    /* not 0: all else is written */
    char process[144]; /* with its arguments, as logs may have it that are replayed */
    char fault[32];
    char kind[16]; /* of the object */
    uint64_t first_number, first_call, last_number, last_call;
    uint64_t calls;
    char stack[IW_STACK_TEXT]; /* FILE+0xADDRESS of each frame outside of anywarp, innermost first,
                                  with blanks between them: of the byte behind a call */
};

struct iw_places {
    uint64_t next; /* of the places, or more: there were too many */
    struct iw_place place[IW_PLACES];
};

struct iw_callers {
    uint64_t hash; /* of the fault, too */
    int n;
    void *frame[IW_STACK_FRAMES];
    char text[IW_STACK_TEXT];
};

/** The places of file @p path. @return NULL if it cannot be mapped */
struct iw_places *iw_places_map(const char *path);

/** From now on this process notes its places there. Before all that follows. @return success */
bool iw_places_open(const char *path);

/** The stack of the caller, who calls in vain or for @p fault, without its text. No lock. */
void iw_callers_take(struct iw_callers *s, enum iw_fault fault);

/** Writes its text. No lock. */
void iw_callers_name(struct iw_callers *s);

/** @return NULL if this process has not been there */
struct iw_place *iw_place_known(const struct iw_callers *s);

/** @return NULL if there are too many */
struct iw_place *iw_place_new(const struct iw_callers *s, const char *process, enum iw_fault fault,
                              const char *kind);

/** One more call there. */
void iw_place_called(struct iw_place *p, uint64_t number, uint64_t call);

/** What is known is the parent's. */
void iw_places_forget(void);

#endif
