/* SPDX-License-Identifier: BSD-2-Clause */
/* What an end does when it is connected. */
#include "end.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LENGTH   20000 /* several FPDUs, the last one with padding */
#define PAUSE_US 20000 /* in which a Send of the peer completes */

enum target { GOOD_KEY, BAD_KEY, NO_RIGHT, BEYOND };

/* One work request that is to end the connection. */
static const struct action {
    const char *name;
    enum ibv_wr_opcode opcode;
    enum target target;
} actions[] = {
    {"write-key", IBV_WR_RDMA_WRITE, BAD_KEY},
    {"write-right", IBV_WR_RDMA_WRITE, NO_RIGHT},
    {"write-range", IBV_WR_RDMA_WRITE, BEYOND},
    {"read-key", IBV_WR_RDMA_READ, BAD_KEY},
    {"read-right", IBV_WR_RDMA_READ, NO_RIGHT},
    {"read-range", IBV_WR_RDMA_READ, BEYOND},
    {"long", IBV_WR_SEND, GOOD_KEY},
    {"write-imm", IBV_WR_RDMA_WRITE_WITH_IMM, GOOD_KEY},
    {"send-imm", IBV_WR_SEND_WITH_IMM, GOOD_KEY},
    {"fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD, GOOD_KEY},
    {"compare-swap", IBV_WR_ATOMIC_CMP_AND_SWP, GOOD_KEY},
};

/* The four Sends of RFC 5040; spare: which key it invalidates. */
static const struct {
    enum ibv_wr_opcode opcode;
    unsigned flags;
    int spare;
} sends[] = {
    {IBV_WR_SEND, 0, 0},
    {IBV_WR_SEND, IBV_SEND_SOLICITED, 0},
    {IBV_WR_SEND_WITH_INV, 0, 0},
    {IBV_WR_SEND_WITH_INV, IBV_SEND_SOLICITED, 1},
};
#define SENDS (sizeof(sends) / sizeof(sends[0]))

static uint32_t sum_of(const unsigned char *p)
{
    uint32_t sum = 2166136261U;

    for (size_t i = 0; i < LENGTH; i++)
        sum = (sum ^ p[i]) * 16777619U;
    return sum;
}

/* Sends message @p kind in its own way, with the sum of our memory. */
static void send_kind(struct end *end, uint32_t kind)
{
    unsigned char *out = end->slots + (size_t)RECEIVES * MESSAGE;
    struct ibv_sge sge = {(uintptr_t)out, sizeof(struct message), end->messages->lkey};
    struct ibv_send_wr wr = {
        .opcode = sends[kind].opcode,
        .send_flags = sends[kind].flags,
        .sg_list = &sge,
        .num_sge = 1,
    };
    struct message m = {.kind = htonl(kind), .sum = htonl(sum_of(end->buffer))};

    if (end->no_keys)
        wr.opcode = IBV_WR_SEND;
    if (wr.opcode == IBV_WR_SEND_WITH_INV)
        wr.invalidate_rkey = end->peer.spare[sends[kind].spare];
    memcpy(out, &m, sizeof(m));
    end_do(end, &wr);
}

/* The keys that the message invalidated must be ours, if the device tells. */
static void check_invalidated(struct end *end, const struct ibv_wc *wc, uint32_t kind)
{
    if ((wc->wc_flags & IBV_WC_WITH_INV) == 0)
        return;
    if (sends[kind].opcode != IBV_WR_SEND_WITH_INV ||
        wc->invalidated_rkey != end->spare[sends[kind].spare])
        die("key 0x%x was invalidated", wc->invalidated_rkey);
}

static void move(struct end *end, enum ibv_wr_opcode opcode, size_t offset)
{
    struct ibv_sge sge = {(uintptr_t)end->buffer + offset, LENGTH, end->mr->lkey};
    struct ibv_send_wr wr = {
        .opcode = opcode,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = {.remote_addr = end->peer.addr, .rkey = end->peer.rkey},
    };

    end_do(end, &wr);
}

/* Every operation that both have: Write, the four Sends and their answers, Read. */
static void do_all(struct end *end)
{
    struct ibv_wc wc;

    for (size_t i = 0; i < LENGTH; i++)
        end->buffer[i] = (unsigned char)(i * 7 + (i >> 8));
    move(end, IBV_WR_RDMA_WRITE, 0);
    for (uint32_t kind = 0; kind < SENDS; kind++) {
        struct message m;

        send_kind(end, kind);
        m = end_receive(end, &wc);
        if (m.kind != kind || m.sum != sum_of(end->buffer))
            die("answer %u, sum 0x%x; wanted %u", m.kind, m.sum, kind);
        check_invalidated(end, &wc, kind);
    }
    move(end, IBV_WR_RDMA_READ, LENGTH);
    if (memcmp(end->buffer, end->buffer + LENGTH, LENGTH) != 0)
        die("what was read is not what was written");
    must(rdma_disconnect(end->id), "rdma_disconnect");
}

static void answer_all(struct end *end)
{
    for (unsigned i = 0; i < SENDS; i++) {
        struct ibv_wc wc;
        struct message m = end_receive(end, &wc);

        if (m.kind >= SENDS || m.sum != sum_of(end->buffer))
            die("message %u, sum 0x%x", m.kind, m.sum);
        check_invalidated(end, &wc, m.kind);
        send_kind(end, m.kind);
    }
}

/* Where the post refuses it, the connection ends in peace. */
static int do_wrong(struct end *end, const struct action *action)
{
    bool atomic = action->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
                  action->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    uint64_t addr = end->peer.addr;
    uint32_t rkey = end->peer.rkey;
    struct ibv_sge sge = {(uintptr_t)end->buffer, atomic ? 8 : 2 * MESSAGE, end->mr->lkey};
    struct ibv_send_wr wr = {.opcode = action->opcode, .sg_list = &sge, .num_sge = 1};
    int result;

    switch (action->target) {
    case GOOD_KEY:
        break;
    case BAD_KEY:
        rkey ^= 0x5a5a5a00;
        break;
    case NO_RIGHT:
        rkey = end->peer.local_key;
        break;
    case BEYOND:
        addr += BUFFER - MESSAGE;
        break;
    }
    if (atomic) {
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    if (wr.opcode == IBV_WR_SEND) /* siw would blame its own Send, which we have just received */
        usleep(PAUSE_US);
    result = end_post(end, &wr);
    if (result != 0)
        must(rdma_disconnect(end->id), "rdma_disconnect");
    return result;
}

static const struct action *find(const char *name)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
        if (strcmp(actions[i].name, name) == 0)
            return &actions[i];
    return NULL;
}

bool action_known(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "answer") == 0 || strcmp(name, "wait") == 0 ||
           strcmp(name, "disconnect") == 0 || find(name) != NULL;
}

int action_run(struct end *end, const char *name)
{
    if (strcmp(name, "all") == 0)
        do_all(end);
    else if (strcmp(name, "answer") == 0)
        answer_all(end);
    else if (strcmp(name, "disconnect") == 0)
        must(rdma_disconnect(end->id), "rdma_disconnect");
    else if (strcmp(name, "wait") != 0)
        return do_wrong(end, find(name));
    return 0;
}
