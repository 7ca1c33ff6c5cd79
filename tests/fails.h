/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that fail: what they return, and errno. For files that include cmocka. */
#ifndef ANYWARP_TESTS_FAILS_H
#define ANYWARP_TESTS_FAILS_H

#include <errno.h>

#define NULL_AND(error, call)                                                                      \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_null(call);                                                                         \
        assert_int_equal(errno, error);                                                            \
    } while (0)

#define MINUS_1_AND(error, call)                                                                   \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(errno, error);                                                            \
    } while (0)

#endif
