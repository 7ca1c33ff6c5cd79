/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FPDUs shorter than the headers of what they say they are, by every number of bytes, for every
 * opcode; and the longest ones that there may be.
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FILL       0x5a
#define LONGEST    (PEER_ULPDU_MAX - 14)
#define TAGGED_HDR 14
#define SHORTEST   TAGGED_HDR /* of all */
#define FRAMING    PEER_TERM(2, 0, 0x03)
#define OPCODE     PEER_TERM(0, 2, 0x06)

static const struct row {
    enum peer_op op;
    size_t headers;
    unsigned terminate; /* for what has at least SHORTEST bytes */
    const char *line;
} rows[] = {
    {PEER_READ_REQUEST, 18 + 28, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_SEND, 18, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_SEND_INV, 18, FRAMING, "FPDU length and headers disagree: *"},
    {0x5, 18, FRAMING, "FPDU length and headers disagree: *"},
    {0x6, 18, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_TERMINATE, 18 + 4, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_IMM, 18 + 8, FRAMING, "FPDU length and headers disagree: *"},
    {0x9, 18 + 8, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_ATOMIC_REQUEST, 18 + 52, FRAMING, "FPDU length and headers disagree: *"},
    {PEER_ATOMIC_RESPONSE, 18 + 12, FRAMING, "FPDU length and headers disagree: *"},
    {0xc, 18, OPCODE, "unexpected RDMAP opcode: *"},
    {0xe, 18, OPCODE, "unexpected RDMAP opcode: *"},
    {PEER_SEND_IMM, 18 + 8, FRAMING, "FPDU length and headers disagree: *"},
};

/** Without CRC too: it must not be what saves us. */
static void send_short(struct peer *p, enum peer_op op, size_t len)
{
    static uint8_t whole[PEER_FPDU_MAX], bytes[PEER_FPDU_MAX];
    struct peer_seg s = peer_untagged(p, op, NULL, 64);
    peer_fpdu(p, &s, whole);
    peer_send(p, bytes, peer_frame(p, whole + 2, len, bytes));
}

static void cut(enum peer_op op, size_t len, unsigned terminate, const char *line)
{
    static struct peer p;
    peer_open(&p, &(struct peer_conf){.no_crc = len % 2});
    memset(p.victim.buf, FILL, SIDE_BYTES);
    side_recv(&p.victim, 51, 0, SIDE_BYTES);
    send_short(&p, op, len);
    unsigned got = peer_terminate(&p);
    if (got != terminate)
        fail_msg("opcode %x, %zu bytes: Terminate 0x%04x", op, len, got);
    witness_end(&p, 1, line);
    witness_untouched(&p, FILL);
    peer_close(&p);
}

static void shorter_than_any_header(void **state)
{
    (void)state;
    for (size_t len = 0; len < SHORTEST; len++)
        cut(PEER_SEND, len, FRAMING, "FPDU length and headers disagree: FPDU 2, ULPDU length *");
}

static void shorter_than_the_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t len = SHORTEST; len < rows[i].headers; len++)
            cut(rows[i].op, len, rows[i].terminate, rows[i].line);
}

/** Longer than a TCP segment, as generic segmentation makes them, and as long as may be. */
static void the_longest_is_taken(void **state)
{
    static struct peer p;
    static uint8_t data[LONGEST];
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = false});
    side_recv(&p.victim, 1, SIDE_BYTES / 2, 0);
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    struct peer_seg s =
        peer_tagged(PEER_WRITE, p.victim.mr->rkey, (uintptr_t)p.victim.buf, data, sizeof(data));
    peer_send_seg(&p, &s);
    s = peer_untagged(&p, PEER_SEND, NULL, 0);
    peer_send_seg(&p, &s);
    assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
    assert_memory_equal(p.victim.buf, data, sizeof(data));
    witness_goes_on();
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shorter_than_any_header),
        cmocka_unit_test(shorter_than_the_headers),
        cmocka_unit_test(the_longest_is_taken),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
