/* SPDX-License-Identifier: BSD-2-Clause */
/* Of the component library's timers, what the time is. */
#ifndef _CL_TIMER_H_
#define _CL_TIMER_H_

#include <complib/cl_types.h>
#include <time.h>

/** Microseconds since some moment of the past. */
CL_INLINE uint64_t cl_get_time_stamp(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

#endif
