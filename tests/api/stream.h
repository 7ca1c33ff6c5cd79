/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The active side of a one-way stream of RDMA Writes, in a process of its own; see child.h.
 *
 * Message i goes to the end of slot i % slots of the peer's memory. So the peer can tell from the
 * number of messages what its memory has to be.
 */
#ifndef ANYWARP_TESTS_STREAM_H
#define ANYWARP_TESTS_STREAM_H

#include "child.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_AREA  (1 << 20) /* the peer's memory: the slots, */
#define STREAM_SENDS 64        /* and then receives */
#define STREAM_SHORT 64        /* of so many bytes */
#define STREAM_PEER  (STREAM_AREA + STREAM_SENDS * STREAM_SHORT)

/** What the messages are like. */
struct shape {
    unsigned slots;
    uint32_t slot;  /* bytes of one */
    unsigned depth; /* messages under way */
    bool mixed;     /* 1 to 9000 bytes, some inline, each 16th signaled; else 64 bytes, signaled */
    bool built;     /* by ibv_wr_start() and so on */
};

struct message {
    size_t offset;
    uint32_t len;
    uint8_t fill; /* each byte */
    bool is_inline, signaled;
};

struct message stream_message(const struct shape *shape, uint64_t i);

/** What the slots hold after @p n messages. @param area  STREAM_AREA bytes, zeros */
void stream_image(const struct shape *shape, uint64_t n, uint8_t *area);

/** What the peer says of itself when it accepts. */
struct stream_peer {
    uint64_t addr;
    uint32_t rkey;
};

struct stream {
    const struct shape *shape;
    int told, telling; /* pipes: from the peer's process, and to it */
    struct rdma_event_channel *ch;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint8_t *buf; /* STREAM_PEER bytes, mapped */
    struct stream_peer peer;
    uint64_t posted, done;
    unsigned sends_before; /* the last post */
};

/** Connects to the port that the peer's process tells. */
void stream_open(struct stream *s);

/** Streams up to message @p n, signaled, whose completion is the last thing polled. */
void stream_to(struct stream *s, uint64_t n);

/**
 * Streams until messages are completed and not sent, as far as calls.h tells, and others behind
 * them are posted; the last of those is signaled.
 */
void stream_until_corked(struct stream *s);

/** Takes the completions of all of them, and no other. */
void stream_rest(struct stream *s);

/** The same where nothing was posted since: then they are sent. */
void stream_finish(struct stream *s);

/** Posts the next message. @param rkey  the peer's, or a wrong one */
void stream_post(struct stream *s, uint32_t rkey);

/** Streams until the completions are flushes, and takes them all; then DISCONNECTED comes. */
void stream_until_flushed(struct stream *s);

/** Polls until there is one. */
struct ibv_wc stream_poll(struct ibv_cq *cq);

/** Tells the peer's process that @p n messages have to arrive. */
void stream_tell(struct stream *s, uint64_t n);

/** Sleeps until the peer's process has seen enough. */
void stream_sleep(struct stream *s);

#endif
