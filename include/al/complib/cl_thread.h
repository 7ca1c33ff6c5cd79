/* SPDX-License-Identifier: BSD-2-Clause */
/* Of the component library's threads, how one sleeps. */
#ifndef _CL_THREAD_H_
#define _CL_THREAD_H_

#include <complib/cl_types.h>
#include <sched.h>
#include <time.h>

/** Sleeps for so many milliseconds; 0: lets others go first. */
CL_INLINE void cl_thread_suspend(uint32_t milliseconds)
{
    struct timespec pause = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    if (milliseconds == 0)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

#endif
