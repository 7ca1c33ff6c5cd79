/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection, from a Request that is sent or has come to its end: a child of the layer until it
 * has a queue pair, then of that. connection.c takes it from state to state as rdma_cm says, and
 * tells the program; the program's own messages are in messages.c.
 */
#ifndef ANYWARP_AL_CONNECTION_H
#define ANYWARP_AL_CONNECTION_H

#include "al/answer.h"
#include "al/cm.h"
#include "al/qp.h"

/* Active: RESOLVING, REPLIED; passive: REQUESTED, ACCEPTING; then both: CONNECTED. */
enum al_cm_state {
    AL_CM_RESOLVING, /* until there is a Reply or a Reject */
    AL_CM_REPLIED,   /* the program has to say that it is ready, or rejects */
    AL_CM_REQUESTED, /* the program has to reply, or rejects */
    AL_CM_ACCEPTING, /* its Reply is under way */
    AL_CM_CONNECTED,
    AL_CM_LEAVING, /* we have asked for the end */
    AL_CM_LEFT,    /* the peer has */
    AL_CM_OVER,
};

struct al_connection {
    struct al_object o;
    void *h_al;
    struct rdma_cm_id *id;
    struct ibv_context *verbs; /* active: of the queue pair */
    struct rdma_conn_param param;
    uint8_t private_data[IB_REQ_PDATA_SIZE];
    int timeout_ms;
    uint8_t resp_res, init_depth;
    /* The parent, once there is one, and callbacks: set before the message goes to the peer. */
    struct al_qp *qp;
    ib_pfn_cm_rep_cb_t rep_cb;
    ib_pfn_cm_rej_cb_t rej_cb;
    ib_pfn_cm_rtu_cb_t rtu_cb;
    ib_pfn_cm_dreq_cb_t dreq_cb;
    ib_pfn_cm_drep_cb_t drep_cb;
    pthread_mutex_t lock; /* of what follows */
    enum al_cm_state state;
    bool gone;                   /* the peer left before the program said that it is ready */
    struct event_task task;      /* tells of a peer that is gone */
    struct al_answer begin, end; /* to a Request or Reply; to a Disconnect; their own lock */
};

extern const struct al_kind al_connection_kind;

/** One without id and handle, zeros but for its layer and state. @return NULL: no memory */
struct al_connection *al_connection_new(struct al_layer *layer, enum al_cm_state state);

/** @return whether it was in the first state, and is in the second now */
bool al_connection_step(struct al_connection *c, enum al_cm_state from, enum al_cm_state to);

/** To the program: the peer has left. On the thread of callbacks, without the lock. */
void al_connection_tell_dreq(struct al_connection *c);

/** A Request has come. @return whether the id of the event is the connection's now */
bool al_connection_requested(struct al_layer *layer, const struct al_cm_event *event,
                             ib_cm_handle_t *handle);

/** What rdma_cm says to the connection of this handle, if there is such a one. */
void al_connection_event(const void *handle, const struct al_cm_event *event);

#endif
