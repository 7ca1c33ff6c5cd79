/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_INIT_H
#define KVERBS_LINUX_INIT_H

#include <linux/compiler.h>

/* What the library's main() runs; a module has one of each. */
void kverbs_module_init(int (*init)(void));
void kverbs_module_exit(void (*end)(void));

#define module_init(f)                                                                             \
    static void __attribute__((constructor)) kverbs_init_##f(void)                                 \
    {                                                                                              \
        kverbs_module_init(f);                                                                     \
    }                                                                                              \
    struct kverbs_semicolon
#define module_exit(f)                                                                             \
    static void __attribute__((constructor)) kverbs_exit_##f(void)                                 \
    {                                                                                              \
        kverbs_module_exit(f);                                                                     \
    }                                                                                              \
    struct kverbs_semicolon

#endif
