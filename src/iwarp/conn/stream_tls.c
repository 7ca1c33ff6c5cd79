/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_tls.h"

#include "common/list.h"
#include "common/lock.h"
#include "wire/mpa.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER        5 /* of a record: type, version, length */
#define CHUNK_MAX     SSL3_RT_MAX_PLAIN_LENGTH
/* A new key well before 2^24.5 records, which AES-GCM is good for (RFC 8446 section 5.5). */
#define REKEY_RECORDS (1u << 23)

struct tls {
    struct iwc_stream base;
    struct iwc_stream *under;
    iwc_gather *gather;
    struct lock lock; /* OpenSSL wants one thread at a time, and an iWARP stream has two halves */
    SSL *ssl;
    BIO *in, *out;    /* owned by ssl */
    uint32_t records; /* written with the present key */
    bool held;        /* the last byte given to ssl is not reported as taken */
    bool established;
    int failed; /* a negative errno: it is over */
    uint8_t header[HEADER];
    size_t record_has, record_len; /* of the record that came in a part so far; len 0: unknown */
    size_t early_len;
    uint8_t early[MPA_START_MAX];
    char why[192];
};

static struct tls *tls_of(struct iwc_stream *s)
{
    return container_of(s, struct tls, base);
}

/** Hands to the stream below what is encrypted. @return 0, -EAGAIN for a rest, or its error */
static int flush_locked(struct tls *t)
{
    char *p;
    assert_held(&t->lock);
    for (long left; (left = BIO_get_mem_data(t->out, &p)) > 0;) {
        struct iovec v = {.iov_base = p, .iov_len = (size_t)left};
        ssize_t n = t->under->ops->send(t->under, &v, 1);
        if (n < 0)
            return (int)n;
        if (n == left)
            (void)BIO_reset(t->out);
        else
            while (n > 0) { /* a BIO has no other way to forget its first bytes */
                char drop[1024];
                n -= BIO_read(t->out, drop, n < 1024 ? (int)n : 1024);
            }
    }
    return 0;
}

static int fail_locked(struct tls *t, int error, const char *why)
{
    assert_held(&t->lock);
    if (!t->failed) {
        t->failed = error;
        snprintf(t->why, sizeof(t->why), "%s", why);
        flush_locked(t); /* the alert */
    }
    return t->failed;
}

/** OpenSSL has found an error: the certificate's is told before its own. */
static int fail_ssl_locked(struct tls *t)
{
    long verify = SSL_get_verify_result(t->ssl);
    unsigned long e = ERR_peek_last_error();
    char text[sizeof(t->why)];
    if (verify != X509_V_OK && verify != X509_V_ERR_UNSPECIFIED)
        snprintf(text, sizeof(text), "the peer's certificate: %s",
                 X509_verify_cert_error_string(verify));
    else
        snprintf(text, sizeof(text), "%s",
                 e ? ERR_reason_error_string(e) : "the peer ended the handshake");
    return fail_locked(t, t->established ? -EPROTO : -EACCES, text);
}

static bool is_iwarp(const struct tls *t)
{
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(t->ssl, &name, &len);
    return len == 5 && !memcmp(name, "iwarp", 5);
}

static int write_locked(struct tls *t, const uint8_t *p, size_t len)
{
    assert_held(&t->lock);
    ERR_clear_error();
    if (++t->records == REKEY_RECORDS) {
        SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
        t->records = 0;
    }
    int n = SSL_write(t->ssl, p, (int)len);
    return n == (int)len ? 0 : fail_ssl_locked(t);
}

/** @return 0 when the handshake is over, -EAGAIN, or another negative errno */
static int handshake_locked(struct tls *t)
{
    assert_held(&t->lock);
    if (t->failed || t->established)
        return t->failed;
    ERR_clear_error();
    int r = SSL_do_handshake(t->ssl);
    if (r != 1 && SSL_get_error(t->ssl, r) != SSL_ERROR_WANT_READ)
        return fail_ssl_locked(t);
    if (r == 1 && !is_iwarp(t))
        return fail_locked(t, -EACCES, "the peer does not ask for protocol iwarp");
    t->established = r == 1;
    int w = r == 1 && t->early_len ? write_locked(t, t->early, t->early_len) : 0;
    if (!w)
        w = flush_locked(t);
    return r != 1 && !w ? -EAGAIN : w == -EAGAIN && r == 1 ? 0 : w;
}

/* ---- receiving ---- */

/** Follows the records in @p n bytes of the peer. @return false for one that is too long */
static bool follow(struct tls *t, const uint8_t *p, size_t n)
{
    while (n > 0) {
        size_t to = t->record_has < HEADER ? HEADER : t->record_len;
        size_t part = to - t->record_has < n ? to - t->record_has : n;
        if (t->record_has < HEADER)
            memcpy(t->header + t->record_has, p, part);
        t->record_has += part;
        p += part;
        n -= part;
        if (t->record_has == HEADER)
            t->record_len = HEADER + ((size_t)t->header[3] << 8 | t->header[4]);
        if (t->record_has >= HEADER && t->record_len > IWC_TLS_ROOM)
            return false;
        if (t->record_has >= HEADER && t->record_has == t->record_len)
            t->record_has = t->record_len = 0;
    }
    return true;
}

/**
 * What may be taken from the stream below: during the handshake the rest of a record, as what comes
 * behind it may be the program's; then what is no longer than @p room when it is decrypted.
 */
static size_t may_take(const struct tls *t, size_t room)
{
    if (t->established)
        return t->record_has < room ? room - t->record_has : 0;
    size_t rest = (t->record_has < HEADER ? HEADER : t->record_len) - t->record_has;
    return rest < room ? rest : room;
}

/** Takes ciphertext, by way of @p buf. @return as recv */
static ssize_t take_locked(struct tls *t, uint8_t *buf, size_t len)
{
    size_t want = may_take(t, len);
    assert_held(&t->lock);
    if (!want)
        return fail_locked(t, -EMSGSIZE, "a record is longer than what is expected now");
    ssize_t n = t->under->ops->recv(t->under, buf, want);
    if (n == 0)
        return fail_locked(t, -ECONNRESET, "the peer hung up");
    if (n < 0)
        return n;
    if (!follow(t, buf, (size_t)n))
        return fail_locked(t, -EPROTO, "a record is too long, or this is no TLS");
    if (BIO_write(t->in, buf, (int)n) != n)
        return fail_locked(t, -ENOMEM, "no memory");
    return n;
}

/** Decrypts what is there. @return bytes, 0 for the peer's end, -EAGAIN, or another errno */
static ssize_t decrypt_locked(struct tls *t, uint8_t *buf, size_t len)
{
    size_t all = 0;
    int n = 0;
    assert_held(&t->lock);
    ERR_clear_error();
    while (all < len && (n = SSL_read(t->ssl, buf + all, (int)(len - all))) > 0)
        all += (size_t)n;
    if (all)
        return (ssize_t)all;
    switch (SSL_get_error(t->ssl, n)) {
    case SSL_ERROR_WANT_READ:
        flush_locked(t); /* the answer to a key update */
        return -EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        return fail_ssl_locked(t);
    }
}

static ssize_t recv_locked(struct tls *t, uint8_t *buf, size_t len)
{
    if (t->failed)
        return t->failed;
    for (;;) {
        ssize_t r = handshake_locked(t);
        if (!r)
            r = decrypt_locked(t, buf, len);
        if (r != -EAGAIN)
            return r;
        r = take_locked(t, buf, len);
        if (r <= 0)
            return r;
    }
}

static ssize_t tls_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct tls *t = tls_of(s);
    lock_get(&t->lock);
    ssize_t r = recv_locked(t, buf, len < INT32_MAX ? len : INT32_MAX);
    lock_put(&t->lock);
    return r;
}

/* ---- sending ---- */

static size_t length(const struct iovec *iov, unsigned n, size_t max)
{
    size_t len = 0;
    for (unsigned i = 0; i < n && len < max; i++)
        len += iov[i].iov_len < max - len ? iov[i].iov_len : max - len;
    return len;
}

static ssize_t send_early_locked(struct tls *t, const struct iovec *iov, unsigned n)
{
    size_t len = length(iov, n, sizeof(t->early) + 1);
    assert_held(&t->lock);
    if (t->early_len || len > sizeof(t->early))
        return -EAGAIN;
    if (!t->gather(t->early, len, iov, n))
        return -EFAULT;
    t->early_len = len;
    int r = handshake_locked(t);
    return r && r != -EAGAIN ? r : (ssize_t)len;
}

static ssize_t send_locked(struct tls *t, const struct iovec *iov, unsigned n)
{
    uint8_t buf[CHUNK_MAX];
    if (t->failed)
        return t->failed;
    if (!t->established)
        return send_early_locked(t, iov, n);
    int r = flush_locked(t);
    if (r)
        return r;
    if (t->held) {
        t->held = false;
        return 1;
    }
    size_t len = length(iov, n, sizeof(buf));
    if (!t->gather(buf, len, iov, n))
        return -EFAULT;
    r = write_locked(t, buf, len);
    if (r)
        return r;
    r = flush_locked(t);
    if (r && r != -EAGAIN)
        return r;
    t->held = r == -EAGAIN;
    len -= t->held;
    return len ? (ssize_t)len : -EAGAIN;
}

static ssize_t tls_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct tls *t = tls_of(s);
    lock_get_leaf(&t->lock); /* the QP holds the memory meanwhile */
    ssize_t r = send_locked(t, iov, n);
    lock_put(&t->lock);
    return r;
}

/* ---- the rest ---- */

static void announce_end_locked(struct tls *t)
{
    assert_held(&t->lock);
    if (t->failed || !t->established)
        return;
    ERR_clear_error();
    SSL_shutdown(t->ssl);
    flush_locked(t);
}

static void tls_shutdown(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    lock_get(&t->lock);
    announce_end_locked(t);
    t->under->ops->shutdown(t->under);
    lock_put(&t->lock);
}

static void tls_close(struct iwc_stream *s, int reset)
{
    struct tls *t = tls_of(s);
    lock_get(&t->lock);
    if (!reset)
        announce_end_locked(t);
    t->under->ops->close(t->under, reset);
    lock_put(&t->lock);
}

static int tls_error(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    return t->under->ops->error(t->under);
}

static uint32_t tls_emss(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    return t->under->ops->emss(t->under);
}

static const struct iwc_stream_ops tls_ops = {
    .recv = tls_recv,
    .send = tls_send,
    .shutdown = tls_shutdown,
    .close = tls_close,
    .error = tls_error,
    .emss = tls_emss,
};

struct iwc_stream *iwc_stream_tls_create(struct ssl_ctx_st *ctx, struct iwc_stream *under,
                                         bool client, iwc_gather *gather)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->ssl = SSL_new(ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out) {
        BIO_free(t->in);
        BIO_free(t->out);
        SSL_free(t->ssl);
        free(t);
        return NULL;
    }
    SSL_set_bio(t->ssl, t->in, t->out);
    if (client)
        SSL_set_connect_state(t->ssl);
    else
        SSL_set_accept_state(t->ssl);
    lock_init(&t->lock, LOCK_TLS);
    t->base.ops = &tls_ops;
    t->under = under;
    t->gather = gather;
    return &t->base;
}

void iwc_stream_tls_free(struct iwc_stream *s)
{
    if (!s)
        return;
    struct tls *t = tls_of(s);
    SSL_free(t->ssl);
    lock_fini(&t->lock);
    OPENSSL_cleanse(t->early, sizeof(t->early));
    free(t);
}

const char *iwc_stream_tls_why(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    lock_get(&t->lock);
    bool failed = t->failed;
    lock_put(&t->lock);
    return failed ? t->why : NULL; /* written once */
}

bool iwc_stream_tls_established(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    lock_get(&t->lock);
    bool over = !t->failed && t->established;
    lock_put(&t->lock);
    return over;
}
