/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_PRINTK_H
#define KVERBS_LINUX_PRINTK_H

#include <stdarg.h>

#include <linux/compiler.h>

#define KERN_SOH     "\001"
#define KERN_EMERG   KERN_SOH "0"
#define KERN_ALERT   KERN_SOH "1"
#define KERN_CRIT    KERN_SOH "2"
#define KERN_ERR     KERN_SOH "3"
#define KERN_WARNING KERN_SOH "4"
#define KERN_NOTICE  KERN_SOH "5"
#define KERN_INFO    KERN_SOH "6"
#define KERN_DEBUG   KERN_SOH "7"
#define KERN_CONT    ""
#define KERN_DEFAULT ""

#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME "module"
#endif
#ifndef pr_fmt
#define pr_fmt(f) f
#endif

/** Writes to stderr. %p has no extensions; pr_debug() wants DEBUG. */
int printk(const char *format, ...) __attribute__((format(printf, 1, 2)));
int vprintk(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));

#define pr_emerg(f, ...)  printk(KERN_EMERG pr_fmt(f), ##__VA_ARGS__)
#define pr_alert(f, ...)  printk(KERN_ALERT pr_fmt(f), ##__VA_ARGS__)
#define pr_crit(f, ...)   printk(KERN_CRIT pr_fmt(f), ##__VA_ARGS__)
#define pr_err(f, ...)    printk(KERN_ERR pr_fmt(f), ##__VA_ARGS__)
#define pr_warn(f, ...)   printk(KERN_WARNING pr_fmt(f), ##__VA_ARGS__)
#define pr_warning        pr_warn
#define pr_notice(f, ...) printk(KERN_NOTICE pr_fmt(f), ##__VA_ARGS__)
#define pr_info(f, ...)   printk(KERN_INFO pr_fmt(f), ##__VA_ARGS__)
#define pr_cont(f, ...)   printk(KERN_CONT f, ##__VA_ARGS__)
#ifdef DEBUG
#define pr_debug(f, ...) printk(KERN_DEBUG pr_fmt(f), ##__VA_ARGS__)
#else
#define pr_debug(f, ...)                                                                           \
    do {                                                                                           \
        if (0)                                                                                     \
            printk(KERN_DEBUG pr_fmt(f), ##__VA_ARGS__);                                           \
    } while (0)
#endif
#define pr_err_ratelimited  pr_err
#define pr_warn_ratelimited pr_warn
#define printk_ratelimit()  1

#endif
