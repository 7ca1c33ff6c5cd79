/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short forms of the verbs for programs that work with an rdma_cm_id: one work request a call, on
 * the id's queue pair, with the program's context pointer as its wr_id. All return 0 or a pointer;
 * on failure -1 or NULL, with errno.
 */
#ifndef RDMA_VERBS_H
#define RDMA_VERBS_H

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <infiniband/verbs.h>

#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Turns the errno that a verb returns into -1 and errno; 0 stays 0. */
static inline int rdma_seterrno(int ret)
{
    if (!ret)
        return 0;
    errno = ret;
    return -1;
}

/* ---- Shared receive queues ---- */

/**
 * Makes a shared receive queue for an id, to be used by rdma_create_qp().
 * @param pd    NULL for the id's
 * @param attr  what is wanted; receives what there is
 */
int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);

/** As rdma_create_srq(); @p attr must name the type. EOPNOTSUPP for other types than basic. */
int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);

/** Destroys the shared receive queue of an id. */
void rdma_destroy_srq(struct rdma_cm_id *id);

/* ---- Memory: length bytes at addr, registered with the id's protection domain ---- */

/** For messages sent and received. */
static inline struct ibv_mr *rdma_reg_msgs(struct rdma_cm_id *id, void *addr, size_t length)
{
    return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE);
}

/** For the peer to read. */
static inline struct ibv_mr *rdma_reg_read(struct rdma_cm_id *id, void *addr, size_t length)
{
    return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

/** For the peer to write. */
static inline struct ibv_mr *rdma_reg_write(struct rdma_cm_id *id, void *addr, size_t length)
{
    return ibv_reg_mr(id->pd, addr, length, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static inline int rdma_dereg_mr(struct ibv_mr *mr)
{
    return rdma_seterrno(ibv_dereg_mr(mr));
}

/* ---- Posting scatter/gather lists: nsge entries at sgl ---- */

/** Posts a receive, to the shared receive queue if the id has one. */
static inline int rdma_post_recvv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
                                  int nsge)
{
    struct ibv_recv_wr wr, *bad;

    wr.wr_id = (uintptr_t)context;
    wr.next = NULL;
    wr.sg_list = sgl;
    wr.num_sge = nsge;
    if (id->srq)
        return rdma_seterrno(ibv_post_srq_recv(id->srq, &wr, &bad));
    return rdma_seterrno(ibv_post_recv(id->qp, &wr, &bad));
}

/** Posts a send. @param flags  IBV_SEND_* */
static inline int rdma_post_sendv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
                                  int nsge, int flags)
{
    struct ibv_send_wr wr, *bad;

    memset(&wr, 0, sizeof wr);
    wr.wr_id = (uintptr_t)context;
    wr.sg_list = sgl;
    wr.num_sge = nsge;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = (unsigned int)flags;
    return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/** Reads from the peer's memory at @p remote_addr, registered there with key @p rkey. */
static inline int rdma_post_readv(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
                                  int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
    struct ibv_send_wr wr, *bad;

    memset(&wr, 0, sizeof wr);
    wr.wr_id = (uintptr_t)context;
    wr.sg_list = sgl;
    wr.num_sge = nsge;
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = (unsigned int)flags;
    wr.wr.rdma.remote_addr = remote_addr;
    wr.wr.rdma.rkey = rkey;
    return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/** Writes to the peer's memory at @p remote_addr, registered there with key @p rkey. */
static inline int rdma_post_writev(struct rdma_cm_id *id, void *context, struct ibv_sge *sgl,
                                   int nsge, int flags, uint64_t remote_addr, uint32_t rkey)
{
    struct ibv_send_wr wr, *bad;

    memset(&wr, 0, sizeof wr);
    wr.wr_id = (uintptr_t)context;
    wr.sg_list = sgl;
    wr.num_sge = nsge;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = (unsigned int)flags;
    wr.wr.rdma.remote_addr = remote_addr;
    wr.wr.rdma.rkey = rkey;
    return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/* ---- Posting one buffer: length bytes at addr, inside mr ---- */

static inline struct ibv_sge rdma_one_sge_(void *addr, size_t length, struct ibv_mr *mr)
{
    struct ibv_sge sge;

    sge.addr = (uintptr_t)addr;
    sge.length = (uint32_t)length;
    sge.lkey = mr ? mr->lkey : 0;
    return sge;
}

/** @param mr  may be NULL with a length of 0 */
static inline int rdma_post_recv(struct rdma_cm_id *id, void *context, void *addr, size_t length,
                                 struct ibv_mr *mr)
{
    struct ibv_sge sge = rdma_one_sge_(addr, length, mr);

    assert(!mr || (uint8_t *)addr >= (uint8_t *)mr->addr);
    assert(!mr || (uint8_t *)addr + length <= (uint8_t *)mr->addr + mr->length);
    return rdma_post_recvv(id, context, &sge, 1);
}

/** @param mr  may be NULL with IBV_SEND_INLINE */
static inline int rdma_post_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
                                 struct ibv_mr *mr, int flags)
{
    struct ibv_sge sge = rdma_one_sge_(addr, length, mr);

    return rdma_post_sendv(id, context, &sge, 1, flags);
}

static inline int rdma_post_read(struct rdma_cm_id *id, void *context, void *addr, size_t length,
                                 struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
    struct ibv_sge sge = rdma_one_sge_(addr, length, mr);

    return rdma_post_readv(id, context, &sge, 1, flags, remote_addr, rkey);
}

/** @param mr  may be NULL with IBV_SEND_INLINE */
static inline int rdma_post_write(struct rdma_cm_id *id, void *context, void *addr, size_t length,
                                  struct ibv_mr *mr, int flags, uint64_t remote_addr, uint32_t rkey)
{
    struct ibv_sge sge = rdma_one_sge_(addr, length, mr);

    return rdma_post_writev(id, context, &sge, 1, flags, remote_addr, rkey);
}

/** Sends a datagram to queue pair @p remote_qpn behind @p ah. */
static inline int rdma_post_ud_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
                                    struct ibv_mr *mr, int flags, struct ibv_ah *ah,
                                    uint32_t remote_qpn)
{
    struct ibv_sge sge = rdma_one_sge_(addr, length, mr);
    struct ibv_send_wr wr, *bad;

    memset(&wr, 0, sizeof wr);
    wr.wr_id = (uintptr_t)context;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = (unsigned int)flags;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = remote_qpn;
    wr.wr.ud.remote_qkey = RDMA_UDP_QKEY;
    return rdma_seterrno(ibv_post_send(id->qp, &wr, &bad));
}

/* ---- Completions ---- */

static inline int rdma_next_comp_(struct rdma_cm_id *id, struct ibv_comp_channel *channel,
                                  struct ibv_cq *cq, struct ibv_wc *wc)
{
    struct ibv_cq *event_cq;
    void *event_context;
    int n, armed = 0;

    for (;;) {
        n = ibv_poll_cq(cq, 1, wc);
        if (n < 0)
            return rdma_seterrno(-n);
        if (n > 0)
            return n;
        if (!armed) {
            /* Poll once more after arming: what came in between raises no event. */
            n = ibv_req_notify_cq(cq, 0);
            if (n)
                return rdma_seterrno(n);
            armed = 1;
            continue;
        }
        n = ibv_get_cq_event(channel, &event_cq, &event_context);
        if (n)
            return n;
        assert(event_cq == cq && event_context == id);
        (void)id;
        ibv_ack_cq_events(event_cq, 1);
        armed = 0;
    }
}

/**
 * Waits for a completion on the send CQ that rdma_create_qp() made.
 * @return 1 with @p wc filled; or -1 and errno
 */
static inline int rdma_get_send_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
    return rdma_next_comp_(id, id->send_cq_channel, id->send_cq, wc);
}

/** As rdma_get_send_comp(), for the receive CQ. */
static inline int rdma_get_recv_comp(struct rdma_cm_id *id, struct ibv_wc *wc)
{
    return rdma_next_comp_(id, id->recv_cq_channel, id->recv_cq, wc);
}

#ifdef __cplusplus
}
#endif

#endif
