/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames of a record as a capture. Each connection begins with a handshake and its MPA frames,
 * which are kept longer than others: without them nobody could tell what follows.
 */
#include "tools/recording.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/pcapng.h"

#include <stdlib.h>
#include <string.h>

#define FRAME_MAX 65536

enum direction { IN, OUT };

/** A connection on its way through the capture. */
struct flow {
    const struct record_conn *conn;
    bool begun, sends_only; /* the peer is in this record, too */
    uint32_t seq[2];        /* next */
    bool started[2];        /* its MPA frame is out */
};

struct capture {
    FILE *f;
    const struct recording *r;
    struct flow flow[RECORD_CONNS];
    uint8_t data[FRAME_MAX];
};

static struct flow *flow_of(struct capture *c, uint32_t id)
{
    const struct record_conn *conn = recording_conn(c->r, id);
    return conn ? &c->flow[conn - c->r->page->conn] : NULL;
}

static void packet(struct capture *c, struct flow *w, enum direction d, uint64_t ns, uint32_t seq,
                   uint8_t flags, uint32_t len, const char *comment)
{
    uint8_t head[PCAPNG_HEAD + PCAPNG_TCP_IP_MAX], tail[PCAPNG_TAIL_MAX];
    const struct record_conn *conn = w->conn;
    struct tcp_ip h = {.ipv6 = conn->ipv6,
                       .sport = d == OUT ? conn->local_port : conn->peer_port,
                       .dport = d == OUT ? conn->peer_port : conn->local_port,
                       .seq = seq,
                       .ack = w->seq[!d],
                       .flags = flags};
    memcpy(h.src, d == OUT ? conn->local : conn->peer, sizeof(h.src));
    memcpy(h.dst, d == OUT ? conn->peer : conn->local, sizeof(h.dst));
    w->seq[d] = seq + len + !!(flags & (TCP_FLAG_SYN | TCP_FLAG_FIN));
    if (w->sends_only && d == IN)
        return;
    size_t ip = tcp_ip_encode(head + PCAPNG_HEAD, &h, c->data, len);
    uint32_t all = (uint32_t)ip + len;
    pcapng_head(head, recording_time(c->r, ns), all, comment);
    fwrite(head, 1, PCAPNG_HEAD + ip, c->f);
    fwrite(c->data, 1, len, c->f);
    fwrite(tail, 1, pcapng_tail(tail, all, d == OUT, comment), c->f);
}

static bool at_one_time(const struct record_conn *a, const struct record_conn *b)
{
    return (!a->ended || a->ended > b->began) && (!b->ended || b->ended > a->began);
}

/** The connection's other end, if that is in this record, too. */
static struct flow *twin(struct capture *c, const struct flow *w)
{
    const struct record_conn *a = w->conn;
    for (size_t i = 0; i < RECORD_CONNS; i++) {
        const struct record_conn *b = c->flow[i].conn;
        if (b && b != a && a->ipv6 == b->ipv6 && a->local_port == b->peer_port &&
            a->peer_port == b->local_port && !memcmp(a->local, b->peer, sizeof(a->local)) &&
            !memcmp(a->peer, b->local, sizeof(a->peer)) && at_one_time(a, b))
            return &c->flow[i];
    }
    return NULL;
}

static void begin(struct capture *c, struct flow *w, const struct flow *other)
{
    enum direction d = w->conn->active ? OUT : IN;
    uint64_t ns = w->conn->began;
    if (w->begun)
        return;
    w->begun = true;
    if (other && other->begun) {
        w->seq[IN] = w->seq[OUT] = 1; /* its handshake is this one's */
    } else {
        packet(c, w, d, ns, 0, TCP_FLAG_SYN, 0, NULL);
        packet(c, w, !d, ns, 0, TCP_FLAG_SYN | TCP_FLAG_ACK, 0, NULL);
        packet(c, w, d, ns, 1, TCP_FLAG_ACK, 0, NULL);
    }
    w->sends_only = other != NULL;
}

static void start(struct capture *c, struct flow *w, enum direction d)
{
    const struct record_start *s = &w->conn->start[d];
    if (w->started[d] || !s->len)
        return;
    w->started[d] = true;
    memcpy(c->data, s->bytes, s->len);
    packet(c, w, d, s->ns, 1, TCP_FLAG_ACK, s->len, NULL);
}

/** The MPA frames that came before, the Request first, whichever end of a connection has it. */
static void start_before(struct capture *c, struct flow *w, uint64_t ns)
{
    struct flow *other = twin(c, w);
    enum direction first = w->conn->active ? OUT : IN;
    begin(c, w, other);
    if (other)
        begin(c, other, w);
    for (int i = 0; i < 2; i++) {
        enum direction d = i ? !first : first;
        if (w->conn->start[d].ns <= ns)
            start(c, w, d);
        if (other && other->conn->start[!d].ns <= ns)
            start(c, other, !d);
    }
}

/** Whether CRCs are in force: either end asked for them. */
static bool has_crc(const struct record_conn *c)
{
    return ((c->start[IN].len ? c->start[IN].bytes[16] : 0) |
            (c->start[OUT].len ? c->start[OUT].bytes[16] : 0)) &
           MPA_FLAG_C;
}

/** Zeros for what was not kept. They have their own CRC, so that it is not taken for a wrong one.
 */
static const char *fill(struct capture *c, const struct flow *w, const struct record_event *e,
                        char *comment, size_t size)
{
    const struct record_frame *f = &e->frame;
    uint32_t kept = recording_kept(f);
    memcpy(c->data, f->bytes, kept);
    if (kept == f->len)
        return NULL;
    memset(c->data + kept, 0, f->len - kept);
    if (!(e->flags & RECORD_OTHER) && has_crc(w->conn) && f->len - kept >= FPDU_CRC_FIELD) {
        uint32_t covered = f->len - FPDU_CRC_FIELD;
        put_le32(c->data + covered, crc32c_done(crc32c_add(CRC32C_INIT, c->data, covered)));
    }
    snprintf(comment, size, "%u of %u bytes were recorded; the rest is filled in", kept, f->len);
    return comment;
}

static void add(struct capture *c, const struct record_event *e)
{
    char comment[PCAPNG_COMMENT + 1];
    enum direction d = e->flags & RECORD_OUT ? OUT : IN;
    struct flow *w = flow_of(c, e->frame.conn);
    if (!w)
        return;
    start_before(c, w, e->ns);
    uint32_t seq = e->frame.position + 1;
    if (e->flags & RECORD_START) {
        start(c, w, d);
    } else if (e->flags & (RECORD_FIN | RECORD_RESET)) {
        uint8_t flag = e->flags & RECORD_FIN ? TCP_FLAG_FIN : TCP_FLAG_RST;
        packet(c, w, d, e->ns, seq, flag | TCP_FLAG_ACK, 0, NULL);
    } else {
        const char *what = fill(c, w, e, comment, sizeof(comment));
        packet(c, w, d, e->ns, seq, TCP_FLAG_ACK, e->frame.len, what);
    }
}

bool recording_capture(FILE *f, const struct recording *r)
{
    uint8_t head[PCAPNG_START_MAX];
    struct capture *c = calloc(1, sizeof(*c));
    if (!c)
        return false;
    c->f = f;
    c->r = r;
    for (size_t i = 0; i < RECORD_CONNS; i++)
        c->flow[i].conn = r->page->conn[i].id ? &r->page->conn[i] : NULL;
    fwrite(head, 1, pcapng_start(head, "anywarp " PACKAGE_VERSION), f);
    for (size_t i = 0; i < r->n; i++)
        if (r->events[i]->what == RECORD_FRAME)
            add(c, r->events[i]);
    free(c);
    return !ferror(f);
}
