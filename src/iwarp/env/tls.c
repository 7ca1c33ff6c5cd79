/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/tls.h"

#include "conn/tls_handshake.h"
#include "env/conf.h"

#include <netinet/in.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PSK_MIN      16 /* bytes: less could be guessed */
#define PSK_MAX      64
#define PSKS_MAX     64
#define PSK_NAME_MAX 128
#define CHAIN_MAX    (32 * 1024) /* bytes of certificates that a peer may show */

static const unsigned char protocol[] = "\5iwarp";

/* With SHA-256: a pre-shared key is good for one hash. */
static const char ciphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

static SSL_CTX *context;
static char refusal[384];

/* The first is offered; peers may offer any. */
static struct {
    char name[PSK_NAME_MAX];
    SSL_SESSION *session;
} psks[PSKS_MAX];
static unsigned npsks;

static bool refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static bool refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(refusal, sizeof(refusal), format, args);
    va_end(args);
    return false;
}

/** A secret's file, open; NULL if there is none, or others may read it. */
static FILE *secret(const char *path)
{
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f) {
        refuse("%s: cannot be opened", path);
    } else if (fstat(fileno(f), &st) || (st.st_mode & (S_IRWXG | S_IRWXO))) {
        refuse("%s: others may read it (chmod 600)", path);
        fclose(f);
        f = NULL;
    }
    return f;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                           const unsigned char *in, unsigned in_len, void *arg)
{
    unsigned char *name;
    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&name, out_len, protocol, sizeof(protocol) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = name;
    return SSL_TLSEXT_ERR_OK;
}

/* ---- a pre-shared key ---- */

static int offer_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
                     SSL_SESSION **session)
{
    *session = NULL;
    if (md && EVP_MD_get_type(md) != NID_sha256)
        return 1;
    *session = SSL_SESSION_dup(psks[0].session); /* the connection writes to it */
    if (!*session)
        return 0;
    *id = (const unsigned char *)psks[0].name;
    *id_len = strlen(psks[0].name);
    tls_handshake_named(ssl, psks[0].name);
    return 1;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
    *session = NULL;
    for (unsigned i = 0; i < npsks; i++)
        if (id_len == strlen(psks[i].name) && !memcmp(id, psks[i].name, id_len)) {
            *session = SSL_SESSION_dup(psks[i].session);
            tls_handshake_named(ssl, psks[i].name);
            return *session != NULL;
        }
    return 1;
}

static SSL_SESSION *make_session(SSL_CTX *c, const unsigned char *key, size_t len)
{
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    SSL *ssl = SSL_new(c);
    const SSL_CIPHER *cipher = ssl ? SSL_CIPHER_find(ssl, aes_128_gcm_sha256) : NULL;
    SSL_SESSION *s = SSL_SESSION_new();
    bool ok = cipher && s && SSL_SESSION_set1_master_key(s, key, len) &&
              SSL_SESSION_set1_id_context(s, protocol, sizeof(protocol) - 1) &&
              SSL_SESSION_set_cipher(s, cipher) &&
              SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION);
    SSL_free(ssl);
    if (ok)
        return s;
    SSL_SESSION_free(s);
    return NULL;
}

/** A line NAME:HEX. */
static bool add_psk(SSL_CTX *c, char *line)
{
    long len = 0;
    char *hex = strchr(line, ':');
    if (npsks == PSKS_MAX || !hex || hex == line || hex - line >= PSK_NAME_MAX)
        return false;
    *hex++ = 0;
    unsigned char *key = OPENSSL_hexstr2buf(hex, &len);
    if (key && len >= PSK_MIN && len <= PSK_MAX)
        psks[npsks].session = make_session(c, key, (size_t)len);
    OPENSSL_clear_free(key, (size_t)len);
    strcpy(psks[npsks].name, line);
    return psks[npsks].session && ++npsks;
}

static bool load_psks(SSL_CTX *c, const char *path)
{
    char line[512];
    FILE *f = secret(path);
    bool ok = true;
    if (!f)
        return false;
    while (ok && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\r\n")] = 0;
        ok = !*line || *line == '#' || add_psk(c, line);
    }
    fclose(f);
    OPENSSL_cleanse(line, sizeof(line));
    if (!ok || !npsks)
        return refuse("%s: should be lines NAME:HEX of %d to %d bytes, at most %d", path, PSK_MIN,
                      PSK_MAX, PSKS_MAX);
    SSL_CTX_set_psk_use_session_callback(c, offer_psk);
    SSL_CTX_set_psk_find_session_callback(c, find_psk);
    return true;
}

/* ---- certificates ---- */

static bool load_certificates(SSL_CTX *c, const struct iw_conf *conf)
{
    if (!conf->tls_cert[0] || !conf->tls_key[0] || !conf->tls_ca[0])
        return refuse("ANYWARP_TLS_CERT, ANYWARP_TLS_KEY and ANYWARP_TLS_CA belong together");
    FILE *f = secret(conf->tls_key);
    if (!f)
        return false;
    EVP_PKEY *key = PEM_read_PrivateKey(f, NULL, NULL, (void *)""); /* no question at a terminal */
    fclose(f);
    bool ok = key != NULL;
    if (!ok)
        refuse("%s: no private key without a password", conf->tls_key);
    else if (SSL_CTX_use_certificate_chain_file(c, conf->tls_cert) != 1)
        ok = refuse("%s: no certificate that can be used", conf->tls_cert);
    else if (SSL_CTX_use_PrivateKey(c, key) != 1)
        ok = refuse("%s: not the key of %s", conf->tls_key, conf->tls_cert);
    else if (SSL_CTX_load_verify_locations(c, conf->tls_ca, NULL) != 1)
        ok = refuse("%s: no certificate that can be used", conf->tls_ca);
    EVP_PKEY_free(key);
    return ok;
}

static bool prepare(SSL_CTX *c)
{
    const struct iw_conf *conf = iw_conf();
    bool named = conf->tls_cert[0] || conf->tls_key[0] || conf->tls_ca[0];
    if (!named && !conf->tls_psk[0])
        return refuse("neither certificates (ANYWARP_TLS_CERT, _KEY, _CA) nor ANYWARP_TLS_PSK");
    SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION);
    SSL_CTX_set_num_tickets(c, 0);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    /* A pre-shared key is a session to OpenSSL, which wants to know whose. */
    SSL_CTX_set_session_id_context(c, protocol, sizeof(protocol) - 1);
    SSL_CTX_set_max_cert_list(c, CHAIN_MAX);
    tls_handshake_prepare(c);
    SSL_CTX_set_alpn_select_cb(c, choose_protocol, NULL);
    if (SSL_CTX_set_ciphersuites(c, ciphers) != 1)
        return refuse("OpenSSL has no %s", ciphers);
    if (SSL_CTX_set_alpn_protos(c, protocol, sizeof(protocol) - 1))
        return refuse("no memory");
    return (!named || load_certificates(c, conf)) &&
           (!conf->tls_psk[0] || load_psks(c, conf->tls_psk));
}

static void load(void)
{
    OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
    SSL_CTX *c = SSL_CTX_new(TLS_method());
    if (!c)
        refuse("OpenSSL has no TLS");
    else if (prepare(c))
        context = c;
    else
        SSL_CTX_free(c);
    ERR_clear_error();
}

struct ssl_ctx_st *iw_tls_context(const char **why)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    *why = context ? NULL : refusal;
    return context;
}

bool iw_tls_is_for(const struct tls_peer *peer, const struct sockaddr_storage *addr)
{
    X509 *c = peer->certificate;
    GENERAL_NAMES *names = c ? X509_get_ext_d2i(c, NID_subject_alt_name, NULL, NULL) : NULL;
    const struct sockaddr_in *four = (const struct sockaddr_in *)addr;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)addr;
    bool is_six = addr->ss_family == AF_INET6, named = false;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); i++)
        named |= sk_GENERAL_NAME_value(names, i)->type == GEN_IPADD;
    sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
    const uint8_t *ip = is_six ? six->sin6_addr.s6_addr : (const uint8_t *)&four->sin_addr;
    size_t len = is_six ? sizeof(six->sin6_addr) : sizeof(four->sin_addr);
    if (is_six && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        ip += len - sizeof(four->sin_addr);
        len = sizeof(four->sin_addr);
    }
    return !named || X509_check_ip(c, ip, len, 0) == 1;
}
