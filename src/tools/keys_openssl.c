/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/keys.h"

#include "env/tls.h"
#include "tools/tool.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#define PSK_BYTES    32
#define DAY_S        86400L
#define SERIAL_BYTES 16
#define SKEW_S       300 /* clocks of other hosts may be behind */

static _Noreturn void die(const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    tool_die(TOOL_FAILED, "keys: %s: %s", what, why ? why : "OpenSSL failed");
}

static void check(bool ok, const char *what)
{
    if (!ok)
        die(what);
}

static EVP_PKEY *make_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, NULL);
    check(c && EVP_PKEY_keygen_init(c) > 0 &&
              EVP_PKEY_CTX_set_ec_paramgen_curve_nid(c, NID_X9_62_prime256v1) > 0 &&
              EVP_PKEY_keygen(c, &key) > 0,
          "a private key");
    EVP_PKEY_CTX_free(c);
    return key;
}

static void set_serial(X509 *c)
{
    unsigned char bytes[SERIAL_BYTES];
    check(RAND_bytes(bytes, sizeof(bytes)) == 1, "a random number");
    bytes[0] &= 0x7f;
    BIGNUM *n = BN_bin2bn(bytes, sizeof(bytes), NULL);
    check(n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(c)), "a serial number");
    BN_free(n);
}

static void add_extension(X509 *c, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, c, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    check(e && X509_add_ext(c, e, -1) == 1, value);
    X509_EXTENSION_free(e);
}

/** A certificate without extensions, not signed. */
static X509 *begin(const char *name, EVP_PKEY *key, int days)
{
    X509 *c = X509_new();
    check(c && X509_set_version(c, 2) == 1, "a certificate");
    set_serial(c);
    X509_NAME *subject = X509_get_subject_name(c);
    check(X509_gmtime_adj(X509_getm_notBefore(c), -SKEW_S) &&
              X509_gmtime_adj(X509_getm_notAfter(c), days * DAY_S) &&
              X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name,
                                         -1, -1, 0) == 1 &&
              X509_set_pubkey(c, key) == 1,
          name);
    return c;
}

static void sign_and_write(X509 *c, EVP_PKEY *by, EVP_PKEY *key, FILE *certificate, FILE *key_file)
{
    check(X509_sign(c, by, EVP_sha256()) > 0, "a signature");
    check(PEM_write_X509(certificate, c) == 1, "the certificate");
    check(PEM_write_PKCS8PrivateKey(key_file, key, NULL, NULL, 0, NULL, NULL) == 1, "the key");
}

void keys_make_authority(FILE *certificate, FILE *key_file, int days)
{
    EVP_PKEY *key = make_key();
    X509 *c = begin("anywarp authority", key, days);
    check(X509_set_issuer_name(c, X509_get_subject_name(c)) == 1, "the issuer");
    add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
    add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign");
    add_extension(c, c, NID_subject_key_identifier, "hash");
    sign_and_write(c, key, key, certificate, key_file);
    X509_free(c);
    EVP_PKEY_free(key);
}

/** "10.0.0.1,fd00::1" as X.509 wants it. */
static void add_addresses(X509 *c, X509 *issuer, const char *addresses)
{
    char text[1024] = "", list[512], *rest = list, *one;
    check(strlen(addresses) < sizeof(list), addresses);
    strcpy(list, addresses);
    while ((one = strsep(&rest, ","))) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%sIP:%s", len ? "," : "", one);
    }
    add_extension(c, issuer, NID_subject_alt_name, text);
}

void keys_make_certificate(FILE *authority, FILE *authority_key, const char *name,
                           const char *addresses, int days, FILE *certificate, FILE *key_file)
{
    X509 *issuer = PEM_read_X509(authority, NULL, NULL, NULL);
    EVP_PKEY *by = PEM_read_PrivateKey(authority_key, NULL, NULL, (void *)"");
    check(issuer && by && X509_check_private_key(issuer, by) == 1, "the authority");
    EVP_PKEY *key = make_key();
    X509 *c = begin(name, key, days);
    check(X509_set_issuer_name(c, X509_get_subject_name(issuer)) == 1, "the issuer");
    add_extension(c, issuer, NID_basic_constraints, "critical,CA:FALSE");
    add_extension(c, issuer, NID_key_usage, "critical,digitalSignature");
    add_extension(c, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
    add_extension(c, issuer, NID_authority_key_identifier, "keyid");
    if (addresses)
        add_addresses(c, issuer, addresses);
    sign_and_write(c, by, key, certificate, key_file);
    X509_free(c);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(by);
}

void keys_make_psk(FILE *f, const char *name)
{
    unsigned char key[PSK_BYTES];
    check(RAND_bytes(key, sizeof(key)) == 1, "a random number");
    fprintf(f, "%s:", name);
    for (size_t i = 0; i < sizeof(key); i++)
        fprintf(f, "%02x", key[i]);
    fputc('\n', f);
    OPENSSL_cleanse(key, sizeof(key));
}

/* ---- judging ---- */

static X509 *load(const char *path)
{
    FILE *f = fopen(path, "re");
    X509 *c = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
    if (f)
        fclose(f);
    return c;
}

static time_t seconds(const ASN1_TIME *t)
{
    struct tm tm;
    return ASN1_TIME_to_tm(t, &tm) ? timegm(&tm) : 0;
}

/** Its time is told of by itself. */
static void judge_trust(const char *path, const char *authority, char why[128])
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *v = X509_STORE_CTX_new();
    FILE *f = fopen(path, "re");
    STACK_OF(X509) *chain = sk_X509_new_null();
    for (X509 *c; f && chain && (c = PEM_read_X509(f, NULL, NULL, NULL));)
        sk_X509_push(chain, c);
    why[0] = 0;
    if (!store || !v || X509_STORE_load_locations(store, authority, NULL) != 1 ||
        X509_STORE_CTX_init(v, store, sk_X509_value(chain, 0), chain) != 1) {
        snprintf(why, 128, "%s cannot be used", authority);
    } else {
        X509_STORE_CTX_set_flags(v, X509_V_FLAG_NO_CHECK_TIME);
        if (X509_verify_cert(v) != 1)
            snprintf(why, 128, "%s", X509_verify_cert_error_string(X509_STORE_CTX_get_error(v)));
    }
    if (f)
        fclose(f);
    sk_X509_pop_free(chain, X509_free);
    X509_STORE_CTX_free(v);
    X509_STORE_free(store);
}

static bool is_for_this_host(X509 *c)
{
    struct ifaddrs *list = NULL;
    struct tls_peer self = {.certificate = c};
    bool is = false;
    if (getifaddrs(&list) != 0)
        return true;
    for (struct ifaddrs *a = list; a && !is; a = a->ifa_next) {
        struct sockaddr_storage addr = {0};
        int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;
        if (family != AF_INET && family != AF_INET6)
            continue;
        memcpy(&addr, a->ifa_addr,
               family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        is = iw_tls_is_for(&self, &addr);
    }
    freeifaddrs(list);
    return is;
}

bool keys_examine(const char *certificate, const char *authority, struct keys_certificate *out)
{
    X509 *c = load(certificate);
    if (!c)
        return false;
    BIO *b = BIO_new(BIO_s_mem());
    int n = 0;
    if (b && X509_NAME_print_ex(b, X509_get_subject_name(c), 0, XN_FLAG_RFC2253) >= 0)
        n = BIO_read(b, out->subject, sizeof(out->subject) - 1);
    out->subject[n > 0 ? n : 0] = 0;
    BIO_free(b);
    out->from = seconds(X509_get0_notBefore(c));
    out->to = seconds(X509_get0_notAfter(c));
    out->here = is_for_this_host(c);
    X509_free(c);
    judge_trust(certificate, authority, out->untrusted);
    return true;
}
