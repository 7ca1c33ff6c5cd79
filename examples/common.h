/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the small examples share: arguments, the two ends of a connection, completions. Their ids
 * are synchronous endpoints, as endpoint.c explains. Unless said otherwise a function that fails
 * ends the program with a message.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define DEFAULT_PORT "20079"

/* How to call the program; each example has its own. */
extern const char usage_text[];

/* Prints usage_text; the exit status is 2. */
_Noreturn void usage(void);

/* A decimal number from min to max; anything else is wrong usage. */
unsigned long number(const char *text, unsigned long min, unsigned long max);

/* An endpoint whose device leads to the server, with a queue pair, not connected yet. */
struct rdma_cm_id *resolve(const char *server, const char *port, const struct ibv_qp_cap *cap);

/* An endpoint that listens; its clients get queue pairs of this size. */
struct rdma_cm_id *listen_on(const char *address, const char *port, const struct ibv_qp_cap *cap);

/* The next client that wants to connect, to be accepted when its first receive is posted. */
struct rdma_cm_id *next_client(struct rdma_cm_id *listener);

/* reads: how many RDMA Reads and atomics may be under way at a time; data goes to the server. */
void connect_to_server(struct rdma_cm_id *id, uint8_t reads, const void *data, uint8_t size);

/*
 * Accepts a client, which may have so many reads under way, and tells it of the memory that it may
 * access, unless that is NULL. False, with a message, if there is no connection.
 */
bool accept_client(struct rdma_cm_id *id, uint8_t reads, const struct ibv_mr *shared);

/* Disconnects, destroys the endpoint. */
void leave(struct rdma_cm_id *id);

/* Memory of the peer's, told by accept_client(), in host byte order. */
struct region {
    uint64_t addr, length;
    uint32_t rkey, unused;
};

/* What the server told, of which at least so many bytes are needed. */
struct region region_of_server(const struct rdma_cm_id *id, uint64_t length);

struct ibv_mr *register_memory(struct rdma_cm_id *id, void *addr, size_t length, int access);

/* The size of an array or buffer; memory is set to 0. */
void *allocate(size_t size);

/* Posts a receive for the whole region, a send of its first bytes. */
void post_receive(struct rdma_cm_id *id, struct ibv_mr *mr);
void post_send(struct rdma_cm_id *id, struct ibv_mr *mr, size_t length);

/* False, with a message that begins with what, if this work request failed. */
bool succeeded(const struct ibv_wc *wc, const char *what);

/* Waits for the next completion of the send or the receive queue, which must be a success. */
struct ibv_wc await_sent(struct rdma_cm_id *id, const char *what);
struct ibv_wc await_received(struct rdma_cm_id *id, const char *what);

/* Seconds of a clock that never goes back. */
double now(void);

#endif
