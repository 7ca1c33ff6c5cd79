/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_tls stream BYTES | connect: what OpenSSL does over a socket, with the certificates that
 * ANYWARP_TLS_CERT, _KEY and _CA name at both ends. stream: messages one way, as raw_stream;
 * connect: TCP, the handshake, a request of 20 bytes, a reply of 20 bytes, close, as raw_connect.
 */
#include "kit.h"
#include "tcp.h"

#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE 20

static SSL_CTX *context;
static int listener;

static const char *file(const char *variable)
{
    const char *path = getenv(variable);
    if (!path)
        kit_die(variable);
    return path;
}

static void make_context(void)
{
    context = SSL_CTX_new(TLS_method());
    KIT_CHECK(context && SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
    KIT_CHECK(SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1);
    KIT_CHECK(SSL_CTX_use_certificate_chain_file(context, file("ANYWARP_TLS_CERT")) == 1);
    KIT_CHECK(SSL_CTX_use_PrivateKey_file(context, file("ANYWARP_TLS_KEY"), SSL_FILETYPE_PEM) == 1);
    KIT_CHECK(SSL_CTX_load_verify_locations(context, file("ANYWARP_TLS_CA"), NULL) == 1);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static SSL *shake_hands(int fd, bool client)
{
    SSL *s = SSL_new(context);
    KIT_CHECK(s && SSL_set_fd(s, fd) == 1);
    KIT_CHECK((client ? SSL_connect(s) : SSL_accept(s)) == 1);
    return s;
}

static void end(SSL *s, int fd)
{
    SSL_shutdown(s);
    SSL_free(s);
    close(fd);
}

/* ---- stream ---- */

static void take(void *arg)
{
    void *buf = kit_pages(KIT_BULK_RECV);
    int fd = tcp_accept(listener);
    SSL *s = shake_hands(fd, false);
    (void)arg;
    while (SSL_read(s, buf, KIT_BULK_RECV) > 0)
        ;
    end(s, fd);
}

static uint64_t give(SSL *s, const void *buf, size_t len, uint64_t ns)
{
    uint64_t calls = 0, start = kit_ns();
    do {
        KIT_CHECK(SSL_write(s, buf, (int)len) == (int)len);
        calls++;
    } while (kit_ns() - start < ns);
    return calls;
}

static void stream(const struct sockaddr_in *at, size_t bytes)
{
    char last;
    kit_start(take, NULL);
    int fd = tcp_connect(at);
    SSL *s = shake_hands(fd, true);
    void *buf = kit_pages(bytes);
    give(s, buf, bytes, kit_duration() / 5);
    uint64_t start = kit_ns(), messages = give(s, buf, bytes, kit_duration());
    SSL_shutdown(s);
    KIT_CHECK(SSL_read(s, &last, 1) <= 0); /* the receiver has all of it */
    printf("bw %.6f GB/s\n", (double)(messages * bytes) / (double)(kit_ns() - start));
    end(s, fd);
}

/* ---- connect ---- */

static void serve(void *arg)
{
    char buf[MESSAGE];
    (void)arg;
    for (;;) {
        int fd = tcp_accept(listener);
        SSL *s = shake_hands(fd, false);
        KIT_CHECK(SSL_read(s, buf, MESSAGE) == MESSAGE && SSL_write(s, buf, MESSAGE) == MESSAGE);
        KIT_CHECK(SSL_read(s, buf, 1) <= 0);
        end(s, fd);
    }
}

static void connections(const struct sockaddr_in *at)
{
    char buf[MESSAGE] = "";
    uint64_t n = 0, now, start;
    kit_start(serve, NULL);
    start = kit_ns();
    do {
        int fd = tcp_connect(at);
        SSL *s = shake_hands(fd, true);
        KIT_CHECK(SSL_write(s, buf, MESSAGE) == MESSAGE && SSL_read(s, buf, MESSAGE) == MESSAGE);
        end(s, fd);
        n++;
        now = kit_ns();
    } while (now - start < kit_duration());
    printf("rate %.4f k/s\n", (double)n / (double)(now - start) * 1e6);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at;
    bool streams = argc == 3 && !strcmp(argv[1], "stream");
    if (!streams && (argc != 2 || strcmp(argv[1], "connect") != 0)) {
        fprintf(stderr, "usage: raw_tls stream BYTES | connect\n");
        return 2;
    }
    listener = tcp_listen(&at);
    make_context();
    if (streams)
        stream(&at, kit_number(argv[2]));
    else
        connections(&at);
    return 0;
}
