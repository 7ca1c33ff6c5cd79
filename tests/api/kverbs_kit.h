/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connected queue pairs of the kernel's interface in one process: side a has connected to side
 * b. */
#ifndef ANYWARP_TESTS_API_KVERBS_KIT_H
#define ANYWARP_TESTS_API_KVERBS_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/completion.h>
#include <rdma/rdma_cm.h>

enum { KIT_SIZE = 1 << 16, KIT_EVENTS = 16 };

struct end {
    struct rdma_cm_id *id;
    struct ib_pd *pd;
    struct ib_cq *cq;
    struct ib_qp *qp;
    u8 *buf; /* KIT_SIZE bytes, mapped */
    u64 dma;
    struct completion got[KIT_EVENTS];
    int status;  /* of the last event */
    int returns; /* what the handler returns for the event of `at` */
    enum rdma_cm_event_type at;
    struct pair *pair;
};

/* What a test changes before kit_open(); all zero is right, too. */
struct kit_options {
    enum ib_sig_type signal;
    ib_comp_handler on_a, on_b;
    void *context;
    bool stop_at_request; /* the request is left to the test */
};

struct pair {
    struct ib_device *device;
    struct rdma_cm_id *listener;
    struct end a, b;
    struct kit_options options;
    struct completion requested;
};

/** The first RNIC, and the first that is none: kit_devices() has made one of each. */
struct ib_device *kit_device(void);
struct ib_device *kit_roce(void);

/** Before anything else: what devices there are. */
void kit_devices(void);

void kit_open(struct pair *p, const struct kit_options *o);
void kit_close(struct pair *p);

/** What an end has but for its id; on the id's device. */
void kit_make(struct end *e, ib_comp_handler handler, const struct kit_options *o);

/** An id that has resolved address and route of the listener. */
void kit_resolve(struct pair *p, struct end *e);
void kit_listen(struct pair *p);
void kit_wait(struct end *e, enum rdma_cm_event_type type);

/** The next completion; it comes. */
struct ib_wc kit_poll(struct ib_cq *cq);

struct ib_sge kit_sge(const struct end *e, u64 offset, u32 length);
int kit_recv(struct end *e, u64 wr_id, u64 offset, u32 length);
int kit_send(struct end *e, u64 wr_id, u64 offset, u32 length);

/** A new QP without a CM id to INIT. */
void kit_init_qp(struct ib_qp *qp);

/** Destroys what an end has but for its id, which is gone already. */
void kit_close_rest(struct end *e);

/** Registers part of an end's memory by IB_WR_REG_MR with a new key. @return that of the post */
int kit_register(struct end *e, struct ib_mr *mr, u64 offset, u32 length, int access);
int kit_invalidate(struct end *e, u32 key);
int kit_rdma(struct end *e, enum ib_wr_opcode opcode, u64 wr_id, u64 offset, u32 length, u64 to,
             u32 rkey);

/** Everything that `call` writes to stderr; it is cut at `size`. */
void kit_stderr(char *text, size_t size, void (*call)(void *arg), void *arg);

#endif
