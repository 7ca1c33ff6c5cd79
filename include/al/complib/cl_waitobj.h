/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait objects: what a thread sleeps for, and a completion queue, or another thread, signals.
 * A handle that is no wait object, or no more one, is CL_INVALID_PARAMETER.
 */
#ifndef _CL_WAITOBJ_H_
#define _CL_WAITOBJ_H_

#include <complib/cl_types.h>

typedef struct _cl_waitobj *cl_waitobj_handle_t;

#define EVENT_NO_TIMEOUT 0xFFFFFFFF

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A wait object that is not signaled.
 * @param manual_reset it stays signaled until cl_waitobj_reset(), for all who wait; else it is
 * for one of them, who resets it
 * @return CL_SUCCESS, CL_INVALID_PARAMETER, CL_INSUFFICIENT_MEMORY
 */
CL_EXPORT cl_status_t CL_API cl_waitobj_create(IN const boolean_t manual_reset,
                                               OUT cl_waitobj_handle_t *const ph_wait_obj);

/** Who waits gets CL_ERROR. A completion queue may still have it, and signals nobody. */
CL_EXPORT cl_status_t CL_API cl_waitobj_destroy(IN cl_waitobj_handle_t h_wait_obj);

CL_EXPORT cl_status_t CL_API cl_waitobj_signal(IN cl_waitobj_handle_t h_wait_obj);

/** cl_waitobj_signal() by its older name. */
CL_EXPORT cl_status_t CL_API cl_waitobj_trigger(IN cl_waitobj_handle_t h_wait_obj);

CL_EXPORT cl_status_t CL_API cl_waitobj_reset(IN cl_waitobj_handle_t h_wait_obj);

/**
 * @param wait_us microseconds; 0 asks, EVENT_NO_TIMEOUT waits for ever
 * @param interruptible a signal that is handled ends the wait
 * @return CL_SUCCESS: signaled; CL_TIMEOUT; CL_NOT_DONE: interrupted; CL_ERROR: destroyed
 */
CL_EXPORT cl_status_t CL_API cl_waitobj_wait_on(IN cl_waitobj_handle_t h_wait_obj,
                                                IN const uint32_t wait_us,
                                                IN const boolean_t interruptible);

#ifdef __cplusplus
}
#endif

#endif
