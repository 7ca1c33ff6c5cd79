/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners of services, and who is told of a Request. */
#ifndef ANYWARP_AL_LISTEN_H
#define ANYWARP_AL_LISTEN_H

#include "al/cm.h"

/** A Request for the listener of this handle, or, if there is none, for nobody. */
void al_listen_event(const void *handle, const struct al_cm_event *event);

#endif
