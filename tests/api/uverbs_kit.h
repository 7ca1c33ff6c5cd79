/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of <anywarp/uverbs.h> share: commands that are sent, and objects made by them. */
#ifndef ANYWARP_TESTS_UVERBS_KIT_H
#define ANYWARP_TESTS_UVERBS_KIT_H

#include <anywarp/uverbs.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/** What each of the 30 commands has, and wants for its response, in bytes; without responses 0. */
struct uv_row {
    const char *name;
    uint32_t number, in, out;
};
extern const struct uv_row uv_rows[];
extern const size_t uv_row_count;

/**
 * A command of @p in bytes after the header, at most 248. The address of @p resp is put in front of
 * them if it has room for @p out bytes.
 *
 * @return 0 or errno
 */
int uv_send(int fd, uint32_t number, const void *bytes, size_t in, void *resp, size_t out);

/** A device, after GET_CONTEXT; its descriptor of events is closed. */
int uv_open(void);

/** One object of each type in a context. */
struct uv_world {
    int fd, channel;
    uint32_t pd, mr, lkey, rkey, cq, srq, qp, qpn;
    uint64_t memory[8];
};

/** The queue pair is in INIT and uses the CQ twice; the shared receive queue is nobody's. */
void uv_make(struct uv_world *w);

/** Destroys them, one by one. */
void uv_unmake(struct uv_world *w);

/** Work requests as they are posted: one, with one piece of memory, or none if its length is 0. */
int uv_post_recv(struct uv_world *w, uint64_t wr_id, uint32_t len);
int uv_post_send(struct uv_world *w, const struct ib_uverbs_send_wr *wr, uint32_t len);

/** @return how many, 0 or 1 */
uint32_t uv_poll(struct uv_world *w, struct ib_uverbs_wc *wc);

/** MODIFY_QP to a state, by this mask beside IBV_QP_STATE. @return 0 or errno */
int uv_modify(struct uv_world *w, enum ibv_qp_state state, uint32_t mask);

#endif
