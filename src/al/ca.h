/* SPDX-License-Identifier: BSD-2-Clause */
/* An adapter that is open. */
#ifndef ANYWARP_AL_CA_H
#define ANYWARP_AL_CA_H

#include "al/device.h"
#include "al/object.h"

struct al_ca {
    struct al_object o; /* the parent is a struct al_layer */
    struct al_device *device;
    struct ibv_comp_channel *channel; /* of all its CQs */
    struct event_source source;
    ib_pfn_event_cb_t event_cb;
};

extern const struct al_kind al_ca_kind;

/** The number of its only port, which calls are given. */
enum { AL_PORT = 1 };

#endif
