/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/end.h"

#include "unmark.h"
#include "wire/range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTE 0xa5

/* ---- upcalls ---- */

static bool in_mem(uint64_t to, uint64_t len)
{
    return range_inside(END_BASE, END_MEM, to, len);
}

static int up_write(void *up, const struct ddp_seg *s)
{
    struct end *e = up;
    if (s->len == 0)
        return IW_OK;
    if (s->stag != END_STAG)
        return IW_ERR_TAGGED_STAG;
    if (!in_mem(s->to, s->len))
        return IW_ERR_TAGGED_BOUNDS;
    memcpy(e->mem + (s->to - END_BASE), s->payload, s->len);
    return IW_OK;
}

static int up_read_request(void *up, const struct rdmap_read_request *r)
{
    struct end *e = up;
    if (e->nresponses == END_IRD * 2)
        return IW_ERR_IRD_EXCEEDED;
    if (r->size && r->source_stag != END_STAG)
        return IW_ERR_READ_STAG;
    if (r->size && !in_mem(r->source_to, r->size))
        return IW_ERR_READ_BOUNDS;
    e->responses[e->nresponses++] = (struct end_response){.read = *r};
    return IW_OK;
}

static int up_read_response(void *up, const struct ddp_seg *s)
{
    struct end *e = up;
    struct end_read *r = &e->reads[0];
    if (e->nreads == 0 || s->stag != END_SINK_STAG)
        return IW_ERR_RESPONSE_STAG;
    if (s->to != r->to + e->read_got || s->len > r->len - e->read_got)
        return IW_ERR_RESPONSE_BOUNDS;
    memcpy(e->sink + s->to, s->payload, s->len);
    e->read_got += s->len;
    if (!s->last)
        return IW_OK;
    if (e->read_got != r->len)
        return IW_ERR_RESPONSE_BOUNDS;
    e->read_got = 0;
    e->nreads--;
    memmove(r, r + 1, e->nreads * sizeof(*r));
    return IW_OK;
}

static bool held(struct end *e)
{
    e->offered = e->hold && !e->offered;
    return e->offered;
}

static int up_send(void *up, const struct ddp_seg *s)
{
    struct end *e = up;
    if (held(e))
        return IWC_HOLD;
    if (!range_fits(END_RECV, e->recv_len, s->len) || e->nrecv == sizeof(e->recv_opcodes))
        return IW_ERR_UNTAGGED_NO_BUFFER;
    memcpy(e->recv + e->recv_len, s->payload, s->len);
    e->recv_len += s->len;
    if (s->last)
        e->recv_opcodes[e->nrecv++] = s->opcode;
    return IW_OK;
}

static int up_immediate(void *up, const uint8_t data[RDMAP_IMM_HDR], bool solicited)
{
    struct end *e = up;
    if (held(e))
        return IWC_HOLD;
    if (solicited || data[0] != end_pattern(0))
        return IW_ERR_OPERATION;
    e->nimm++;
    return IW_OK;
}

static int up_atomic_request(void *up, const struct rdmap_atomic_request *r)
{
    struct end *e = up;
    uint64_t value;
    if (e->nresponses == END_IRD * 2)
        return IW_ERR_IRD_EXCEEDED;
    if (r->stag != END_STAG || !in_mem(r->to, sizeof(value)))
        return IW_ERR_READ_BOUNDS;
    uint8_t *p = e->mem + (r->to - END_BASE);
    memcpy(&value, p, sizeof(value));
    e->responses[e->nresponses++] =
        (struct end_response){.atomic = true, .result = {.id = r->id, .original = value}};
    value = rdmap_atomic_apply(r, value);
    memcpy(p, &value, sizeof(value));
    return IW_OK;
}

static int up_atomic_response(void *up, const struct rdmap_atomic_response *r)
{
    struct end *e = up;
    e->natomic++;
    e->atomic_result = r->original;
    return IW_OK;
}

static void up_terminate(void *up, const struct terminate *t)
{
    struct end *e = up;
    e->term = *t;
}

static const struct iwc_upcalls upcalls = {
    .write = up_write,
    .read_request = up_read_request,
    .read_response = up_read_response,
    .send = up_send,
    .immediate = up_immediate,
    .atomic_request = up_atomic_request,
    .atomic_response = up_atomic_response,
    .terminate = up_terminate,
};

/* ---- transmit ---- */

static uint8_t *pattern(void)
{
    static uint8_t bytes[END_RECV];
    if (bytes[1] != end_pattern(1))
        for (uint32_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = end_pattern(i);
    return bytes;
}

static void begin(struct end *e, uint8_t opcode, const uint8_t *data, uint32_t len)
{
    e->busy = true;
    e->iov[0] = (struct iovec){(void *)data, len / 2};
    e->iov[1] = (struct iovec){(void *)(data + len / 2), len - len / 2};
    e->msg = (struct iwc_msg){.opcode = opcode, .iov = e->iov, .niov = 2, .len = len};
}

static void begin_header(struct end *e, uint8_t opcode, uint8_t len)
{
    e->busy = true;
    e->msg = (struct iwc_msg){.opcode = opcode, .hdr = e->hdr, .hdr_len = len};
}

static void begin_read(struct end *e, uint32_t at, uint32_t len)
{
    struct rdmap_read_request r = {.sink_stag = END_SINK_STAG,
                                   .sink_to = at,
                                   .size = len,
                                   .source_stag = END_STAG,
                                   .source_to = END_BASE + at};
    e->reads[e->nreads++] = (struct end_read){.to = at, .len = len};
    rdmap_read_request_encode(e->hdr, &r);
    begin_header(e, RDMAP_READ_REQUEST, RDMAP_READ_REQUEST_HDR);
}

static void begin_response(struct end *e)
{
    struct end_response r = e->responses[0];
    memmove(e->responses, e->responses + 1, --e->nresponses * sizeof(r));
    if (r.atomic) {
        rdmap_atomic_response_encode(e->hdr, &r.result);
        begin_header(e, RDMAP_ATOMIC_RESPONSE, RDMAP_ATOMIC_RESPONSE_HDR);
    } else {
        uint32_t from = r.read.size ? r.read.source_to - END_BASE : 0;
        begin(e, RDMAP_READ_RESPONSE, e->mem + from, r.read.size);
        e->msg.stag = r.read.sink_stag;
        e->msg.to = r.read.sink_to;
    }
}

static bool begin_op(struct end *e)
{
    const struct end_op *op = &e->ops[e->next];
    bool read = op->opcode == RDMAP_READ_REQUEST || op->opcode == RDMAP_ATOMIC_REQUEST;

    if (read && e->nreads == END_IRD)
        return false;
    e->next++;
    switch (op->opcode) {
    case RDMAP_READ_REQUEST:
        begin_read(e, op->at, op->len);
        break;
    case RDMAP_ATOMIC_REQUEST: {
        struct rdmap_atomic_request r = {.aop = RDMAP_AOP_FETCH_ADD,
                                         .id = 9,
                                         .stag = END_STAG,
                                         .to = END_BASE + END_READ + op->at,
                                         .data = op->len};
        rdmap_atomic_request_encode(e->hdr, &r);
        begin_header(e, op->opcode, RDMAP_ATOMIC_REQUEST_HDR);
        break;
    }
    case RDMAP_IMM:
        memcpy(e->hdr, pattern(), RDMAP_IMM_HDR);
        begin_header(e, op->opcode, RDMAP_IMM_HDR);
        break;
    case RDMAP_TERMINATE: {
        struct terminate t;
        terminate_from_error(&t, IW_ERR_RDMAP_LOCAL, NULL, 0);
        begin_header(e, op->opcode, terminate_encode(e->hdr, &t));
        e->term_sent = true;
        break;
    }
    case RDMAP_WRITE:
        begin(e, op->opcode, pattern(), op->len);
        e->msg.stag = END_STAG;
        e->msg.to = END_BASE + END_READ + op->at;
        break;
    default:
        begin(e, op->opcode, pattern(), op->len);
        e->msg.stag = END_STAG;
    }
    return true;
}

/** Starts the next message, if there is one that may go. */
static bool next_message(struct end *e)
{
    if (e->term_sent)
        return false;
    if (!e->nego.initiator && e->rx.fpdus == 0)
        return false;
    if (e->rtr_due) {
        e->rtr_due = false;
        if (e->nego.result.rtr == MPA_RTR_READ) {
            begin_read(e, 0, 0);
        } else {
            begin(e, RDMAP_WRITE, pattern(), 0);
            e->msg.stag = 1;
        }
        return true;
    }
    if (e->nresponses > 0) {
        begin_response(e);
        return true;
    }
    return e->next < e->nops && begin_op(e);
}

static bool transmit(struct end *e)
{
    uint64_t before = e->tx.cut_pos + e->tx.sent_pos;

    while (e->busy || next_message(e)) {
        e->busy = !iwc_tx_cut(&e->tx, &e->batch, &e->msg);
        if (e->busy)
            break;
    }
    iwc_tx_send(&e->tx, &e->batch, e->s);
    return e->tx.cut_pos + e->tx.sent_pos != before;
}

/** The first cause wins and is told to the peer, also in the middle of a message. */
static void fail(struct end *e, enum iw_err err, bool tell)
{
    struct terminate t;
    bool known = e->rx.bad.hdr != NULL;

    if (e->error)
        return;
    e->error = err;
    e->busy = false;
    e->nresponses = 0;
    e->next = e->nops;
    if (!tell || e->term_sent || !e->data)
        return;
    terminate_from_error(&t, err, known ? &e->rx.bad : NULL, e->rx.bad_ulpdu_len);
    begin_header(e, RDMAP_TERMINATE, terminate_encode(e->hdr, &t));
    e->term_sent = true;
}

/* ---- receive ---- */

/** From raw[] to in[], without markers if there are any. */
static void refill(struct end *e)
{
    if (!e->want_markers) {
        memcpy(e->in + e->in_len, e->raw, e->raw_len);
        e->in_len += e->raw_len;
        e->raw_len = 0;
        return;
    }
    while (!e->error && e->in_len < FPDU_MAX) {
        size_t len, used;
        switch (unmark_fpdu(e->raw, e->raw_len, e->unmarked, e->rx.crc, e->in + e->in_len, &len,
                            &used)) {
        case UNMARK_MORE:
            return;
        case UNMARK_BAD_MARKER:
            fail(e, IW_ERR_FRAMING, true);
            return;
        case UNMARK_BAD_CRC:
            fail(e, IW_ERR_CRC, true);
            return;
        case UNMARK_OK:
            e->in_len += len;
            e->unmarked += used;
            e->raw_len -= used;
            memmove(e->raw, e->raw + used, e->raw_len);
        }
    }
}

/** Gives in[] to the receive half, in a block of its own so that ASan sees every overrun. */
static bool digest(struct end *e)
{
    enum iw_err err;
    size_t used = 0;
    bool again;

    if (e->in_len == 0 || e->error)
        return false;
    do {
        uint8_t *p = malloc(e->in_len);
        memcpy(p, e->in, e->in_len);
        enum iwc_rx_status s = iwc_rx_input(&e->rx, p, e->in_len, &used, &err);
        again = s == IWC_RX_HELD;
        if (s == IWC_RX_ERROR)
            fail(e, err, true);
        if (s == IWC_RX_TERMINATED)
            fail(e, IW_ERR_PEER_TERMINATE, false);
        free(p);
        e->in_len -= used;
        memmove(e->in, e->in + used, e->in_len);
    } while (again);
    return used > 0;
}

static bool peer_gone(struct end *e)
{
    e->fin = true;
    mpa_nego_closed(&e->nego);
    return true;
}

static bool receive(struct end *e)
{
    size_t max = FPDU_MAX - e->raw_len;
    bool negotiating = !e->data;

    if (negotiating && max > sizeof(e->nego.in))
        max = sizeof(e->nego.in);
    if (e->split > e->received && e->split - e->received < max)
        max = e->split - e->received;
    if (e->cut_off && e->cut_off - e->received < max)
        max = e->cut_off - e->received;
    if (e->cut_off && e->cut_off == e->received && !e->fin)
        return peer_gone(e);
    if (e->fin || max == 0 || e->in_len > FPDU_MAX)
        return false;
    ssize_t n = e->s->ops->recv(e->s, e->raw + e->raw_len, max);
    if (n == -EAGAIN)
        return false;
    if (n <= 0)
        return peer_gone(e);
    e->received += n;
    e->raw_len += n;
    if (negotiating) {
        size_t used = mpa_nego_input(&e->nego, e->raw, e->raw_len);
        e->raw_len -= used;
        memmove(e->raw, e->raw + used, e->raw_len);
    }
    return true;
}

/* ---- life ---- */

static void start(struct end *e)
{
    memset(e->guard0, GUARD_BYTE, END_GUARD);
    memset(e->guard1, GUARD_BYTE, END_GUARD);
    memset(e->guard2, GUARD_BYTE, END_GUARD);
    memset(e->guard3, GUARD_BYTE, END_GUARD);
    memcpy(e->mem, pattern(), END_READ);
    iwc_batch_init(&e->batch, IWC_BATCH_LIMIT);
}

static void start_frame(struct end *e)
{
    e->start_len = e->nego.out_len;
    if (e->want_markers)
        e->nego.out[16] |= MPA_FLAG_M;
}

void end_connect(struct end *e, const struct mpa_conf *conf)
{
    start(e);
    mpa_nego_connect(&e->nego, conf, e->pd, e->pd_len);
    start_frame(e);
}

void end_listen(struct end *e, const struct mpa_conf *conf)
{
    start(e);
    mpa_nego_listen(&e->nego, conf);
}

static bool negotiate(struct end *e)
{
    bool did = false;

    if (e->nego.state == MPA_NEGO_WAIT_DECISION) {
        const struct mpa_conf *c = &e->nego.conf;
        if (e->reject)
            mpa_nego_reject(&e->nego, e->pd, e->pd_len);
        else
            mpa_nego_accept(&e->nego, c->ird, c->ord, e->pd, e->pd_len);
        start_frame(e);
        did = true;
    }
    if (e->start_sent < e->start_len) {
        struct iovec v = {e->nego.out + e->start_sent, e->start_len - e->start_sent};
        ssize_t n = e->s->ops->send(e->s, &v, 1);
        e->start_sent += n > 0 ? n : 0;
        did = did || n > 0;
    }
    if (e->nego.state == MPA_NEGO_AGREED && e->start_sent == e->start_len) {
        const struct mpa_result *r = &e->nego.result;
        iwc_rx_init(&e->rx, &upcalls, e, r->crc, r->ext);
        iwc_tx_init(&e->tx, r->crc, r->tx_markers, e->mulpdu);
        e->rtr_due = e->nego.initiator && r->rtr;
        e->data = did = true;
    }
    return did;
}

bool end_step(struct end *e)
{
    bool did = !e->data && negotiate(e);

    did |= receive(e);
    if (e->data) {
        if (e->raw_len > 0)
            refill(e);
        did |= digest(e);
        if (e->fin && (e->in_len || e->raw_len))
            fail(e, IW_ERR_LLP_CLOSED, false);
        if (e->error)
            e->in_len = e->raw_len = 0; /* what comes from now on is discarded */
        did |= transmit(e);
    }
    return did;
}

void end_shutdown(struct end *e)
{
    e->s->ops->shutdown(e->s);
}

bool end_idle(const struct end *e)
{
    return e->data && !e->rtr_due && !e->busy && e->next == e->nops && e->nreads == 0 &&
           e->nresponses == 0 && e->batch.unsent == 0 && e->in_len == 0 && e->raw_len == 0;
}

static bool intact(const uint8_t *p)
{
    for (int i = 0; i < END_GUARD; i++)
        if (p[i] != GUARD_BYTE)
            return false;
    return true;
}

bool end_guards_intact(const struct end *e)
{
    return intact(e->guard0) && intact(e->guard1) && intact(e->guard2) && intact(e->guard3);
}
