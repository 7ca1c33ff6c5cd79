/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a connection for the interoperation tests: the same program runs on anywarp and on the
 * guest's stock libraries. Anything unexpected ends it with a message and status 1.
 */
#ifndef ANYWARP_TESTS_SIW_END_H
#define ANYWARP_TESTS_SIW_END_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    BUFFER = 65536,
    RECEIVES = 8, /* kept posted, each of MESSAGE bytes */
    MESSAGE = 64,
    SECONDS = 20, /* longest wait for the other end */
    KEYS = 2,     /* further keys, which the peer may invalidate */
};

/* What the ends tell each other first, in network order; also the form of every later message. */
struct message {
    uint64_t addr;
    uint32_t rkey;        /* BUFFER bytes at addr, remote read and write */
    uint32_t local_key;   /* the same memory without remote rights */
    uint32_t spare[KEYS]; /* further keys of that memory */
    uint32_t kind;        /* ECHO: how to answer, a row of sends[] */
    uint32_t sum;         /* of the memory at addr */
};

struct end {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *id;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr, *local, *messages;
    unsigned char *buffer, *slots; /* slots: RECEIVES to receive, one to send */
    /* Windows, of which alone anywarp lets a peer dispose, or, where there are none, regions. */
    struct ibv_mw *windows[KEYS];
    struct ibv_mr *regions[KEYS];
    uint32_t spare[KEYS];
    struct message peer;           /* host order */
    struct ibv_wc early[RECEIVES]; /* receives that completed while the send queue was waited for */
    unsigned early_count;
    bool no_keys; /* the library sends no keys to invalidate */
    unsigned posted, completed, flushed, disconnected;
    enum ibv_wc_status status; /* of the first work request of the send queue that failed */
    char events[256];          /* asynchronous ones, by name */
    unsigned quiet_ms;         /* nothing may follow the DISCONNECTED for so long */
};

_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Dies with errno if @p result is not 0. */
void must(int result, const char *what);
uint64_t now_ms(void);

/** Queue pair, regions and receives for end->id. */
void end_open(struct end *end);
void end_close(struct end *end);
/** Waits for the DISCONNECTED, and a little for what must not follow it; prints the "end:" line. */
void end_finish(struct end *end, int post_result);

/** Waits for the next receive, posts it again. @return the message, host order */
struct message end_receive(struct end *end, struct ibv_wc *wc);
/** Posts @p wr, to be signalled. @return 0 or an errno value */
int end_post(struct end *end, struct ibv_send_wr *wr);
/** Posts and waits until it completed, which must be with success. */
void end_do(struct end *end, struct ibv_send_wr *wr);
/** Sends our keys and takes the peer's; the client speaks first. */
void end_greet(struct end *end, bool first);

/** Whether there is an action of that name. */
bool action_known(const char *name);
/** Does it, or with "answer" serves the peer's. @return of the post that was meant to fail, or 0 */
int action_run(struct end *end, const char *name);

#endif
