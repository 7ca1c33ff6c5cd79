/* SPDX-License-Identifier: BSD-2-Clause */
/* The events of rdma_cm that a layer gets, one at a time, on the thread of callbacks. */
#ifndef ANYWARP_AL_CM_H
#define ANYWARP_AL_CM_H

#include "al/layer.h"

struct al_cm_event {
    enum rdma_cm_event_type type;
    struct rdma_cm_id *id; /* of CONNECT_REQUEST: the new one, the receiver's */
    uint8_t initiator_depth, responder_resources;
    uint8_t private_len;
    uint8_t private_data[256]; /* filled up with zeros */
};

/** An id of the layer, with a handle as its context. @return NULL and errno */
struct rdma_cm_id *al_cm_create_id(struct al_layer *l, void *handle);

#endif
