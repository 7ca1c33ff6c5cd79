/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole stream into an RNIC, from a correct handshake on. The input is the terms of the stream,
 * then a list of what happens: a right segment, with a lie or two if the input says so; any ULPDU;
 * any bytes; the answer to a request of the victim's; a doing of the victim's program; a fit of the
 * network; and, to a victim by number, acknowledgements. In the end the peer hangs up, and the
 * victim's promises are checked (victim.h, wire.h).
 */
#include "fuzz/victim.h"
#include "fuzz/wire.h"

#include "conn/note.h"
#include "qp/link.h"
#include "qp/rnr.h"
#include "wire/bytes.h"
#include "wire/opcode.h"

#include <sys/epoll.h>

#define STEPS_MAX   400
#define ROUNDS_MAX  100000
#define PAYLOAD_MAX 8192
#define NOTE        0xf /* no opcode: one of conn/note.h */

static struct victim victim;
static struct wire wire;
static uint32_t send_mo;   /* offset of the next segment of the Send in progress */
static uint32_t answer_mo; /* bytes of the answer in progress */
static uint8_t ulpdu[DDP_UNTAGGED_HDR + PAYLOAD_MAX + RDMAP_ATOMIC_REQUEST_HDR];

/** Runs the victim until nothing moves. */
static void run(void)
{
    struct iw_qp *qp = iw_qp(victim.qp);
    for (int i = 0; i < ROUNDS_MAX; i++) {
        size_t at = wire.in_at, out = wire.out_len;
        bool paused = qp->tx.rx_paused, linked = qp->tx.linked;
        uint32_t events = wire.stuck ? 0 : EPOLLOUT;
        if (wire_readable(&wire))
            events |= EPOLLIN;
        if (wire.fin)
            events |= EPOLLRDHUP;
        if (wire.reset)
            events |= EPOLLERR | EPOLLHUP;
        still_run(victim.qp, events);
        victim_poll(&victim);
        if (wire.in_at == at && wire.out_len == out && qp->tx.rx_paused == paused &&
            qp->tx.linked == linked)
            break;
        wire_read(&wire);
    }
    wire_read(&wire);
}

/* ---- segments ---- */

/** The numbers a segment is made from. */
struct say {
    uint8_t opcode, lie;
    bool last;
    uint32_t key, len;
    uint64_t to;
};

static void say_tagged(const struct say *s)
{
    ddp_encode_tagged(ulpdu, s->opcode, s->last, s->key, s->to);
    for (uint32_t i = 0; i < s->len; i++)
        ulpdu[DDP_TAGGED_HDR + i] = (uint8_t)((i + s->len) % 200);
    wire_ulpdu(&wire, ulpdu, DDP_TAGGED_HDR + s->len);
}

/** @return bytes of the RDMAP header at @p p */
static uint32_t rdmap_header(uint8_t *p, const struct say *s)
{
    const struct rdmap_read_request read = {.sink_stag = 7,
                                            .sink_to = s->to,
                                            .size = s->len,
                                            .source_stag = s->key,
                                            .source_to = s->to};
    const struct rdmap_atomic_request atomic = {.aop = s->len % 3,
                                                .id = s->len,
                                                .stag = s->key,
                                                .to = s->to,
                                                .data = 0x0101010101010101u * (s->len & 0x7f),
                                                .data_mask = s->len % 3 ? UINT64_MAX : 0,
                                                .compare_mask = s->len & 4 ? UINT64_MAX : 0};
    const struct rdmap_atomic_response answer = {.id = s->len};
    struct terminate t;
    switch (s->opcode) {
    case RDMAP_READ_REQUEST:
        rdmap_read_request_encode(p, &read);
        break;
    case RDMAP_ATOMIC_REQUEST:
        rdmap_atomic_request_encode(p, &atomic);
        break;
    case RDMAP_ATOMIC_RESPONSE:
        rdmap_atomic_response_encode(p, &answer);
        break;
    case RDMAP_TERMINATE:
        terminate_from_error(&t, (enum iw_err)(s->len % IW_ERR_COUNT), NULL, 0);
        return (uint32_t)terminate_encode(p, &t);
    default:
        memset(p, (uint8_t)s->len & 0x7f, rdmap_ops[s->opcode].hdr_len);
    }
    return rdmap_ops[s->opcode].hdr_len;
}

static void say_untagged(const struct say *s)
{
    const struct rdmap_op *op = &rdmap_ops[s->opcode];
    uint32_t mo = op->single ? 0 : send_mo, len = 0;
    if (op->single || mo == 0)
        len = rdmap_header(ulpdu + DDP_UNTAGGED_HDR, s);
    if (!op->exact && !op->single) {
        for (uint32_t i = 0; i < s->len; i++)
            ulpdu[DDP_UNTAGGED_HDR + len + i] = (uint8_t)(i % 200);
        len += s->len;
    }
    if (s->lie & 1)
        mo++;
    ddp_encode_untagged(ulpdu, s->opcode, s->last || op->single, s->key,
                        wire.msn[op->qn] + (s->lie >> 1 & 1), mo);
    wire_ulpdu(&wire, ulpdu, DDP_UNTAGGED_HDR + len);
    if (op->single || s->last)
        wire.msn[op->qn]++;
    if (!op->single)
        send_mo = s->last ? 0 : send_mo + len;
}

/** Tells a victim by number what it did, or did not do. */
static void take_note(uint8_t what, uint8_t back)
{
    uint64_t sent = iw_qp(victim.qp)->tx.half.sent_pos;
    struct say s = {.opcode = RDMAP_WRITE, .last = true, .key = IWC_NOTE_RTR + what % 3u};
    s.to = s.key == IWC_NOTE_RETRY ? back : what & 0x80 ? sent + back : sent - back % (sent + 1);
    if (iw_qp(victim.qp)->ib)
        say_tagged(&s);
}

/** Opcode and lies, key, offset, length; or a note. */
static void take_segment(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in), which = fuzz_u8(in);
    uint64_t base;
    if ((what & 0xf) == NOTE) {
        take_note(which, fuzz_u8(in));
        return;
    }
    struct say s = {.opcode = what & 0xf, .last = !(what & 0x10), .lie = what >> 5};
    s.key = victim_key(&victim, which, &base);
    s.to = base + (uint64_t)(int64_t)(int16_t)fuzz_u16(in);
    s.len = s.lie & 4 ? fuzz_u16(in) % PAYLOAD_MAX : fuzz_u8(in);
    if (!rdmap_ops[s.opcode].name)
        return;
    if (s.opcode == RDMAP_ATOMIC_REQUEST) /* sums may look like what nobody may read */
        wire.forbidden = -1;
    if (rdmap_ops[s.opcode].tagged)
        say_tagged(&s);
    else
        say_untagged(&s);
}

/** Answers the victim's oldest request; offset and key may be off, and the length other than due.
 */
static void take_answer(struct fuzz_in *in)
{
    uint8_t lie = fuzz_u8(in), len = fuzz_u8(in);
    if (!wire.nrequests)
        return;
    const struct wire_request *r = &wire.requests[wire.first];
    struct say s = {.opcode = r->atomic ? RDMAP_ATOMIC_RESPONSE : RDMAP_READ_RESPONSE,
                    .key = r->stag + (lie == 1),
                    .to = r->to + answer_mo + (lie == 2)};
    uint32_t left = r->atomic ? 0 : r->size - answer_mo;
    s.len = r->atomic ? r->id + (lie == 1) : left < PAYLOAD_MAX ? left : PAYLOAD_MAX;
    if (!r->atomic && (len < s.len || lie == 3))
        s.len = len;
    s.last = r->atomic || s.len >= left;
    if (lie == 4)
        s.last = !s.last;
    answer_mo = s.last || s.len > left ? 0 : answer_mo + s.len;
    if (answer_mo == 0) {
        wire.first = (wire.first + 1) % WIRE_REQUESTS;
        wire.nrequests--;
    }
    if (r->atomic)
        say_untagged(&s);
    else
        say_tagged(&s);
}

/* ---- what happens ---- */

static void take_program(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in);
    struct ibv_qp_attr attr = {.qp_state = what & 8 ? IBV_QPS_SQD : IBV_QPS_RTS};
    switch (what % 5) {
    case 0:
        victim_dereg(&victim, what >> 4);
        break;
    case 1:
        iw_qp_close(iw_qp(victim.qp), what & 16);
        break;
    case 2:
        iw_qp_release(iw_qp(victim.qp));
        break;
    case 3:
        ibv_modify_qp(victim.qp, &attr, IBV_QP_STATE);
        break;
    default:
        attr.qp_state = IBV_QPS_ERR;
        ibv_modify_qp(victim.qp, &attr, IBV_QP_STATE);
    }
}

/** The time limit, set by the latest reason, runs out. */
static void expire(void)
{
    struct iw_qp *qp = iw_qp(victim.qp);
    iw_qp_expired(qp, qp->rx.awaits);
    if (qp->ib)
        iw_qp_not_ready(qp);
}

static void take_network(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in), amount = fuzz_u8(in);
    switch (what % 6) {
    case 0:
        wire.fin = true;
        break;
    case 1:
        wire.reset = true;
        break;
    case 2:
        wire.stuck = !wire.stuck;
        break;
    case 3:
        wire.in_chunk = amount + 1u;
        break;
    case 4:
        wire.out_chunk = amount + 1u;
        break;
    default:
        expire();
    }
}

static void take_step(struct fuzz_in *in)
{
    uint8_t what = fuzz_u8(in);
    const uint8_t *p;
    size_t len;
    switch (what % 8) {
    case 0:
        take_segment(in);
        break;
    case 1:
        p = fuzz_bytes(in, fuzz_u8(in), &len);
        wire_ulpdu(&wire, p, len);
        break;
    case 2:
        p = fuzz_bytes(in, fuzz_u8(in), &len);
        wire_raw(&wire, p, len);
        break;
    case 3:
        victim_recv(&victim, in);
        break;
    case 4:
        victim_send(&victim, in);
        break;
    case 5:
        take_answer(in);
        break;
    case 6:
        take_program(in);
        break;
    default:
        take_network(in);
    }
    /* Without this bit several things happen at once. */
    if (!(what & 0x80))
        run();
}

/** Nobody is reached in the time of the attributes; the program has no use for the QP any more. */
static void give_up(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    iw_qp_unreached(iw_qp(victim.qp), "nobody is there");
    FUZZ_CHECK(ibv_modify_qp(victim.qp, &attr, IBV_QP_STATE) == 0);
}

/** The peer hangs up, and all time limits run out. */
static void end(void)
{
    wire.fin = true;
    wire.stuck = false;
    wire.in_chunk = wire.out_chunk = SIZE_MAX;
    run();
    for (int i = 0; i < 3 && iw_qp(victim.qp)->tx.linked; i++) {
        expire();
        run();
    }
    FUZZ_CHECK(!iw_qp(victim.qp)->tx.linked);
    still_unlink(victim.qp);
    if (iw_qp(victim.qp)->ib)
        give_up();
    victim_close(&victim);
}

static void no_news(struct iw_qp *qp, unsigned news)
{
    (void)qp;
    (void)news;
}

/** As if its program had moved it. */
static void make_by_number(struct iw_qp *qp)
{
    qp->ib = true;
    qp->dial_news = no_news;
    lock_get(&qp->tx.lock);
    iw_qp_set_state_locked(qp, IBV_QPS_RTS);
    lock_put(&qp->tx.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    uint8_t flags = fuzz_u8(&in), depths = fuzz_u8(&in);
    struct mpa_result agreed = {
        .rev = 2,
        .enhanced = true,
        .crc = flags & 1,
        .ext = flags & 2,
        .tx_markers = flags & 8,
        .p2p = flags & 0x30,
        .rtr = flags & 0x10   ? MPA_RTR_READ
               : flags & 0x20 ? MPA_RTR_WRITE
                              : 0,
        .ird = depths & 0xf,
        .ord = depths >> 4,
    };
    bool responder = flags & 4;
    bool tainted = size > 0 && memchr(data, VICTIM_SECRET, size);

    still_seed(1);
    send_mo = answer_mo = 0;
    victim_open(&victim, flags & 0x40);
    if (flags & 0x80)
        make_by_number(iw_qp(victim.qp));
    wire_init(&wire, &agreed, tainted ? -1 : VICTIM_SECRET);
    still_link(victim.qp, &wire.base, &agreed, responder);
    if (responder && agreed.rtr) { /* the initiator's RTR */
        struct say rtr = {.opcode = agreed.rtr == MPA_RTR_READ ? RDMAP_READ_REQUEST : RDMAP_WRITE,
                          .key = 1,
                          .last = true};
        if (agreed.rtr == MPA_RTR_READ)
            say_untagged(&rtr);
        else
            say_tagged(&rtr);
    }
    run();
    for (int i = 0; i < STEPS_MAX && in.left > 0; i++)
        take_step(&in);
    end();
    return 0;
}
