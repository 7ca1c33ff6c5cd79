/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/tls_handshake.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum { CLIENT, SERVER };

static struct tls_handshake *of(const SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

/* ---- secrets ---- */

static int nibble(char c)
{
    char low = (char)(c | 32);
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/** @return whether @p hex is a secret of the right length */
static bool read_secret(const char *hex, uint8_t secret[TLS_SECRET_BYTES])
{
    for (size_t i = 0; i < TLS_SECRET_BYTES; i++) {
        int high = nibble(hex[2 * i]), low = high < 0 ? -1 : nibble(hex[2 * i + 1]);
        if (low < 0)
            return false;
        secret[i] = (uint8_t)(high << 4 | low);
    }
    return hex[2 * (size_t)TLS_SECRET_BYTES] == 0;
}

/** OpenSSL tells a secret: a line "LABEL RANDOM SECRET". */
static void on_secret(const SSL *ssl, const char *line)
{
    static const char *const labels[] = {
        [CLIENT] = "CLIENT_TRAFFIC_SECRET_0 ", [SERVER] = "SERVER_TRAFFIC_SECRET_0 "};
    struct tls_handshake *h = of(ssl);
    const char *hex = strrchr(line, ' ');
    for (int i = CLIENT; h && hex && i <= SERVER; i++)
        if (!strncmp(line, labels[i], strlen(labels[i])))
            h->has[i] = read_secret(hex + 1, h->secret[i]);
}

bool tls_handshake_keys(const struct tls_handshake *h, struct tls_half *seal, struct tls_half *open)
{
    uint16_t suite = (uint16_t)SSL_CIPHER_get_id(SSL_get_current_cipher(h->ssl));
    int own = h->client ? CLIENT : SERVER;
    return h->has[CLIENT] && h->has[SERVER] && tls_half_init(seal, true, suite, h->secret[own]) &&
           tls_half_init(open, false, suite, h->secret[!own]);
}

/* ---- why not ---- */

static const struct {
    int alert;
    const char *text;
} alerts[] = {
    {SSL_AD_ACCESS_DENIED, "the peer's access rules refuse this end"},
    {SSL_AD_CERTIFICATE_EXPIRED, "the peer says that our certificate has expired"},
    {SSL_AD_CERTIFICATE_REQUIRED, "the peer wants a certificate, and there is none here"},
    {SSL_AD_UNKNOWN_CA, "the peer does not know the authority of our certificate"},
    {SSL_AD_NO_APPLICATION_PROTOCOL, "the peer does not speak iWARP"},
    {SSL_AD_DECRYPT_ERROR, "the peer says that our proof is wrong: another key"},
    {SSL_AD_ILLEGAL_PARAMETER,
     "the peer refused (illegal parameter): another pre-shared key of the same name"},
    {SSL_AD_HANDSHAKE_FAILURE,
     "the peer refused: it has neither our pre-shared key, nor certificates"},
};

void tls_alert_text(int alert, char *text, size_t size)
{
    for (size_t i = 0; i < sizeof(alerts) / sizeof(alerts[0]); i++)
        if (alerts[i].alert == alert) {
            snprintf(text, size, "%s", alerts[i].text);
            return;
        }
    snprintf(text, size, "the peer refused: %s", SSL_alert_desc_string_long(alert));
}

static void say_date(const ASN1_TIME *time, char *text, size_t size)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(time, &tm) || !strftime(text, size, "%Y-%m-%d %H:%M UTC", &tm))
        snprintf(text, size, "a date that cannot be read");
}

/** A certificate of the peer's chain is judged; a no is explained. */
static int on_certificate(int ok, X509_STORE_CTX *store)
{
    const SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_handshake *h = of(ssl);
    const X509 *c = X509_STORE_CTX_get_current_cert(store);
    int error = X509_STORE_CTX_get_error(store);
    char date[40];
    if (ok || !h || h->why[0])
        return ok;
    if (error == X509_V_ERR_CERT_HAS_EXPIRED && c) {
        say_date(X509_get0_notAfter(c), date, sizeof(date));
        snprintf(h->why, sizeof(h->why), "the peer's certificate expired on %s", date);
    } else if (error == X509_V_ERR_CERT_NOT_YET_VALID && c) {
        say_date(X509_get0_notBefore(c), date, sizeof(date));
        snprintf(h->why, sizeof(h->why),
                 "the peer's certificate is valid from %s on: or is the clock wrong?", date);
    } else {
        snprintf(h->why, sizeof(h->why), "the peer's certificate: %s",
                 X509_verify_cert_error_string(error));
    }
    return ok;
}

/** OpenSSL has found an error. */
static void explain(struct tls_handshake *h)
{
    unsigned long e = ERR_peek_last_error();
    int reason = ERR_GET_LIB(e) == ERR_LIB_SSL ? ERR_GET_REASON(e) : 0;
    if (h->why[0])
        return; /* a certificate's */
    if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
        tls_alert_text(reason - SSL_AD_REASON_OFFSET, h->why, sizeof(h->why));
    else if (reason == SSL_R_BINDER_DOES_NOT_VERIFY)
        snprintf(h->why, sizeof(h->why), "the peer has another pre-shared key of the same name");
    else if (reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM || reason == SSL_R_NO_SHARED_CIPHER)
        snprintf(h->why, sizeof(h->why),
                 "no pre-shared key that both have, and no certificate here");
    else
        snprintf(h->why, sizeof(h->why), "%s",
                 e ? ERR_reason_error_string(e) : "the peer ended the handshake");
}

/* ---- who ---- */

/** The subject; nothing if it is too long: one that was cut would be somebody else's. */
static void name_by_certificate(struct tls_peer *peer)
{
    struct tls_peer_name *p = &peer->name;
    BIO *b = BIO_new(BIO_s_mem());
    X509_NAME *subject = X509_get_subject_name(peer->certificate);
    int n = b && X509_NAME_print_ex(b, subject, 0, XN_FLAG_RFC2253) >= 0
                ? BIO_read(b, p->identity, sizeof(p->identity))
                : 0;
    p->identity[n > 0 && (size_t)n < sizeof(p->identity) ? n : 0] = 0;
    BIO_free(b);
}

static void name_peer(struct tls_handshake *h)
{
    struct tls_peer *p = &h->peer;
    snprintf(p->name.cipher, sizeof(p->name.cipher), "%s", SSL_get_cipher_name(h->ssl));
    p->certificate = SSL_session_reused(h->ssl) ? NULL : SSL_get_peer_certificate(h->ssl);
    if (p->certificate)
        name_by_certificate(p);
    else
        snprintf(p->name.identity, sizeof(p->name.identity), "psk:%s",
                 h->key_name ? h->key_name : "");
}

static bool is_iwarp(const SSL *ssl)
{
    const unsigned char *name;
    unsigned len;
    SSL_get0_alpn_selected(ssl, &name, &len);
    return len == 5 && !memcmp(name, "iwarp", 5);
}

/* ---- life ---- */

void tls_handshake_prepare(struct ssl_ctx_st *ctx)
{
    SSL_CTX_set_keylog_callback(ctx, on_secret);
    /* Of a connection with a pre-shared key no certificate is asked for. */
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, on_certificate);
}

void tls_handshake_named(struct ssl_st *ssl, const char *key_name)
{
    struct tls_handshake *h = of(ssl);
    if (h)
        h->key_name = key_name;
}

bool tls_handshake_init(struct tls_handshake *h, struct ssl_ctx_st *ctx, bool client)
{
    h->ssl = SSL_new(ctx);
    h->in = BIO_new(BIO_s_mem());
    h->out = BIO_new(BIO_s_mem());
    h->client = h->ready = client;
    if (!h->ssl || !h->in || !h->out) {
        BIO_free(h->in);
        BIO_free(h->out);
        SSL_free(h->ssl);
        return false;
    }
    SSL_set_bio(h->ssl, h->in, h->out);
    SSL_set_app_data(h->ssl, h);
    if (client)
        SSL_set_connect_state(h->ssl);
    else
        SSL_set_accept_state(h->ssl);
    return true;
}

void tls_handshake_fini(struct tls_handshake *h)
{
    SSL_free(h->ssl);
    X509_free(h->peer.certificate);
    h->ssl = NULL;
    h->peer.certificate = NULL;
    OPENSSL_cleanse(h->secret, sizeof(h->secret));
}

/* ---- records ---- */

size_t tls_handshake_wants(const struct tls_handshake *h)
{
    return (h->record_has < TLS_RECORD_HEADER ? TLS_RECORD_HEADER : h->record_len) - h->record_has;
}

int tls_handshake_input(struct tls_handshake *h, const uint8_t *p, size_t n)
{
    if (BIO_write(h->in, p, (int)n) != (int)n) {
        snprintf(h->why, sizeof(h->why), "no memory");
        return -ENOMEM;
    }
    h->heard = true;
    if (h->record_has < TLS_RECORD_HEADER)
        memcpy(h->header + h->record_has, p, n);
    h->record_has += n;
    if (h->record_has == TLS_RECORD_HEADER)
        h->record_len = TLS_RECORD_HEADER + ((size_t)h->header[3] << 8 | h->header[4]);
    if (h->record_has >= TLS_RECORD_HEADER && h->record_len > TLS_RECORD_MAX) {
        snprintf(h->why, sizeof(h->why), "a record is too long, or this is no TLS");
        return -EPROTO;
    }
    if (h->record_has >= TLS_RECORD_HEADER && h->record_has == h->record_len) {
        h->record_has = h->record_len = 0;
        h->ready = true;
    }
    return 0;
}

int tls_handshake_step(struct tls_handshake *h)
{
    if (h->peer.name.cipher[0])
        return 0;
    if (!h->ready)
        return -EAGAIN;
    h->ready = false;
    ERR_clear_error();
    int r = SSL_do_handshake(h->ssl);
    if (r != 1 && SSL_get_error(h->ssl, r) == SSL_ERROR_WANT_READ)
        return -EAGAIN;
    if (r != 1) {
        explain(h);
        ERR_clear_error();
        return -EACCES;
    }
    if (!is_iwarp(h->ssl)) {
        snprintf(h->why, sizeof(h->why), "the peer does not ask for protocol iwarp");
        return -EACCES;
    }
    name_peer(h);
    return 0;
}

int tls_handshake_flush(struct tls_handshake *h, struct iwc_stream *under)
{
    char *p;
    for (long left; (left = BIO_get_mem_data(h->out, &p)) > 0;) {
        struct iovec v = {.iov_base = p, .iov_len = (size_t)left};
        ssize_t n = under->ops->send(under, &v, 1);
        if (n < 0)
            return (int)n;
        while (n > 0) { /* a BIO has no other way to forget its first bytes */
            char drop[1024];
            n -= BIO_read(h->out, drop, n < 1024 ? (int)n : 1024);
        }
    }
    return 0;
}
