/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a stream in rings, and the process at the other end, which may write what it likes
 * into memory that both map. The input is how the connection begins, then a list of what happens:
 * the peer produces or consumes, as it should; it says any of its counters and flags, or those of
 * the victim, are what they are not; it scribbles over data, rings, hangs up; or the victim sends,
 * receives, arms, waits for room, gives pages back. As long as the peer has not lied every byte has
 * to arrive, in order; from then on the victim may only notice, or carry other bytes.
 */
#include "fuzz/fuzz.h"

#include "conn/stream_mem.h"
#include "conn/stream_shm.h"
#include "env/gather.h"
#include "local/pages.h"
#include "qp/rx_scatter.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING      65536u
#define STEPS_MAX 400
#define TCP_ROOM  65536
#define PATTERN   251 /* of bytes by their place in the stream */

static struct {
    struct iw_pages pages, theirs;
    int bells[2]; /* the victim's, the peer's */
    struct iwc_stream_mem *tcp[2];
    struct iwc_stream_shm end;
    struct iwc_ring in, out; /* the peer's: what it consumes, and what it produces */
    uint64_t sent, taken;    /* bytes of the victim's directions */
    uint64_t peer_sent, peer_taken;
    bool lied, scribbled, hung_up;
    unsigned again;
} w;

static void again(void *arg)
{
    (void)arg;
    w.again++;
}

static const struct iwc_shm_user user = {.gather = iw_gather, .place = iw_place, .again = again};

/** The memory of all runs, which is zeroed where it matters. */
static void map_once(void)
{
    if (w.pages.base)
        return;
    int fd = iw_pages_make(&w.pages, RING);
    FUZZ_CHECK(fd >= 0 && iw_pages_open(&w.theirs, fd, RING) == 0);
    close(fd);
}

static void begin(void)
{
    map_once();
    memset(w.pages.base, 0, 2 * sizeof(struct iwc_ring_ctl));
    struct iw_pages pages = w.pages, theirs = w.theirs;
    memset(&w, 0, sizeof(w));
    w.pages = pages;
    w.theirs = theirs;
    FUZZ_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, w.bells) == 0);
    FUZZ_CHECK(iwc_stream_mem_pair(w.tcp, TCP_ROOM, TCP_ROOM) == 0);
    struct iwc_shm_rings rings = iw_pages_rings(&w.pages, true, w.bells[0]),
                         peer = iw_pages_rings(&w.theirs, false, w.bells[1]);
    iwc_stream_shm_init(&w.end, iwc_stream_mem_stream(w.tcp[0]), &user, NULL);
    iwc_stream_shm_begin(&w.end, 0, true);
    iwc_stream_shm_attach(&w.end, &rings);
    iwc_ring_init(&w.in, peer.in_ctl, peer.in, peer.size);
    iwc_ring_init(&w.out, peer.out_ctl, peer.out, peer.size);
}

static void end(void)
{
    iwc_stream_shm_kill(&w.end);
    close(w.bells[0]);
    close(w.bells[1]);
    iwc_stream_mem_free(w.tcp);
}

static uint8_t byte_at(uint64_t pos)
{
    return (uint8_t)(pos % PATTERN);
}

static void fill(uint8_t *p, uint64_t pos, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = byte_at(pos + i);
}

static void check(const uint8_t *p, uint64_t pos, size_t n)
{
    for (size_t i = 0; i < n && !w.lied && !w.scribbled; i++)
        FUZZ_CHECK(p[i] == byte_at(pos + i));
}

/* ---- the peer ---- */

/** By TCP until the victim's receiving half has switched. */
static void peer_sends(size_t n)
{
    uint8_t bytes[8192];
    struct iovec v = {bytes, n < sizeof(bytes) ? n : sizeof(bytes)};
    fill(bytes, w.peer_sent, v.iov_len);
    if (!iwc_stream_shm_receives(&w.end)) {
        struct iwc_stream *s = iwc_stream_mem_stream(w.tcp[1]);
        ssize_t sent = w.hung_up ? 0 : s->ops->send(s, &v, 1);
        w.peer_sent += sent > 0 ? (uint64_t)sent : 0;
        return;
    }
    ssize_t room = iwc_ring_room(&w.out, v.iov_len);
    FUZZ_CHECK(room >= 0 || w.lied);
    if (room <= 0)
        return;
    size_t len = (size_t)room < v.iov_len ? (size_t)room : v.iov_len;
    memcpy(iwc_ring_place(&w.out), bytes, len);
    iwc_ring_publish(&w.out, len);
    iwc_ring_rouses(&w.out);
    w.peer_sent += len;
}

static void peer_takes(size_t n)
{
    const uint8_t *p;
    ssize_t there = iwc_ring_look(&w.in, &p);
    FUZZ_CHECK(there >= 0 || w.lied);
    if (there <= 0)
        return;
    size_t len = (size_t)there < n ? (size_t)there : n;
    check(p, w.peer_taken, len);
    iwc_ring_use(&w.in, len);
    iwc_ring_relieves(&w.in);
    w.peer_taken += len;
}

/** Any of the counters, whoever it belongs to, becomes what the input says, or is off by a bit. */
static void peer_lies(struct fuzz_in *in)
{
    uint8_t which = fuzz_u8(in), shift = fuzz_u8(in) % 64;
    uint64_t by = (uint64_t)fuzz_u16(in) << shift;
    struct iwc_ring_ctl *ctl = which & 1 ? w.in.ctl : w.out.ctl;
    _Atomic uint64_t *counter = which & 2 ? &ctl->head : &ctl->tail;
    if (which & 4)
        atomic_store(&ctl->awake, (uint32_t)by);
    else if (which & 8)
        atomic_store(&ctl->wants_room, (uint32_t)by);
    else
        atomic_store(counter, which & 16 ? by : atomic_load(counter) + by);
    w.lied |= !(which & 12);
}

static void peer_scribbles(struct fuzz_in *in)
{
    uint32_t at = (uint32_t)fuzz_u16(in) % RING;
    size_t len;
    const uint8_t *p = fuzz_bytes(in, fuzz_u8(in), &len);
    if (len)
        memcpy((at & 1 ? w.out.data : w.in.data) + at, p, len);
    w.scribbled = true;
}

static void peer_rings(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        send(w.bells[1], "ring", n % 3, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void peer_hangs_up(uint8_t how)
{
    struct iwc_stream *s = iwc_stream_mem_stream(w.tcp[1]);
    if (w.hung_up)
        return;
    w.hung_up = true;
    if (how & 1)
        s->ops->shutdown(s);
    else
        s->ops->close(s, how & 2);
    iwc_stream_shm_look(&w.end);
}

/* ---- the victim ---- */

static void victim_sends(size_t n, unsigned parts)
{
    static uint8_t bytes[3 * RING];
    struct iovec v[4] = {{.iov_len = 0}};
    size_t each = n / parts;
    fill(bytes, w.sent, n);
    for (unsigned i = 0; i < parts; i++)
        v[i] = (struct iovec){bytes + i * each, i == parts - 1 ? n - i * each : each};
    bool by_tcp = w.end.left;
    ssize_t sent = w.end.base.ops->send(&w.end.base, v, parts);
    FUZZ_CHECK(sent != 0 || n == 0);
    FUZZ_CHECK(sent <= (ssize_t)n);
    FUZZ_CHECK(sent != -EPROTO || w.lied);
    FUZZ_CHECK(sent >= 0 || sent == -EAGAIN || sent == -EPROTO || w.hung_up);
    w.sent += sent > 0 ? (uint64_t)sent : 0;
    if (by_tcp && sent > 0)
        w.peer_taken = w.sent;
    if (sent == -EAGAIN)
        iwc_stream_shm_want(&w.end);
}

/** @param parts  1, or 2 of equal length */
static void victim_receives(size_t n, unsigned parts)
{
    uint8_t bytes[8192];
    size_t len = n < sizeof(bytes) ? n : sizeof(bytes);
    uint8_t *exact = fuzz_exact(bytes, len);
    struct iovec v[] = {{exact, len / 2}, {exact + len / 2, len - len / 2}};
    ssize_t got = parts == 1 ? w.end.base.ops->recv(&w.end.base, exact, len)
                             : w.end.base.ops->recvv(&w.end.base, v, parts);
    FUZZ_CHECK(got <= (ssize_t)len);
    FUZZ_CHECK(got != -EPROTO || w.lied);
    FUZZ_CHECK(got > 0 || got == -EAGAIN || got == -EPROTO || w.hung_up);
    if (got > 0) {
        check(exact, w.taken, (size_t)got);
        w.taken += (uint64_t)got;
    }
    /* The end comes behind all that was published. */
    if (got == 0 || got == -ECONNRESET)
        FUZZ_CHECK(w.lied || w.taken == w.peer_sent || !iwc_stream_shm_receives(&w.end));
    free(exact);
}

/** Each of the directions goes on in a ring. */
static void switch_path(uint8_t which)
{
    if (which & 1 && w.end.left) {
        iwc_stream_shm_switch_out(&w.end, 0);
        w.peer_taken = w.sent;
    }
    if (which & 2) {
        bool all = w.end.received == w.peer_sent, first = !iwc_stream_shm_receives(&w.end);
        bool done = iwc_stream_shm_switch_in(&w.end, w.peer_sent);
        FUZZ_CHECK(done == (all && first));
    }
}

static void victim_does(uint8_t what)
{
    switch (what % 7) {
    case 0:
        iwc_stream_shm_arm(&w.end);
        break;
    case 1:
        iwc_stream_shm_want(&w.end);
        break;
    case 2:
        iwc_stream_shm_asked(&w.end);
        break;
    case 3:
        FUZZ_CHECK(iwc_stream_shm_hear(&w.end, what & 0x80));
        break;
    case 4:
        iwc_stream_shm_look(&w.end);
        break;
    case 5:
        iwc_stream_shm_rest(&w.end);
        break;
    default:
        iwc_stream_shm_due(&w.end);
    }
}

static void step(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in);
    switch (what % 10) {
    case 0:
        peer_sends(fuzz_u16(in));
        break;
    case 1:
        peer_takes(fuzz_u16(in));
        break;
    case 2:
        peer_lies(in);
        break;
    case 3:
        peer_scribbles(in);
        break;
    case 4:
        peer_rings(what);
        break;
    case 5:
        peer_hangs_up(fuzz_u8(in));
        break;
    case 6:
        victim_sends((size_t)fuzz_u16(in) * (what & 0x40 ? 3 : 1), 1 + what % 4u);
        break;
    case 7:
        victim_receives(1u + fuzz_u16(in), what & 0x40 ? 2 : 1);
        break;
    case 8:
        switch_path(fuzz_u8(in));
        break;
    default:
        victim_does(fuzz_u8(in));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    begin();
    switch_path(fuzz_u8(&in));
    for (int i = 0; i < STEPS_MAX && in.left; i++)
        step(&in);
    end();
    return 0;
}
