/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of stream_tls.c, in a library that was built without OpenSSL. */
#include "conn/stream_tls.h"

struct iwc_stream *iwc_stream_tls_create(struct ssl_ctx_st *ctx, struct iwc_stream *under,
                                         bool client, iwc_gather *gather)
{
    (void)ctx, (void)under, (void)client, (void)gather;
    return NULL;
}

void iwc_stream_tls_free(struct iwc_stream *s)
{
    (void)s;
}

const char *iwc_stream_tls_why(struct iwc_stream *s)
{
    (void)s;
    return NULL;
}

bool iwc_stream_tls_established(struct iwc_stream *s)
{
    (void)s;
    return false;
}
