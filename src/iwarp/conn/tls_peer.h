/* SPDX-License-Identifier: BSD-2-Clause */
/* Who the peer of a TLS connection has proven to be. */
#ifndef ANYWARP_CONN_TLS_PEER_H
#define ANYWARP_CONN_TLS_PEER_H

#define TLS_IDENTITY_MAX 224
#define TLS_CIPHER_MAX   32

struct x509_st;

struct tls_peer_name {
    char cipher[TLS_CIPHER_MAX];     /* "TLS_AES_128_GCM_SHA256" */
    char identity[TLS_IDENTITY_MAX]; /* "CN=name", a certificate's subject (RFC 2253); "psk:name" */
};

struct tls_peer {
    struct tls_peer_name name;
    struct x509_st *certificate; /* while it is judged; NULL: a pre-shared key */
};

#endif
