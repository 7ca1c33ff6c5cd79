/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef ANYWARP_CONN_STREAM_TCP_H
#define ANYWARP_CONN_STREAM_TCP_H

#include "conn/stream.h"

/** TCP over a non-blocking descriptor that the stream owns from here on. */
struct iwc_stream_tcp {
    struct iwc_stream base;
    int fd;
};

/* What streams order, whichever way the bytes go, for ThreadSanitizer. */
extern char iwc_stream_order;

/** Sets TCP_NODELAY. @p fd is closed by the stream's close. */
void iwc_stream_tcp_init(struct iwc_stream_tcp *s, int fd);

#endif
