/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sanitizer this is built with, as gcc says it or as clang does. */
#ifndef ANYWARP_SANITIZER_H
#define ANYWARP_SANITIZER_H

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ANYWARP_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define ANYWARP_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__) && !defined(ANYWARP_ASAN)
#define ANYWARP_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(ANYWARP_TSAN)
#define ANYWARP_TSAN 1
#endif

/*
 * For a function with pthread_cleanup_push() around calls: when a thread is cancelled in them, what
 * AddressSanitizer does before its next handler's turn stumbles over what their frames have left.
 */
#define CANCELLED_IN __attribute__((no_sanitize("address")))

#endif
