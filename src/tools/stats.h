/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of statistics say. They are other processes': nothing in them is trusted, neither
 * their length nor a number nor the end of a string.
 */
#ifndef ANYWARP_TOOLS_STATS_H
#define ANYWARP_TOOLS_STATS_H

#include "observe/stats_file.h"
#include "observe/stats_page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One process. Rows that were being changed all the time are left out; free rows always are. */
struct stats {
    struct stats_owner owner;
    enum stats_life life;
    struct stats_head head; /* strings are terminated */
    struct stats_cq *cqs;
    struct stats_listener *listeners;
    struct stats_qp *qps;       /* state, error and flags are within their bounds */
    struct stats_error *errors; /* oldest first; strings are terminated */
    size_t ncqs, nlisteners, nqps, nerrors;
    struct iwc_flow out, in; /* of all QPs, those that are gone included */
    uint64_t binds;
    bool exited; /* and was kept as it had errors */
};

/** Which processes: those that are alive, and with @p all those that ended as well. */
struct stats_choice {
    bool all;
    bool failed;      /* only those with errors */
    uint32_t pid;     /* this one alone, alive or not; 0: any */
    const char *name; /* those of this command alone, alive or not; NULL: any */
};

struct stats_set {
    struct stats *process;
    size_t n;
    size_t ended; /* files of processes that ended, and are not among those chosen */
};

/** Reads the files of this user, by PID. */
void stats_read_all(struct stats_set *set, const struct stats_choice *choice);
void stats_free(struct stats_set *set);

/**
 * Reads one file of the directory @p dir.
 * @return false if it is none, or of another version; @p s holds nothing then
 */
bool stats_read(struct stats *s, int dir, const char *name, const struct stats_owner *owner);

/** Removes the files of all processes that ended. @return how many */
unsigned stats_remove_ended(void);

#endif
