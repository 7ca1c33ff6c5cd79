/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An rsocket whose peer says and writes what the input tells, while its program sends, writes and
 * receives. Underneath are no verbs: work requests wait until the input completes them. Whatever
 * the peer says, work stays within our memory, queues and credits stay within what there is, and
 * no byte is read that was not announced.
 */
#include "cma/rs/dgram.h"
#include "cma/rs/rs.h"
#include "fuzz/fuzz.h"

#define RBUF     8192
#define SBUF     4096
#define INLINED  64
#define SQ       16
#define RQ       16
#define SLOTS    (RQ + RS_EXTRA_RECEIVES)
#define MAPPINGS 3
#define TABLES   (RS_TARGETS * sizeof(struct rs_buffer) + MAPPINGS * RS_MAPPING_SIZE)
#define STEPS    512

static struct {
    struct rs rs;
    struct ibv_context context;
    struct ibv_cq cq;
    struct ibv_qp qp;
    struct ibv_mr rmr, smr, tmr;
    struct rdma_cm_id id;
    uint64_t sent[SQ]; /* wr_ids under way, in order */
    unsigned sending;
    unsigned receives; /* posted */
    uint64_t next;     /* of them */
    struct ibv_wc wc;
    bool has_wc, over;
} world;

/* ---- underneath ---- */

static bool is_within(const struct ibv_sge *sge, const uint8_t *p, size_t len)
{
    uintptr_t from = (uintptr_t)p;
    return sge->addr >= from && sge->length <= len && sge->addr - from <= len - sge->length;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void)qp, (void)bad;
    for (; wr; wr = wr->next) {
        uint32_t len = 0;
        for (int i = 0; i < wr->num_sge; i++) {
            len += wr->sg_list[i].length;
            FUZZ_CHECK(wr->send_flags & IBV_SEND_INLINE ||
                       is_within(&wr->sg_list[i], world.rs.sbuf, SBUF));
        }
        FUZZ_CHECK(!(wr->send_flags & IBV_SEND_INLINE) || len <= INLINED);
        if (!(wr->send_flags & IBV_SEND_SIGNALED))
            continue;
        FUZZ_CHECK(world.sending < SQ);
        world.sent[world.sending++] = wr->wr_id;
    }
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    (void)qp, (void)bad;
    FUZZ_CHECK(wr->wr_id == (world.next + world.receives) % SLOTS);
    world.receives++;
    FUZZ_CHECK(world.receives <= SLOTS);
    return 0;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    (void)cq, (void)n;
    if (!world.has_wc)
        return 0;
    world.has_wc = false;
    *wc = world.wc;
    return 1;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
    (void)id;
    world.over = true;
    return 0;
}

/* ---- the other files of rsockets ---- */

struct rs *rs_get(int fd)
{
    (void)fd;
    return &world.rs;
}

void rs_progress(struct rs *rs)
{
    rs_harvest(rs);
}

int rs_wait(struct rs *rs, bool (*ready)(const struct rs *rs), bool nonblock, int timeout_ms)
{
    (void)nonblock, (void)timeout_ms;
    return ready(rs) ? 0 : -EAGAIN;
}

void rs_service_watch(struct rs *rs)
{
    (void)rs;
}

int rgetpeername(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
    (void)socket, (void)addr, (void)addrlen;
    return 0;
}

bool rs_dgram_is(int fd)
{
    (void)fd;
    return false;
}

ssize_t rs_dgram_send(int fd, const struct msghdr *msg, int flags)
{
    (void)fd, (void)msg, (void)flags;
    abort();
}

ssize_t rs_dgram_receive(int fd, struct msghdr *msg, int flags)
{
    (void)fd, (void)msg, (void)flags;
    abort();
}

/* ---- what the input says ---- */

static void complete(const struct ibv_wc *wc)
{
    world.wc = *wc;
    world.has_wc = true;
    rs_harvest(&world.rs);
}

static void a_message(uint32_t message, uint32_t len)
{
    if (!world.receives || world.over)
        return;
    uint64_t slot = world.next;
    world.next = (slot + 1) % SLOTS;
    world.receives--;
    memcpy(world.rs.rbuf + RBUF + 4 * slot, &message, len < 4 ? len : 4);
    complete(&(struct ibv_wc){.wr_id = slot, .opcode = IBV_WC_RECV, .byte_len = len});
}

static void work_completes(void)
{
    if (!world.sending)
        return;
    struct ibv_wc wc = {.wr_id = world.sent[0], .opcode = IBV_WC_SEND};
    memmove(world.sent, world.sent + 1, --world.sending * sizeof(world.sent[0]));
    complete(&wc);
}

static void peer_writes_tables(struct fuzz_in *in)
{
    size_t at = fuzz_u8(in) % TABLES, len;
    const uint8_t *bytes = fuzz_bytes(in, fuzz_u8(in) % (TABLES - at), &len);
    memcpy(world.rs.tables + at, bytes, len);
}

static void step(struct fuzz_in *in)
{
    static uint8_t bytes[RBUF];
    uint16_t len;
    uint8_t what = fuzz_u8(in);
    switch (what % 8) {
    case 0:
    case 1:
        len = fuzz_u16(in);
        a_message(RS_MESSAGE(what >> 5, (uint32_t)fuzz_u16(in) << 16 | len), 4);
        break;
    case 2:
        a_message(0, fuzz_u8(in) % 9);
        break;
    case 3:
        peer_writes_tables(in);
        break;
    case 4:
        work_completes();
        break;
    case 5:
        rrecv(0, bytes, fuzz_u16(in) % (RBUF + 1), what & 8 ? MSG_PEEK : 0);
        break;
    case 6:
        rsend(0, bytes, fuzz_u16(in) % (RBUF + 1), 0);
        break;
    default:
        len = fuzz_u16(in);
        riowrite(0, bytes, len % (RBUF + 1), fuzz_u8(in), 0);
    }
}

static void judge(void)
{
    const struct rs *rs = &world.rs;
    uint64_t unread = 0;
    for (unsigned i = 0; i < rs->message_count; i++)
        unread += rs->messages[(rs->message_head + i) % SLOTS];
    FUZZ_CHECK(rs->message_count <= SLOTS);
    FUZZ_CHECK(unread == rs->unread);
    FUZZ_CHECK((uint64_t)rs->unread + rs->granted + rs->freed == RBUF);
    FUZZ_CHECK(rs->rbuf_at < RBUF && rs->sbuf_at < SBUF && rs->sbuf_free <= SBUF);
    FUZZ_CHECK(rs->sqe <= SQ - RS_CTRL_SLOTS && rs->ctrl <= RS_CTRL_SLOTS);
    FUZZ_CHECK(world.over == rs->disconnected);
}

/* ---- one play ---- */

static void begin(const struct rs_hello *peer)
{
    memset(&world, 0, sizeof(world));
    struct rs *rs = &world.rs;
    world.context.ops.post_send = post_send;
    world.context.ops.post_recv = post_recv;
    world.context.ops.poll_cq = poll_cq;
    world.cq.context = world.qp.context = &world.context;
    world.id.qp = &world.qp;
    *rs = (struct rs){
        .phase = RS_CONNECTED,
        .sizes = {RBUF, SBUF, SQ, RQ, INLINED, MAPPINGS},
        .flags = O_NONBLOCK,
        .id = &world.id,
        .cq = &world.cq,
        .rmr = &world.rmr,
        .smr = &world.smr,
        .tmr = &world.tmr,
        .rbuf = calloc(1, RBUF + SLOTS * 4),
        .sbuf = calloc(1, SBUF),
        .tables = calloc(1, TABLES),
        .messages = calloc(SLOTS, sizeof(*rs->messages)),
        .peer_maps = calloc(MAPPINGS, sizeof(*rs->peer_maps)),
        .readable = true,
        .writable = true,
        .slots = SLOTS,
        .iomaps = {&rs->iomaps, &rs->iomaps},
    };
    pthread_mutex_init(&rs->lock, NULL);
    rs_begin(rs);
    rs_meet(rs, peer);
    world.receives = SLOTS;
}

static void end(void)
{
    struct rs *rs = &world.rs;
    free(rs->rbuf);
    free(rs->sbuf);
    free(rs->tables);
    free(rs->messages);
    free(rs->peer_maps);
    pthread_mutex_destroy(&rs->lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_in in = {data, size};
    struct rs_hello peer;
    size_t len;
    const uint8_t *bytes = fuzz_bytes(&in, RS_HELLO_SIZE, &len);
    uint8_t *hello = fuzz_exact(bytes, len);
    if (rs_decode_hello(hello, len, &peer) == 0) {
        begin(&peer);
        for (int i = 0; i < STEPS && in.left; i++) {
            step(&in);
            judge();
        }
        end();
    }
    free(hello);
    return 0;
}
