/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the first inputs of a fuzz target as a corpus (replay.c): frames of the unit tests, and
 * what our own code says when two ends of it talk to each other.
 */
#include "common/list.h"
#include "conn/stream_mem.h"
#include "engine/end.h"
#include "qpn/hello.h"
#include "ud/pack.h"
#include "unit/vectors.h"
#include "wire/opcode.h"
#include "wire/sidr.h"
#include "wire/terminate.h"

#include <stdio.h>

#define WINDOW         65536
#define LINE_MAX_BYTES 4096

/* ---- lines ---- */

static void put(const uint8_t *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        printf("%02x", p[i]);
}

static void line(const uint8_t *head, size_t head_len, const uint8_t *p, size_t len)
{
    put(head, head_len);
    put(p, len);
    putchar('\n');
}

static void line_of(uint8_t head, const uint8_t *p, size_t len)
{
    line(&head, 1, p, len);
}

/* ---- frames of the unit tests ---- */

static const struct vector starts[] = {
    VECTOR(V1), VECTOR(V2), VECTOR(V3), VECTOR(V4), VECTOR(V5), VECTOR(V6),
};

static bool is_reply(const struct vector *v)
{
    return v->bytes[9] == 'p';
}

static void mpa(void)
{
    for (size_t i = 0; i < COUNT(starts); i++)
        line_of(is_reply(&starts[i]), starts[i].bytes, starts[i].len);
}

/** One machine meets each frame, in every role that it can be for; then pairs of machines. */
static void nego(void)
{
    for (size_t i = 0; i < COUNT(starts); i++)
        for (unsigned rtr = 0; rtr < 4; rtr++) {
            uint8_t conf = (uint8_t)(0x0e | rtr << 4);
            const uint8_t head[] = {is_reply(&starts[i]), conf, 8, 8, 0, 4, 7, 0, 8, 8, 0, 4};
            line(head, sizeof(head), starts[i].bytes, starts[i].len);
        }
    for (unsigned conf = 0; conf < 64; conf += 7) {
        const uint8_t both[] = {4, (uint8_t)conf, 4, 4, (uint8_t)(63 - conf), 8, 2, 5};
        line(both, sizeof(both), NULL, 0);
    }
}

static const uint8_t *ulpdu_of(const struct vector *v, size_t *len)
{
    *len = (size_t)v->bytes[0] << 8 | v->bytes[1];
    return ULPDU(v->bytes);
}

static void ddp(void)
{
    for (size_t i = 0; i < COUNT(fpdu_vectors); i++) {
        size_t len;
        const uint8_t *p = ulpdu_of(&fpdu_vectors[i], &len);
        line(NULL, 0, p, len);
    }
}

static void rdmap(void)
{
    line_of(0, UNTAGGED_PAYLOAD(V13), RDMAP_READ_REQUEST_HDR);
    line_of(1, UNTAGGED_PAYLOAD(V20), RDMAP_ATOMIC_REQUEST_HDR);
    line_of(1, UNTAGGED_PAYLOAD(V21), RDMAP_ATOMIC_REQUEST_HDR);
    line_of(2, UNTAGGED_PAYLOAD(V22), RDMAP_ATOMIC_RESPONSE_HDR);
}

static void terminate(void)
{
    const struct vector all[] = {VECTOR(V15), VECTOR(V16), VECTOR(V17), VECTOR(V18)};
    for (size_t i = 0; i < COUNT(all); i++) {
        const uint8_t head[] = {200, (uint8_t)(i * 9)};
        size_t len;
        const uint8_t *p = ulpdu_of(&all[i], &len);
        line(head, sizeof(head), p + DDP_UNTAGGED_HDR, len - DDP_UNTAGGED_HDR);
    }
    for (uint8_t err = 1; err < IW_ERR_COUNT; err++) {
        const uint8_t head[] = {100, err};
        size_t len;
        const uint8_t *p = ulpdu_of(&fpdu_vectors[err % COUNT(fpdu_vectors)], &len);
        line(head, sizeof(head), p, len);
    }
}

/* ---- a talk of our own ---- */

/** A stream that passes on, and keeps what one end has sent. */
struct tap {
    struct iwc_stream base;
    struct iwc_stream *below;
    uint8_t bytes[LINE_MAX_BYTES];
    size_t len;
};

static struct end ends[2];
static struct tap taps[2];

static ssize_t tap_recv(struct iwc_stream *s, void *buf, size_t len)
{
    struct iwc_stream *below = container_of(s, struct tap, base)->below;
    return below->ops->recv(below, buf, len);
}

static ssize_t tap_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    struct tap *t = container_of(s, struct tap, base);
    ssize_t sent = t->below->ops->send(t->below, iov, n), left = sent;
    for (unsigned i = 0; left > 0; i++) {
        size_t len = (size_t)left < iov[i].iov_len ? (size_t)left : iov[i].iov_len;
        size_t room = sizeof(t->bytes) - t->len, kept = len < room ? len : room;
        if (kept)
            memcpy(t->bytes + t->len, iov[i].iov_base, kept);
        t->len += kept;
        left -= (ssize_t)len;
    }
    return sent;
}

static void tap_shutdown(struct iwc_stream *s)
{
    struct iwc_stream *below = container_of(s, struct tap, base)->below;
    below->ops->shutdown(below);
}

static const struct iwc_stream_ops tap_ops = {
    .recv = tap_recv,
    .send = tap_send,
    .shutdown = tap_shutdown,
};

static const struct end_op talk_ops[] = {
    {RDMAP_SEND, 0, 5},      {RDMAP_WRITE, 16, 300},    {RDMAP_READ_REQUEST, 8, 200},
    {RDMAP_SEND_SE, 0, 140}, {RDMAP_IMM, 0, 0},         {RDMAP_ATOMIC_REQUEST, 64, 3},
    {RDMAP_SEND_INV, 0, 1},  {RDMAP_SEND_SE_INV, 0, 0}, {RDMAP_READ_REQUEST, 0, 0},
    {RDMAP_TERMINATE, 0, 0},
};

static void talk(uint8_t flags)
{
    const struct mpa_conf conf = {.rev = 2, .crc = true, .p2p = true, .rtr = 6, .ird = 4, .ord = 4};
    struct iwc_stream_mem *pair[2];
    if (iwc_stream_mem_pair(pair, WINDOW, WINDOW))
        return;
    for (int i = 0; i < 2; i++) {
        memset(&ends[i], 0, offsetof(struct end, batch));
        taps[i] = (struct tap){.base.ops = &tap_ops, .below = iwc_stream_mem_stream(pair[i])};
        ends[i].s = &taps[i].base;
        ends[i].mulpdu = 128;
        ends[i].ops = talk_ops;
        ends[i].nops = i ? 0 : COUNT(talk_ops);
    }
    end_listen(&ends[1], &conf);
    end_connect(&ends[0], &conf);
    for (bool moved = true; moved;) {
        moved = end_step(&ends[0]);
        moved |= end_step(&ends[1]);
    }
    for (int i = 0; i < 2; i++) {
        const uint8_t head[] = {flags, 40};
        line(head, sizeof(head), taps[i].bytes + ends[i].start_len,
             taps[i].len - ends[i].start_len);
    }
    iwc_stream_mem_free(pair);
}

/** As in fpdu_fuzz.c: raw bytes with and without CRC, ULPDUs to be framed, bytes to be marked. */
static void fpdu(void)
{
    talk(0x04);
    talk(0x14);
    for (size_t i = 0; i < COUNT(fpdu_vectors); i++) {
        const struct vector *v = &fpdu_vectors[i];
        size_t len;
        const uint8_t *p = ulpdu_of(v, &len);
        const uint8_t framed[] = {0x1d, 6, (uint8_t)len},
                      marked[] = {2, 0, 0, 100, 0, (uint8_t)len};
        line(framed, sizeof(framed), p, len);
        line(marked, sizeof(marked), p, len);
    }
}

/* ---- what happens to an RNIC (stream_fuzz.c) ---- */

enum step { SEGMENT, ULPDU_STEP, RAW, RECV, SEND, ANSWER, PROGRAM, NETWORK };

/** A right segment of every opcode, to a region that allows all, with a receive if it needs one. */
static void stream_segments(void)
{
    for (uint8_t op = 0; op < RDMAP_OPCODES; op++)
        for (uint8_t flags = 0x43; flags <= 0x47; flags += 4) {
            const uint8_t p[] = {flags, 0x44,    RECV, 1, 1, 8, 100, SEGMENT, op, 0, 0,  16,
                                 24,    SEGMENT, 3,    8, 0, 0, 10,  RECV,    1,  1, 50, 20};
            if (rdmap_ops[op].name)
                line(p, sizeof(p), NULL, 0);
        }
}

/** What a peer may not do, and some of what it may: every key, inside, across and over its ends. */
static void stream_refusals(void)
{
    static const uint8_t ops[] = {RDMAP_WRITE, RDMAP_READ_REQUEST, RDMAP_ATOMIC_REQUEST,
                                  RDMAP_SEND_INV};
    static const int offsets[] = {0, -8, 6000 - 16, 6000};
    for (size_t op = 0; op < COUNT(ops); op++)
        for (uint8_t key = 0; key < 16; key++)
            for (size_t at = 0; at < COUNT(offsets); at++) {
                const uint8_t p[] = {0x43,
                                     0x44,
                                     RECV,
                                     1,
                                     1,
                                     8,
                                     100,
                                     SEGMENT,
                                     ops[op],
                                     key,
                                     (uint8_t)(offsets[at] >> 8),
                                     (uint8_t)offsets[at],
                                     24};
                line(p, sizeof(p), NULL, 0);
            }
}

/** Each work request of the victim's program, and its answer. */
static void stream_work(void)
{
    for (uint8_t op = 0; op <= IBV_WR_SEND_WITH_INV; op++) {
        const uint8_t p[] = {0x03, 0x44,   SEND, op,  0x42,   0,  1,   8,       40,
                             SEND, op,     0x82, 0,   1,      60, 9,   1,       80,
                             7,    ANSWER, 0,    255, ANSWER, 0,  255, PROGRAM, 1};
        line(p, sizeof(p), NULL, 0);
    }
}

/** ULPDUs as they are, and the ends that a network can make. */
static void stream_rest(void)
{
    for (size_t i = 0; i < COUNT(fpdu_vectors); i++) {
        size_t len;
        const uint8_t *p = ulpdu_of(&fpdu_vectors[i], &len);
        const uint8_t head[] = {0x03, 0x44, ULPDU_STEP, (uint8_t)len};
        line(head, sizeof(head), p, len);
    }
    for (uint8_t what = 0; what < 6; what++) {
        const uint8_t p[] = {0x0b, 0x44,    NETWORK, 3,  9,       SEND, 2, 0x42, 0, 1, 8,
                             90,   NETWORK, what,    20, SEGMENT, 7,    0, 0,    0, 9};
        line(p, sizeof(p), NULL, 0);
    }
}

static void stream(void)
{
    stream_segments();
    stream_refusals();
    stream_work();
    stream_rest();
}

/* ---- what happens to an end in rings (ring_fuzz.c) ---- */

/** Each counter and flag, of both directions, is off by so much while both go on. */
static void ring(void)
{
    static const uint8_t lies[][3] = {{0, 0, 1}, {16, 0, 9}, {8, 1, 1}, {31, 0, 0xff}, {63, 0, 1}};
    for (uint8_t which = 0; which < 32; which++)
        for (size_t i = 0; i < COUNT(lies); i++) {
            const uint8_t p[] = {3, 0,   1,  0, 6,   2,   0,     7,          0,          99,
                                 1, 0,   80, 9, 0,   2,   which, lies[i][0], lies[i][1], lies[i][2],
                                 0, 200, 0,  7, 255, 255, 0x46,  255,        255,        9,
                                 1, 7,   1,  0, 6,   0,   50};
            line(p, sizeof(p), NULL, 0);
        }
    for (uint8_t how = 0; how < 4; how++) { /* switched late; hung up; rested */
        const uint8_t p[] = {how, 6,  1, 0, 0,  1, 0, 7,  2, 0, 8, 3, 0, 9, 9,
                             6,   9,  9, 1, 20, 0, 9, 5,  9, 5, 6, 0, 9, 5, how,
                             7,   40, 0, 7, 1,  1, 4, 14, 3, 9, 3, 3, 7, 70};
        line(p, sizeof(p), NULL, 0);
    }
}

static void hello(void)
{
    const struct iw_hello h = {
        .kind = IW_HELLO_DOUBTS,
        .token = 0x0102030405060708,
        .from = {.qpn = 0x8a2501, .epoch = 7, .gid.raw = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
        .to = {.qpn = 0x8a2502, .gid.raw = {0xfe, 0x80, [15] = 2}},
    };
    uint8_t p[IW_HELLO_BYTES];
    iw_hello_encode(p, &h);
    line(p, sizeof(p), NULL, 0);
}

static void sidr(void)
{
    const struct sidr all[] = {
        {.ib = true, .ps = 0x111, .id = 7, .data_len = 3, .data = "who"},
        {.reply = true, .ps = 2, .id = 7, .qpn = 0x8a2501, .qkey = 0x01234567},
        {.reply = true, .status = SIDR_REJECT, .ps = 2, .id = 7, .data_len = 2, .data = "no"},
    };
    uint8_t p[SIDR_BYTES];
    for (size_t i = 0; i < COUNT(all); i++) {
        sidr_encode(p, &all[i]);
        line(p, sizeof(p), NULL, 0);
    }
}

static uint8_t packed[512];
static size_t packed_len;

static void add_packed(const uint8_t p[IW_UD_HEADER], const uint8_t grh[IW_UD_GRH])
{
    if (!packed_len) {
        iw_ud_pack_begin(packed);
        packed_len = IW_UD_PACK_BEGIN;
    }
    iw_ud_pack_length(packed + packed_len, IW_UD_HEADER + IW_UD_GRH);
    packed_len += IW_UD_PACK_LENGTH;
    memcpy(packed + packed_len, p, IW_UD_HEADER);
    memcpy(packed + packed_len + IW_UD_HEADER, grh, IW_UD_GRH);
    packed_len += IW_UD_HEADER + IW_UD_GRH;
}

static void datagram(void)
{
    const struct iw_ud_header all[] = {
        {.to = 0x8a2501, .from = 0x8a2602, .qkey = 0x11111111},
        {.has_imm = true, .solicited = true, .to = 0xffffff, .from = 2, .imm = 7, .hop_limit = 1},
    };
    const struct in6_addr ipv4 = {.s6_addr = {[10] = 0xff, 0xff, 192, 0, 2, 1}},
                          ipv6 = {.s6_addr = {0xfe, 0x80, [15] = 2}};
    uint8_t p[IW_UD_HEADER], grh[IW_UD_GRH];
    for (size_t i = 0; i < COUNT(all); i++) {
        iw_ud_header_encode(p, &all[i]);
        iw_ud_grh(grh, &all[i], i ? &ipv6 : &ipv4, i ? &ipv6 : &ipv4, 8);
        line(p, sizeof(p), grh, sizeof(grh));
        add_packed(p, grh);
    }
    line(packed, packed_len, grh, 0);
    line(packed, packed_len - 1, grh, 0);
}

static const struct {
    const char *name;
    void (*print)(void);
} targets[] = {
    {"datagram", datagram}, {"ddp", ddp},       {"fpdu", fpdu},           {"hello", hello},
    {"mpa", mpa},           {"nego", nego},     {"rdmap", rdmap},         {"ring", ring},
    {"sidr", sidr},         {"stream", stream}, {"terminate", terminate},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < COUNT(targets); i++)
        if (strcmp(argv[1], targets[i].name) == 0) {
            targets[i].print();
            return 0;
        }
    fprintf(stderr, "usage: seeds "
                    "datagram|ddp|fpdu|hello|mpa|nego|rdmap|ring|sidr|stream|terminate\n");
    return 2;
}
