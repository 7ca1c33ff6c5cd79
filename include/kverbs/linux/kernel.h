/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_KERNEL_H
#define KVERBS_LINUX_KERNEL_H

#include <endian.h>

#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/types.h>

#define ARRAY_SIZE(a)         (sizeof(a) / sizeof((a)[0]))
#define ALIGN(x, a)           (((x) + ((__typeof__(x))(a)-1)) & ~((__typeof__(x))(a)-1))
#define roundup(x, y)         ((((x) + ((y)-1)) / (y)) * (y))
#define upper_32_bits(n)      ((u32)(((n) >> 16) >> 16))
#define lower_32_bits(n)      ((u32)(n))
#define container_of(p, t, m) ((t *)((char *)(p)-offsetof(t, m)))

#define min(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) kverbs_a = (a);                                                              \
        __typeof__(b) kverbs_b = (b);                                                              \
        kverbs_a < kverbs_b ? kverbs_a : kverbs_b;                                                 \
    })
#define max(a, b)                                                                                  \
    ({                                                                                             \
        __typeof__(a) kverbs_a = (a);                                                              \
        __typeof__(b) kverbs_b = (b);                                                              \
        kverbs_a > kverbs_b ? kverbs_a : kverbs_b;                                                 \
    })
#define min_t(t, a, b)   min((t)(a), (t)(b))
#define max_t(t, a, b)   max((t)(a), (t)(b))
#define clamp(v, lo, hi) min(max(v, lo), hi)
#define swap(a, b)                                                                                 \
    do {                                                                                           \
        __typeof__(a) kverbs_a = (a);                                                              \
        (a) = (b);                                                                                 \
        (b) = kverbs_a;                                                                            \
    } while (0)

#define cpu_to_be16(x) htobe16(x)
#define cpu_to_be32(x) htobe32(x)
#define cpu_to_be64(x) htobe64(x)
#define be16_to_cpu(x) be16toh(x)
#define be32_to_cpu(x) be32toh(x)
#define be64_to_cpu(x) be64toh(x)
#define cpu_to_le16(x) htole16(x)
#define cpu_to_le32(x) htole32(x)
#define cpu_to_le64(x) htole64(x)
#define le16_to_cpu(x) le16toh(x)
#define le32_to_cpu(x) le32toh(x)
#define le64_to_cpu(x) le64toh(x)

/** True where the kernel could not sleep: in what a completion or an event calls. */
bool kverbs_in_interrupt(void);
#define in_interrupt() kverbs_in_interrupt()

/** Complains, once a place, if the caller is in an interrupt or holds a spinlock. */
void kverbs_might_sleep(const char *file, int line);
#define might_sleep() kverbs_might_sleep(__FILE__, __LINE__)

unsigned long simple_strtoul(const char *s, char **end, unsigned base);
long simple_strtol(const char *s, char **end, unsigned base);
int kstrtoint(const char *s, unsigned base, int *value);
int kstrtouint(const char *s, unsigned base, unsigned *value);
int kstrtoul(const char *s, unsigned base, unsigned long *value);
int snprintf(char *s, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
int sprintf(char *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
int sscanf(const char *s, const char *format, ...) __attribute__((format(scanf, 2, 3)));
/** As snprintf(), but says how many were written. */
int scnprintf(char *s, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
