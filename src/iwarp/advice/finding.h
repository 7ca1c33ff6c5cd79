/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of findings, for the libraries and for the command. */
#ifndef ANYWARP_ADVICE_FINDING_H
#define ANYWARP_ADVICE_FINDING_H

#include "advice/list.h"

struct iw_finding_info {
    const char *name;
    enum iw_finding_level level;
    const char *meaning;
    const char *remedy; /* what to do */
};

const struct iw_finding_info *iw_finding_info(enum iw_finding finding);

/** @return IW_FINDINGS if there is none of this name */
enum iw_finding iw_finding_find(const char *name);

/** "error", "warning" or "note". */
const char *iw_finding_level(enum iw_finding_level level);

/*
 * A record, as the file named by ANYWARP_CHECK has it: one line, fields parted by tabs,
 *
 *     finding, process, its number, object, sentence, frames
 *
 * and a frame, the innermost first, ended by IW_FRAME_END: path of its file, address in that file
 * in hexadecimal, name of the symbol before it or nothing, each ended by IW_FRAME_FIELD.
 */
#define IW_FRAME_END   '\036'
#define IW_FRAME_FIELD '\037'

#endif
