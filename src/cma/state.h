/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The states of an id, and which call is allowed in which. One table, in state.c; a call that the
 * table does not allow fails with EINVAL.
 */
#ifndef ANYWARP_CMA_STATE_H
#define ANYWARP_CMA_STATE_H

#define CMA_STATES(X)                                                                              \
    X(IDLE)           /* new */                                                                    \
    X(ADDR_BOUND)     /* has its local address and port */                                         \
    X(ADDR_RESOLVED)  /* knows the way to the peer; the event may still be waiting */              \
    X(ROUTE_RESOLVED) /* may connect */                                                            \
    X(LISTEN)         /* waits for requests */                                                     \
    X(CONN_RECV)      /* came with a CONNECT_REQUEST that is not answered */                       \
    X(CONNECT)        /* connecting or connected */                                                \
    X(CLOSING)        /* rdma_disconnect() was called */                                           \
    X(CLOSED)         /* rejected, or its last event was taken */                                  \
    X(DESTROYING)     /* inside rdma_destroy_id() */

/*
 * What happens to an id: the calls, then the outcomes that change its state.
 * X(name, function, what a refusal adds to the state)
 */
#define CMA_CALLS(X)                                                                               \
    X(BIND, "rdma_bind_addr", ": it has an address")                                               \
    X(RESOLVE_ADDR, "rdma_resolve_addr", "")                                                       \
    X(RESOLVE_ROUTE, "rdma_resolve_route",                                                         \
      ": rdma_resolve_addr() first") /* also RDMA_OPTION_IB_PATH */                                \
    X(CREATE_QP, "rdma_create_qp", "")                                                             \
    X(CREATE_SRQ, "rdma_create_srq", "")                                                           \
    X(LISTEN, "rdma_listen", ": it listens once, and what was resolved connects (RAI_PASSIVE)")    \
    X(CONNECT, "rdma_connect", ": it connects once, after rdma_resolve_route()")                   \
    X(ACCEPT, "rdma_accept", ": it takes the id that a CONNECT_REQUEST brought")                   \
    X(REJECT, "rdma_reject", ": it takes the id that a CONNECT_REQUEST brought")                   \
    X(DISCONNECT, "rdma_disconnect", ": it is not connected")                                      \
    X(SET_REUSEADDR, "rdma_set_option", "")                                                        \
    X(CLEAR_REUSEADDR, "rdma_set_option", "")                                                      \
    X(SET_AFONLY, "rdma_set_option", "")                                                           \
    X(SET_TOS, "rdma_set_option", "") /* also RDMA_OPTION_ID_ACK_TIMEOUT */                        \
    X(JOIN, "rdma_join_multicast", ": bind or resolve first, and connect later")                   \
    X(LEAVE, "rdma_leave_multicast", "")                                                           \
    X(INIT_QP_ATTR, "rdma_init_qp_attr", "")                                                       \
    X(ESTABLISH, "rdma_establish", ": it is not connected")                                        \
    X(NOTIFY, "rdma_notify", ": it is not connected")                                              \
    X(TELL, "rdma_resolve_addrinfo", "") /* also rdma_write_cm_event() */                          \
    X(DESTROY, "rdma_destroy_id", "")                                                              \
    X(ADDR_ERROR, "", "") /* ADDR_RESOLVED could not be delivered */                               \
    X(ENDED, "", "")      /* the last event was taken: DISCONNECTED or a failure to connect */

enum cma_state {
    CMA_NO_STATE, /* so that zeroed memory is no state */
#define X(name) CMA_##name,
    CMA_STATES(X)
#undef X
        CMA_STATE_END
};

enum cma_call {
#define X(name, function, hint) CMA_CALL_##name,
    CMA_CALLS(X)
#undef X
        CMA_CALL_END
};

/** @return the state that @p call leads to from @p state, or -EINVAL */
int cma_state_next(enum cma_state state, enum cma_call call);

/** "rdma_connect" and so on. */
const char *cma_call_name(enum cma_call call);

/** "ADDR_BOUND" and so on. */
const char *cma_state_name(enum cma_state state);

struct cma_id;
struct rdma_cm_id;

/**
 * How a call on an id begins.
 * @return the id with its lock held, for cma_leave() or cma_complete(); NULL if there is none or
 * its state does not allow the call, which it says in the log, for cma_refused()
 */
struct cma_id *cma_enter(struct rdma_cm_id *pub, enum cma_call call);

/** Whether the id's state allows the call. Call with the id's lock held. @return 0 or -EINVAL */
int cma_may(const struct cma_id *id, enum cma_call call);

/** Moves the id to where an allowed call leads. Call with the id's lock held. */
void cma_set_state(struct cma_id *id, enum cma_call call);

#endif
