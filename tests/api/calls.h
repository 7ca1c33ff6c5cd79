/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts system calls of the libraries, or has them fail: they go through libc's syscall(), which a
 * program that is linked with this stands in for.
 */
#ifndef ANYWARP_TESTS_CALLS_H
#define ANYWARP_TESTS_CALLS_H

#include <stdatomic.h>

extern atomic_uint calls_sends; /* sendmsg() and sendto() */
extern atomic_uint calls_epoll_changes;
extern __thread unsigned calls_sends_here; /* of this thread */

/** Called before each. @return 0, or the errno that it fails with */
extern int (*_Atomic calls_before)(long number, const long args[6]);

#endif
