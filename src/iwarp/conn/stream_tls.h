/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 over another byte stream, without I/O of its own. The handshake is part of send and recv:
 * what is sent before its end, at most one MPA frame, waits for it. Both ends have to choose the
 * protocol "iwarp" by ALPN.
 *
 * No plaintext stays behind a recv: of what the stream below has, only so much is taken as fits
 * into the caller's buffer when it is decrypted. So the socket alone tells whether there is more.
 */
#ifndef ANYWARP_CONN_STREAM_TLS_H
#define ANYWARP_CONN_STREAM_TLS_H

#include "conn/stream.h"

#include <stdbool.h>

#define IWC_TLS_RECORD_TYPE 22 /* first byte of who speaks TLS (RFC 8446 section 5.1) */
#define IWC_TLS_ROOM        (16384 + 256 + 5) /* a recv with so much room takes any record */

struct ssl_ctx_st;

/**
 * Copies @p len bytes of @p iov, which is memory of the program.
 * @return false if some of it is not there any more
 */
typedef bool iwc_gather(uint8_t *to, size_t len, const struct iovec *iov, unsigned n);

/**
 * TLS over @p under, which outlives it; NULL without memory, or in a library without TLS.
 *
 * recv: -EACCES if the ends do not agree on who they are, -EPROTO for what is no TLS, -ECONNRESET
 * for a FIN that the peer's TLS did not announce, -EMSGSIZE for a record that does not fit.
 *
 * send: -EFAULT if @p gather fails. When the stream below takes a part only of what was encrypted,
 * the last byte is not reported as taken: the caller has to come back with it, as for any rest.
 *
 * @param ctx  certificates or keys, and the verification of the peer's; kept while the stream lives
 */
struct iwc_stream *iwc_stream_tls_create(struct ssl_ctx_st *ctx, struct iwc_stream *under,
                                         bool client, iwc_gather *gather);
/** Says nothing to the peer. NULL is nothing. */
void iwc_stream_tls_free(struct iwc_stream *s);

/** Why the stream failed, in English; NULL if it did not. */
const char *iwc_stream_tls_why(struct iwc_stream *s);

/** Whether the handshake is over. */
bool iwc_stream_tls_established(struct iwc_stream *s);

#endif
