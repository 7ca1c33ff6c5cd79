/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active side in a process of its own, which knows nothing of cmocka: what goes wrong ends it
 * with status 1.
 */
#ifndef ANYWARP_TESTS_CHILD_H
#define ANYWARP_TESTS_CHILD_H

#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "child, %s, line %d: %s\n", __FILE__, __LINE__, #what);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/**
 * The next event, which must be @p type; acknowledged.
 * @param data  gets the first @p len bytes of its private data, of which there must be as many
 */
void child_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type, void *data,
                 size_t len);

/** An id whose address and route are resolved: this host, the port that is read from a pipe. */
struct rdma_cm_id *child_resolve(struct rdma_event_channel *ch, int port_fd);

/**
 * Sends 1 KB from @p buf whose first bytes are @p number, and waits until that is complete.
 * @return 0 if it was sent
 */
int child_send(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq, uint8_t *buf,
               uint32_t number);

/** Until the test writes a byte. */
void child_wait_command(int fd);

#endif
