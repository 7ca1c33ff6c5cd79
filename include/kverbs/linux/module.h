/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_MODULE_H
#define KVERBS_LINUX_MODULE_H

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/moduleparam.h>

#define MODULE_AUTHOR(text)      struct kverbs_semicolon
#define MODULE_DESCRIPTION(text) struct kverbs_semicolon
#define MODULE_LICENSE(text)     struct kverbs_semicolon
#define MODULE_VERSION(text)     struct kverbs_semicolon
#define MODULE_ALIAS(text)       struct kverbs_semicolon

static inline bool try_module_get(struct module *m)
{
    (void)m;
    return true;
}

static inline void module_put(struct module *m)
{
    (void)m;
}

#endif
