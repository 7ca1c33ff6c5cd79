/* SPDX-License-Identifier: BSD-2-Clause */
/* The component library's memory is libc's. */
#ifndef _CL_MEMORY_H_
#define _CL_MEMORY_H_

#include <complib/cl_types.h>
#include <stdlib.h>
#include <string.h>

CL_INLINE void *cl_malloc(size_t size)
{
    return malloc(size);
}

CL_INLINE void *cl_zalloc(size_t size)
{
    return calloc(1, size);
}

CL_INLINE void cl_free(void *memory)
{
    free(memory);
}

CL_INLINE void *cl_memcpy(void *to, const void *from, size_t count)
{
    return memcpy(to, from, count);
}

CL_INLINE int32_t cl_memcmp(const void *a, const void *b, size_t count)
{
    return memcmp(a, b, count);
}

CL_INLINE void cl_memset(void *memory, uint8_t fill, size_t count)
{
    memset(memory, fill, count);
}

CL_INLINE void cl_memclr(void *memory, size_t count)
{
    memset(memory, 0, count);
}

#endif
