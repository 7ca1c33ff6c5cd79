/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_tls.h"

#include "conn/stream_mem.h"
#include "env/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY   200000
#define ROUNDS 1000000

static struct ssl_ctx_st *context;
static struct iwc_stream_mem *pair[2];
static struct iwc_stream *under[2], *client, *server;
static uint8_t bytes[MANY], got[MANY + IWC_TLS_ROOM];

static bool gather(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n)
{
    for (unsigned i = 0; i < n && len > 0; i++) {
        size_t over = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        size_t part = iov[i].iov_len - over < len ? iov[i].iov_len - over : len;
        if (!iov[i].iov_base)
            return false;
        memcpy(to, (const uint8_t *)iov[i].iov_base + over, part);
        skip -= over;
        to += part;
        len -= part;
    }
    return true;
}

static const char *no; /* NULL: every peer may come in */

static bool judge(void *arg, const struct tls_peer *peer, char *why, size_t size)
{
    (void)arg;
    assert_string_equal(peer->name.identity, "psk:test");
    if (no)
        snprintf(why, size, "%s", no);
    return !no;
}

static const struct iwc_tls_user user = {.gather = gather, .judge = judge};

static int make_context(void **ctx)
{
    (void)ctx;
    const char *why;
    char path[] = "/tmp/stream_tls_test.XXXXXX"; /* mkstemp: nobody else may read it */
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(dprintf(fd, "test:000102030405060708090a0b0c0d0e0f\n"), 38);
    setenv("ANYWARP_TLS_PSK", path, 1);
    context = iw_tls_context(&why);
    unlink(path);
    close(fd);
    for (size_t i = 0; i < MANY; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    return context ? 0 : -1;
}

static void make(size_t chunk, size_t window)
{
    assert_int_equal(iwc_stream_mem_pair(pair, chunk, window), 0);
    for (int i = 0; i < 2; i++)
        under[i] = iwc_stream_mem_stream(pair[i]);
    client = iwc_stream_tls_create(context, under[0], true, &user, NULL);
    server = iwc_stream_tls_create(context, under[1], false, &user, NULL);
    assert_non_null(client);
    assert_non_null(server);
}

static int drop(void **ctx)
{
    (void)ctx;
    iwc_stream_tls_free(client);
    iwc_stream_tls_free(server);
    if (client)
        iwc_stream_mem_free(pair);
    client = server = NULL;
    return 0;
}

static ssize_t put(struct iwc_stream *s, const void *p, size_t len)
{
    struct iovec v = {.iov_base = (void *)p, .iov_len = len};
    return s->ops->send(s, &v, 1);
}

/** The Request goes before the handshake, and comes out behind it. */
static void shake_hands(void)
{
    ssize_t n = -EAGAIN;
    char buf[64];
    assert_int_equal(put(client, "request", 7), 7);
    for (int i = 0; i < ROUNDS && n == -EAGAIN; i++) {
        n = server->ops->recv(server, buf, sizeof(buf));
        assert_int_equal(client->ops->recv(client, got, sizeof(got)), -EAGAIN);
    }
    assert_int_equal(n, 7);
    assert_memory_equal(buf, "request", 7);
    assert_non_null(iwc_stream_tls_peer(client));
    assert_non_null(iwc_stream_tls_peer(server));
}

/** All of bytes[] from one end to the other, in pieces of at most @p room. */
static void carry(struct iwc_stream *from, struct iwc_stream *to, size_t room)
{
    size_t sent = 0, came = 0;
    for (int i = 0; i < ROUNDS && came < MANY; i++) {
        ssize_t n = sent < MANY ? put(from, bytes + sent, MANY - sent) : 0;
        assert_true(n >= 0 || n == -EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        n = to->ops->recv(to, got + came, room);
        assert_true(n > 0 || n == -EAGAIN);
        came += n > 0 ? (size_t)n : 0;
        assert_true(came <= sent + 1); /* a byte may be there that is not reported as taken */
    }
    assert_int_equal(came, MANY);
    assert_memory_equal(got, bytes, MANY);
    if (sent == MANY - 1)
        assert_int_equal(put(from, bytes + sent, 1), 1);
}

static void every_split(void **ctx)
{
    static const size_t chunks[] = {1, 5, 22, 1000, 1 << 20}, windows[] = {3000, 1 << 20};
    (void)ctx;
    for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
        for (size_t w = 0; w < sizeof(windows) / sizeof(windows[0]); w++) {
            make(chunks[c], windows[w]);
            shake_hands();
            carry(client, server, IWC_TLS_ROOM);
            carry(server, client, IWC_TLS_ROOM);
            drop(NULL);
        }
}

/** What a recv does not give stays in the stream below: nothing waits where nobody looks. */
static void nothing_stays_behind(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    shake_hands();
    for (int i = 0; i < 40; i++)
        assert_int_equal(put(client, bytes + (size_t)i * 100, 100), 100);
    size_t came = 0;
    for (int i = 0; i < 400 && came < 4000; i++) {
        ssize_t n = server->ops->recv(server, got + came, 300);
        assert_true(n > 0 && n <= 300);
        came += (size_t)n;
    }
    assert_memory_equal(got, bytes, 4000);
    assert_int_equal(server->ops->recv(server, got, 300), -EAGAIN);
}

static void record_without_room(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    shake_hands();
    assert_int_equal(put(client, bytes, 5000), 5000);
    assert_int_equal(server->ops->recv(server, got, 512), -EMSGSIZE);
    assert_non_null(iwc_stream_tls_why(server));
}

static void end_is_announced(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    shake_hands();
    assert_int_equal(put(client, "last", 4), 4);
    client->ops->shutdown(client);
    assert_int_equal(server->ops->recv(server, got, 64), 4);
    assert_int_equal(server->ops->recv(server, got, 64), 0);
    assert_int_equal(put(server, "answer", 6), 6); /* half of it goes on */
    assert_int_equal(client->ops->recv(client, got, 64), 6);
}

static void cut_off(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    shake_hands();
    under[0]->ops->shutdown(under[0]);
    assert_int_equal(server->ops->recv(server, got, 64), -ECONNRESET);
    assert_int_equal(server->ops->recv(server, got, 64), -ECONNRESET);
}

/** Whether the peer has read what came before it hung up makes no difference. */
static void hung_up_on(void **ctx)
{
    (void)ctx;
    char first[2][128] = {"", ""};
    for (int reset = 0; reset < 2; reset++) {
        make(1 << 20, 1 << 20);
        assert_int_equal(client->ops->recv(client, got, 64), -EAGAIN); /* its hello is sent */
        under[1]->ops->close(under[1], reset);
        assert_int_equal(client->ops->recv(client, got, 64), -ECONNRESET);
        assert_non_null(iwc_stream_tls_why(client));
        snprintf(first[reset], sizeof(first[reset]), "%s", iwc_stream_tls_why(client));
        drop(NULL);
    }
    assert_string_equal(first[0], first[1]);
    assert_non_null(strstr(first[1], "hung up at once"));
}

static void changed_on_the_way(void **ctx)
{
    (void)ctx;
    for (uint64_t at = 0; at < 40; at++) {
        make(1 << 20, 1 << 20);
        shake_hands();
        iwc_stream_mem_chunk(pair[0], 1 << 20);
        assert_int_equal(put(server, "0123456789", 10), 10);
        assert_int_equal(client->ops->recv(client, got, 64), 10);
        put(client, "abcdefghij", 10);
        uint8_t record[64];
        ssize_t n = under[1]->ops->recv(under[1], record, sizeof(record));
        assert_int_equal(n, 5 + 10 + 1 + 16);
        if (at < (uint64_t)n) {
            record[at] ^= 1;
            put(under[0], record, (size_t)n);
            under[0]->ops->shutdown(under[0]); /* a length that grew: the rest never comes */
            assert_true(server->ops->recv(server, got, 64) < 0);
        }
        drop(NULL);
    }
}

static void replayed(void **ctx)
{
    (void)ctx;
    uint8_t record[64];
    make(1 << 20, 1 << 20);
    shake_hands();
    put(client, "once", 4);
    ssize_t n = under[1]->ops->recv(under[1], record, sizeof(record));
    put(under[0], record, (size_t)n);
    put(under[0], record, (size_t)n);
    assert_int_equal(server->ops->recv(server, got, (size_t)n), 4);
    assert_int_equal(server->ops->recv(server, got, 64), -EPROTO);
}

static void garbage(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    memset(got, 22, 8192); /* more than the record that it seems to be */
    put(under[0], got, 8192);
    assert_true(server->ops->recv(server, got, 512) < 0);
    assert_null(iwc_stream_tls_peer(server));
    assert_non_null(iwc_stream_tls_why(server));
    assert_true(put(server, "x", 1) < 0);
}

static void memory_that_is_gone(void **ctx)
{
    (void)ctx;
    make(1 << 20, 1 << 20);
    shake_hands();
    assert_int_equal(put(client, NULL, 10), -EFAULT);
    assert_int_equal(put(client, "well", 4), 4);
    assert_int_equal(server->ops->recv(server, got, 64), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_split, drop),
        cmocka_unit_test_teardown(nothing_stays_behind, drop),
        cmocka_unit_test_teardown(record_without_room, drop),
        cmocka_unit_test_teardown(end_is_announced, drop),
        cmocka_unit_test_teardown(cut_off, drop),
        cmocka_unit_test_teardown(hung_up_on, drop),
        cmocka_unit_test_teardown(changed_on_the_way, drop),
        cmocka_unit_test_teardown(replayed, drop),
        cmocka_unit_test_teardown(garbage, drop),
        cmocka_unit_test_teardown(memory_that_is_gone, drop),
    };
    return cmocka_run_group_tests(tests, make_context, NULL);
}
