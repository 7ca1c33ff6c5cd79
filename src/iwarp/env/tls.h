/* SPDX-License-Identifier: BSD-2-Clause */
/* What the knobs ANYWARP_TLS_* name: certificates and keys, loaded once. */
#ifndef ANYWARP_ENV_TLS_H
#define ANYWARP_ENV_TLS_H

#include "conn/tls_peer.h"

#include <stdbool.h>
#include <sys/socket.h>

struct ssl_ctx_st;

/**
 * For connections that this process begins, or that it is asked for. TLS 1.3 alone, both ends prove
 * who they are, no tickets, no early data.
 * @param why  set if there is none: a sentence
 * @return NULL if the files cannot be used, others may read a key, or the library has no TLS
 */
struct ssl_ctx_st *iw_tls_context(const char **why);

/** Whether the peer may be at @p addr: one with addresses in its certificate is at these alone. */
bool iw_tls_is_for(const struct tls_peer *peer, const struct sockaddr_storage *addr);

#endif
