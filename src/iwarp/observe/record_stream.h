/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of a connection for the flight recorder: an attached stream has other operations in
 * place of its own, which look at the first bytes of each frame. Without a record nothing is done.
 */
#ifndef ANYWARP_OBSERVE_RECORD_STREAM_H
#define ANYWARP_OBSERVE_RECORD_STREAM_H

#include "conn/stream.h"

#include <stdbool.h>

/** Records @p s, fresh, over the connected socket @p fd, if that is wanted and possible. Call
 * behind everybody else who puts operations in place. */
void iw_record_attach(struct iwc_stream *s, int fd, bool active);

/** The stream is that of a QP from now on. */
void iw_record_link(struct iwc_stream *s, uint32_t qp_num);

/** The socket is going to be closed. Harmless if not attached. Call when nobody sends or receives,
 * and before the others take theirs away. */
void iw_record_detach(struct iwc_stream *s, bool reset);

#endif
