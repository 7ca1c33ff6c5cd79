/* SPDX-License-Identifier: BSD-2-Clause */
/* An open instance of the access layer: the root of what a program has. */
#ifndef ANYWARP_AL_LAYER_H
#define ANYWARP_AL_LAYER_H

#include "al/object.h"
#include "compat/events.h"

#include <pthread.h>
#include <rdma/rdma_cma.h>

struct al_layer {
    struct al_object o;
    atomic_bool closes;  /* somebody has begun to */
    bool left_to_thread; /* it was closed by a callback: the thread is let go when it is released */
    pthread_mutex_t lock;
    struct rdma_event_channel *channel; /* of all its connections; the lock */
    struct event_source source;
};

extern const struct al_kind al_layer_kind;

#endif
