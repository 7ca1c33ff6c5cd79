/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/work.h"

#include "al/srq.h"
#include "al/status.h"

#include <errno.h>

unsigned al_send_flags(ib_send_opt_t opt)
{
    unsigned flags = opt & IB_SEND_OPT_FENCE ? IBV_SEND_FENCE : 0;
    flags |= opt & IB_SEND_OPT_SIGNALED ? IBV_SEND_SIGNALED : 0;
    flags |= opt & IB_SEND_OPT_SOLICITED ? IBV_SEND_SOLICITED : 0;
    flags |= opt & IB_SEND_OPT_INLINE ? IBV_SEND_INLINE : 0;
    return flags;
}

static ib_api_status_t post_status(int error, const struct al_qp *qp, ib_qp_state_t not_in)
{
    if (error == ENOMEM)
        return IB_INSUFFICIENT_RESOURCES;
    if (error == EINVAL && qp && al_qp_state(qp) & not_in)
        return IB_INVALID_QP_STATE;
    return al_status(error, IB_INVALID_PARAMETER);
}

ib_api_status_t al_post_status(int error, const struct al_qp *qp)
{
    return post_status(error, qp, IB_QPS_RESET | IB_QPS_INIT | IB_QPS_RTR);
}

/* A few work requests and their memory, as the verbs want them; the list as the program has it. */
enum { SOME = 16 };

struct sges {
    struct ibv_sge sge[AL_MAX_SGE];
    uint32_t used;
};

static struct ibv_sge *convert_memory(struct sges *s, const ib_local_ds_t *from, uint32_t count)
{
    struct ibv_sge *first = &s->sge[s->used];
    for (uint32_t i = 0; i < count; i++)
        first[i] = (struct ibv_sge){from[i].vaddr, from[i].length, CL_NTOH32(from[i].lkey)};
    s->used += count;
    return first;
}

/* ---- sends ---- */

static ib_api_status_t opcode_of(const ib_send_wr_t *wr, enum ibv_wr_opcode *opcode)
{
    bool immediate = wr->send_opt & IB_SEND_OPT_IMMEDIATE;
    switch (wr->wr_type) {
    case WR_SEND:
        *opcode = immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
        return IB_SUCCESS;
    case WR_RDMA_WRITE:
        *opcode = immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
        return IB_SUCCESS;
    case WR_RDMA_READ:
        *opcode = IBV_WR_RDMA_READ;
        return IB_SUCCESS;
    case WR_COMPARE_SWAP:
        *opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
        return IB_SUCCESS;
    case WR_FETCH_ADD:
        *opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
        return IB_SUCCESS;
    case WR_LOCAL_INV:
        *opcode = IBV_WR_LOCAL_INV;
        return IB_SUCCESS;
    case WR_LSO:
    case WR_NOP:
    case WR_FAST_REG_MR:
        return IB_UNSUPPORTED;
    default:
        return IB_INVALID_WR_TYPE;
    }
}

static void convert_remote(const ib_send_wr_t *from, struct ibv_send_wr *to)
{
    bool swap = from->wr_type == WR_COMPARE_SWAP;
    if (swap || from->wr_type == WR_FETCH_ADD) {
        to->wr.atomic.remote_addr = from->remote_ops.vaddr;
        to->wr.atomic.rkey = CL_NTOH32(from->remote_ops.rkey);
        to->wr.atomic.compare_add = CL_NTOH64(from->remote_ops.atomic1);
        to->wr.atomic.swap = swap ? CL_NTOH64(from->remote_ops.atomic2) : 0;
    } else if (from->wr_type == WR_RDMA_WRITE || from->wr_type == WR_RDMA_READ) {
        to->wr.rdma.remote_addr = from->remote_ops.vaddr;
        to->wr.rdma.rkey = CL_NTOH32(from->remote_ops.rkey);
    }
}

static ib_api_status_t convert_send(const struct al_qp *qp, const ib_send_wr_t *from,
                                    struct ibv_send_wr *to, struct sges *memory)
{
    enum ibv_wr_opcode opcode;
    ib_api_status_t status = opcode_of(from, &opcode);
    if (status != IB_SUCCESS)
        return status;
    if (from->num_ds > qp->sq_sge)
        return IB_INVALID_MAX_SGE;
    *to = (struct ibv_send_wr){
        .wr_id = from->wr_id,
        .sg_list = convert_memory(memory, from->ds_array, from->num_ds),
        .num_sge = (int)from->num_ds,
        .opcode = opcode,
        .send_flags = al_send_flags(from->send_opt),
        .imm_data = from->immediate_data,
    };
    if (opcode == IBV_WR_LOCAL_INV)
        to->invalidate_rkey = CL_NTOH32(from->invalidate_rkey);
    convert_remote(from, to);
    return IB_SUCCESS;
}

/* Posts what fits, from *list, which then is the rest, or the one that failed. */
static ib_api_status_t post_some_sends(const struct al_qp *qp, ib_send_wr_t **list)
{
    struct ibv_send_wr wr[SOME], *bad;
    ib_send_wr_t *from[SOME + 1], *it = *list;
    struct sges memory = {.used = 0};
    ib_api_status_t status = IB_SUCCESS;
    int n = 0;
    for (; it && n < SOME && memory.used + it->num_ds <= AL_MAX_SGE; n++, it = it->p_next) {
        status = convert_send(qp, it, &wr[n], &memory);
        if (status != IB_SUCCESS)
            break;
        from[n] = it;
        if (n > 0)
            wr[n - 1].next = &wr[n];
    }
    if (n == 0 && status == IB_SUCCESS)
        status = IB_INVALID_MAX_SGE;
    from[n] = it;
    *list = it;
    int error = n > 0 ? ibv_post_send(qp->verbs, wr, &bad) : 0;
    if (!error)
        return status;
    *list = from[bad - wr];
    return al_post_status(error, qp);
}

ib_api_status_t ib_post_send(const ib_qp_handle_t h_qp, ib_send_wr_t *const p_send_wr,
                             ib_send_wr_t **pp_send_failure)
{
    struct al_qp *qp = al_get(&al_qp_kind, h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_send_wr_t *list = p_send_wr;
    ib_api_status_t status = list ? IB_SUCCESS : IB_INVALID_PARAMETER;
    while (list && status == IB_SUCCESS)
        status = post_some_sends(qp, &list);
    if (status != IB_SUCCESS && pp_send_failure)
        *pp_send_failure = list;
    al_put(&qp->o);
    return status;
}

/* ---- receives ---- */

/* Where they go: a queue pair's own queue, or a shared one. */
struct receiver {
    const struct al_qp *qp;
    const struct al_srq *srq;
    uint32_t sge;
};

static int post_recv(const struct receiver *to, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return to->qp ? ibv_post_recv(to->qp->verbs, wr, bad)
                  : ibv_post_srq_recv(to->srq->verbs, wr, bad);
}

static ib_api_status_t post_some_recvs(const struct receiver *to, ib_recv_wr_t **list)
{
    struct ibv_recv_wr wr[SOME], *bad;
    ib_recv_wr_t *from[SOME + 1], *it = *list;
    struct sges memory = {.used = 0};
    bool fits = true;
    int n = 0;
    for (; it && n < SOME && memory.used + it->num_ds <= AL_MAX_SGE; n++, it = it->p_next) {
        fits = it->num_ds <= to->sge;
        if (!fits)
            break;
        from[n] = it;
        wr[n] = (struct ibv_recv_wr){
            .wr_id = it->wr_id,
            .sg_list = convert_memory(&memory, it->ds_array, it->num_ds),
            .num_sge = (int)it->num_ds,
        };
        if (n > 0)
            wr[n - 1].next = &wr[n];
    }
    from[n] = it;
    *list = it;
    int error = n > 0 ? post_recv(to, wr, &bad) : 0;
    if (!error)
        return fits && (n > 0 || !it) ? IB_SUCCESS : IB_INVALID_MAX_SGE;
    *list = from[bad - wr];
    return post_status(error, to->qp, IB_QPS_RESET);
}

static ib_api_status_t post_recvs(const struct receiver *to, ib_recv_wr_t *list,
                                  ib_recv_wr_t **failure)
{
    ib_api_status_t status = list ? IB_SUCCESS : IB_INVALID_PARAMETER;
    while (list && status == IB_SUCCESS)
        status = post_some_recvs(to, &list);
    if (status != IB_SUCCESS && failure)
        *failure = list;
    return status;
}

ib_api_status_t al_post_recv(const struct al_qp *qp, ib_recv_wr_t *list, ib_recv_wr_t **failure)
{
    struct receiver to = {.qp = qp, .sge = qp->rq_sge};
    return post_recvs(&to, list, failure);
}

ib_api_status_t ib_post_recv(const ib_qp_handle_t h_qp, ib_recv_wr_t *const p_recv_wr,
                             ib_recv_wr_t **pp_recv_failure)
{
    struct al_qp *qp = al_get(&al_qp_kind, h_qp);
    if (!qp)
        return IB_INVALID_QP_HANDLE;
    ib_api_status_t status = al_post_recv(qp, p_recv_wr, pp_recv_failure);
    al_put(&qp->o);
    return status;
}

ib_api_status_t ib_post_srq_recv(const ib_srq_handle_t h_srq, ib_recv_wr_t *const p_recv_wr,
                                 ib_recv_wr_t **pp_recv_failure)
{
    struct al_srq *srq = al_get(&al_srq_kind, h_srq);
    if (!srq)
        return IB_INVALID_SRQ_HANDLE;
    struct receiver to = {.srq = srq, .sge = srq->sge};
    ib_api_status_t status = post_recvs(&to, p_recv_wr, pp_recv_failure);
    al_put(&srq->o);
    return status;
}
