/* SPDX-License-Identifier: BSD-2-Clause */
/* For libraries that take the place of libc's functions: NEXT() is what they took it from. */
#ifndef ANYWARP_PRELOAD_NEXT_H
#define ANYWARP_PRELOAD_NEXT_H

#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

/** The next definition of the function @p name, as a pointer of @p type. */
#define NEXT(type, name)                                                                           \
    ({                                                                                             \
        static __typeof__(type) next_;                                                             \
        __typeof__(type) f_ = __atomic_load_n(&next_, __ATOMIC_RELAXED);                           \
        if (!f_) {                                                                                 \
            f_ = (__typeof__(type))dlsym(RTLD_NEXT, name);                                         \
            __atomic_store_n(&next_, f_, __ATOMIC_RELAXED);                                        \
        }                                                                                          \
        f_;                                                                                        \
    })

#endif
