/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake of TLS 1.3 by OpenSSL, between memory BIOs: records in, records out, and at its end
 * the secrets of both directions, and who the peer is.
 */
#ifndef ANYWARP_CONN_TLS_HANDSHAKE_H
#define ANYWARP_CONN_TLS_HANDSHAKE_H

#include "conn/stream.h"
#include "conn/tls_peer.h"
#include "conn/tls_record.h"

struct ssl_st;
struct ssl_ctx_st;
struct bio_st;

struct tls_handshake {
    struct ssl_st *ssl;
    struct bio_st *in, *out; /* owned by ssl */
    bool client;
    bool heard; /* a byte of the peer */
    bool ready; /* OpenSSL has something to do: it gets whole records, and needs no memory before */
    const char *key_name;
    uint8_t header[TLS_RECORD_HEADER];
    size_t record_has, record_len; /* of the record that came in a part so far; len 0: unknown */
    bool has[2];                   /* a secret: of the client's side, of the server's */
    uint8_t secret[2][TLS_SECRET_BYTES];
    struct tls_peer peer; /* set at the end */
    char why[192];        /* it failed: a sentence */
};

/** Makes @p ctx one that handshakes can be made with; once. */
void tls_handshake_prepare(struct ssl_ctx_st *ctx);

/** For the callbacks of @p ctx: the name of the pre-shared key that is used; it stays. */
void tls_handshake_named(struct ssl_st *ssl, const char *key_name);

/** @return false: no memory */
bool tls_handshake_init(struct tls_handshake *h, struct ssl_ctx_st *ctx, bool client);
/** Gives the memory back, and forgets the secrets; peer and why stay. Also of one that is zero. */
void tls_handshake_fini(struct tls_handshake *h);

/** So many bytes of the peer may be taken: what comes behind a record may not be the handshake's.
 */
size_t tls_handshake_wants(const struct tls_handshake *h);
/** These came. @return 0 or a negative errno */
int tls_handshake_input(struct tls_handshake *h, const uint8_t *p, size_t n);
/** Goes on. @return 0 when it is over, -EAGAIN for more input, or another negative errno */
int tls_handshake_step(struct tls_handshake *h);
/** Sends what is there. @return 0, -EAGAIN for a rest, or another negative errno */
int tls_handshake_flush(struct tls_handshake *h, struct iwc_stream *under);

/** It is over: begins both directions. @return false if OpenSSL failed */
bool tls_handshake_keys(const struct tls_handshake *h, struct tls_half *seal,
                        struct tls_half *open);

/** What an alert of the peer says, as a sentence. */
void tls_alert_text(int alert, char *text, size_t size);

#endif
