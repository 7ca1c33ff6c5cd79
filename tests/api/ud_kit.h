/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two queue pairs for datagrams, "a" and "b", of the device that a test is for, and what is done
 * with them over and over. Everything fails the test if it fails.
 */
#ifndef ANYWARP_TESTS_UD_KIT_H
#define ANYWARP_TESTS_UD_KIT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define BYTES   16384
#define HALF    (BYTES / 2) /* where what is sent begins */
#define QKEY    0x11111111u
#define GRH     40
#define WAIT_S  60
#define INIT    (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define TO_RECV 900 /* the wr_id of receives, and above */
#define GROUPS  0xffffff

extern struct ibv_context *ctx;
extern struct ibv_pd *pd;
extern uint8_t gid_index; /* that datagrams leave from */

struct peer {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_ah *ah; /* to this host */
    uint8_t data[BYTES];
};

extern struct peer a, b;

/** Makes ctx, pd and gid_index. */
void open_device(const char *name, uint8_t index);
void close_device(void);
struct ibv_ah *handle(const union ibv_gid *gid);
void to_init(struct peer *p);
void move(struct peer *p, enum ibv_qp_state to);
enum ibv_qp_state state_of(struct peer *p);
void to_rts(struct peer *p);
void make_with(struct peer *p, struct ibv_srq *srq, uint32_t flags);
void make(struct peer *p);
void drop(struct peer *p);
int setup(void **state);
int teardown(void **state);
void receive(struct peer *p, unsigned i, uint32_t len);
struct ibv_send_wr request(struct peer *from, const struct peer *to, struct ibv_sge *sge,
                           uint32_t len);
int post(struct peer *from, struct ibv_send_wr *wr);
struct ibv_wc next(struct peer *p);
void sent(struct peer *p);
struct ibv_wc received(struct peer *p, unsigned i);
void pass(struct peer *from, struct peer *to, uint8_t v);

#endif
