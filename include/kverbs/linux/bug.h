/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_BUG_H
#define KVERBS_LINUX_BUG_H

#include <linux/printk.h>
#include <linux/types.h>

/** Says what is true there, and which file and line that is; kverbs_bug() aborts, too. */
void kverbs_warn(const char *file, int line, const char *what);
void kverbs_bug(const char *file, int line, const char *what) __attribute__((noreturn));

#define BUG() kverbs_bug(__FILE__, __LINE__, "BUG")
#define BUG_ON(x)                                                                                  \
    do {                                                                                           \
        if (unlikely(x))                                                                           \
            kverbs_bug(__FILE__, __LINE__, #x);                                                    \
    } while (0)
#define WARN_ON(x)                                                                                 \
    ({                                                                                             \
        bool kverbs_is = !!(x);                                                                    \
        if (unlikely(kverbs_is))                                                                   \
            kverbs_warn(__FILE__, __LINE__, #x);                                                   \
        unlikely(kverbs_is);                                                                       \
    })
#define WARN_ON_ONCE(x)                                                                            \
    ({                                                                                             \
        static bool kverbs_said;                                                                   \
        bool kverbs_now = !!(x);                                                                   \
        if (unlikely(kverbs_now) && !__atomic_exchange_n(&kverbs_said, true, __ATOMIC_RELAXED))    \
            kverbs_warn(__FILE__, __LINE__, #x);                                                   \
        unlikely(kverbs_now);                                                                      \
    })
#define WARN(x, ...)                                                                               \
    ({                                                                                             \
        bool kverbs_is = !!(x);                                                                    \
        if (unlikely(kverbs_is)) {                                                                 \
            printk(__VA_ARGS__);                                                                   \
            kverbs_warn(__FILE__, __LINE__, #x);                                                   \
        }                                                                                          \
        unlikely(kverbs_is);                                                                       \
    })
#define WARN_ONCE(x, ...)                                                                          \
    ({                                                                                             \
        static bool kverbs_said;                                                                   \
        bool kverbs_now = !!(x);                                                                   \
        if (unlikely(kverbs_now) && !__atomic_exchange_n(&kverbs_said, true, __ATOMIC_RELAXED))    \
            WARN(1, __VA_ARGS__);                                                                  \
        unlikely(kverbs_now);                                                                      \
    })
#define BUILD_BUG_ON(x) _Static_assert(!(x), #x)

#endif
