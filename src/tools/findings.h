/* SPDX-License-Identifier: BSD-2-Clause */
/* The findings of a run of "anywarp check". */
#ifndef ANYWARP_TOOLS_FINDINGS_H
#define ANYWARP_TOOLS_FINDINGS_H

#include "advice/finding.h"
#include "tools/symbols.h"

#include <stddef.h>

#define FINDING_FRAMES 48

struct finding {
    enum iw_finding kind;
    char *process, *object, *sentence;
    int pid;
    unsigned count; /* of the same kind, from the same place of the same program */
    size_t frames;
    struct symbol frame[FINDING_FRAMES];
};

struct findings {
    struct finding *list;
    size_t n;
    unsigned suppressed;
    unsigned level[IW_FINDING_ERROR + 1]; /* how many of each */
};

/**
 * Reads records as the libraries append them (advice/finding.h), puts those that differ in their
 * object alone together, and names their frames. @return NULL, or what is wrong
 */
const char *findings_read(struct findings *f, const char *path);

/**
 * Takes away what a file of suppressions covers. A line of it is the name of a finding, and then
 * any number of patterns, each of which a function, source or file of a frame, or the program, must
 * match; all may have *, ? and [] as in a shell. What begins with # is a comment.
 * @return NULL, or what is wrong
 */
const char *findings_suppress(struct findings *f, const char *path);

void findings_free(struct findings *f);

#endif
