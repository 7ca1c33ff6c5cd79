/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/tls_record.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#define TAG     16
#define KEY_MAX 32

enum { AES_128_GCM = 0x1301, CHACHA20_POLY1305 = 0x1303 };

/** HKDF-Expand-Label (RFC 8446 section 7.1) of one block of SHA-256, without a context. */
static bool expand(const uint8_t secret[TLS_SECRET_BYTES], const char *label, uint8_t *out,
                   size_t len)
{
    uint8_t info[64], block[EVP_MAX_MD_SIZE];
    size_t name = strlen(label), n = 0;
    unsigned got = 0;
    info[n++] = 0;
    info[n++] = (uint8_t)len;
    info[n++] = (uint8_t)(6 + name);
    memcpy(info + n, "tls13 ", 6);
    memcpy(info + n + 6, label, name);
    n += 6 + name;
    info[n++] = 0; /* no context */
    info[n++] = 1; /* the first block */
    bool ok = HMAC(EVP_sha256(), secret, TLS_SECRET_BYTES, info, n, block, &got) && len <= got;
    if (ok)
        memcpy(out, block, len);
    OPENSSL_cleanse(block, sizeof(block));
    return ok;
}

static const EVP_CIPHER *cipher_of(uint16_t suite)
{
    switch (suite) {
    case AES_128_GCM:
        return EVP_aes_128_gcm();
    case CHACHA20_POLY1305:
        return EVP_chacha20_poly1305();
    default:
        return NULL;
    }
}

/** Takes the key of the secret into use. */
static bool set_key(struct tls_half *h)
{
    uint8_t key[KEY_MAX];
    size_t len = h->suite == AES_128_GCM ? 16 : 32;
    bool ok = expand(h->secret, "key", key, len) && expand(h->secret, "iv", h->iv, sizeof(h->iv)) &&
              EVP_CipherInit_ex(h->cipher, NULL, NULL, key, NULL, h->seals) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    h->records = 0;
    return ok;
}

bool tls_half_init(struct tls_half *h, bool seals, uint16_t suite,
                   const uint8_t secret[TLS_SECRET_BYTES])
{
    const EVP_CIPHER *cipher = cipher_of(suite);
    h->seals = seals;
    h->suite = suite;
    memcpy(h->secret, secret, TLS_SECRET_BYTES);
    h->cipher = cipher ? EVP_CIPHER_CTX_new() : NULL;
    return h->cipher && EVP_CipherInit_ex(h->cipher, cipher, NULL, NULL, NULL, seals) == 1 &&
           set_key(h);
}

void tls_half_fini(struct tls_half *h)
{
    EVP_CIPHER_CTX_free(h->cipher);
    h->cipher = NULL;
    OPENSSL_cleanse(h->secret, sizeof(h->secret));
}

bool tls_half_update(struct tls_half *h)
{
    uint8_t next[TLS_SECRET_BYTES];
    bool ok = expand(h->secret, "traffic upd", next, sizeof(next));
    if (ok)
        memcpy(h->secret, next, sizeof(next));
    OPENSSL_cleanse(next, sizeof(next));
    return ok && set_key(h);
}

/** Begins the next record: its number is in the nonce (RFC 8446 section 5.3), its header covered.
 */
static bool begin(struct tls_half *h, const uint8_t header[TLS_RECORD_HEADER])
{
    uint8_t nonce[sizeof(h->iv)];
    int n;
    memcpy(nonce, h->iv, sizeof(nonce));
    for (unsigned i = 0; i < 8; i++)
        nonce[sizeof(nonce) - 1 - i] ^= (uint8_t)(h->records >> 8 * i);
    h->records++;
    return EVP_CipherInit_ex(h->cipher, NULL, NULL, NULL, nonce, -1) == 1 &&
           EVP_CipherUpdate(h->cipher, NULL, &n, header, TLS_RECORD_HEADER) == 1;
}

size_t tls_seal(struct tls_half *h, enum tls_content type, uint8_t *at, size_t len)
{
    uint8_t *p = at + TLS_RECORD_HEADER;
    size_t inner = len + 1, covered = inner + TAG;
    int n, last;
    at[0] = TLS_DATA;
    at[1] = at[2] = 3;
    at[3] = (uint8_t)(covered >> 8);
    at[4] = (uint8_t)covered;
    p[len] = (uint8_t)type;
    if (!begin(h, at) || EVP_CipherUpdate(h->cipher, p, &n, p, (int)inner) != 1 ||
        EVP_CipherFinal_ex(h->cipher, p + n, &last) != 1 ||
        EVP_CIPHER_CTX_ctrl(h->cipher, EVP_CTRL_AEAD_GET_TAG, TAG, p + inner) != 1)
        return 0;
    return TLS_RECORD_HEADER + covered;
}

size_t tls_record_length(const uint8_t header[TLS_RECORD_HEADER])
{
    size_t len = TLS_RECORD_HEADER + ((size_t)header[3] << 8 | header[4]);
    return header[0] == TLS_DATA && header[1] == 3 && len <= TLS_RECORD_MAX ? len : 0;
}

int tls_open(struct tls_half *h, uint8_t *at, size_t len, uint8_t *type)
{
    uint8_t *p = at + TLS_RECORD_HEADER;
    int n, last;
    if (len < TLS_RECORD_EXTRA)
        return -TLS_BAD_RECORD_MAC;
    size_t inner = len - TLS_RECORD_HEADER - TAG;
    if (!begin(h, at) || EVP_CipherUpdate(h->cipher, p, &n, p, (int)inner) != 1 ||
        EVP_CIPHER_CTX_ctrl(h->cipher, EVP_CTRL_AEAD_SET_TAG, TAG, p + inner) != 1 ||
        EVP_CipherFinal_ex(h->cipher, p + n, &last) != 1)
        return -TLS_BAD_RECORD_MAC;
    while (inner && !p[inner - 1]) /* padding */
        inner--;
    if (!inner)
        return -TLS_UNEXPECTED_MESSAGE;
    *type = p[--inner];
    return inner > TLS_RECORD_DATA_MAX ? -TLS_RECORD_OVERFLOW : (int)inner;
}
