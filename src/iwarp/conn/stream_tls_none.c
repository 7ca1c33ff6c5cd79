/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of stream_tls.c, in a library that was built without OpenSSL. */
#include "conn/stream_tls.h"

struct iwc_stream *iwc_stream_tls_create(struct ssl_ctx_st *ctx, struct iwc_stream *under,
                                         bool client, const struct iwc_tls_user *user, void *arg)
{
    (void)ctx, (void)under, (void)client, (void)user, (void)arg;
    return NULL;
}

void iwc_stream_tls_free(struct iwc_stream *s)
{
    (void)s;
}

int iwc_stream_tls_shake_hands(struct iwc_stream *s)
{
    (void)s;
    return 0;
}

const char *iwc_stream_tls_why(struct iwc_stream *s)
{
    (void)s;
    return NULL;
}

const struct tls_peer *iwc_stream_tls_peer(struct iwc_stream *s)
{
    (void)s;
    return NULL;
}
