/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to an adapter, by itself, as its asynchronous events say. */
#ifndef ANYWARP_AL_EVENT_H
#define ANYWARP_AL_EVENT_H

#include "al/device.h"

/** Takes an asynchronous event of a device to the callbacks of those whom it is about. */
void al_event(struct al_device *d, const struct ibv_async_event *event);

#endif
