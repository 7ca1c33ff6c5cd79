/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_EXPORT_H
#define KVERBS_LINUX_EXPORT_H

struct module;
#define THIS_MODULE ((struct module *)0)

#define EXPORT_SYMBOL(name)     struct kverbs_semicolon
#define EXPORT_SYMBOL_GPL(name) struct kverbs_semicolon

#endif
