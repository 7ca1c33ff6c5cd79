/* SPDX-License-Identifier: BSD-2-Clause */
#include "cma.h"

#include <assert.h>
#include <errno.h>

/* Short names, for the grid only. */
enum {
    no = -EINVAL,
    IDL = CMA_IDLE,
    BND = CMA_ADDR_BOUND,
    ADR = CMA_ADDR_RESOLVED,
    RTE = CMA_ROUTE_RESOLVED,
    LSN = CMA_LISTEN,
    REQ = CMA_CONN_RECV,
    CON = CMA_CONNECT,
    CLG = CMA_CLOSING,
    CLD = CMA_CLOSED,
    DES = CMA_DESTROYING,
};

/* clang-format off */
#define ROW(call, idl, bnd, adr, rte, lsn, req, con, clg, cld, des)                                \
    [CMA_CALL_##call] = {                                                                          \
        [CMA_IDLE] = idl, [CMA_ADDR_BOUND] = bnd, [CMA_ADDR_RESOLVED] = adr,                       \
        [CMA_ROUTE_RESOLVED] = rte, [CMA_LISTEN] = lsn, [CMA_CONN_RECV] = req,                     \
        [CMA_CONNECT] = con, [CMA_CLOSING] = clg, [CMA_CLOSED] = cld, [CMA_DESTROYING] = des,      \
    }

static const int next[CMA_CALL_END][CMA_STATE_END] = {
    /*  in state:        IDL  BND  ADR  RTE  LSN  REQ  CON  CLG  CLD  DES */
    ROW(BIND,            BND,  no,  no,  no,  no,  no,  no,  no,  no,  no),
    ROW(RESOLVE_ADDR,    ADR, ADR,  no,  no,  no,  no,  no,  no,  no,  no),
    ROW(RESOLVE_ROUTE,    no,  no, RTE,  no,  no,  no,  no,  no,  no,  no),
    ROW(CREATE_QP,       IDL, BND, ADR, RTE, LSN, REQ, CON,  no,  no,  no), /* needs a device */
    ROW(CREATE_SRQ,      IDL, BND, ADR, RTE, LSN, REQ, CON, CLG, CLD,  no), /* needs a device */
    ROW(LISTEN,          LSN, LSN,  no,  no,  no,  no,  no,  no,  no,  no),
    ROW(CONNECT,          no,  no,  no, CON,  no,  no,  no,  no,  no,  no),
    ROW(ACCEPT,           no,  no,  no,  no,  no, CON,  no,  no,  no,  no),
    ROW(REJECT,           no,  no,  no,  no,  no, CLD,  no,  no,  no,  no),
    ROW(DISCONNECT,       no,  no,  no,  no,  no, REQ, CLG, CLG, CLD,  no),
    ROW(SET_REUSEADDR,   IDL, BND, ADR, RTE,  no, REQ, CON, CLG, CLD,  no),
    ROW(CLEAR_REUSEADDR, IDL,  no,  no,  no,  no,  no,  no,  no,  no,  no),
    ROW(SET_AFONLY,      IDL, BND,  no,  no,  no,  no,  no,  no,  no,  no),
    ROW(SET_TOS,         IDL, BND, ADR, RTE, LSN, REQ, CON, CLG, CLD,  no),
    ROW(JOIN,             no, BND, ADR,  no,  no,  no,  no,  no,  no,  no), /* needs a device */
    ROW(LEAVE,           IDL, BND, ADR, RTE, LSN, REQ, CON, CLG, CLD,  no),
    ROW(INIT_QP_ATTR,    IDL, BND, ADR, RTE, LSN, REQ, CON,  no,  no,  no), /* needs a device */
    ROW(ESTABLISH,        no,  no,  no,  no,  no,  no, CON,  no,  no,  no), /* and established */
    ROW(NOTIFY,           no,  no,  no,  no,  no, REQ, CON, CLG, CLD,  no),
    ROW(TELL,            IDL, BND, ADR, RTE, LSN, REQ, CON, CLG, CLD,  no),
    ROW(DESTROY,         DES, DES, DES, DES, DES, DES, DES, DES, DES,  no),
    ROW(ADDR_ERROR,       no,  no, BND, BND,  no,  no,  no,  no,  no,  no),
    ROW(ENDED,            no,  no,  no,  no,  no,  no, CLD, CLD, CLD,  no),
};
/* clang-format on */

int cma_state_next(enum cma_state state, enum cma_call call)
{
    return next[call][state];
}

const char *cma_state_name(enum cma_state state)
{
    static const char *const names[] = {
#define X(name) [CMA_##name] = #name,
        CMA_STATES(X)
#undef X
    };
    return names[state];
}

int cma_may(const struct cma_id *id, enum cma_call call)
{
    assert_held(&id->lock);
    int to = cma_state_next(id->state, call);
    return to < 0 ? to : 0;
}

static const struct {
    const char *function, *hint;
} calls[] = {
#define X(name, function, hint) [CMA_CALL_##name] = {function, hint},
    CMA_CALLS(X)
#undef X
};

const char *cma_call_name(enum cma_call call)
{
    return calls[call].function;
}

struct cma_id *cma_enter(struct rdma_cm_id *pub, enum cma_call call)
{
    if (!pub) {
        iw_refuse(calls[call].function, ARGUMENT);
        return NULL;
    }
    struct cma_id *id = cma_id(pub);
    if (iw_cm_life_over(id, calls[call].function))
        return NULL;
    struct iw_recorded recorded = iw_cm_record(calls[call].function, pub);
    lock_get(&id->lock);
    if (cma_may(id, call) == 0) {
        id->recorded = recorded;
        return id;
    }
    enum cma_state state = id->state;
    lock_put(&id->lock);
    int r = iw_refuse(calls[call].function, STATE, cma_state_name(state), calls[call].hint);
    iw_cm_record_end(recorded, r);
    return NULL;
}

void cma_set_state(struct cma_id *id, enum cma_call call)
{
    assert_held(&id->lock);
    int to = cma_state_next(id->state, call);
    assert(to > CMA_NO_STATE && to < CMA_STATE_END);
    id->state = (enum cma_state)to;
}
