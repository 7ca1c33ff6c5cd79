/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The component library's types, as far as programs of the InfiniBand Access Layer need them:
 * ibal(7).
 */
#ifndef _CL_TYPES_H_
#define _CL_TYPES_H_

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef int boolean_t;
#ifndef TRUE
#define TRUE  1
#define FALSE 0
#endif

typedef intptr_t intn_t;
typedef uintptr_t uintn_t;

/* Numbers in network order. */
typedef uint16_t net16_t;
typedef uint32_t net32_t;
typedef uint64_t net64_t;

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif

#define CL_API
#define CL_EXPORT extern __attribute__((visibility("default")))
#define CL_INLINE static inline

#ifndef CL_ASSERT
#define CL_ASSERT(expression) assert(expression)
#endif
#ifndef UNUSED_PARAM
#define UNUSED_PARAM(parameter) ((void)(parameter))
#endif
#define CL_CONST64(number) UINT64_C(number)

typedef enum _cl_status {
    CL_SUCCESS,
    CL_ERROR,
    CL_INVALID_STATE,
    CL_INVALID_OPERATION,
    CL_INVALID_SETTING,
    CL_INVALID_PARAMETER,
    CL_INSUFFICIENT_RESOURCES,
    CL_INSUFFICIENT_MEMORY,
    CL_INVALID_PERMISSION,
    CL_COMPLETED,
    CL_NOT_DONE,
    CL_PENDING,
    CL_TIMEOUT,
    CL_CANCELED,
    CL_REJECT,
    CL_OVERRUN,
    CL_NOT_FOUND,
    CL_UNAVAILABLE,
    CL_BUSY,
    CL_DISCONNECT,
    CL_DUPLICATE,
    CL_INVALID_REQUEST,
    CL_STATUS_COUNT
} cl_status_t;

#endif
