/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of tls.c, in a library that was built without OpenSSL. */
#include "env/tls.h"

#include <stddef.h>

struct ssl_ctx_st *iw_tls_context(const char **why)
{
    *why = "this library was built without TLS (--with-random=kernel)";
    return NULL;
}

bool iw_tls_is_for(const struct tls_peer *peer, const struct sockaddr_storage *addr)
{
    (void)peer, (void)addr;
    return false;
}
