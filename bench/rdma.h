/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the benchmark's own programs, by the public API alone: a client and a server
 * process, each with one PD, one buffer and as many connections as it likes. As in kit.h, what
 * fails ends the program.
 */
#ifndef ANYWARP_BENCH_RDMA_H
#define ANYWARP_BENCH_RDMA_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

#define RDMA_WRS 16 /* of each queue of a QP */

/** The peer's buffer, told by the server as it accepts. */
struct rdma_remote {
    uint64_t addr;
    uint32_t rkey;
};

struct rdma_end {
    size_t bytes; /* of the buffer; set before rdma_start() */
    int cqe;      /* of each CQ; set before rdma_start() */
    struct sockaddr_in at;
    struct rdma_event_channel *events;
    struct rdma_cm_id *listener; /* of the server */
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq; /* of all QPs, if the program sets no other; on the channel */
    struct ibv_mr *mr;
    char *buf;
    struct rdma_remote remote; /* of the client */
    void *arg;
};

/**
 * Forks. The child is the server: it listens, runs @p server, and then sleeps until the parent
 * ends.
 * @param client  filled in for the parent. @return the child
 */
pid_t rdma_start(struct rdma_end *client, void (*server)(struct rdma_end *), void *arg);

/** A new connection, established. Not for several threads at a time. */
struct rdma_cm_id *rdma_join(struct rdma_end *e);
/** The server's end of the next @p n of them; each has a receive of 64 bytes posted. */
void rdma_take(struct rdma_end *e, unsigned long n);
/** Disconnects and destroys it; the client's end. */
void rdma_leave(struct rdma_end *e, struct rdma_cm_id *id);
/** A server that takes and drops connections for ever. */
noreturn void rdma_take_and_drop(struct rdma_end *e);

/** A CQ for the connections to come, without a channel. */
void rdma_new_cq(struct rdma_end *e);

void rdma_post_recv(struct rdma_end *e, struct rdma_cm_id *id, size_t at, uint32_t len);
/** Signalled; a Write or Read at the peer's offset @p at. */
void rdma_post(struct rdma_end *e, struct rdma_cm_id *id, enum ibv_wr_opcode opcode, size_t at,
               uint32_t len, uint64_t wr_id);
/** Polls until one completion comes, which must be a success. */
struct ibv_wc rdma_wait(struct ibv_cq *cq);

#endif
