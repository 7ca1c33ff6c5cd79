/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TLS 1.3 over another byte stream, without I/O of its own. The handshake, which is OpenSSL's, is
 * part of send and recv: what is sent before its end, at most one MPA frame, waits for it. Both
 * ends have to choose the protocol "iwarp" by ALPN. Behind it records are ours (tls_record.h):
 * sending and receiving share nothing, and no plaintext stays behind a recv, so that the socket
 * alone tells whether there is more.
 */
#ifndef ANYWARP_CONN_STREAM_TLS_H
#define ANYWARP_CONN_STREAM_TLS_H

#include "conn/stream.h"
#include "conn/tls_peer.h"

#include <stdbool.h>

#define IWC_TLS_RECORD_TYPE 22 /* first byte of who speaks TLS (RFC 8446 section 5.1) */
#define IWC_TLS_ROOM        (5 + 16384 + 256) /* a recv with so much room takes any record */

struct ssl_ctx_st;

/* What the stream asks whom it belongs to. */
struct iwc_tls_user {
    /**
     * Copies @p len bytes of @p iov, which is memory of the program, behind the first @p skip.
     * @return false if some of it is not there any more
     */
    bool (*gather)(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n);
    /**
     * Whether a peer that has proven who it is may be the peer. Nothing was sent yet, and the peer
     * is told of a no. NULL: all may. @param why  set if not, a sentence
     */
    bool (*judge)(void *arg, const struct tls_peer *peer, char *why, size_t size);
};

/**
 * TLS over @p under, which outlives it; NULL without memory, or in a library without TLS.
 *
 * recv: -EACCES if the ends do not agree on who they are, -EPROTO for what is no TLS, -ECONNRESET
 * for a FIN that the peer's TLS did not announce, -EMSGSIZE for a record that does not fit.
 *
 * send: -EFAULT if gather fails. When the stream below takes a part only of what was encrypted,
 * the last byte is not reported as taken: the caller has to come back with it, as for any rest.
 *
 * @param ctx   certificates or keys, and the check of the peer's; kept while the stream lives
 * @param arg   for @p user
 */
struct iwc_stream *iwc_stream_tls_create(struct ssl_ctx_st *ctx, struct iwc_stream *under,
                                         bool client, const struct iwc_tls_user *user, void *arg);
/** Says nothing to the peer. NULL is nothing. */
void iwc_stream_tls_free(struct iwc_stream *s);

/**
 * Goes on with the handshake, which is part of a recv otherwise.
 * @return 0 when it is over, or a negative errno as recv
 */
int iwc_stream_tls_shake_hands(struct iwc_stream *s);

/** Why the stream failed, in English; NULL if it did not. */
const char *iwc_stream_tls_why(struct iwc_stream *s);

/** The peer; NULL before the handshake is over. */
const struct tls_peer *iwc_stream_tls_peer(struct iwc_stream *s);

#endif
