/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RNIC that stands still: QPs over memory streams, in one thread, moved by the test alone and
 * the same way every time. Linked in, this replaces the random numbers by seeded ones and the watch
 * of the host's interfaces, which would start the engine thread, by nothing.
 */
#ifndef ANYWARP_TESTS_STILL_H
#define ANYWARP_TESTS_STILL_H

#include "qp/qp.h"
#include "wire/ddp.h"

/** Begins the series from which STags, QP numbers and still_random() come. */
void still_seed(uint64_t seed);
uint64_t still_random(void);

/** A context of its own. Closed with ibv_close_device(). */
struct ibv_context *still_open(void);

/** Attaches @p stream. What the handshake would have agreed on stands in @p agreed. */
void still_link(struct ibv_qp *q, struct iwc_stream *stream, const struct mpa_result *agreed,
                bool responder);

/**
 * What the engine would do once: gives the QP the EPOLL* @p events that it asks for, and runs what
 * was left for later; and the CM, which closes a stream that is released.
 */
void still_run(struct ibv_qp *q, uint32_t events);

#define STILL_EMPTY_SEND (2 + DDP_UNTAGGED_HDR + 4)
/** The peer sends its first message: a Send of nothing, without CRC, STILL_EMPTY_SEND bytes. */
void still_empty_send(struct iwc_stream *peer);

/** Takes the stream away, whatever state it is in: all work requests are completed then. */
void still_unlink(struct ibv_qp *q);

#endif
