/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network of its own for tests of addresses, and one run of the program for each way to configure
 * the library, which reads its knobs once.
 *
 * Two interfaces, v0 and v1, joined: 10.77.0.1/24, fd77:0::1/64 and fe80::70 on v0; 10.77.1.1/24,
 * fd77:1::1/64 and fe80::71 on v1; no other route but loopback's. Nobody answers at 10.77.0.98,
 * though it is there; 10.77.0.99 is not. 10.98.0.0/16 is unreachable.
 */
#ifndef ANYWARP_TESTS_CM_NET_H
#define ANYWARP_TESTS_CM_NET_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CM_NET_SKIPPED 77

struct cm_net_mode {
    const char *name;
    const char *variable, *value; /* environment, or NULL */
    int (*run)(void);             /* @return the program's exit status */
};

/** Moves the process into such a network. @return 0, or CM_NET_SKIPPED having said why */
int cm_net_make(void);

/** main() of such a program: argv[1] is the mode, all modes one after another if there is none. */
int cm_net_main(int argc, char **argv, const struct cm_net_mode *modes, size_t n);

/** A literal address, also with a scope ("fe80::70%v0"). @param port  network order */
struct sockaddr_storage cm_net_address(const char *text, uint16_t port);

/** Fails the test unless both are the same address and port. */
void cm_net_same(const struct sockaddr *a, const struct sockaddr *b);

/* ---- ids, all on one channel ---- */

extern struct rdma_event_channel *cm_net_channel;

/** Set-up and tear-down of a group of tests. */
int cm_net_open(void **state);
int cm_net_close(void **state);

struct rdma_cm_id *cm_net_id(void);

/** Sets an option of RDMA_OPTION_ID. @return that of rdma_set_option() */
int cm_net_set(struct rdma_cm_id *id, int option, int value);

/** @return 0 or errno */
int cm_net_bind(struct rdma_cm_id *id, const char *text, uint16_t port);
int cm_net_listen(struct rdma_cm_id *id);
/** @param src  may be NULL */
int cm_net_resolve(struct rdma_cm_id *id, const char *src, const char *dst, uint16_t port);

/** A new id that listens on a port of the system's choice. */
struct rdma_cm_id *cm_net_listener(const char *text, bool afonly);

/** A new id with a QP, resolved, connecting. */
struct rdma_cm_id *cm_net_begin(const char *src, const char *dst, uint16_t port);
/** Accepts the request of cm_net_begin() and takes both ESTABLISHED. @return the passive id */
struct rdma_cm_id *cm_net_finish(void);

/** A message goes over. */
void cm_net_send(struct rdma_cm_id *from, struct rdma_cm_id *to);

#endif
