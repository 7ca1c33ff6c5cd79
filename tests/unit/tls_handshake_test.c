/* SPDX-License-Identifier: BSD-2-Clause */
/* Our stream with OpenSSL at the other end, and with one that says what no peer should. */
#include "conn/tls_handshake.h"

#include "conn/stream_mem.h"
#include "conn/stream_tls.h"
#include "env/tls.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 100

static struct ssl_ctx_st *context;
static struct iwc_stream_mem *pair[2];
static struct iwc_stream *theirs, *ours;
static SSL *ssl;               /* OpenSSL's end */
static BIO *in, *out;          /* its */
static struct tls_handshake h; /* the end that says what it wants */
static struct tls_half seal, opener;
static uint8_t buf[2 * TLS_RECORD_MAX];

static bool gather(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n)
{
    (void)n;
    memcpy(to, (const uint8_t *)iov->iov_base + skip, len);
    return true;
}

static const struct iwc_tls_user user = {.gather = gather};

static int make_context(void **state)
{
    const char *why;
    char path[] = "/tmp/tls_handshake_test.XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "test:000102030405060708090a0b0c0d0e0f\n") > 0);
    setenv("ANYWARP_TLS_PSK", path, 1);
    context = iw_tls_context(&why);
    unlink(path);
    close(fd);
    return context ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    iwc_stream_tls_free(ours);
    SSL_free(ssl);
    tls_handshake_fini(&h);
    tls_half_fini(&seal);
    tls_half_fini(&opener);
    memset(&h, 0, sizeof(h));
    if (ours)
        iwc_stream_mem_free(pair);
    ours = NULL;
    ssl = NULL;
    return 0;
}

static void make(bool client)
{
    assert_int_equal(iwc_stream_mem_pair(pair, 1 << 20, 1 << 20), 0);
    theirs = iwc_stream_mem_stream(pair[0]);
    ours = iwc_stream_tls_create(context, iwc_stream_mem_stream(pair[1]), client, &user, NULL);
    assert_non_null(ours);
}

static ssize_t put(struct iwc_stream *s, const void *p, size_t len)
{
    struct iovec v = {.iov_base = (void *)p, .iov_len = len};
    return s->ops->send(s, &v, 1);
}

/* ---- OpenSSL at the other end ---- */

static void make_openssl(bool its_client)
{
    make(!its_client);
    ssl = SSL_new(context);
    in = BIO_new(BIO_s_mem());
    out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    if (its_client)
        SSL_set_connect_state(ssl);
    else
        SSL_set_accept_state(ssl);
}

static void pump(void)
{
    ssize_t n;
    while ((n = BIO_read(out, buf, sizeof(buf))) > 0)
        put(theirs, buf, (size_t)n);
    while ((n = theirs->ops->recv(theirs, buf, sizeof(buf))) > 0)
        BIO_write(in, buf, (int)n);
}

/** @return what our end's recv says at last */
static ssize_t shake_hands(void)
{
    ssize_t n = -EAGAIN;
    for (int i = 0; i < ROUNDS && n == -EAGAIN && !iwc_stream_tls_peer(ours); i++) {
        SSL_do_handshake(ssl);
        pump();
        n = ours->ops->recv(ours, buf, sizeof(buf));
        pump();
    }
    SSL_do_handshake(ssl);
    return n;
}

static void both_ways(void)
{
    char got[16];
    assert_int_equal(SSL_write(ssl, "there", 5), 5);
    pump();
    assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), 5);
    assert_memory_equal(buf, "there", 5);
    assert_int_equal(put(ours, "back", 4), 4);
    pump();
    assert_int_equal(SSL_read(ssl, got, sizeof(got)), 4);
    assert_memory_equal(got, "back", 4);
}

static void with_openssl(void **state)
{
    static const char *const ciphers[] = {"TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        make_openssl(i & 1);
        assert_int_equal(SSL_set_ciphersuites(ssl, ciphers[i / 2]), 1);
        assert_int_equal(shake_hands(), -EAGAIN);
        assert_non_null(iwc_stream_tls_peer(ours));
        assert_string_equal(iwc_stream_tls_peer(ours)->name.cipher, ciphers[i / 2]);
        assert_string_equal(iwc_stream_tls_peer(ours)->name.identity, "psk:test");
        both_ways();
        /* It takes a new key, and asks us to. */
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        both_ways();
        assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
        both_ways();
        SSL_shutdown(ssl);
        pump();
        assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), 0);
        ours->ops->shutdown(ours);
        pump();
        assert_int_equal(SSL_shutdown(ssl), 1); /* it has heard our end */
        drop(NULL);
    }
}

static void older_versions(void **state)
{
    (void)state;
    for (int its_client = 0; its_client < 2; its_client++) {
        make_openssl(its_client);
        SSL_set_min_proto_version(ssl, 0);
        assert_int_equal(SSL_set_max_proto_version(ssl, TLS1_2_VERSION), 1);
        assert_int_equal(shake_hands(), -EACCES);
        assert_null(iwc_stream_tls_peer(ours));
        assert_non_null(iwc_stream_tls_why(ours));
        drop(NULL);
    }
}

static void another_protocol(void **state)
{
    static const unsigned char h2[] = "\2h2";
    (void)state;
    make_openssl(true);
    SSL_set_alpn_protos(ssl, h2, 3);
    assert_int_equal(shake_hands(), -EACCES);
    drop(NULL);
    make_openssl(true);
    SSL_set_alpn_protos(ssl, NULL, 0);
    assert_int_equal(shake_hands(), -EACCES);
    assert_non_null(strstr(iwc_stream_tls_why(ours), "protocol iwarp"));
    assert_null(iwc_stream_tls_peer(ours));
}

static int offer_early(SSL *s, const EVP_MD *md, const unsigned char **id, size_t *len,
                       SSL_SESSION **session)
{
    static const unsigned char key[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
    (void)md;
    *session = SSL_SESSION_new();
    SSL_SESSION_set1_master_key(*session, key, sizeof(key));
    SSL_SESSION_set_cipher(*session, SSL_CIPHER_find(s, aes_128_gcm_sha256));
    SSL_SESSION_set_protocol_version(*session, TLS1_3_VERSION);
    SSL_SESSION_set1_id_context(*session, (const unsigned char *)"\5iwarp", 6);
    SSL_SESSION_set_max_early_data(*session, 1000);
    SSL_SESSION_set1_alpn_selected(*session, (const unsigned char *)"iwarp", 5);
    *id = (const unsigned char *)"test";
    *len = 4;
    return 1;
}

/** Data of the first flight could be replayed: we take none. */
static void early_data(void **state)
{
    size_t written = 0;
    (void)state;
    make_openssl(true);
    SSL_set_psk_use_session_callback(ssl, offer_early);
    assert_int_equal(SSL_write_early_data(ssl, "replay", 6, &written), 1);
    assert_int_equal(written, 6);
    assert_int_equal(shake_hands(), -EAGAIN);
    assert_int_equal(SSL_get_early_data_status(ssl), SSL_EARLY_DATA_REJECTED);
    both_ways();
}

/* ---- one that says what no peer should ---- */

/** @param client  our end is the client */
static void make_liar(bool client)
{
    int r = -EAGAIN;
    make(client);
    assert_true(tls_handshake_init(&h, context, !client));
    for (int i = 0; i < ROUNDS && (r == -EAGAIN || !iwc_stream_tls_peer(ours)); i++) {
        r = tls_handshake_step(&h);
        assert_int_equal(tls_handshake_flush(&h, theirs), 0);
        ours->ops->recv(ours, buf, sizeof(buf));
        ssize_t n = theirs->ops->recv(theirs, buf, tls_handshake_wants(&h));
        if (n > 0)
            assert_int_equal(tls_handshake_input(&h, buf, (size_t)n), 0);
    }
    assert_int_equal(r, 0);
    assert_true(tls_handshake_keys(&h, &seal, &opener));
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *what;
    uint8_t type;
    const char *bytes;
    size_t len;
    ssize_t expect; /* of recv */
} lies[] = {
    {"data", TLS_DATA, BYTES("data"), 4},
    {"no data", TLS_DATA, BYTES(""), -EAGAIN},
    {"a ticket", TLS_HANDSHAKE, BYTES("\4\0\0\2xx"), -EAGAIN},
    {"a new key", TLS_HANDSHAKE, BYTES("\x18\0\0\1\0"), -EAGAIN},
    {"the end", TLS_ALERT, BYTES("\1\0"), 0},
    {"ClientHello", TLS_HANDSHAKE, BYTES("\1\0\0\2xx"), -EPROTO},
    {"HelloRequest", TLS_HANDSHAKE, BYTES("\0\0\0\0"), -EPROTO},
    {"CertificateRequest", TLS_HANDSHAKE, BYTES("\x0d\0\0\2xx"), -EPROTO},
    {"a ticket that goes on", TLS_HANDSHAKE, BYTES("\4\0\0\3xx"), -EPROTO},
    {"a part of a message", TLS_HANDSHAKE, BYTES("\x18\0"), -EPROTO},
    {"no message", TLS_HANDSHAKE, BYTES(""), -EPROTO},
    {"a new key, and more", TLS_HANDSHAKE, BYTES("\x18\0\0\1\0\x18\0\0\1\0"), -EPROTO},
    {"a new key, or so", TLS_HANDSHAKE, BYTES("\x18\0\0\1\2"), -EPROTO},
    {"a new key of 65537 bytes", TLS_HANDSHAKE, BYTES("\x18\1\0\1\0"), -EPROTO},
    {"a fatal alert", TLS_ALERT, BYTES("\2\x31"), -EACCES},
    {"an alert that nobody knows", TLS_ALERT, BYTES("\2\xc8"), -EACCES},
    {"half an alert", TLS_ALERT, BYTES("\2"), -EPROTO},
    {"ChangeCipherSpec", 20, BYTES("\1"), -EPROTO},
    {"a type that nobody knows", 99, BYTES("data"), -EPROTO},
    {"padding alone", 0, BYTES("\0\0\0"), -EPROTO},
};

static void every_lie(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(lies) / sizeof(lies[0]); i++) {
        size_t row = i / 2;
        make_liar(i & 1);
        memcpy(buf + TLS_RECORD_HEADER, lies[row].bytes, lies[row].len);
        put(theirs, buf, tls_seal(&seal, lies[row].type, buf, lies[row].len));
        ssize_t n = ours->ops->recv(ours, buf, sizeof(buf));
        if (n != lies[row].expect)
            fail_msg("%s: %zd", lies[row].what, n);
        if (n < 0 && n != -EAGAIN) {
            assert_non_null(iwc_stream_tls_why(ours));
            assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), n);
            assert_int_equal(put(ours, "x", 1), n);
        }
        drop(NULL);
    }
}

/** What was sent before the end counts, what comes behind it does not. */
static void behind_the_end(void **state)
{
    (void)state;
    make_liar(false);
    uint8_t all[256];
    memcpy(all + TLS_RECORD_HEADER, "last", 4);
    size_t n = tls_seal(&seal, TLS_DATA, all, 4);
    memcpy(all + n + TLS_RECORD_HEADER, "\1\0", 2);
    n += tls_seal(&seal, TLS_ALERT, all + n, 2);
    memcpy(all + n + TLS_RECORD_HEADER, "more", 4);
    n += tls_seal(&seal, TLS_DATA, all + n, 4);
    put(theirs, all, n);
    assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), 4);
    assert_memory_equal(buf, "last", 4);
    assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), 0);
    assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), 0);
}

/** Who is refused hears which alert it was. */
static void the_alert(void **state)
{
    uint8_t type;
    (void)state;
    make_liar(true);
    put(theirs, "\x17\3\3\xff\xff", 5);
    assert_int_equal(ours->ops->recv(ours, buf, sizeof(buf)), -EPROTO);
    ssize_t n = theirs->ops->recv(theirs, buf, sizeof(buf));
    assert_true(n > 0);
    assert_int_equal(tls_open(&opener, buf, (size_t)n, &type), 2);
    assert_int_equal(type, TLS_ALERT);
    assert_int_equal(buf[TLS_RECORD_HEADER], 2);
    assert_int_equal(buf[TLS_RECORD_HEADER + 1], TLS_RECORD_OVERFLOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(with_openssl, drop),
        cmocka_unit_test_teardown(older_versions, drop),
        cmocka_unit_test_teardown(another_protocol, drop),
        cmocka_unit_test_teardown(early_data, drop),
        cmocka_unit_test_teardown(every_lie, drop),
        cmocka_unit_test_teardown(behind_the_end, drop),
        cmocka_unit_test_teardown(the_alert, drop),
    };
    return cmocka_run_group_tests(tests, make_context, NULL);
}
