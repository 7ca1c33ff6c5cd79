/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected QPs of this process, made with the public API only: the common
 * ground of the API tests. "a" is the active side, "b" the passive one.
 */
#ifndef ANYWARP_TESTS_PAIR_H
#define ANYWARP_TESTS_PAIR_H

#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDE_BYTES  (1 << 20)
#define SIDE_CANARY 64

struct side {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_pd *under; /* pd is a parent domain: that which it stands for */
    bool borrowed;        /* pd is another pair's */
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* NULL: receives go to the QP */
    struct ibv_mr *mr;
    uint8_t *buf; /* SIDE_BYTES registered, with canaries on both sides */
    uint8_t *block;
};

struct pair {
    struct side a, b;
    struct rdma_cm_id *listener;
    uint16_t port; /* network order */
};

struct pair_conf {
    const char *address; /* NULL: 127.0.0.1 */
    unsigned send_wr, recv_wr, sge, inline_data;
    int sig_all;
    uint8_t depth;     /* initiator_depth and responder_resources */
    bool no_reads;     /* both 0 */
    int access;        /* of both regions; 0: all */
    unsigned srq_wr;   /* not 0: each side receives from an SRQ of this size */
    bool one_way;      /* "a" has no receive queue, "b" no send queue */
    bool parent;       /* everything is made on parent domains */
    struct side *with; /* side b uses the PD of this one */
    /* The QP of b uses these, which the test made, and not b's own; NULL: its own. */
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    void (*made)(struct side *s); /* called when its QP is made and not connected; or NULL */
    bool ex; /* CQs and QPs with their extended views: all of wc_flags and of send_ops */
};

/** Objects of a side whose id has its device. Fails the test if anything does, as all of these. */
void side_open(struct side *s, const struct pair_conf *conf);
/** Checks the canaries, destroys the objects and the id. */
void side_close(struct side *s);

void pair_open(struct pair *p, const struct pair_conf *conf);
/** Disconnects if @p connected, checks the canaries, destroys everything. */
void pair_close(struct pair *p, int connected);

/** Next CM event of this side, which must be @p type; acknowledged. @return its status */
int side_event(struct side *s, enum rdma_cm_event_type type);

/** Polls one completion; fails the test after 10 s. */
struct ibv_wc side_poll(struct side *s);
/** Polls for a while and fails the test if there is one. */
void side_poll_none(struct side *s, int ms);

/** Memory that the peer of a side may use, and take the right to away: a window of type 2. */
struct loan {
    struct ibv_mr *mr;
    struct ibv_mw *mw;
};

/** Lends @p len bytes of buf; the side's send queue has nothing to complete. */
void side_lend(struct side *s, struct loan *l, size_t offset, size_t len, unsigned access);
void side_end_loan(struct loan *l);

void side_recv(struct side *s, uint64_t wr_id, size_t offset, uint32_t len);

/** One WR from buf[offset] on, signaled; @p remote in the peer's buf. @return of ibv_post_send */
int side_post(struct side *s, const struct side *peer, enum ibv_wr_opcode op, uint64_t wr_id,
              size_t offset, uint32_t len, size_t remote, unsigned flags);

#define TRAFFIC_BYTES 65536

/** What one thread keeps posting, while another takes the memory away. */
struct traffic {
    struct side *from;
    enum ibv_wr_opcode op;
    struct side to;  /* its buf and mr are the memory: TRAFFIC_BYTES */
    atomic_int done; /* completions without an error */
};

/** Keeps 16 requests going until one fails. @param arg  a struct traffic; a thread's function */
void *traffic_drive(void *arg);

/** The state alone. @return of ibv_modify_qp */
int qp_to_state(struct ibv_qp *qp, enum ibv_qp_state state);
/** The attributes of @p mask, the state among them, which all who know it agree on. */
struct ibv_qp_attr qp_query(struct ibv_qp *qp, int mask);
/** A receive without memory. */
void qp_post_recv(struct ibv_qp *qp, uint64_t wr_id);

#endif
