/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_BITOPS_H
#define KVERBS_LINUX_BITOPS_H

#include <linux/compiler.h>

#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))
#define BIT(n)             (1UL << (n))

#define BITS_PER_LONG    ((int)(8 * sizeof(long)))
#define BITS_TO_LONGS(n) DIV_ROUND_UP(n, BITS_PER_LONG)
#define BIT_WORD(n)      ((unsigned long)(n) / BITS_PER_LONG)
#define BIT_MASK(n)      (1UL << ((unsigned long)(n) % BITS_PER_LONG))

#define set_bit(n, p) ((void)__atomic_or_fetch(&(p)[BIT_WORD(n)], BIT_MASK(n), __ATOMIC_SEQ_CST))
#define clear_bit(n, p)                                                                            \
    ((void)__atomic_and_fetch(&(p)[BIT_WORD(n)], ~BIT_MASK(n), __ATOMIC_SEQ_CST))
#define test_bit(n, p) (!!(__atomic_load_n(&(p)[BIT_WORD(n)], __ATOMIC_RELAXED) & BIT_MASK(n)))
#define test_and_set_bit(n, p)                                                                     \
    (!!(__atomic_fetch_or(&(p)[BIT_WORD(n)], BIT_MASK(n), __ATOMIC_SEQ_CST) & BIT_MASK(n)))
#define test_and_clear_bit(n, p)                                                                   \
    (!!(__atomic_fetch_and(&(p)[BIT_WORD(n)], ~BIT_MASK(n), __ATOMIC_SEQ_CST) & BIT_MASK(n)))

#endif
