/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/pair.h"

#include "tools/tool.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

static void *load(const char *name)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", tool_libraries, name);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

const char *pair_load(struct pair *p)
{
    void *verbs = load("libibverbs.so.1");
    if (!verbs || !load("librdmacm.so.1"))
        return dlerror();
    /* the door between our two libraries: no other libibverbs has it */
    if (!dlvsym(verbs, "iw_cm_listen", "ANYWARP_PRIVATE_1"))
        return dlerror();
#define FIND(name)                                                                                 \
    p->name = (__typeof__(p->name))dlsym(verbs, "ibv_" #name);                                     \
    if (!p->name)                                                                                  \
        return dlerror();
    PAIR_CALLS(FIND)
#undef FIND
    return NULL;
}
