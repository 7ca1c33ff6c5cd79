/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the small wrong programs have in common: two connected QPs of this process, "a" the active
 * one. Each program does one thing wrong, in the line that says so.
 */
#ifndef ANYWARP_TESTS_CHECK_KIT_H
#define ANYWARP_TESTS_CHECK_KIT_H

#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define DEPTH 16

struct end {
    struct rdma_event_channel *events;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *buffer; /* BYTES */
};

extern struct end a, b;

/* Set before ends_open(); these are right. */
extern struct ibv_qp_cap cap;
extern int cqe;
extern int access_flags;
extern uint8_t depth;

/** Ends the program, with the line, if something fails that should not. */
#define must(that) ((that) ? (void)0 : failed(__FILE__, __LINE__))
void failed(const char *file, int line) __attribute__((noreturn));

/** Connects both; nothing is posted yet. */
void ends_open(void);
void ends_close(void);

/** Posts the first @p n bytes of the buffer. */
void send_it(struct end *e, uint32_t n, unsigned flags);
void receive_it(struct end *e, uint32_t n);
/** Posts a signaled Read by "a" of the first @p n bytes of the buffer of "b", to the same of "a".
 * @param sink  a region of the buffer of "a" */
void read_it(const struct ibv_mr *sink, uint32_t n);
/** The next completion, which must be a success. */
struct ibv_wc wait_for(struct end *e);

#endif
