/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_COMPILER_H
#define KVERBS_LINUX_COMPILER_H

#define __user
#define __kernel
#define __iomem
#define __force
#define __rcu
#define __must_check
#define __read_mostly
#define __init
#define __exit
#define __initdata
#define __packed       __attribute__((packed))
#define __aligned(n)   __attribute__((aligned(n)))
#define __maybe_unused __attribute__((unused))
#ifndef __attribute_const__
#define __attribute_const__ __attribute__((const))
#endif
#ifndef noinline
#define noinline __attribute__((noinline))
#endif
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define barrier()        __asm__ __volatile__("" ::: "memory")
#define READ_ONCE(x)     __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define ACCESS_ONCE(x)   (*(volatile __typeof__(x) *)&(x))

#define smp_mb()                __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_rmb()               __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define smp_wmb()               __atomic_thread_fence(__ATOMIC_RELEASE)
#define mb()                    smp_mb()
#define rmb()                   smp_rmb()
#define wmb()                   smp_wmb()
#define smp_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#endif
