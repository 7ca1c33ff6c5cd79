/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of TLS 1.3 behind the handshake (RFC 8446 section 5), one direction of a connection:
 * bytes to bytes, in place. OpenSSL makes the handshake, and its own records are twice as slow for
 * small messages.
 */
#ifndef ANYWARP_CONN_TLS_RECORD_H
#define ANYWARP_CONN_TLS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLS_RECORD_HEADER   5 /* type, version, length */
#define TLS_RECORD_DATA_MAX 16384
#define TLS_RECORD_EXTRA    (TLS_RECORD_HEADER + 1 + 16) /* around the data: inner type and tag, too \
                                                          */
#define TLS_RECORD_MAX      (TLS_RECORD_HEADER + TLS_RECORD_DATA_MAX + 256)
#define TLS_SECRET_BYTES    32 /* all that we offer is of SHA-256 */

enum tls_content {
    TLS_ALERT = 21,
    TLS_HANDSHAKE = 22,
    TLS_DATA = 23,
};

/* The alerts that are ours to send (RFC 8446 section 6). */
enum tls_alert {
    TLS_CLOSE_NOTIFY = 0,
    TLS_UNEXPECTED_MESSAGE = 10,
    TLS_BAD_RECORD_MAC = 20,
    TLS_RECORD_OVERFLOW = 22,
    TLS_ACCESS_DENIED = 49,
    TLS_INSUFFICIENT_SECURITY = 71,
    TLS_INTERNAL_ERROR = 80,
};

struct evp_cipher_ctx_st;

struct tls_half {
    struct evp_cipher_ctx_st *cipher;
    bool seals;
    uint16_t suite;   /* TLS_AES_128_GCM_SHA256 or TLS_CHACHA20_POLY1305_SHA256 */
    uint64_t records; /* with the present key */
    uint8_t iv[12];
    uint8_t secret[TLS_SECRET_BYTES];
};

/** @param seals  for what we send. @return false: no memory, or no such suite */
bool tls_half_init(struct tls_half *h, bool seals, uint16_t suite,
                   const uint8_t secret[TLS_SECRET_BYTES]);
/** Also of one that is zero. */
void tls_half_fini(struct tls_half *h);

/** The next key (RFC 8446 section 7.2). @return false: no memory */
bool tls_half_update(struct tls_half *h);

/**
 * Makes a record of @p len bytes, at most TLS_RECORD_DATA_MAX, that stand TLS_RECORD_HEADER bytes
 * behind @p at. @return its length, len + TLS_RECORD_EXTRA; 0: OpenSSL failed
 */
size_t tls_seal(struct tls_half *h, enum tls_content type, uint8_t *at, size_t len);

/** Length of the record that begins with @p header, with it. @return 0: it is none, or too long */
size_t tls_record_length(const uint8_t header[TLS_RECORD_HEADER]);

/**
 * Opens a whole record; what was in it stands TLS_RECORD_HEADER bytes behind @p at then.
 * @param len   of the record
 * @param type  [out] its inner type, any byte but 0
 * @return bytes, or a negative enum tls_alert
 */
int tls_open(struct tls_half *h, uint8_t *at, size_t len, uint8_t *type);

#endif
