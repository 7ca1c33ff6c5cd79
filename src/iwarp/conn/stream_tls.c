/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_tls.h"

#include "common/list.h"
#include "common/lock.h"
#include "conn/tls_handshake.h"
#include "conn/tls_record.h"
#include "wire/mpa.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BULK_RECORDS  4 /* that go out by one call */
#define BULK_MAX      (BULK_RECORDS * TLS_RECORD_DATA_MAX)
#define BULK_BYTES    (BULK_RECORDS * (TLS_RECORD_DATA_MAX + TLS_RECORD_EXTRA) + SPARE)
#define SMALL_MAX     2048
#define SMALL_BYTES   (SMALL_MAX + TLS_RECORD_EXTRA + SPARE)
#define SPARE         (2 * (KEY_UPDATE + TLS_RECORD_EXTRA)) /* for a KeyUpdate and an alert */
#define KEY_UPDATE    5                                     /* bytes of the message */
#define UPDATE_TYPE   24
#define TICKET_TYPE   4
/* A new key well before 2^24.5 records, which AES-GCM is good for (RFC 8446 section 5.5). */
#define REKEY_RECORDS (1u << 23)

_Static_assert(IWC_TLS_ROOM == TLS_RECORD_MAX, "told without tls_record.h");
_Static_assert(MPA_START_MAX <= SMALL_MAX, "what waits for the handshake has room");

struct tls {
    struct iwc_stream base;
    struct iwc_stream *under;
    const struct iwc_tls_user *user;
    void *arg;
    atomic_bool established;
    atomic_int failed; /* a negative errno: it is over */

    struct lock lock; /* of all but what is received, and of that during the handshake */
    struct tls_handshake handshake;
    bool judged;
    size_t early_len; /* waits in out[] */
    struct tls_half seal;
    uint8_t *out;            /* small[], or of BULK_BYTES */
    size_t out_from, out_to; /* what the stream below has not taken */
    bool said_end;
    bool held;              /* the last byte that was encrypted is not reported as taken */
    atomic_bool update_due; /* the peer asked for a new key */
    char why[192];

    struct tls_half open;
    bool ended;      /* the peer has announced its end */
    uint8_t *part;   /* of TLS_RECORD_MAX bytes, NULL: not needed yet */
    size_t part_len; /* of a record, in it */

    uint8_t small[SMALL_BYTES];
};

static struct tls *tls_of(struct iwc_stream *s)
{
    return container_of(s, struct tls, base);
}

/* ---- what goes out ---- */

/** @return 0, -EAGAIN for a rest, or another negative errno */
static int flush_locked(struct tls *t)
{
    assert_held(&t->lock);
    while (t->out_from < t->out_to) {
        struct iovec v = {.iov_base = t->out + t->out_from, .iov_len = t->out_to - t->out_from};
        ssize_t n = t->under->ops->send(t->under, &v, 1);
        if (n < 0)
            return (int)n;
        t->out_from += (size_t)n;
    }
    t->out_from = t->out_to = 0;
    return 0;
}

/** Adds a record whose data stands in its place already. @return whether OpenSSL did not fail */
static bool add_locked(struct tls *t, enum tls_content type, size_t len)
{
    assert_held(&t->lock);
    size_t n = tls_seal(&t->seal, type, t->out + t->out_to, len);
    t->out_to += n;
    return n != 0;
}

static bool add_bytes_locked(struct tls *t, enum tls_content type, const uint8_t *p, size_t len)
{
    memcpy(t->out + t->out_to + TLS_RECORD_HEADER, p, len);
    return add_locked(t, type, len);
}

static void add_alert_locked(struct tls *t, enum tls_alert alert)
{
    const uint8_t bytes[] = {alert == TLS_CLOSE_NOTIFY ? 1 : 2, (uint8_t)alert};
    size_t size = t->out == t->small ? SMALL_BYTES : BULK_BYTES;
    assert_held(&t->lock);
    if (!t->seal.cipher || size - t->out_to < sizeof(bytes) + TLS_RECORD_EXTRA)
        return;
    add_bytes_locked(t, TLS_ALERT, bytes, sizeof(bytes));
    flush_locked(t);
}

static int fail_locked(struct tls *t, int error, enum tls_alert alert, const char *why)
{
    assert_held(&t->lock);
    if (atomic_load(&t->failed))
        return atomic_load(&t->failed);
    snprintf(t->why, sizeof(t->why), "%s", why);
    if (alert != TLS_CLOSE_NOTIFY)
        add_alert_locked(t, alert);
    atomic_store(&t->failed, error);
    return error;
}

/** For who receives. */
static int fail(struct tls *t, int error, enum tls_alert alert, const char *why)
{
    lock_get_leaf(&t->lock);
    int r = fail_locked(t, error, alert, why);
    lock_put(&t->lock);
    return r;
}

static int broken_locked(struct tls *t)
{
    return fail_locked(t, -ENOMEM, TLS_CLOSE_NOTIFY, "OpenSSL failed");
}

/* ---- the handshake ---- */

/** What cannot be sent to who has gone: what he said before is read all the same. */
static int unless_gone(int r)
{
    return r == -EAGAIN ? r : 0;
}

/** The ends know each other: the keys, the verdict, and what waited. @return 0 or negative errno */
static int begin_locked(struct tls *t)
{
    assert_held(&t->lock);
    if (!t->seal.cipher && !tls_handshake_keys(&t->handshake, &t->seal, &t->open))
        return broken_locked(t);
    /* Before anything else is said. */
    int r = unless_gone(tls_handshake_flush(&t->handshake, t->under));
    if (r)
        return r;
    char no[sizeof(t->why)];
    if (!t->judged && t->user->judge && !t->user->judge(t->arg, &t->handshake.peer, no, sizeof(no)))
        return fail_locked(t, -EACCES, TLS_ACCESS_DENIED, no);
    t->judged = true;
    size_t early = t->early_len;
    t->early_len = 0;
    if (early && !add_locked(t, TLS_DATA, early))
        return broken_locked(t);
    return 0;
}

/** @return 0 when it is over, -EAGAIN, or another negative errno */
static int handshake_locked(struct tls *t)
{
    assert_held(&t->lock);
    if (atomic_load(&t->failed))
        return atomic_load(&t->failed);
    if (atomic_load(&t->established))
        return 0;
    int r = tls_handshake_step(&t->handshake);
    if (r == -EAGAIN) {
        tls_handshake_flush(&t->handshake, t->under);
        return -EAGAIN;
    }
    if (r) {
        tls_handshake_flush(&t->handshake, t->under); /* the alert */
        return fail_locked(t, r, TLS_CLOSE_NOTIFY, t->handshake.why);
    }
    r = begin_locked(t);
    if (!r)
        r = unless_gone(flush_locked(t));
    if (r)
        return r;
    tls_handshake_fini(&t->handshake);
    atomic_store(&t->established, true);
    return 0;
}

/** Takes a part of a record of the handshake, by way of @p buf. @return as recv */
static ssize_t take_locked(struct tls *t, uint8_t *buf, size_t len)
{
    size_t want = tls_handshake_wants(&t->handshake);
    assert_held(&t->lock);
    ssize_t n = t->under->ops->recv(t->under, buf, want < len ? want : len);
    if (n == 0 || n == -ECONNRESET) /* a reset, if it had not read what we sent */
        return fail_locked(t, -ECONNRESET, TLS_CLOSE_NOTIFY,
                           t->handshake.heard ? "the peer hung up during the handshake"
                                              : "the peer hung up at once: it may not speak TLS");
    if (n < 0)
        return n;
    int r = tls_handshake_input(&t->handshake, buf, (size_t)n);
    return r ? fail_locked(t, r, TLS_CLOSE_NOTIFY, t->handshake.why) : n;
}

/** @return 0 when the handshake is over, or as recv */
static ssize_t shake_hands(struct tls *t, uint8_t *buf, size_t len)
{
    ssize_t r;
    lock_get(&t->lock);
    while ((r = handshake_locked(t)) == -EAGAIN) {
        r = take_locked(t, buf, len);
        if (r <= 0)
            break;
    }
    lock_put(&t->lock);
    return r;
}

/* ---- receiving ---- */

static int on_alert(struct tls *t, const uint8_t *p, size_t len)
{
    char text[sizeof(t->why)];
    if (len != 2)
        return fail(t, -EPROTO, TLS_UNEXPECTED_MESSAGE, "an alert of a wrong length");
    t->ended = p[1] == TLS_CLOSE_NOTIFY;
    if (t->ended)
        return 0;
    tls_alert_text(p[1], text, sizeof(text));
    return fail(t, -EACCES, TLS_CLOSE_NOTIFY, text);
}

/** Behind the handshake there is nothing to agree on any more but new keys. */
static int on_handshake(struct tls *t, const uint8_t *p, size_t len)
{
    if (len >= 4 && p[0] == TICKET_TYPE && len == 4 + ((size_t)p[1] << 16 | p[2] << 8 | p[3]))
        return 0; /* we would not use it */
    if (len != KEY_UPDATE || p[0] != UPDATE_TYPE || p[1] || p[2] || p[3] != 1 || p[4] > 1)
        return fail(t, -EPROTO, TLS_UNEXPECTED_MESSAGE,
                    "the peer wants to shake hands again: not behind a handshake");
    if (!tls_half_update(&t->open))
        return fail(t, -ENOMEM, TLS_INTERNAL_ERROR, "OpenSSL failed");
    if (p[4])
        atomic_store(&t->update_due, true);
    return 0;
}

static int on_record(struct tls *t, uint8_t type, const uint8_t *p, size_t len)
{
    switch (type) {
    case TLS_ALERT:
        return on_alert(t, p, len);
    case TLS_HANDSHAKE:
        return on_handshake(t, p, len);
    default:
        return fail(t, -EPROTO, TLS_UNEXPECTED_MESSAGE, "a record of a type that is not known");
    }
}

static int refuse(struct tls *t, int alert)
{
    return fail(t, -EPROTO, (enum tls_alert)alert,
                alert == TLS_BAD_RECORD_MAC    ? "a record was changed on the way, or is none"
                : alert == TLS_RECORD_OVERFLOW ? "a record is too long"
                                               : "a record with nothing in it");
}

/**
 * Opens the records among @p all bytes, and moves what was in them to the front.
 * @param used  [out] bytes of whole records
 * @return bytes of data, or a negative errno, also if data came before
 */
static ssize_t open_records(struct tls *t, uint8_t *buf, size_t all, size_t *used)
{
    size_t data = 0, len;
    for (*used = 0; all - *used >= TLS_RECORD_HEADER && !t->ended; *used += len) {
        uint8_t *at = buf + *used, type;
        len = tls_record_length(at);
        if (!len)
            return refuse(t, TLS_RECORD_OVERFLOW);
        if (len > all - *used)
            break;
        int n = tls_open(&t->open, at, len, &type);
        if (n < 0)
            return refuse(t, -n);
        if (type == TLS_DATA) {
            memmove(buf + data, at + TLS_RECORD_HEADER, (size_t)n);
            data += (size_t)n;
        } else {
            int r = on_record(t, type, at + TLS_RECORD_HEADER, (size_t)n);
            if (r)
                return r;
        }
    }
    return (ssize_t)data;
}

/** Keeps what came of the next record. */
static int keep(struct tls *t, const uint8_t *p, size_t len)
{
    if (len && !t->part)
        t->part = malloc(TLS_RECORD_MAX);
    if (len && !t->part)
        return fail(t, -ENOMEM, TLS_INTERNAL_ERROR, "no memory");
    if (len)
        memcpy(t->part, p, len);
    t->part_len = len;
    return 0;
}

/** Ciphertext into @p buf, behind what is there of a record. @return as recv */
static ssize_t take(struct tls *t, uint8_t *buf, size_t len)
{
    if (t->part_len >= len)
        return fail(t, -EMSGSIZE, TLS_RECORD_OVERFLOW,
                    "a record is longer than what is expected now");
    ssize_t n = t->under->ops->recv(t->under, buf + t->part_len, len - t->part_len);
    if (n == 0)
        return fail(t, -ECONNRESET, TLS_CLOSE_NOTIFY, "the peer hung up without a word");
    if (n > 0 && t->part_len)
        memcpy(buf, t->part, t->part_len);
    return n;
}

static ssize_t tls_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct tls *t = tls_of(s);
    size_t used, all;
    if (!atomic_load(&t->established)) {
        ssize_t r = shake_hands(t, buf, len);
        if (r)
            return r;
    }
    for (;;) {
        if (atomic_load(&t->failed))
            return atomic_load(&t->failed);
        if (t->ended)
            return 0;
        ssize_t n = take(t, buf, len);
        if (n <= 0)
            return n;
        all = t->part_len + (size_t)n;
        n = open_records(t, buf, all, &used);
        if (n >= 0 && keep(t, (uint8_t *)buf + used, t->ended ? 0 : all - used))
            continue;
        if (n)
            return n;
    }
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
    size_t len = length(iov, n, MPA_START_MAX + 1);
    assert_held(&t->lock);
    if (t->early_len || t->judged || len > MPA_START_MAX)
        return -EAGAIN;
    if (!t->user->gather(t->out + TLS_RECORD_HEADER, 0, len, iov, n))
        return -EFAULT;
    t->early_len = len;
    int r = handshake_locked(t);
    return r && r != -EAGAIN ? r : (ssize_t)len;
}

/** Announces a new key where one is due, and takes it. */
static bool update_locked(struct tls *t)
{
    static const uint8_t message[KEY_UPDATE] = {UPDATE_TYPE, 0, 0, 1, 0};
    assert_held(&t->lock);
    if (t->seal.records < REKEY_RECORDS &&
        (!atomic_load(&t->update_due) || !atomic_exchange(&t->update_due, false)))
        return true;
    return add_bytes_locked(t, TLS_HANDSHAKE, message, sizeof(message)) &&
           tls_half_update(&t->seal);
}

/** Makes records of @p len bytes, all copied before one is sealed. @return 0, or negative errno */
static int encrypt_locked(struct tls *t, const struct iovec *iov, unsigned n, size_t len)
{
    size_t part;
    uint8_t *to = t->out + t->out_to + TLS_RECORD_HEADER;
    assert_held(&t->lock);
    for (size_t at = 0; at < len; at += part, to += part + TLS_RECORD_EXTRA) {
        part = len - at < TLS_RECORD_DATA_MAX ? len - at : TLS_RECORD_DATA_MAX;
        if (!t->user->gather(to, at, part, iov, n))
            return -EFAULT;
    }
    for (size_t at = 0; at < len; at += part) {
        part = len - at < TLS_RECORD_DATA_MAX ? len - at : TLS_RECORD_DATA_MAX;
        if (!add_locked(t, TLS_DATA, part))
            return broken_locked(t);
    }
    return 0;
}

/** Room for what is sent by one call. @return bytes of data that it is for */
static size_t make_room_locked(struct tls *t, size_t len)
{
    assert_held(&t->lock);
    if (len <= SMALL_MAX || t->out != t->small)
        return len;
    uint8_t *bulk = malloc(BULK_BYTES);
    if (!bulk)
        return SMALL_MAX;
    t->out = bulk;
    return len;
}

static ssize_t send_locked(struct tls *t, const struct iovec *iov, unsigned n)
{
    assert_held(&t->lock);
    if (atomic_load(&t->failed))
        return atomic_load(&t->failed);
    if (!atomic_load(&t->established))
        return send_early_locked(t, iov, n);
    int r = flush_locked(t);
    if (r)
        return r;
    if (t->held) {
        t->held = false;
        return 1;
    }
    size_t len = make_room_locked(t, length(iov, n, BULK_MAX));
    r = update_locked(t) ? encrypt_locked(t, iov, n, len) : broken_locked(t);
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
    if (!atomic_load(&t->failed) && atomic_load(&t->established) && !t->said_end)
        add_alert_locked(t, TLS_CLOSE_NOTIFY);
    t->said_end = true;
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
                                         bool client, const struct iwc_tls_user *user, void *arg)
{
    struct tls *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    if (!tls_handshake_init(&t->handshake, ctx, client)) {
        free(t);
        return NULL;
    }
    lock_init(&t->lock, LOCK_TLS);
    t->base.ops = &tls_ops;
    t->under = under;
    t->user = user;
    t->arg = arg;
    t->out = t->small;
    return &t->base;
}

void iwc_stream_tls_free(struct iwc_stream *s)
{
    if (!s)
        return;
    struct tls *t = tls_of(s);
    tls_handshake_fini(&t->handshake);
    tls_half_fini(&t->seal);
    tls_half_fini(&t->open);
    if (t->out != t->small)
        free(t->out);
    free(t->part);
    lock_fini(&t->lock);
    OPENSSL_cleanse(t->small, sizeof(t->small)); /* what waited for the handshake */
    free(t);
}

int iwc_stream_tls_shake_hands(struct iwc_stream *s)
{
    uint8_t buf[SMALL_MAX];
    return (int)shake_hands(tls_of(s), buf, sizeof(buf));
}

const char *iwc_stream_tls_why(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    return atomic_load(&t->failed) ? t->why : NULL; /* written once, before that */
}

const struct tls_peer *iwc_stream_tls_peer(struct iwc_stream *s)
{
    struct tls *t = tls_of(s);
    return atomic_load(&t->established) ? &t->handshake.peer : NULL;
}
