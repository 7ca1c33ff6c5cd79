/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/pages.h"

#include <string.h>

static const char *const lines[] = {
#include "src/tools/pages_text.h"
};

#define SECTION "## "

bool page_print(FILE *f, const char *name)
{
    bool inside = false, found = false;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        if (!strncmp(lines[i], SECTION, strlen(SECTION)))
            inside = !strcmp(lines[i] + strlen(SECTION), name);
        if (inside)
            fprintf(f, "%s\n", lines[i]);
        found |= inside;
    }
    return found;
}
