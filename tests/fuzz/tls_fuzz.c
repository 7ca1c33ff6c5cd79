/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TLS stream. Either a peer without the key sends the bytes of the input in place of a handshake;
 * or one that has shaken hands sends the records of the input, which it seals, or changes, or does
 * not seal at all, in pieces.
 */
#include "fuzz/fuzz.h"

#include "conn/stream_mem.h"
#include "conn/stream_tls.h"
#include "conn/tls_handshake.h"
#include "env/tls.h"

#include <errno.h>
#include <unistd.h>

#define ROUNDS 10000 /* a byte at a time, at worst */
#define ROOM   (2 * TLS_RECORD_MAX)
#define WAIT   8 /* records at most that wait to be taken */
#define WINDOW (2 * WAIT * TLS_RECORD_MAX)

enum { OUR_CLIENT = 1, WITH_KEY = 2 };
enum { RAW = 1, CHANGED = 2, LONG = 4 };

static struct iwc_stream_mem *pair[2];
static struct iwc_stream *ours, *theirs;
static uint8_t record[ROOM], buf[ROOM];

/* What comes out has to be what went in. */
static uint8_t *sent;
static size_t sent_len, got_len;
static bool valid; /* all records were data, as they were sealed */

static bool gather(uint8_t *to, size_t skip, size_t len, const struct iovec *iov, unsigned n)
{
    (void)n;
    memcpy(to, (const uint8_t *)iov->iov_base + skip, len);
    return true;
}

static const struct iwc_tls_user user = {.gather = gather};

static struct ssl_ctx_st *context(void)
{
    const char *why;
    static struct ssl_ctx_st *ctx;
    if (ctx)
        return ctx;
    char path[] = "/tmp/tls_fuzz.XXXXXX";
    int fd = mkstemp(path);
    FUZZ_CHECK(fd >= 0 && dprintf(fd, "fuzz:000102030405060708090a0b0c0d0e0f\n") > 0);
    setenv("ANYWARP_TLS_PSK", path, 1);
    ctx = iw_tls_context(&why);
    unlink(path);
    close(fd);
    FUZZ_CHECK(ctx);
    return ctx;
}

static void put(const uint8_t *p, size_t len)
{
    while (len > 0) {
        struct iovec v = {.iov_base = (void *)p, .iov_len = len};
        ssize_t n = theirs->ops->send(theirs, &v, 1);
        FUZZ_CHECK(n > 0);
        p += n;
        len -= (size_t)n;
    }
}

/** What our end says to the peer does not matter. */
static void drain(void)
{
    static uint8_t drop[4096];
    while (theirs->ops->recv(theirs, drop, sizeof(drop)) > 0)
        ;
}

/** Takes all that is there, into exactly so much room. */
static ssize_t take(size_t room)
{
    ssize_t n;
    uint8_t *to = fuzz_exact(buf, room);
    while ((n = ours->ops->recv(ours, to, room)) > 0) {
        FUZZ_CHECK((size_t)n <= room && got_len + (size_t)n <= sent_len);
        FUZZ_CHECK(!memcmp(sent + got_len, to, (size_t)n));
        got_len += (size_t)n;
    }
    free(to);
    return n;
}

static void without_key(struct fuzz_in *in)
{
    size_t len;
    ssize_t n = -EAGAIN;
    while (in->left && n == -EAGAIN) {
        const uint8_t *p = fuzz_bytes(in, 256, &len);
        put(p, len);
        n = take(2048);
        drain();
        FUZZ_CHECK(n < 0);
    }
    FUZZ_CHECK(!iwc_stream_tls_peer(ours));
    FUZZ_CHECK((n == -EAGAIN) == !iwc_stream_tls_why(ours));
}

static void shake_hands(struct tls_handshake *h, bool client)
{
    int r = -EAGAIN;
    FUZZ_CHECK(tls_handshake_init(h, context(), client));
    for (int i = 0; i < ROUNDS && (r == -EAGAIN || !iwc_stream_tls_peer(ours)); i++) {
        r = tls_handshake_step(h);
        FUZZ_CHECK(tls_handshake_flush(h, theirs) == 0);
        FUZZ_CHECK(ours->ops->recv(ours, buf, sizeof(buf)) == -EAGAIN);
        ssize_t n = theirs->ops->recv(theirs, buf, tls_handshake_wants(h));
        FUZZ_CHECK(n <= 0 || tls_handshake_input(h, buf, (size_t)n) == 0);
    }
    FUZZ_CHECK(r == 0 && iwc_stream_tls_peer(ours));
}

/** A record that is opened as it was sealed: without a type, that is the last byte but zeros. */
static void expect(uint8_t type, const uint8_t *p, size_t len)
{
    while (!type && len)
        type = p[--len];
    if (type != TLS_DATA || len > TLS_RECORD_DATA_MAX) {
        valid = false;
        return;
    }
    if (!len)
        return;
    sent = realloc(sent, sent_len + len);
    FUZZ_CHECK(sent);
    memcpy(sent + sent_len, p, len);
    sent_len += len;
}

/** One record of the input. */
static void speak(struct fuzz_in *in, struct tls_half *seal)
{
    uint8_t type = fuzz_u8(in), how = fuzz_u8(in);
    size_t len = fuzz_u16(in) % (how & LONG ? TLS_RECORD_DATA_MAX + 64 : 512), got, n;
    memset(record, type, sizeof(record));
    const uint8_t *p = fuzz_bytes(in, len, &got);
    memcpy(record + TLS_RECORD_HEADER, p, got);
    if (how & RAW) {
        n = got;
        memmove(record, record + TLS_RECORD_HEADER, got);
    } else {
        if (!(how & CHANGED))
            expect(type, record + TLS_RECORD_HEADER, len);
        n = tls_seal(seal, type, record, len);
        FUZZ_CHECK(n);
    }
    if (how & (RAW | CHANGED))
        valid = false;
    if (how & CHANGED)
        record[n ? how % n : 0] ^= 0x20;
    put(record, n);
}

static void with_key(struct fuzz_in *in, bool our_client)
{
    struct tls_handshake h = {0};
    struct tls_half seal = {0}, open = {0};
    ssize_t n = -EAGAIN;
    shake_hands(&h, !our_client);
    FUZZ_CHECK(tls_handshake_keys(&h, &seal, &open));
    for (int wait = 1; in->left && n == -EAGAIN; wait++) {
        speak(in, &seal);
        if ((fuzz_u8(in) & 1) || wait % WAIT == 0)
            n = take(TLS_RECORD_MAX + fuzz_u8(in));
    }
    if (n == -EAGAIN)
        n = take(ROOM);
    if (valid)
        FUZZ_CHECK(n == -EAGAIN && got_len == sent_len);
    FUZZ_CHECK((n == -EAGAIN || n == 0) == !iwc_stream_tls_why(ours));
    FUZZ_CHECK(take(ROOM) == n); /* what is over stays so */
    tls_handshake_fini(&h);
    tls_half_fini(&seal);
    tls_half_fini(&open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint8_t flags = fuzz_u8(&in);
    size_t chunk = 1 + fuzz_u8(&in) * 64u;
    FUZZ_CHECK(iwc_stream_mem_pair(pair, chunk, WINDOW) == 0);
    theirs = iwc_stream_mem_stream(pair[0]);
    ours = iwc_stream_tls_create(context(), iwc_stream_mem_stream(pair[1]), flags & OUR_CLIENT,
                                 &user, NULL);
    FUZZ_CHECK(ours);
    sent = NULL;
    sent_len = got_len = 0;
    valid = true;
    if (flags & WITH_KEY)
        with_key(&in, flags & OUR_CLIENT);
    else
        without_key(&in);
    iwc_stream_tls_free(ours);
    iwc_stream_mem_free(pair);
    free(sent);
    return 0;
}
