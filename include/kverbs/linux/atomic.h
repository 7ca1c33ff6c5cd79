/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_ATOMIC_H
#define KVERBS_LINUX_ATOMIC_H

#include <linux/types.h>

#define ATOMIC_INIT(i)                                                                             \
    {                                                                                              \
        (i)                                                                                        \
    }
#define ATOMIC64_INIT(i)                                                                           \
    {                                                                                              \
        (i)                                                                                        \
    }

#define atomic_read(v)            __atomic_load_n(&(v)->counter, __ATOMIC_RELAXED)
#define atomic_set(v, i)          __atomic_store_n(&(v)->counter, (i), __ATOMIC_RELAXED)
#define atomic_add_return(i, v)   __atomic_add_fetch(&(v)->counter, (i), __ATOMIC_SEQ_CST)
#define atomic_sub_return(i, v)   __atomic_sub_fetch(&(v)->counter, (i), __ATOMIC_SEQ_CST)
#define atomic_xchg(v, i)         __atomic_exchange_n(&(v)->counter, (i), __ATOMIC_SEQ_CST)
#define atomic_add(i, v)          ((void)atomic_add_return(i, v))
#define atomic_sub(i, v)          ((void)atomic_sub_return(i, v))
#define atomic_inc(v)             atomic_add(1, v)
#define atomic_dec(v)             atomic_sub(1, v)
#define atomic_inc_return(v)      atomic_add_return(1, v)
#define atomic_dec_return(v)      atomic_sub_return(1, v)
#define atomic_inc_and_test(v)    (atomic_inc_return(v) == 0)
#define atomic_dec_and_test(v)    (atomic_dec_return(v) == 0)
#define atomic_sub_and_test(i, v) (atomic_sub_return(i, v) == 0)
#define atomic64_read(v)          atomic_read(v)
#define atomic64_set(v, i)        atomic_set(v, i)
#define atomic64_add(i, v)        atomic_add(i, v)
#define atomic64_inc(v)           atomic_inc(v)
#define atomic64_dec(v)           atomic_dec(v)
#define atomic64_add_return(i, v) atomic_add_return(i, v)
#define atomic64_inc_return(v)    atomic_inc_return(v)

static inline int atomic_cmpxchg(atomic_t *v, int old, int new_value)
{
    __atomic_compare_exchange_n(&v->counter, &old, new_value, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    return old;
}

static inline bool atomic_add_unless(atomic_t *v, int a, int unless)
{
    int old = atomic_read(v);
    while (old != unless) {
        if (__atomic_compare_exchange_n(&v->counter, &old, old + a, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
            return true;
    }
    return false;
}

#define atomic_inc_not_zero(v) atomic_add_unless((v), 1, 0)

#endif
