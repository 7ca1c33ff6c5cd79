/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_TYPES_H
#define KVERBS_LINUX_TYPES_H

/* libc's own headers come here, too, for what the kernel's interface to programs has. */
#include_next <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <linux/compiler.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef long long s64;

typedef unsigned gfp_t;
typedef unsigned short umode_t;
typedef u64 dma_addr_t;
typedef u64 phys_addr_t;
typedef s64 time64_t;

typedef struct {
    int counter;
} atomic_t;

typedef struct {
    long long counter;
} atomic64_t;

struct list_head {
    struct list_head *next, *prev;
};

#endif
