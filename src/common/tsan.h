/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ThreadSanitizer does not see that bytes sent on a socket come before the same bytes received when
 * both ends are raw system calls of one process. These say so; without it they are nothing.
 */
#ifndef ANYWARP_TSAN_H
#define ANYWARP_TSAN_H

#include "common/sanitizer.h"

#ifdef ANYWARP_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define tsan_acquire(addr) __tsan_acquire(addr)
#define tsan_release(addr) __tsan_release(addr)
#else
#define tsan_acquire(addr) ((void)(addr))
#define tsan_release(addr) ((void)(addr))
#endif

#endif
