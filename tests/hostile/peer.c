/* SPDX-License-Identifier: BSD-2-Clause */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 10
#define START_HDR  20
#define FLAG_M     0x80
#define FLAG_CRC   0x40
#define FLAG_S     0x10
#define DEPTH      4

/* ---- bytes ---- */

void peer_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

void peer_put32(uint8_t *p, uint32_t v)
{
    peer_put16(p, (uint16_t)(v >> 16));
    peer_put16(p + 2, (uint16_t)v);
}

void peer_put64(uint8_t *p, uint64_t v)
{
    peer_put32(p, (uint32_t)(v >> 32));
    peer_put32(p + 4, (uint32_t)v);
}

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

uint32_t peer_get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

uint64_t peer_get64(const uint8_t *p)
{
    return (uint64_t)peer_get32(p) << 32 | peer_get32(p + 4);
}

/** CRC32c, bit by bit. */
static uint32_t crc32c(const uint8_t *p, size_t len)
{
    uint32_t crc = ~0u;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    return ~crc;
}

/* ---- the socket ---- */

void peer_send(struct peer *p, const void *bytes, size_t len)
{
    for (const uint8_t *at = bytes; len;) {
        ssize_t n = send(p->fd, at, len, MSG_NOSIGNAL);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

/** Reads until @p len bytes are there. @return false if the stream ended before */
static bool fill(struct peer *p, size_t len)
{
    assert_true(len <= sizeof(p->in));
    while (p->in_len < len) {
        ssize_t n = recv(p->fd, p->in + p->in_len, sizeof(p->in) - p->in_len, 0);
        p->reset = n < 0 && errno == ECONNRESET;
        if (n == 0 || p->reset)
            return false;
        assert_true(n > 0); /* else the victim said nothing in time */
        p->in_len += (size_t)n;
    }
    return true;
}

static void drop(struct peer *p, size_t len)
{
    p->in_len -= len;
    memmove(p->in, p->in + len, p->in_len);
}

void peer_hang_up(struct peer *p, bool reset)
{
    struct linger now = {.l_onoff = 1};
    if (p->fd < 0)
        return;
    if (reset)
        setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(p->fd);
    p->fd = -1;
}

/* ---- set-up ---- */

static void send_request(struct peer *p, const struct peer_conf *c)
{
    uint8_t frame[START_HDR + 4] = "MPA ID Req Frame";
    uint16_t none = c->side.no_reads ? 0 : DEPTH;
    frame[16] = FLAG_S | (p->crc ? FLAG_CRC : 0) | (p->markers ? FLAG_M : 0);
    frame[17] = 2;
    peer_put16(frame + 18, 4);
    peer_put16(frame + 20, c->ird ? c->ird : none);
    peer_put16(frame + 22, c->ord ? c->ord : none);
    peer_send(p, frame, sizeof(frame));
}

static void take_reply(struct peer *p)
{
    assert_true(fill(p, START_HDR));
    assert_memory_equal(p->in, "MPA ID Rep Frame", 16);
    p->crc |= (p->in[16] & FLAG_CRC) != 0;
    size_t size = START_HDR + get16(p->in + 18);
    assert_true(fill(p, size));
    drop(p, size);
}

static void listen_victim(struct peer *p, struct sockaddr_in *addr)
{
    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    p->victim.events = rdma_create_event_channel();
    assert_non_null(p->victim.events);
    assert_int_equal(rdma_create_id(p->victim.events, &p->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(p->listener, (struct sockaddr *)addr), 0);
    assert_int_equal(rdma_listen(p->listener, 8), 0);
    addr->sin_port = rdma_get_src_port(p->listener);
}

static void accept_victim(struct peer *p, const struct peer_conf *c)
{
    uint8_t depth = c->side.no_reads ? 0 : c->side.depth ? c->side.depth : DEPTH;
    struct rdma_conn_param param = {.initiator_depth = depth, .responder_resources = depth};
    struct rdma_cm_event *ev;
    assert_int_equal(rdma_get_cm_event(p->victim.events, &ev), 0);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    p->victim.id = ev->id;
    assert_int_equal(rdma_ack_cm_event(ev), 0);
    side_open(&p->victim, &c->side);
    assert_int_equal(rdma_accept(p->victim.id, &param), 0);
}

static void begin(struct peer *p, const struct peer_conf *conf)
{
    memset(p, 0, sizeof(*p));
    for (int qn = 0; qn < PEER_QUEUES; qn++)
        p->msn[qn] = 1;
    p->crc = !conf->no_crc;
    p->markers = conf->markers;
    p->fd = p->listening = p->quoted = -1;
}

static void be_patient(int fd)
{
    struct timeval patience = {.tv_sec = PATIENCE_S};
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
}

void peer_open(struct peer *p, const struct peer_conf *conf)
{
    struct sockaddr_in addr;
    begin(p, conf);
    listen_victim(p, &addr);
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be_patient(p->fd);
    if (conf->small_window)
        setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    assert_return_code(connect(p->fd, (struct sockaddr *)&addr, sizeof(addr)), errno);
    send_request(p, conf);
    accept_victim(p, conf);
    take_reply(p);
    side_event(&p->victim, RDMA_CM_EVENT_ESTABLISHED);
    if (conf->silent)
        return;
    /* The responder holds its messages until ours come: an empty Write lets them go. */
    struct peer_seg first = peer_tagged(PEER_WRITE, 1, 0, NULL, 0);
    peer_send_seg(p, &first);
}

void peer_close(struct peer *p)
{
    peer_hang_up(p, false);
    if (p->listening >= 0)
        close(p->listening);
    if (p->victim.id)
        side_close(&p->victim);
    if (p->listener)
        assert_int_equal(rdma_destroy_id(p->listener), 0);
    rdma_destroy_event_channel(p->victim.events);
}

/* ---- a victim that connects ---- */

static struct sockaddr_in listen_here(struct peer *p)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    be_patient(p->listening);
    assert_return_code(bind(p->listening, (struct sockaddr *)&addr, len), errno);
    assert_return_code(listen(p->listening, 8), errno);
    assert_return_code(getsockname(p->listening, (struct sockaddr *)&addr, &len), errno);
    return addr;
}

void peer_prepare(struct peer *p, const struct sockaddr_in *addr, const struct pair_conf *conf)
{
    struct side *v = &p->victim;
    v->events = rdma_create_event_channel();
    assert_non_null(v->events);
    assert_int_equal(rdma_create_id(v->events, &v->id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(v->id, NULL, (struct sockaddr *)addr, 2000), 0);
    assert_int_equal(side_event(v, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    assert_int_equal(rdma_resolve_route(v->id, 2000), 0);
    assert_int_equal(side_event(v, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
    side_open(v, conf);
}

void peer_listen(struct peer *p, const struct peer_conf *conf)
{
    begin(p, conf);
    struct sockaddr_in addr = listen_here(p);
    peer_prepare(p, &addr, &conf->side);
}

void peer_called(struct peer *p)
{
    struct rdma_conn_param param = {.initiator_depth = DEPTH, .responder_resources = DEPTH};
    assert_int_equal(rdma_connect(p->victim.id, &param), 0);
}

void peer_take(struct peer *p)
{
    peer_hang_up(p, false);
    p->in_len = 0;
    p->fd = accept4(p->listening, NULL, NULL, SOCK_CLOEXEC);
    be_patient(p->fd);
}

void peer_take_request(struct peer *p)
{
    peer_take(p);
    assert_true(fill(p, START_HDR));
    assert_memory_equal(p->in, "MPA ID Req Frame", 16);
    p->rev = p->in[17];
    p->crc |= (p->in[16] & FLAG_CRC) != 0;
    size_t size = START_HDR + get16(p->in + 18);
    assert_true(fill(p, size));
    drop(p, size);
    assert_int_equal(p->in_len, 0); /* nothing goes out before the Reply */
}

size_t peer_reply(const struct peer *p, uint8_t *out)
{
    bool enhanced = p->rev == 2;
    memset(out, 0, PEER_REPLY_MAX);
    memcpy(out, "MPA ID Rep Frame", 16);
    out[16] = (enhanced ? FLAG_S : 0) | (p->crc ? FLAG_CRC : 0) | (p->markers ? FLAG_M : 0);
    out[17] = p->rev;
    if (!enhanced)
        return START_HDR;
    peer_put16(out + 18, 4);
    peer_put16(out + 20, DEPTH);
    peer_put16(out + 22, DEPTH);
    return START_HDR + 4;
}

void peer_open_active(struct peer *p, const struct peer_conf *conf)
{
    uint8_t reply[PEER_REPLY_MAX];
    peer_listen(p, conf);
    peer_called(p);
    peer_take_request(p);
    peer_send(p, reply, peer_reply(p, reply));
    side_event(&p->victim, RDMA_CM_EVENT_ESTABLISHED);
}

/* ---- segments ---- */

static uint32_t queue_of(enum peer_op op)
{
    switch (op) {
    case PEER_READ_REQUEST:
    case PEER_ATOMIC_REQUEST:
        return 1;
    case PEER_TERMINATE:
        return 2;
    case PEER_ATOMIC_RESPONSE:
        return 3;
    default:
        return 0;
    }
}

struct peer_seg peer_untagged(struct peer *p, enum peer_op op, const void *payload, size_t len)
{
    uint32_t qn = queue_of(op);
    return (struct peer_seg){.ddp = PEER_LAST | PEER_DDP_V1,
                             .rdmap = PEER_RDMAP_V1 | op,
                             .qn = qn,
                             .msn = p->msn[qn]++,
                             .payload = payload,
                             .len = len};
}

struct peer_seg peer_tagged(enum peer_op op, uint32_t stag, uint64_t to, const void *payload,
                            size_t len)
{
    return (struct peer_seg){.ddp = PEER_TAGGED | PEER_LAST | PEER_DDP_V1,
                             .rdmap = PEER_RDMAP_V1 | op,
                             .stag = stag,
                             .to = to,
                             .payload = payload,
                             .len = len};
}

void peer_read_request(uint8_t out[28], uint32_t sink_stag, uint64_t sink_to, uint32_t size,
                       uint32_t source_stag, uint64_t source_to)
{
    peer_put32(out, sink_stag);
    peer_put64(out + 4, sink_to);
    peer_put32(out + 12, size);
    peer_put32(out + 16, source_stag);
    peer_put64(out + 20, source_to);
}

void peer_atomic_request(uint8_t out[52], uint8_t aop, uint32_t id, uint32_t stag, uint64_t to)
{
    memset(out, 0, 52);
    peer_put32(out, aop);
    peer_put32(out + 4, id);
    peer_put32(out + 8, stag);
    peer_put64(out + 12, to);
    peer_put64(out + 20, 1);
    peer_put64(out + 44, UINT64_MAX);
}

static size_t put_header(uint8_t *h, const struct peer_seg *s)
{
    h[0] = s->ddp;
    h[1] = s->rdmap;
    if (s->ddp & PEER_TAGGED) {
        peer_put32(h + 2, s->stag);
        peer_put64(h + 6, s->to);
        return 14;
    }
    peer_put32(h + 2, s->inval);
    peer_put32(h + 6, s->qn);
    peer_put32(h + 10, s->msn);
    peer_put32(h + 14, s->mo);
    return 18;
}

static size_t frame(const struct peer *p, size_t ulpdu, uint16_t says, uint32_t crc_xor,
                    uint8_t *out)
{
    assert_true(ulpdu <= PEER_ULPDU_MAX);
    peer_put16(out, says);
    size_t at = 2 + ulpdu;
    while (at % 4)
        out[at++] = 0;
    uint32_t crc = (p->crc ? crc32c(out, at) : 0) ^ crc_xor;
    for (int i = 0; i < 4; i++) /* the only field with its least significant byte first */
        out[at++] = (uint8_t)(crc >> 8 * i);
    return at;
}

size_t peer_frame(const struct peer *p, const void *ulpdu, size_t len, uint8_t *out)
{
    memmove(out + 2, ulpdu, len);
    return frame(p, len, (uint16_t)len, 0, out);
}

/** Remembers what may be quoted of the @p len bytes. */
static void remember(struct peer *p, const uint8_t *ulpdu, size_t len)
{
    unsigned i = p->nsent++ % PEER_SENT;
    memcpy(p->sent[i].bytes, ulpdu, len < PEER_HEADERS ? len : PEER_HEADERS);
    p->sent[i].ulpdu_len = (uint16_t)len;
}

size_t peer_fpdu(struct peer *p, const struct peer_seg *s, uint8_t *out)
{
    size_t ulpdu = put_header(out + 2, s);
    if (s->payload)
        memcpy(out + 2 + ulpdu, s->payload, s->len);
    else
        memset(out + 2 + ulpdu, 0, s->len);
    ulpdu += s->len;
    remember(p, out + 2, ulpdu);
    return frame(p, ulpdu, s->lie_len ? s->ulpdu_len : (uint16_t)ulpdu, s->crc_xor, out);
}

void peer_send_seg(struct peer *p, const struct peer_seg *s)
{
    uint8_t bytes[PEER_FPDU_MAX];
    peer_send(p, bytes, peer_fpdu(p, s, bytes));
}

/* ---- receiving ---- */

bool peer_crc_good(const uint8_t *bytes, size_t len)
{
    const uint8_t *c = bytes + len - 4;
    uint32_t crc = (uint32_t)c[3] << 24 | (uint32_t)c[2] << 16 | (uint32_t)c[1] << 8 | c[0];
    return crc == crc32c(bytes, len - 4);
}

bool peer_next(struct peer *p, struct peer_seg *s)
{
    static uint8_t bytes[PEER_FPDU_MAX];
    if (!fill(p, 2))
        return false;
    size_t ulpdu = get16(p->in), size = (2 + ulpdu + 3) / 4 * 4 + 4;
    if (!fill(p, size))
        return false;
    memcpy(bytes, p->in, size);
    drop(p, size);
    const uint8_t *h = bytes + 2;
    if (p->crc)
        assert_true(peer_crc_good(bytes, size));
    *s = (struct peer_seg){.ddp = h[0], .rdmap = h[1], .ulpdu_len = (uint16_t)ulpdu};
    size_t hdr = s->ddp & PEER_TAGGED ? 14 : 18;
    assert_true(ulpdu >= hdr);
    s->payload = h + hdr;
    s->len = ulpdu - hdr;
    if (s->ddp & PEER_TAGGED) {
        s->stag = peer_get32(h + 2);
        s->to = peer_get64(h + 6);
        return true;
    }
    s->inval = peer_get32(h + 2);
    s->qn = peer_get32(h + 6);
    s->msn = peer_get32(h + 10);
    s->mo = peer_get32(h + 14);
    return true;
}

/** The last of our segments with these headers. @return -1 if there is none */
static int find_sent(const struct peer *p, const uint8_t *headers, size_t len, uint16_t ulpdu_len)
{
    for (unsigned back = 1; back <= p->nsent && back <= PEER_SENT; back++) {
        unsigned i = p->nsent - back;
        if (!memcmp(p->sent[i % PEER_SENT].bytes, headers, len) &&
            p->sent[i % PEER_SENT].ulpdu_len == ulpdu_len)
            return (int)i;
    }
    return -1;
}

#define HAS_LEN   0x80
#define HAS_DDP   0x40
#define HAS_RDMAP 0x20

static void check_terminate(struct peer *p, const struct peer_seg *s)
{
    const uint8_t *t = s->payload;
    p->quoted = -1;
    assert_true(s->len >= 4);
    assert_true(s->ddp == (PEER_LAST | PEER_DDP_V1) && s->qn == 2 && s->msn == 1 && s->mo == 0);
    assert_int_equal(t[3], 0);
    if (t[2] == 0) {
        assert_int_equal(s->len, 4);
        return;
    }
    unsigned layer = t[0] >> 4, etype = t[0] & 0xf;
    assert_true(layer == 1 || (layer == 0 && etype != 0));
    size_t len = t[6] & PEER_TAGGED ? 14 : 18;
    bool request = (t[7] & 0xf) == PEER_READ_REQUEST;
    bool rdmap = layer == 0 && etype == 1 && request;
    assert_int_equal(t[2], HAS_LEN | HAS_DDP | (rdmap ? HAS_RDMAP : 0));
    len += rdmap ? 28 : 0;
    assert_int_equal(s->len, 6 + len);
    p->quoted = find_sent(p, t + 6, len, get16(t + 4));
    assert_true(p->quoted >= 0);
}

unsigned peer_terminate(struct peer *p)
{
    unsigned found = PEER_NO_TERM;
    struct peer_seg s;
    while (peer_next(p, &s)) {
        assert_int_equal(found, PEER_NO_TERM); /* it is the last message */
        if ((s.rdmap & 0xf) != PEER_TERMINATE)
            continue;
        const uint8_t *t = s.payload;
        check_terminate(p, &s);
        found = PEER_TERM(t[0] >> 4, t[0] & 0xf, t[1]);
    }
    assert_false(found != PEER_NO_TERM && p->reset);
    return found;
}
