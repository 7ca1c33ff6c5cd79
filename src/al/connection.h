/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection, from a Request that is sent or has come to its end: a child of the layer until it
 * has a queue pair, then of that. connection.c has the calls and the table of states.
 */
#ifndef ANYWARP_AL_CONNECTION_H
#define ANYWARP_AL_CONNECTION_H

#include "al/cm.h"

/** A Request has come. @return whether the id of the event is the connection's now */
bool al_connection_requested(struct al_layer *layer, const struct al_cm_event *event,
                             ib_cm_handle_t *handle);

/** What rdma_cm says to the connection of this handle, if there is such a one. */
void al_connection_event(const void *handle, const struct al_cm_event *event);

#endif
