/* SPDX-License-Identifier: BSD-2-Clause */
/* Which faults happen: a list of settings with commas, as ANYWARP_CHAOS has it. */
#ifndef ANYWARP_FAULTS_PLAN_H
#define ANYWARP_FAULTS_PLAN_H

#include "faults/list.h"

#include <stdbool.h>
#include <stdint.h>

struct iw_fault_info {
    const char *name;
    uint32_t every; /* once in so many calls, unless a plan says otherwise */
    int error;      /* with which a call fails; 0: the fault is no failing call */
    const char *meaning;
};

struct iw_plan {
    uint64_t seed;
    uint32_t every[IW_FAULTS]; /* 0: never */
    char log[256];             /* one line for each fault is appended here; empty: nowhere */
    char replay[256];          /* only what stands in this log happens; empty: the seed decides */
    char places[256];          /* nothing happens, but where it could is noted; see places.h */
    bool ends;                 /* crashes, and what is left at exit, stand in the log, too */
};

const struct iw_fault_info *iw_fault_info(enum iw_fault fault);

/** @return IW_FAULTS if there is none of this name */
enum iw_fault iw_fault_find(const char *name);

/**
 * Reads "seed=N,every=N,only=NAME+NAME,log=FILE,replay=FILE,places=FILE,ends=on,placement=on"; each
 * may be left out. The last has all Writes land so, and nothing else happen unless it is named.
 * @return NULL, or what is wrong with @p text
 */
const char *iw_plan_parse(struct iw_plan *plan, const char *text);

/** As "PROCESS FAULT KIND NUMBER CALL": a line of a log, without the newline. */
void iw_plan_line(char *line, unsigned size, const char *process, enum iw_fault fault,
                  const char *kind, uint64_t number, uint64_t call);

/** The decision: a function of its arguments alone, whatever the threads do. */
bool iw_plan_decide(const struct iw_plan *plan, const char *process, enum iw_fault fault,
                    const char *kind, uint64_t number, uint64_t call);

/** By which the details of a fault are chosen, from the same. @return not 0 */
uint64_t iw_plan_detail(const struct iw_plan *plan, const char *process, enum iw_fault fault,
                        const char *kind, uint64_t number, uint64_t call);

#endif
