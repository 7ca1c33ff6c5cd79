/* SPDX-License-Identifier: BSD-2-Clause */
/* The installed rdma-core as an oracle, in a namespace of its own beside the library under test. */
#ifndef ANYWARP_TESTS_REAL_VERBS_H
#define ANYWARP_TESTS_REAL_VERBS_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static inline void *real_open_(const char *library)
{
    static const char *const folders[] = {
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    };
    char path[128];
    void *real = NULL;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !real; i++) {
        snprintf(path, sizeof(path), "%s/%s", folders[i], library);
        real = dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
    }
    return real;
}

/** @return NULL if it is not installed */
static inline void *real_verbs_open(void)
{
    return real_open_("libibverbs.so.1");
}

/** @return NULL if it is not installed */
static inline void *real_rdmacm_open(void)
{
    return real_open_("librdmacm.so.1");
}

#endif
