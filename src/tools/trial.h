/* SPDX-License-Identifier: BSD-2-Clause */
/* One run of a command that is run again and again, of which nothing is left behind. */
#ifndef ANYWARP_TOOLS_TRIAL_H
#define ANYWARP_TOOLS_TRIAL_H

#include <stdbool.h>

#define TRIAL_HUNG 124 /* as timeout(1) has it */

struct trial {
    char **argv;
    double seconds;     /* a run that takes longer hangs */
    bool own_network;   /* see network.h */
    const char *output; /* a file for what the command prints; NULL: nobody sees it */
    bool interrupted;   /* [out] the user wants no more */
};

/**
 * Runs the command, on anywarp, and ends all of its processes that are left when it ends or hangs.
 * @return its exit status as a shell tells it, or TRIAL_HUNG
 */
int trial_run(struct trial *t);

/** Seconds of a clock that only goes forward. */
double trial_now(void);

#endif
