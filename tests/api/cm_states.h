/* SPDX-License-Identifier: BSD-2-Clause */
/* An id in each of the states that a program can bring one into, made with the public API only. */
#ifndef ANYWARP_TESTS_CM_STATES_H
#define ANYWARP_TESTS_CM_STATES_H

#include <rdma/rdma_cma.h>

#include <pthread.h>
#include <stdbool.h>

#define STATES(X)                                                                                  \
    X(IDLE)          /* new */                                                                     \
    X(ANY)           /* bound to 0.0.0.0 */                                                        \
    X(BOUND)         /* bound to 127.0.0.1, so it has its device */                                \
    X(RESOLVING)     /* ADDR_RESOLVED was not taken yet */                                         \
    X(RESOLVED)      /* ADDR_RESOLVED was taken */                                                 \
    X(ROUTED)        /* ROUTE_RESOLVED was taken */                                                \
    X(LISTENING_ANY) /* on 0.0.0.0 */                                                              \
    X(LISTENING)     /* on 127.0.0.1 */                                                            \
    X(REQUESTED)     /* came with a CONNECT_REQUEST */                                             \
    X(CONNECTING)    /* the peer has not answered */                                               \
    X(ESTABLISHED)                                                                                 \
    X(DISCONNECTING) /* rdma_disconnect() was called, DISCONNECTED not taken */                    \
    X(DISCONNECTED)  /* DISCONNECTED was taken */                                                  \
    X(REJECTING)     /* rdma_reject() was called */                                                \
    X(REJECTED)      /* REJECTED was taken */                                                      \
    X(DESTROYING)    /* a thread is in rdma_destroy_id(), which waits for an acknowledgement */

enum state {
#define X(name) name,
    STATES(X)
#undef X
        STATE_COUNT
};

struct world {
    struct rdma_cm_id *id; /* the one in the state; id->qp is NULL: its queue pair is qp */
    struct rdma_event_channel *events;
    struct ibv_qp *qp; /* not connected yet, for rdma_connect() or rdma_accept() of id */

    /* the peer */
    struct rdma_event_channel *peer_events;
    struct rdma_cm_id *listener, *peer;
    struct ibv_qp *peer_qp;

    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct rdma_cm_event *held; /* DESTROYING */
    pthread_t thread;
};

const char *state_name(enum state state);

/** Makes an id in this state, or fails the test. */
void world_open(struct world *w, enum state state);

/** Destroys everything. @param gone  the id does not exist any more */
void world_close(struct world *w, bool gone);

/** An address of this host with the port of a listener that answers nothing by itself. */
struct sockaddr *world_address(const struct world *w);

/** A queue pair in INIT for ibv_modify_qp() and qp_num. */
struct ibv_qp *world_qp(struct world *w);

/** Takes and acknowledges the next event, which must be @p type. @return its id */
struct rdma_cm_id *world_event(struct rdma_event_channel *events, enum rdma_cm_event_type type);

#endif
