/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MPA handshake. One machine, either role, meets the bytes of the input, split as the input
 * says; or two machines with the terms of the input meet each other.
 */
#include "fuzz/fuzz.h"

#include "conn/nego.h"

#include <errno.h>

static uint8_t private_data[MPA_START_PD_MAX + 8];

static struct mpa_conf take_conf(struct fuzz_in *in)
{
    uint8_t flags = fuzz_u8(in);
    uint16_t depths = fuzz_u16(in);
    struct mpa_conf c = {
        .rev = flags & 1 ? 1 : 2,
        .crc = flags & 2,
        .ext = flags & 4,
        .p2p = flags & 8,
        .rtr = (flags & 16 ? MPA_RTR_WRITE : 0) | (flags & 32 ? MPA_RTR_READ : 0),
        .ird = depths >> 8,
        .ord = depths & 0xff,
    };
    if (flags & 64)
        c.ird = c.ord = MPA_DEPTH_MAX;
    return c;
}

static bool over(const struct mpa_nego *n)
{
    return n->state == MPA_NEGO_AGREED || n->state == MPA_NEGO_REJECTED ||
           n->state == MPA_NEGO_FAILED;
}

static void check_result(const struct mpa_nego *n)
{
    const struct mpa_result *r = &n->result;
    FUZZ_CHECK(r->rev == 1 || r->rev == 2);
    FUZZ_CHECK(!r->enhanced || r->rev == 2);
    FUZZ_CHECK(r->ird <= MPA_DEPTH_MAX && r->ord <= MPA_DEPTH_MAX);
    FUZZ_CHECK(!r->ext || n->conf.ext);
    FUZZ_CHECK(!n->conf.crc || r->crc);
    FUZZ_CHECK(r->p2p ? r->rtr == MPA_RTR_WRITE || r->rtr == MPA_RTR_READ : r->rtr == 0);
    if (!n->initiator)
        return;
    FUZZ_CHECK(r->rev <= n->conf.rev && r->ord <= n->conf.ord);
    FUZZ_CHECK(!r->rtr || (r->rtr & n->conf.rtr));
    FUZZ_CHECK(r->rtr != MPA_RTR_READ || r->ord > 0);
}

static void check_machine(const struct mpa_nego *n)
{
    FUZZ_CHECK(n->in_len <= sizeof(n->in) && n->out_len <= sizeof(n->out));
    FUZZ_CHECK((n->state == MPA_NEGO_FAILED) == (n->error != IW_OK));
    if (n->state == MPA_NEGO_AGREED || n->state == MPA_NEGO_REJECTED ||
        n->state == MPA_NEGO_WAIT_DECISION) {
        const uint8_t *end = n->in + n->in_len;
        /* The number of an anywarp's QP may stand behind what the program sees. */
        size_t own =
            n->peer.flags & MPA_FLAG_QPN_REPLY && n->initiator && n->result.ext ? MPA_QPN : 0;
        const uint8_t *seen = n->peer.pd + n->peer.pd_len;
        FUZZ_CHECK(n->peer.pd >= n->in && (seen == end || seen + own == end));
    }
    if (n->state == MPA_NEGO_AGREED)
        check_result(n);
}

/** The frame to send is one, of the right kind. */
static void check_out(const struct mpa_nego *n, uint16_t pd_len)
{
    struct mpa_start m;
    size_t used;
    FUZZ_CHECK(mpa_start_decode(n->out, n->out_len, !n->initiator, &m, &used) == MPA_PARSE_OK);
    FUZZ_CHECK(used == n->out_len && m.pd_len == pd_len);
    FUZZ_CHECK(memcmp(m.pd, private_data, pd_len) == 0);
}

static bool begin(struct mpa_nego *n, bool initiator, const struct mpa_conf *c, uint16_t pd_len)
{
    if (!initiator) {
        mpa_nego_listen(n, c);
        return true;
    }
    if (mpa_nego_connect(n, c, private_data, pd_len)) {
        FUZZ_CHECK(pd_len > MPA_START_PD_MAX - (c->rev == 2 ? MPA_V2_BLOCK : 0));
        return false;
    }
    check_out(n, pd_len);
    return true;
}

/** A responder's program decides. */
static void decide(struct mpa_nego *n, struct fuzz_in *in)
{
    uint8_t flags = fuzz_u8(in);
    uint16_t ird = fuzz_u8(in), ord = fuzz_u8(in), pd_len = fuzz_u16(in) % sizeof(private_data);
    if (flags & 2)
        ird = MPA_DEPTH_MAX + (flags >> 6);
    int r = flags & 1 ? mpa_nego_reject(n, private_data, pd_len)
                      : mpa_nego_accept(n, ird, ord, private_data, pd_len);
    if (r == 0)
        check_out(n, pd_len);
    else
        FUZZ_CHECK(r == -EINVAL && n->state == MPA_NEGO_WAIT_DECISION);
    check_machine(n);
}

static void meet_bytes(struct fuzz_in *in, bool initiator, bool end_by_time)
{
    static struct mpa_nego n, whole;
    struct mpa_conf c = take_conf(in);
    uint16_t pd_len = fuzz_u16(in) % sizeof(private_data);
    size_t piece = 1 + fuzz_u8(in), used = 0, at = 0;
    struct fuzz_in decision;
    const uint8_t *p = fuzz_bytes(in, 5, &at);

    decision = (struct fuzz_in){p, at};
    if (!begin(&n, initiator, &c, pd_len) || !begin(&whole, initiator, &c, pd_len))
        return;
    for (at = 0; at < in->left;) {
        size_t len = piece < in->left - at ? piece : in->left - at;
        uint8_t *copy = fuzz_exact(in->p + at, len);
        used = mpa_nego_input(&n, copy, len);
        FUZZ_CHECK(used <= len && (used == len || over(&n)));
        free(copy);
        check_machine(&n);
        at += used;
        if (over(&n))
            break;
    }
    used = mpa_nego_input(&whole, in->p, in->left);
    check_machine(&whole);
    FUZZ_CHECK(whole.state == n.state && whole.error == n.error);
    if (n.state == MPA_NEGO_AGREED || n.state == MPA_NEGO_REJECTED)
        FUZZ_CHECK(used == at && !memcmp(&whole.result, &n.result, sizeof(n.result)));
    FUZZ_CHECK(mpa_nego_heard(&n) == (in->left > 0));
    if (n.state == MPA_NEGO_WAIT_DECISION)
        decide(&n, &decision);
    if (end_by_time)
        mpa_nego_timeout(&n);
    else
        mpa_nego_closed(&n);
    check_machine(&n);
    FUZZ_CHECK(over(&n));
}

static void meet_each_other(struct fuzz_in *in)
{
    static struct mpa_nego a, b;
    struct mpa_conf ca = take_conf(in), cb = take_conf(in);
    uint8_t pd_len = fuzz_u8(in);

    if (!begin(&a, true, &ca, pd_len))
        return;
    mpa_nego_listen(&b, &cb);
    FUZZ_CHECK(mpa_nego_input(&b, a.out, a.out_len) == a.out_len);
    FUZZ_CHECK(b.state == MPA_NEGO_WAIT_DECISION && b.peer.pd_len == pd_len);
    FUZZ_CHECK(mpa_nego_accept(&b, cb.ird, cb.ord, private_data, pd_len) == 0);
    FUZZ_CHECK(mpa_nego_input(&a, b.out, b.out_len) == b.out_len);
    check_machine(&a);
    check_machine(&b);
    if (a.state == MPA_NEGO_FAILED) {
        FUZZ_CHECK(a.error == IW_ERR_IRD_SHORT || a.error == IW_ERR_NO_RTR);
        return;
    }
    const struct mpa_result *ra = &a.result, *rb = &b.result;
    FUZZ_CHECK(a.state == MPA_NEGO_AGREED && b.state == MPA_NEGO_AGREED);
    FUZZ_CHECK(ra->rev == rb->rev && ra->enhanced == rb->enhanced && ra->crc == rb->crc);
    FUZZ_CHECK(ra->ext == rb->ext && ra->p2p == rb->p2p && ra->rtr == rb->rtr);
    if (ra->enhanced && ca.ord != MPA_DEPTH_MAX && cb.ord != MPA_DEPTH_MAX)
        FUZZ_CHECK(ra->ord <= rb->ird && rb->ord <= ra->ird);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint8_t how = fuzz_u8(&in);

    for (size_t i = 0; i < sizeof(private_data); i++)
        private_data[i] = (uint8_t)i;
    if (how & 4)
        meet_each_other(&in);
    else
        meet_bytes(&in, how & 1, how & 2);
    return 0;
}
