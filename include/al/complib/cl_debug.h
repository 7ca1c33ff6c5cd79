/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of programs, by level: each is printed on stderr if its bits are all in the level that
 * is wanted, and one with CL_DBG_ERROR if that is in both. The message is the arguments of printf,
 * in parentheses.
 */
#ifndef _CL_DEBUG_H_
#define _CL_DEBUG_H_

#include <complib/cl_types.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define CL_DBG_DISABLE 0
#define CL_DBG_ERROR   0x80000000
#define CL_DBG_ALL     0xFFFFFFFF

__attribute__((format(printf, 1, 2))) CL_INLINE void cl_dbg_out(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
}

#ifdef _DEBUG_
#define CL_DEBUGGING 1
#else
#define CL_DEBUGGING 0
#endif

#define CL_PRINT(level, wanted, message)                                                           \
    do {                                                                                           \
        if (CL_DEBUGGING &&                                                                        \
            (((level) & (wanted)&CL_DBG_ERROR) || ((level) & (wanted)) == (level)))                \
            cl_dbg_out message;                                                                    \
    } while (0)
#define CL_ENTER(level, wanted) CL_PRINT(level, wanted, ("%s() [\n", __func__))
#define CL_EXIT(level, wanted)  CL_PRINT(level, wanted, ("%s() ]\n", __func__))
#define CL_TRACE(level, wanted, message)                                                           \
    do {                                                                                           \
        CL_PRINT(level, wanted, ("%s(): ", __func__));                                             \
        CL_PRINT(level, wanted, message);                                                          \
    } while (0)
#define CL_TRACE_EXIT(level, wanted, message)                                                      \
    do {                                                                                           \
        CL_TRACE(level, wanted, message);                                                          \
        CL_EXIT(level, wanted);                                                                    \
    } while (0)

#endif
