/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA negotiation: the table of states and events, and the terms that come out. */
#include "conn/nego.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum nego_event {
    EV_CONNECT,
    EV_LISTEN,
    EV_REQUEST,   /* a valid Request is in */
    EV_AGREE,     /* a valid Reply is in, and its terms can be kept */
    EV_REFUSE,    /* a valid Reply with R is in */
    EV_IRD_SHORT, /* a valid Reply is in, but it wants more reads than we serve */
    EV_NO_RTR,    /* a valid Reply is in, but lists no RTR message that we can send */
    EV_BAD,       /* a malformed frame, or bytes where there can be none */
    EV_ACCEPT,
    EV_REJECT,
    EV_CLOSED,
    EV_TIMEOUT,
    EV_COUNT,
};

enum nego_kind { MISSING, ILLEGAL, IGNORED, LEGAL };

struct nego_step {
    enum nego_kind kind;
    enum mpa_nego_state next;
    enum iw_err error;
};

/* clang-format off */
#define NEVER {.kind = ILLEGAL}
#define STAY {.kind = IGNORED}
#define GO(state) {.kind = LEGAL, .next = MPA_NEGO_##state}
#define FAIL(err) {.kind = LEGAL, .next = MPA_NEGO_FAILED, .error = IW_ERR_##err}

/* Once both sides have answered, the end of the TCP connection is no longer this machine's. */
#define OVER                                                                                       \
    {                                                                                              \
        [EV_CONNECT] = NEVER, [EV_LISTEN] = NEVER, [EV_REQUEST] = NEVER, [EV_AGREE] = NEVER,       \
        [EV_REFUSE] = NEVER, [EV_IRD_SHORT] = NEVER, [EV_NO_RTR] = NEVER, [EV_BAD] = NEVER,        \
        [EV_ACCEPT] = NEVER, [EV_REJECT] = NEVER, [EV_CLOSED] = STAY, [EV_TIMEOUT] = STAY,         \
    }

#define STATE_COUNT (MPA_NEGO_FAILED + 1)

static const struct nego_step steps[STATE_COUNT][EV_COUNT] = {
    [MPA_NEGO_IDLE] = {
        [EV_CONNECT] = GO(WAIT_REPLY),
        [EV_LISTEN] = GO(WAIT_REQUEST),
        [EV_REQUEST] = NEVER,
        [EV_AGREE] = NEVER,
        [EV_REFUSE] = NEVER,
        [EV_IRD_SHORT] = NEVER,
        [EV_NO_RTR] = NEVER,
        [EV_BAD] = NEVER,
        [EV_ACCEPT] = NEVER,
        [EV_REJECT] = NEVER,
        [EV_CLOSED] = FAIL(LLP_CLOSED),
        [EV_TIMEOUT] = FAIL(LLP_CLOSED),
    },
    [MPA_NEGO_WAIT_REPLY] = {
        [EV_CONNECT] = NEVER,
        [EV_LISTEN] = NEVER,
        [EV_REQUEST] = NEVER,
        [EV_AGREE] = GO(AGREED),
        [EV_REFUSE] = GO(REJECTED),
        [EV_IRD_SHORT] = FAIL(IRD_SHORT),
        [EV_NO_RTR] = FAIL(NO_RTR),
        [EV_BAD] = FAIL(START_FRAME),
        [EV_ACCEPT] = NEVER,
        [EV_REJECT] = NEVER,
        [EV_CLOSED] = FAIL(LLP_CLOSED),
        [EV_TIMEOUT] = FAIL(LLP_CLOSED),
    },
    [MPA_NEGO_WAIT_REQUEST] = {
        [EV_CONNECT] = NEVER,
        [EV_LISTEN] = NEVER,
        [EV_REQUEST] = GO(WAIT_DECISION),
        [EV_AGREE] = NEVER,
        [EV_REFUSE] = NEVER,
        [EV_IRD_SHORT] = NEVER,
        [EV_NO_RTR] = NEVER,
        [EV_BAD] = FAIL(START_FRAME),
        [EV_ACCEPT] = NEVER,
        [EV_REJECT] = NEVER,
        [EV_CLOSED] = FAIL(LLP_CLOSED),
        [EV_TIMEOUT] = FAIL(LLP_CLOSED),
    },
    [MPA_NEGO_WAIT_DECISION] = {
        [EV_CONNECT] = NEVER,
        [EV_LISTEN] = NEVER,
        [EV_REQUEST] = NEVER,
        [EV_AGREE] = NEVER,
        [EV_REFUSE] = NEVER,
        [EV_IRD_SHORT] = NEVER,
        [EV_NO_RTR] = NEVER,
        [EV_BAD] = FAIL(START_FRAME),
        [EV_ACCEPT] = GO(AGREED),
        [EV_REJECT] = GO(REJECTED),
        [EV_CLOSED] = FAIL(LLP_CLOSED),
        [EV_TIMEOUT] = FAIL(LLP_CLOSED),
    },
    [MPA_NEGO_AGREED] = OVER,
    [MPA_NEGO_REJECTED] = OVER,
    [MPA_NEGO_FAILED] = OVER,
};
/* clang-format on */

const char *mpa_nego_state_name(enum mpa_nego_state s)
{
    static const char *const names[] = {
#define X(name) #name,
        MPA_NEGO_STATES(X)
#undef X
    };
    return names[s];
}

static bool legal(const struct mpa_nego *n, enum nego_event ev)
{
    return steps[n->state][ev].kind == LEGAL;
}

static void step(struct mpa_nego *n, enum nego_event ev)
{
    const struct nego_step *s = &steps[n->state][ev];
    assert(s->kind == LEGAL || s->kind == IGNORED);
    if (s->kind != LEGAL)
        return;
    n->state = s->next;
    n->error = s->error;
}

static uint16_t min_depth(uint16_t a, uint16_t b)
{
    return a < b ? a : b;
}

int mpa_nego_connect(struct mpa_nego *n, const struct mpa_conf *conf, const void *pd,
                     uint16_t pd_len)
{
    memset(n, 0, sizeof(*n));
    n->initiator = true;
    n->conf = *conf;
    n->conf.rtr &= MPA_RTR_WRITE | (conf->ord ? MPA_RTR_READ : 0);
    n->conf.p2p = conf->p2p && n->conf.rtr;
    if (conf->ird > MPA_DEPTH_MAX || conf->ord > MPA_DEPTH_MAX)
        return -EINVAL;

    struct mpa_start m = {
        .flags = (conf->crc ? MPA_FLAG_C : 0) |
                 (conf->ext ? MPA_FLAG_EXT_REQUEST | MPA_FLAG_QPN_REQUEST : 0) |
                 (conf->ext && conf->shm ? MPA_FLAG_SHM : 0),
        .rev = conf->rev,
        .enhanced = conf->rev == 2,
        .p2p = n->conf.p2p,
        .rtr = n->conf.p2p ? n->conf.rtr : 0,
        .ird = conf->ird,
        .ord = conf->ord,
        .pd = pd,
        .pd_len = pd_len,
    };
    n->out_len = mpa_start_encode(n->out, &m);
    if (n->out_len == 0)
        return -EINVAL;
    step(n, EV_CONNECT);
    return 0;
}

void mpa_nego_listen(struct mpa_nego *n, const struct mpa_conf *conf)
{
    memset(n, 0, sizeof(*n));
    n->conf = *conf;
    step(n, EV_LISTEN);
}

/** Whether both want rings, and nothing is asked for that they do not have. */
static bool may_shm(const struct mpa_nego *n, const struct mpa_result *r)
{
    return n->conf.shm && r->ext && (n->peer.flags & MPA_FLAG_SHM) && !r->crc && !r->tx_markers;
}

/* Fills the result from the Reply. A peer that does not negotiate a depth says MPA_DEPTH_MAX. */
static enum nego_event judge_reply(struct mpa_nego *n)
{
    const struct mpa_start *peer = &n->peer;
    const struct mpa_conf *conf = &n->conf;
    uint8_t ext = peer->flags & (MPA_FLAG_EXT_REPLY | MPA_FLAG_EXT_REQUEST);

    if (peer->rev > conf->rev)
        return EV_BAD;
    n->result = (struct mpa_result){
        .rev = peer->rev,
        .enhanced = peer->enhanced,
        .crc = conf->crc || (peer->flags & MPA_FLAG_C),
        .tx_markers = peer->flags & MPA_FLAG_M,
        .ext = conf->ext && ext == MPA_FLAG_EXT_REPLY,
        .ird = conf->ird,
        .ord = conf->ord,
    };
    n->result.shm = !(peer->flags & MPA_FLAG_R) && may_shm(n, &n->result) &&
                    mpa_start_take_offer(&n->peer, n->result.offer);
    n->result.full = n->result.ext && (peer->flags & MPA_FLAG_R) && (peer->flags & MPA_FLAG_FULL);
    if (peer->flags & MPA_FLAG_R)
        return EV_REFUSE;
    if (n->result.ext)
        n->result.peer_qpn = mpa_start_take_qpn(&n->peer);
    if (!peer->enhanced)
        return EV_AGREE;
    if (peer->ord > conf->ird && peer->ord != MPA_DEPTH_MAX)
        return EV_IRD_SHORT;
    n->result.ord = min_depth(conf->ord, peer->ird);
    if (!conf->p2p || !peer->p2p)
        return EV_AGREE;
    n->result.p2p = true;
    uint8_t common = conf->rtr & peer->rtr;
    if (common & MPA_RTR_WRITE)
        n->result.rtr = MPA_RTR_WRITE;
    else if ((common & MPA_RTR_READ) && n->result.ord > 0)
        n->result.rtr = MPA_RTR_READ;
    else
        return EV_NO_RTR;
    return EV_AGREE;
}

size_t mpa_nego_input(struct mpa_nego *n, const uint8_t *p, size_t len)
{
    if (len == 0)
        return 0;
    if (n->state == MPA_NEGO_WAIT_DECISION) {
        step(n, EV_BAD);
        return len;
    }
    if (n->state != MPA_NEGO_WAIT_REPLY && n->state != MPA_NEGO_WAIT_REQUEST)
        return 0;

    size_t had = n->in_len, room = sizeof(n->in) - had, used;
    size_t take = len < room ? len : room;
    memcpy(n->in + had, p, take);
    n->in_len += take;
    switch (mpa_start_decode(n->in, n->in_len, n->initiator, &n->peer, &used)) {
    case MPA_PARSE_MORE:
        return take;
    case MPA_PARSE_BAD:
        step(n, EV_BAD);
        return len;
    case MPA_PARSE_OK:
        break;
    }
    n->in_len = used;
    if (n->initiator) {
        step(n, judge_reply(n));
        return used - had;
    }
    step(n, len > used - had ? EV_BAD : EV_REQUEST);
    return len;
}

void mpa_nego_closed(struct mpa_nego *n)
{
    step(n, EV_CLOSED);
}

void mpa_nego_timeout(struct mpa_nego *n)
{
    n->timed_out = legal(n, EV_TIMEOUT) || n->timed_out;
    step(n, EV_TIMEOUT);
}

/* The RTR message that the Reply names: one of those offered if we can take one of them, else our
 * own choice, because a Reply to A has to name one. */
static uint8_t choose_rtr(uint8_t offered, uint8_t able)
{
    uint8_t set = offered & able ? offered & able : able;
    return (set & MPA_RTR_WRITE) || !(set & MPA_RTR_READ) ? MPA_RTR_WRITE : MPA_RTR_READ;
}

/* Builds the Reply and the result. On failure the result is unused and the state is unchanged. */
static int reply(struct mpa_nego *n, enum nego_event ev, uint16_t ird, uint16_t ord, const void *pd,
                 uint16_t pd_len)
{
    const struct mpa_start *peer = &n->peer;

    if (!legal(n, ev) || ird > MPA_DEPTH_MAX || ord > MPA_DEPTH_MAX)
        return -EINVAL;
    struct mpa_result r = {
        .rev = peer->rev,
        .enhanced = peer->enhanced,
        .crc = n->conf.crc || (peer->flags & MPA_FLAG_C),
        .tx_markers = peer->flags & MPA_FLAG_M,
        .ext = n->conf.ext && (peer->flags & MPA_FLAG_EXT_REQUEST),
        .ird = ird,
        .ord = ord,
    };
    r.shm = ev == EV_ACCEPT && may_shm(n, &r) &&
            pd_len + MPA_V2_BLOCK + MPA_QPN + MPA_OFFER <= MPA_START_PD_MAX;
    if (peer->enhanced) {
        r.ord = min_depth(ord, peer->ird);
        r.p2p = peer->p2p;
        r.rtr = r.p2p ? choose_rtr(peer->rtr, n->conf.rtr) : 0;
        if (r.rtr == MPA_RTR_READ && r.ird == 0)
            r.ird = 1;
    }
    struct mpa_start m = {
        .reply = true,
        .flags = (ev == EV_REJECT ? MPA_FLAG_R : 0) | (r.crc ? MPA_FLAG_C : 0) |
                 (r.ext ? MPA_FLAG_EXT_REPLY : 0) | (r.shm ? MPA_FLAG_SHM : 0) |
                 (ev == EV_REJECT && r.ext && n->conf.full ? MPA_FLAG_FULL : 0),
        .rev = r.rev,
        .enhanced = r.enhanced,
        .p2p = r.p2p,
        .rtr = r.rtr,
        .ird = peer->ord == MPA_DEPTH_MAX ? MPA_DEPTH_MAX : r.ird,
        .ord = peer->ird == MPA_DEPTH_MAX ? MPA_DEPTH_MAX : r.ord,
        .pd = pd,
        .pd_len = pd_len,
    };
    size_t len = mpa_start_encode(n->out, &m);
    if (len == 0)
        return -EINVAL;
    if (ev == EV_ACCEPT && r.ext && (peer->flags & MPA_FLAG_QPN_REQUEST) && n->conf.qpn)
        len = mpa_start_add_qpn(n->out, len, n->conf.qpn);
    if (r.shm)
        len = mpa_start_add_offer(n->out, len, n->conf.offer);
    n->out_len = len;
    n->result = r;
    step(n, ev);
    return 0;
}

int mpa_nego_accept(struct mpa_nego *n, uint16_t ird, uint16_t ord, const void *pd, uint16_t pd_len)
{
    return reply(n, EV_ACCEPT, ird, ord, pd, pd_len);
}

int mpa_nego_with_itself(struct mpa_nego *n, const struct mpa_conf *conf)
{
    struct mpa_nego other;
    struct mpa_conf alone = *conf;
    alone.p2p = false;
    int r = mpa_nego_connect(n, &alone, NULL, 0);
    if (r)
        return r;
    mpa_nego_listen(&other, &alone);
    mpa_nego_input(&other, n->out, n->out_len);
    r = mpa_nego_accept(&other, alone.ird, alone.ord, NULL, 0);
    if (r)
        return r;
    n->out_len = 0;
    mpa_nego_input(n, other.out, other.out_len);
    return 0;
}

int mpa_nego_reject(struct mpa_nego *n, const void *pd, uint16_t pd_len)
{
    return reply(n, EV_REJECT, n->conf.ird, n->conf.ord, pd, pd_len);
}
