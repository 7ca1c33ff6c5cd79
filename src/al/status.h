/* SPDX-License-Identifier: BSD-2-Clause */
/* What an errno of the verbs is called here. */
#ifndef ANYWARP_AL_STATUS_H
#define ANYWARP_AL_STATUS_H

#include <iba/ib_types.h>

/** @param invalid what EINVAL, and all that is not known, means in this call */
ib_api_status_t al_status(int error, ib_api_status_t invalid);

#endif
