/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More reads and atomics at once than were agreed on: those up to the limit are answered, the next
 * one ends the connection, whichever kind they are (RFC 5042 section 6.4.3.3).
 */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define FILL      0x5a
#define SIZE      8 /* of a read */
#define REQUESTS  16
#define REQUEST_1 52

enum mix { READS, ATOMICS, BOTH, MIXES };

static struct peer_seg request(struct peer *p, bool atomic, uint8_t *hdr)
{
    uint64_t at = (uintptr_t)p->victim.buf;
    if (atomic)
        peer_atomic_request(hdr, 0, 1, p->victim.mr->rkey, at);
    else
        peer_read_request(hdr, 1, 0, SIZE, p->victim.mr->rkey, at);
    return peer_untagged(p, atomic ? PEER_ATOMIC_REQUEST : PEER_READ_REQUEST, hdr,
                         atomic ? 52 : 28);
}

/** All in one TCP segment: they are there before the first is answered. */
static void send_requests(struct peer *p, enum mix mix, unsigned n)
{
    uint8_t bytes[REQUESTS * 128], hdr[REQUEST_1];
    size_t len = 0;
    for (unsigned i = 0; i < n; i++) {
        struct peer_seg s = request(p, mix == ATOMICS || (mix == BOTH && i % 2), hdr);
        len += peer_fpdu(p, &s, bytes + len);
    }
    peer_send(p, bytes, len);
}

static void take_answers(struct peer *p, enum mix mix, unsigned n)
{
    struct peer_seg s;
    for (unsigned i = 0; i < n; i++) {
        bool atomic = mix == ATOMICS || (mix == BOTH && i % 2);
        assert_true(peer_next(p, &s));
        assert_int_equal(s.rdmap & 0xf, atomic ? PEER_ATOMIC_RESPONSE : PEER_READ_RESPONSE);
    }
}

static void run(enum mix mix, uint8_t depth, unsigned allowed)
{
    static struct peer p;
    const struct peer_conf conf = {.side = {.depth = depth, .no_reads = depth == 0}};
    peer_open(&p, &conf);
    memset(p.victim.buf, FILL, SIDE_BYTES);
    witness_goes_on(); /* so that ThreadSanitizer sees this come before what the peer sends */
    for (int round = 0; round < 3; round++) {
        send_requests(&p, mix, allowed);
        take_answers(&p, mix, allowed);
    }
    send_requests(&p, mix, allowed + 1);
    assert_int_equal(peer_terminate(&p), PEER_TERM(0, 2, 0x07));
    witness_end(&p, 0,
                "more reads and atomics outstanding than the agreed IRD: * are outstanding, * were "
                "agreed");
    if (mix == READS)
        witness_untouched(&p, FILL);
    peer_close(&p);
}

/** A depth that is no power of two is rounded up, as Soft-iWARP does with that of its requests. */
static void the_agreed_number_and_no_more(void **state)
{
    static const struct {
        uint8_t depth;
        unsigned allowed;
    } rows[] = {{0, 0}, {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {8, 8}};
    (void)state;
    for (enum mix mix = 0; mix < MIXES; mix++)
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
            run(mix, rows[i].depth, rows[i].allowed);
}

/** Answers that the peer does not take: what it asks for costs no memory. */
static void answers_are_not_piled_up(void **state)
{
    static struct peer p;
    uint8_t hdr[28];
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = false, .small_window = true});
    size_t before = witness_memory();
    for (int i = 0; i < 4; i++) {
        peer_read_request(hdr, 1, 0, SIDE_BYTES, p.victim.mr->rkey, (uintptr_t)p.victim.buf);
        struct peer_seg s = peer_untagged(&p, PEER_READ_REQUEST, hdr, sizeof(hdr));
        peer_send_seg(&p, &s);
    }
    witness_sleeps(200);
    witness_goes_on();
    assert_in_range(witness_memory(), 0, before + 2 * SIDE_BYTES);
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_agreed_number_and_no_more),
        cmocka_unit_test(answers_are_not_piled_up),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
