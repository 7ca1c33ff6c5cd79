/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that a program connects itself, by GID and number. What fails, fails the test. */
#ifndef ANYWARP_TESTS_API_BY_NUMBER_H
#define ANYWARP_TESTS_API_BY_NUMBER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define END_BYTES 4096
#define END_HALF  (END_BYTES / 2)
#define END_RECV  77 /* the wr_id of receives */

struct end {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint64_t
        data[END_BYTES / 8]; /* receives and what the peer does: the first half; sends: the other */
};

extern struct ibv_context *ctx;
extern struct ibv_pd *pd;

/** Runs @p tests with ctx, of the first device, and pd. @return what it returned */
int ends_run(int (*tests)(void));

void end_make(struct end *e);
void end_drop_qp(struct end *e);
void end_drop(struct end *e);

void end_init(struct end *e);
/** @param gid  of the peer. @return what ibv_modify_qp() returned */
int end_try_rtr(struct end *e, uint32_t peer, const union ibv_gid *gid);
/** The peer is on this host. */
void end_rtr(struct end *e, uint32_t peer);
void end_rts(struct end *e, uint8_t rnr_retry);
/** By way of SQD. */
void end_set_timeout(struct end *e, uint8_t timeout);
void end_move(struct end *e, enum ibv_qp_state state);
enum ibv_qp_state end_state(struct end *e);
void ends_connect(struct end *x, struct end *y);

void end_receive(struct end *e);
/** Posts 8 bytes, or of a read for them, or adds 5. @return what ibv_post_send() returned */
int end_post(struct end *from, struct end *to, enum ibv_wr_opcode op);
struct ibv_wc end_next(struct end *e);
void end_expect(struct end *e, uint64_t wr_id, enum ibv_wc_status status);
void end_send_once(struct end *from, struct end *to, uint64_t value);

#endif
