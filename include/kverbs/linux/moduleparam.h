/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_MODULEPARAM_H
#define KVERBS_LINUX_MODULEPARAM_H

#include <linux/init.h>
#include <linux/types.h>

enum kverbs_param_type {
    KVERBS_PARAM_int,
    KVERBS_PARAM_uint,
    KVERBS_PARAM_short,
    KVERBS_PARAM_ushort,
    KVERBS_PARAM_byte,
    KVERBS_PARAM_long,
    KVERBS_PARAM_ulong,
    KVERBS_PARAM_charp,
    KVERBS_PARAM_bool,
};

/** main() takes NAME=VALUE from the command line; "-h" prints all of them. */
void kverbs_module_param(const char *name, enum kverbs_param_type type, void *value);
void kverbs_module_param_says(const char *name, const char *text);

/* The type is pasted at once: "bool" is a macro. */
#define module_param_named(name, variable, type, perm)                                             \
    static void __attribute__((constructor)) kverbs_param_##name(void)                             \
    {                                                                                              \
        kverbs_module_param(#name, KVERBS_PARAM_##type, &(variable));                              \
    }                                                                                              \
    struct kverbs_semicolon
#define module_param(name, type, perm)                                                             \
    static void __attribute__((constructor)) kverbs_param_##name(void)                             \
    {                                                                                              \
        kverbs_module_param(#name, KVERBS_PARAM_##type, &(name));                                  \
    }                                                                                              \
    struct kverbs_semicolon
#define MODULE_PARM_DESC(name, text)                                                               \
    static void __attribute__((constructor)) kverbs_says_##name(void)                              \
    {                                                                                              \
        kverbs_module_param_says(#name, text);                                                     \
    }                                                                                              \
    struct kverbs_semicolon

#endif
