/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Short forms of the rdma_cm calls for the tests of connections: two event channels in one process,
 * "a" for the active side and "b" for the passive one. Everything fails the test if it fails.
 */
#ifndef ANYWARP_TESTS_CM_KIT_H
#define ANYWARP_TESTS_CM_KIT_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>

#define CM_BYTES 256

struct cm_sides {
    struct rdma_event_channel *a, *b;
    struct rdma_cm_id *listener;
    struct sockaddr_storage addr; /* that it listens on */
};

/** Opens both channels and listens on @p address, "127.0.0.1" if NULL, port 0. */
void cm_open(struct cm_sides *s, const char *address);
void cm_close(struct cm_sides *s);

/** Fills in an address. @param port  network order */
void cm_address(struct sockaddr_storage *to, const char *text, uint16_t port);

/** A TCP socket on 127.0.0.1 that listens; @p addr gets its address. */
int cm_listen_plain(struct sockaddr_storage *addr, int backlog);

/** An id on the channel, with address and route resolved, and a QP with CQs of its own. */
struct rdma_cm_id *cm_prepare(struct rdma_event_channel *channel,
                              const struct sockaddr_storage *dst);
/** A small QP with CQs that belong to the id. */
void cm_add_qp(struct rdma_cm_id *id);
/** Destroys the id with its QP. */
void cm_drop(struct rdma_cm_id *id);

/** The next event; not acknowledged. Fails the test after 10 s. */
struct rdma_cm_event *cm_next(struct rdma_event_channel *channel);
/** The next event, which must be @p type; acknowledged. @return its status */
int cm_expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/** The next one must be a request; acknowledged. */
struct rdma_cm_id *cm_request(struct rdma_event_channel *channel);
/** Fails the test if an event comes within @p ms. */
void cm_quiet(struct rdma_event_channel *channel, int ms);

/** A whole connection: both ids have a QP, both ESTABLISHED are taken. */
void cm_connect(struct cm_sides *s, struct rdma_cm_id **a, struct rdma_cm_id **b);

/** Polls one completion of the QP's send or receive CQ; fails the test after 10 s. */
struct ibv_wc cm_poll(struct ibv_cq *cq);
/** A buffer of CM_BYTES in the QP's PD, freed by cm_unreg(). */
struct ibv_mr *cm_reg(struct rdma_cm_id *id);
void cm_unreg(struct ibv_mr *mr);

#endif
