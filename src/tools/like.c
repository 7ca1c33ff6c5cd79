/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/like.h"

#include "env/adapter.h"
#include "tools/tool.h"

#include <stdio.h>
#include <stdlib.h>

static void print_limit(enum iw_limit which, const struct iw_adapter_limit *l)
{
    const char *name = iw_limit_name(which);
    if (!l->source)
        return;
    if (l->value)
        printf("    %-20s %8u  %s\n", name, l->value, l->source);
    else
        printf("    %-20s %8s  %s\n", name, "none", l->source);
}

int like_list(void)
{
    size_t n;
    const struct iw_adapter *a = iw_adapters(&n);
    for (const struct iw_adapter *end = a + n; a < end; a++) {
        printf("%s: %s\n", a->name, a->what);
        for (enum iw_limit l = 0; l < IW_LIMITS; l++)
            print_limit(l, &a->limit[l]);
    }
    return 0;
}

void like_set(const char *name)
{
    if (!iw_adapter_find(name))
        tool_die(TOOL_USAGE, "run: --like %s: no such adapter. Try: anywarp run --like list", name);
    setenv("ANYWARP_LIKE", name, 1);
    setenv("VERBS_LOG_LEVEL", "2", 0);
}
