/* SPDX-License-Identifier: BSD-2-Clause */
/* Wait objects, as completion queues see them. */
#ifndef ANYWARP_AL_WAITOBJ_H
#define ANYWARP_AL_WAITOBJ_H

#include <complib/cl_waitobj.h>
#include <stdbool.h>

bool al_is_waitobj(cl_waitobj_handle_t h_wait_obj);

#endif
