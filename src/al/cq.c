/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/cq.h"

#include "al/ca.h"
#include "al/status.h"
#include "al/waitobj.h"

#include <errno.h>
#include <stdlib.h>

static void release(struct al_object *o)
{
    struct al_cq *cq = container_of(o, struct al_cq, o);
    if (cq->fifo.cq)
        ibv_destroy_cq(cq->fifo.cq);
    fifo_fini(&cq->fifo);
    pthread_mutex_destroy(&cq->lock);
}

const struct al_kind al_cq_kind = {
    .type = AL_CQ,
    .invalid = IB_INVALID_CQ_HANDLE,
    .release = release,
};

/* ---- who is told ---- */

static void tell(struct al_cq *cq)
{
    if (!cq->o.open)
        return;
    if (cq->comp_cb)
        cq->comp_cb(cq->o.handle, (void *)(uintptr_t)cq->o.context);
    else
        cl_waitobj_signal(cq->wait_obj);
}

static bool until_reached_locked(struct al_cq *cq)
{
    if (cq->until == 0 || cq->fifo.pulled < cq->until)
        return false;
    cq->until = 0;
    return true;
}

/* Counts what there is; if that is not enough, the verbs shall say when there is more. */
static bool count_locked(struct al_cq *cq)
{
    if (cq->until == 0)
        return false;
    bool pulled = fifo_pull(&cq->fifo, UINT32_MAX) >= 0;
    if (pulled && !until_reached_locked(cq)) {
        ibv_req_notify_cq(cq->fifo.cq, 0);
        pulled = fifo_pull(&cq->fifo, UINT32_MAX) >= 0; /* what came in between */
        if (pulled)
            return until_reached_locked(cq);
    }
    cq->until = 0;
    return true;
}

void al_cq_completed(const void *handle)
{
    struct al_cq *cq = al_get(&al_cq_kind, handle);
    if (!cq)
        return;
    pthread_mutex_lock(&cq->lock);
    bool next = cq->next;
    cq->next = false;
    bool counted = count_locked(cq);
    pthread_mutex_unlock(&cq->lock);
    if (next || counted)
        tell(cq);
    al_put(&cq->o);
}

static void run(struct event_task *task)
{
    struct al_cq *cq = container_of(task, struct al_cq, task);
    pthread_mutex_lock(&cq->lock);
    cq->task_given = false;
    pthread_mutex_unlock(&cq->lock);
    tell(cq);
    al_put(&cq->o);
}

/* Has somebody told, by the thread of callbacks. */
static void tell_later_locked(struct al_cq *cq)
{
    if (cq->task_given)
        return;
    cq->task_given = true;
    cq->task.run = run;
    al_hold(&cq->o);
    event_thread_run(&cq->task);
}

ib_api_status_t ib_rearm_cq(const ib_cq_handle_t h_cq, const boolean_t solicited)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    pthread_mutex_lock(&cq->lock);
    cq->next = true;
    int error = ibv_req_notify_cq(cq->fifo.cq, solicited);
    pthread_mutex_unlock(&cq->lock);
    al_put(&cq->o);
    return al_status(error, IB_ERROR);
}

ib_api_status_t ib_rearm_n_cq(const ib_cq_handle_t h_cq, const uint32_t n_cqes)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    pthread_mutex_lock(&cq->lock);
    bool ok = n_cqes >= 1 && n_cqes <= (uint32_t)cq->fifo.cq->cqe;
    int pulled = ok ? fifo_pull(&cq->fifo, UINT32_MAX) : 0;
    if (ok && pulled >= 0) {
        cq->until = cq->fifo.pulled + n_cqes;
        if (count_locked(cq))
            tell_later_locked(cq);
    }
    pthread_mutex_unlock(&cq->lock);
    al_put(&cq->o);
    return !ok ? IB_INVALID_PARAMETER : al_status(pulled < 0 ? -pulled : 0, IB_ERROR);
}

/* ---- completions ---- */

static ib_wc_status_t status_of(enum ibv_wc_status status)
{
    static const ib_wc_status_t to[] = {
        [IBV_WC_SUCCESS] = IB_WCS_SUCCESS,
        [IBV_WC_LOC_LEN_ERR] = IB_WCS_LOCAL_LEN_ERR,
        [IBV_WC_LOC_QP_OP_ERR] = IB_WCS_LOCAL_OP_ERR,
        [IBV_WC_LOC_PROT_ERR] = IB_WCS_LOCAL_PROTECTION_ERR,
        [IBV_WC_WR_FLUSH_ERR] = IB_WCS_WR_FLUSHED_ERR,
        [IBV_WC_MW_BIND_ERR] = IB_WCS_MEM_WINDOW_BIND_ERR,
        [IBV_WC_BAD_RESP_ERR] = IB_WCS_BAD_RESP_ERR,
        [IBV_WC_LOC_ACCESS_ERR] = IB_WCS_LOCAL_ACCESS_ERR,
        [IBV_WC_REM_INV_REQ_ERR] = IB_WCS_REM_INVALID_REQ_ERR,
        [IBV_WC_REM_ACCESS_ERR] = IB_WCS_REM_ACCESS_ERR,
        [IBV_WC_REM_OP_ERR] = IB_WCS_REM_OP_ERR,
        [IBV_WC_RETRY_EXC_ERR] = IB_WCS_TIMEOUT_RETRY_ERR,
        [IBV_WC_RNR_RETRY_EXC_ERR] = IB_WCS_RNR_RETRY_ERR,
        [IBV_WC_REM_ABORT_ERR] = IB_WCS_REM_ABORT_ERR,
    };
    if (status == IBV_WC_SUCCESS)
        return IB_WCS_SUCCESS;
    return (size_t)status < sizeof to / sizeof *to && to[status] ? to[status] : IB_WCS_GENERAL_ERR;
}

static ib_wc_type_t type_of(enum ibv_wc_opcode opcode)
{
    switch (opcode) {
    case IBV_WC_SEND:
        return IB_WC_SEND;
    case IBV_WC_RDMA_WRITE:
        return IB_WC_RDMA_WRITE;
    case IBV_WC_RDMA_READ:
        return IB_WC_RDMA_READ;
    case IBV_WC_COMP_SWAP:
        return IB_WC_COMPARE_SWAP;
    case IBV_WC_FETCH_ADD:
        return IB_WC_FETCH_ADD;
    case IBV_WC_BIND_MW:
        return IB_WC_MW_BIND;
    case IBV_WC_LOCAL_INV:
        return IB_WC_LOCAL_INV;
    case IBV_WC_RECV:
        return IB_WC_RECV;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return IB_WC_RECV_RDMA_WRITE;
    default:
        return IB_WC_UNKNOWN2;
    }
}

static void convert(const struct ibv_wc *from, ib_wc_t *to)
{
    to->wr_id = from->wr_id;
    to->wc_type = type_of(from->opcode);
    to->length = from->byte_len;
    to->vendor_specific = from->vendor_err;
    to->status = status_of(from->status);
    to->recv.conn.recv_opt = 0;
    to->recv.conn.immediate_data = 0;
    if (from->status != IBV_WC_SUCCESS)
        return;
    if (from->wc_flags & IBV_WC_WITH_IMM) {
        to->recv.conn.recv_opt = IB_RECV_OPT_IMMEDIATE;
        to->recv.conn.immediate_data = from->imm_data;
    } else if (from->wc_flags & IBV_WC_WITH_INV) {
        to->recv.conn.recv_opt = IB_RECV_OPT_INVALIDATE;
        to->recv.conn.immediate_data = CL_HTON32(from->invalidated_rkey);
    }
}

enum { SOME = 16 };

/* As many as both lists have, up to SOME. @return how many; negative errno */
static int poll_some_locked(struct al_cq *cq, ib_wc_t **unused, ib_wc_t ***done)
{
    struct ibv_wc wc[SOME];
    int room = 0;
    for (const ib_wc_t *it = *unused; it && room < SOME; it = it->p_next)
        room++;
    int n = room ? fifo_poll(&cq->fifo, room, wc) : 0;
    for (int i = 0; i < n; i++) {
        ib_wc_t *to = *unused;
        *unused = to->p_next;
        convert(&wc[i], to);
        to->p_next = NULL;
        **done = to;
        *done = &to->p_next;
    }
    return n;
}

static ib_api_status_t poll_cq(struct al_cq *cq, ib_wc_t **unused, ib_wc_t **done)
{
    int n, total = 0;
    *done = NULL;
    pthread_mutex_lock(&cq->lock);
    do {
        n = poll_some_locked(cq, unused, &done);
        total += n > 0 ? n : 0;
    } while (n == SOME); /* fewer: one of the lists has no more */
    if (until_reached_locked(cq))
        tell_later_locked(cq);
    pthread_mutex_unlock(&cq->lock);
    return total > 0 ? IB_SUCCESS : n < 0 ? IB_ERROR : IB_NOT_FOUND;
}

ib_api_status_t ib_poll_cq(const ib_cq_handle_t h_cq, ib_wc_t **const pp_free_wclist,
                           ib_wc_t **const pp_done_wclist)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    ib_api_status_t status = pp_free_wclist && *pp_free_wclist && pp_done_wclist
                                 ? poll_cq(cq, pp_free_wclist, pp_done_wclist)
                                 : IB_INVALID_PARAMETER;
    al_put(&cq->o);
    return status;
}

ib_api_status_t ib_peek_cq(const ib_cq_handle_t h_cq, uint32_t *const p_n_cqes)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    int n = -EINVAL;
    if (p_n_cqes) {
        pthread_mutex_lock(&cq->lock);
        n = fifo_pull(&cq->fifo, UINT32_MAX);
        if (until_reached_locked(cq))
            tell_later_locked(cq);
        pthread_mutex_unlock(&cq->lock);
    }
    if (n >= 0)
        *p_n_cqes = (uint32_t)n;
    al_put(&cq->o);
    return al_status(n < 0 ? -n : 0, IB_INVALID_PARAMETER);
}

/* ---- the queue ---- */

static bool size_is_ok(const struct al_ca *ca, uint32_t size)
{
    struct ibv_device_attr device;
    return size > 0 && ibv_query_device(ca->device->verbs, &device) == 0 &&
           size <= (uint32_t)device.max_cqe;
}

static ib_api_status_t create(struct al_ca *ca, ib_cq_create_t *how, const void *context,
                              ib_pfn_event_cb_t event_cb, ib_cq_handle_t *handle)
{
    if (!how || !handle)
        return IB_INVALID_PARAMETER;
    if (!how->pfn_comp_cb == !how->h_wait_obj ||
        (how->h_wait_obj && !al_is_waitobj(how->h_wait_obj)))
        return IB_INVALID_SETTING;
    if (!size_is_ok(ca, how->size))
        return IB_INVALID_CQ_SIZE;
    struct al_cq *cq = calloc(1, sizeof *cq);
    if (cq) {
        cq->comp_cb = how->pfn_comp_cb;
        cq->wait_obj = how->h_wait_obj;
        cq->event_cb = event_cb;
        pthread_mutex_init(&cq->lock, NULL);
    }
    ib_api_status_t status = al_add(cq ? &cq->o : NULL, &al_cq_kind, &ca->o, context);
    if (status != IB_SUCCESS)
        return status;
    cq->fifo.cq = ibv_create_cq(ca->device->verbs, (int)how->size, cq->o.handle, ca->channel, 0);
    if (!cq->fifo.cq) {
        status = al_status(errno, IB_INVALID_CQ_SIZE);
        al_fail(&cq->o);
        return status;
    }
    how->size = (uint32_t)cq->fifo.cq->cqe;
    *handle = cq->o.handle;
    al_put(&cq->o);
    return IB_SUCCESS;
}

ib_api_status_t ib_create_cq(const ib_ca_handle_t h_ca, ib_cq_create_t *const p_cq_create,
                             const void *const cq_context, const ib_pfn_event_cb_t pfn_cq_event_cb,
                             ib_cq_handle_t *const ph_cq)
{
    struct al_ca *ca = al_get(&al_ca_kind, h_ca);
    if (!ca)
        return IB_INVALID_CA_HANDLE;
    ib_api_status_t status = create(ca, p_cq_create, cq_context, pfn_cq_event_cb, ph_cq);
    al_put(&ca->o);
    return status;
}

static ib_api_status_t resize_locked(struct al_cq *cq, uint32_t *size)
{
    int n = fifo_pull(&cq->fifo, UINT32_MAX);
    if (until_reached_locked(cq))
        tell_later_locked(cq);
    if (n < 0)
        return al_status(-n, IB_ERROR);
    if ((uint32_t)n > *size)
        return IB_OVERFLOW;
    int error = ibv_resize_cq(cq->fifo.cq, (int)*size);
    if (!error)
        *size = (uint32_t)cq->fifo.cq->cqe;
    return al_status(error, IB_OVERFLOW);
}

ib_api_status_t ib_modify_cq(const ib_cq_handle_t h_cq, uint32_t *const p_size)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    ib_api_status_t status = IB_INVALID_PARAMETER;
    if (p_size) {
        const struct al_ca *ca = container_of(cq->o.parent, struct al_ca, o);
        pthread_mutex_lock(&cq->lock);
        status = size_is_ok(ca, *p_size) ? resize_locked(cq, p_size) : IB_INVALID_CQ_SIZE;
        pthread_mutex_unlock(&cq->lock);
    }
    al_put(&cq->o);
    return status;
}

ib_api_status_t ib_query_cq(const ib_cq_handle_t h_cq, uint32_t *const p_size)
{
    struct al_cq *cq = al_get(&al_cq_kind, h_cq);
    if (!cq)
        return IB_INVALID_CQ_HANDLE;
    if (p_size) {
        pthread_mutex_lock(&cq->lock);
        *p_size = (uint32_t)cq->fifo.cq->cqe;
        pthread_mutex_unlock(&cq->lock);
    }
    al_put(&cq->o);
    return p_size ? IB_SUCCESS : IB_INVALID_PARAMETER;
}

ib_api_status_t ib_destroy_cq(const ib_cq_handle_t h_cq, const ib_pfn_destroy_cb_t pfn_destroy_cb)
{
    return al_destroy(&al_cq_kind, h_cq, pfn_destroy_cb);
}
