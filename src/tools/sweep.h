/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "anywarp chaos --sweep": each call of a program that can fail does so once, in a run of its own.
 *
 * A first run, in which nothing fails, notes the places (faults/places.h). Of each place the first
 * and the last call fail; a run that then crashes, hangs, or leaves what the first did not leave,
 * is a finding.
 */
#ifndef ANYWARP_TOOLS_SWEEP_H
#define ANYWARP_TOOLS_SWEEP_H

#include "faults/places.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum outcome {
    SWEEP_UNTRIED, /* the time was over */
    SWEEP_NOT_MET, /* the program did not come there again */
    SWEEP_FINE,
    SWEEP_LEFT,
    SWEEP_HUNG,
    SWEEP_CRASHED,
};

struct sweep_fault {
    const struct iw_place *place;
    uint64_t number, call;
    enum outcome outcome;
    int status;       /* of the command, as a shell tells it */
    int signal;       /* by which a process crashed, 0: unknown */
    char who[160];    /* the process that crashed, or left something */
    char left[160];   /* as "mr +1 fd +2" */
    char *last_words; /* of what the command printed; heap, or NULL */
};

struct sweep {
    char **argv;
    double budget; /* seconds, in all */
    bool json;

    bool own_network;
    unsigned places;
    struct sweep_fault *fault; /* heap */
    size_t n;
    double baseline, seconds; /* of the first run; in all */
    double limit;             /* of a run */
};

/** @return the exit status: 1 if something crashed or hung */
int sweep(struct sweep *s);

unsigned sweep_count(const struct sweep *s, enum outcome outcome);

/** The coordinates of a fault, as a line of a log has them. */
void sweep_coordinates(char *line, size_t size, const struct sweep_fault *f);

/** Prints what was found, on standard output. */
void sweep_report(const struct sweep *s);

#endif
