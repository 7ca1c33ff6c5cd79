/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages, in and out: credits, buffers that may be filled, the end. */
#include "cma/rs/rs.h"

#include <string.h>

#define WR_CTRL       (UINT64_C(1) << 62)
#define WR_DISCONNECT 0x100
#define HARVEST       16

void rs_begin(struct rs *rs)
{
    rs->sqe = rs->sizes.sq - RS_CTRL_SLOTS;
    rs->ctrl = RS_CTRL_SLOTS;
    rs->sbuf_free = rs->sizes.sbuf;
    rs->granted = rs->freed = rs->grant_at = rs->sizes.rbuf / 2;
    rs->grant_index = 1;
    rs->rseq_comp = rs->sizes.rq / 2;
}

void rs_meet(struct rs *rs, const struct rs_hello *peer)
{
    rs->peer = *peer;
    rs->target[0] = peer->data;
    rs->target_next = 1;
    rs->sseq_comp = peer->credits;
}

uint64_t rs_wr_data(uint32_t sbuf_bytes, unsigned sqe)
{
    return (uint64_t)sqe << 32 | sbuf_bytes;
}

void rs_hang_up(struct rs *rs, int err)
{
    if (rs->disconnected)
        return;
    rs->disconnected = true;
    rs->hung_up |= !rs->writable || err;
    rs->readable = rs->writable = false;
    rs->err = err;
    rs->so_error = err;
    rdma_disconnect(rs->id);
}

static int post(struct rs *rs, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int r = ibv_post_send(rs->id->qp, wr, &bad);
    if (r)
        rs_hang_up(rs, r);
    else
        rs->posted++;
    return -r;
}

int rs_post(struct rs *rs, uint64_t wr_id, const struct ibv_sge *sge, int nsge, bool inlined,
            const struct rs_buffer *to, uint32_t message)
{
    struct ibv_sge text = {(uintptr_t)&message, sizeof message, 0};
    struct ibv_send_wr send = {
        .wr_id = wr_id,
        .sg_list = &text,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
    };
    if (!nsge)
        return post(rs, &send);
    struct ibv_send_wr write = {
        .next = &send,
        .wr_id = wr_id,
        .sg_list = (struct ibv_sge *)sge,
        .num_sge = nsge,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = inlined ? IBV_SEND_INLINE : 0,
        .wr.rdma = {to->addr, to->key},
    };
    return post(rs, &write);
}

int rs_post_write(struct rs *rs, uint64_t wr_id, const struct ibv_sge *sge, int nsge, bool inlined,
                  uint64_t addr, uint32_t key)
{
    struct ibv_send_wr write = {
        .wr_id = wr_id,
        .sg_list = (struct ibv_sge *)sge,
        .num_sge = nsge,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED | (inlined ? IBV_SEND_INLINE : 0),
        .wr.rdma = {addr, key},
    };
    return post(rs, &write);
}

void rs_give_end(struct rs *rs)
{
    bool told = rs->disconnected || rs->disconnect_posted, last = !rs->readable;
    if (!told && !rs->ctrl) { /* when one completes, as for credits */
        rs_service_watch(rs);
        return;
    }
    rs->end_due = false;
    if (told)
        return;
    rs->ctrl--;
    rs->disconnect_posted = last;
    rs_post(rs, RS_WR_CTRL(last ? WR_DISCONNECT : 1), NULL, 0, false, NULL,
            RS_MESSAGE(RS_OP_CTRL, last ? RS_CTRL_DISCONNECT : RS_CTRL_SHUTDOWN));
}

static bool has_free_half(const struct rs *rs)
{
    return rs->freed >= rs->sizes.rbuf / 2;
}

static bool credits_are_due(const struct rs *rs)
{
    return !rs->disconnected && !rs->disconnect_posted &&
           (has_free_half(rs) || (int16_t)(uint16_t)(rs->rseq - rs->rseq_comp) >= 0);
}

/* With the half of the ring that is free, if one is. */
static void post_credits(struct rs *rs)
{
    uint32_t half = rs->sizes.rbuf / 2;
    uint32_t message = RS_MESSAGE(RS_OP_CREDIT, (uint16_t)(rs->rseq + rs->sizes.rq));
    rs->rseq_comp = (uint16_t)(rs->rseq + rs->sizes.rq / 2);
    if (!has_free_half(rs)) {
        rs->ctrl -= 1;
        rs_post(rs, RS_WR_CTRL(1), NULL, 0, false, NULL, message);
        return;
    }
    struct rs_buffer grant = {(uintptr_t)rs->rbuf + rs->grant_at, rs->rmr->rkey, half};
    struct ibv_sge sge = {(uintptr_t)&grant, sizeof grant, 0};
    struct rs_buffer to = {rs->peer.tables.addr + sizeof grant * rs->grant_index,
                           rs->peer.tables.key, sizeof grant};
    rs->ctrl -= 2;
    rs->freed -= half;
    rs->granted += half;
    rs->grant_at = rs->grant_at ? 0 : half;
    rs->grant_index = (rs->grant_index + 1) % rs->peer.tables.length;
    rs_post(rs, RS_WR_CTRL(2), &sge, 1, true, &to, message);
}

void rs_give_credits(struct rs *rs)
{
    while (credits_are_due(rs)) {
        if (rs->ctrl < 2) { /* when one completes, whether or not the program calls then */
            rs_service_watch(rs);
            return;
        }
        post_credits(rs);
    }
}

/* The peer wrote the entry that is next in turn, or none: a message with credits alone. */
static void take_target(struct rs *rs)
{
    struct rs_buffer *entry = (struct rs_buffer *)(void *)rs->tables + rs->target_next;
    struct rs_buffer *own = &rs->target[rs->target_next];
    uint32_t length = __atomic_load_n(&entry->length, __ATOMIC_ACQUIRE);
    if (!length || own->length)
        return;
    own->addr = entry->addr;
    own->key = entry->key;
    own->length = length;
    __atomic_store_n(&entry->length, 0, __ATOMIC_RELAXED);
    rs->target_next ^= 1;
}

static int on_credit(struct rs *rs, uint16_t limit)
{
    uint16_t left = rs->sseq_comp - rs->sseq, now = limit - rs->sseq;
    if (now < left || now > rs->peer.credits)
        return -EPROTO;
    rs->sseq_comp = limit;
    take_target(rs);
    return 0;
}

static int on_data(struct rs *rs, uint32_t len)
{
    if (!len || len > rs->granted || rs->message_count == rs->slots)
        return -EPROTO;
    rs->messages[(rs->message_head + rs->message_count++) % rs->slots] = len;
    rs->granted -= len;
    rs->unread += len;
    return 0;
}

static int on_mapping(struct rs *rs, uint32_t index)
{
    if (index >= rs->sizes.mappings)
        return -EPROTO;
    const uint8_t *entry =
        rs->tables + RS_TARGETS * sizeof(struct rs_buffer) + (size_t)index * RS_MAPPING_SIZE;
    memcpy(&rs->peer_maps[index], entry, RS_MAPPING_SIZE);
    rs->rseq++;
    return 0;
}

static int on_ctrl(struct rs *rs, uint32_t what)
{
    switch (what) {
    case RS_CTRL_DISCONNECT:
        rs_hang_up(rs, 0);
        return 0;
    case RS_CTRL_SHUTDOWN:
        rs->readable = false;
        if (!rs->writable)
            rs_hang_up(rs, 0);
        return 0;
    default:
        return -EPROTO;
    }
}

static int on_message(struct rs *rs, uint32_t message)
{
    uint32_t data = RS_MESSAGE_DATA(message);
    switch (RS_MESSAGE_OP(message)) {
    case RS_OP_DATA:
        return on_data(rs, data);
    case RS_OP_CREDIT:
        return on_credit(rs, (uint16_t)data);
    case RS_OP_IOMAP:
        return on_mapping(rs, data);
    case RS_OP_CTRL:
        return on_ctrl(rs, data);
    default:
        return -EPROTO;
    }
}

static void on_receive(struct rs *rs, const struct ibv_wc *wc)
{
    /* Sends complete receives in the order in which these were posted. */
    uint8_t *slot = rs->rbuf + rs->sizes.rbuf + 4 * wc->wr_id;
    uint32_t message;
    memcpy(&message, slot, sizeof message);
    if (!rs->disconnected && (wc->byte_len != sizeof message || on_message(rs, message) < 0)) {
        rs_hang_up(rs, ECONNRESET);
        return;
    }
    struct ibv_sge sge = {(uintptr_t)slot, sizeof message, rs->rmr->lkey};
    struct ibv_recv_wr wr = {.wr_id = wc->wr_id, .sg_list = &sge, .num_sge = 1}, *bad;
    if (!rs->disconnected)
        ibv_post_recv(rs->id->qp, &wr, &bad);
}

static void on_sent(struct rs *rs, uint64_t wr_id)
{
    rs->completed++;
    if (!(wr_id & WR_CTRL)) {
        rs->sqe += (unsigned)(wr_id >> 32);
        rs->sbuf_free += (uint32_t)wr_id;
        return;
    }
    rs->ctrl += wr_id & 0xff;
    if (wr_id & WR_DISCONNECT)
        rs_hang_up(rs, 0);
}

bool rs_harvest(struct rs *rs)
{
    struct ibv_wc wc[HARVEST];
    bool any = false;
    int n;
    if (!rs->cq)
        return false;
    do {
        n = ibv_poll_cq(rs->cq, HARVEST, wc);
        for (int i = 0; i < n; i++) {
            if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
                rs_hang_up(rs, 0);
            else if (wc[i].status != IBV_WC_SUCCESS)
                rs_hang_up(rs, ECONNRESET);
            else if (wc[i].opcode & IBV_WC_RECV)
                on_receive(rs, &wc[i]);
            else
                on_sent(rs, wc[i].wr_id);
        }
        any |= n > 0;
    } while (n == HARVEST);
    return any;
}
