/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/finding.h"

#include <string.h>

#define ROW(name, text, level, meaning, remedy)                                                    \
    [IW_FINDING_##name] = {text, IW_FINDING_##level, meaning, remedy},
static const struct iw_finding_info findings[IW_FINDINGS] = {IW_FINDING_LIST(ROW)};
#undef ROW

const struct iw_finding_info *iw_finding_info(enum iw_finding finding)
{
    return &findings[finding];
}

enum iw_finding iw_finding_find(const char *name)
{
    enum iw_finding f = 0;
    while (f < IW_FINDINGS && strcmp(findings[f].name, name) != 0)
        f++;
    return f;
}

const char *iw_finding_level(enum iw_finding_level level)
{
    static const char *const names[] = {
        [IW_FINDING_NOTE] = "note", [IW_FINDING_WARNING] = "warning", [IW_FINDING_ERROR] = "error"};
    return names[level];
}
