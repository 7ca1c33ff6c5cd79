/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flood of the smallest messages, with a byte or none in each: slow to take in, but others get
 * their turn, and nothing piles up (RFC 5042 section 6.4.4).
 */
#include "witness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define MESSAGES 60000
#define MB       (1 << 20)

static struct peer p;
static atomic_bool done;

static void *send_tiny(void *arg)
{
    static uint8_t bytes[64 * 1024];
    size_t len = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        uint8_t byte = (uint8_t)(i % SIDE_BYTES);
        struct peer_seg s = peer_tagged(PEER_WRITE, p.victim.mr->rkey,
                                        (uintptr_t)p.victim.buf + i % SIDE_BYTES, &byte, i % 3 > 0);
        if (i % 2)
            s.ddp ^= PEER_LAST;
        len += peer_fpdu(&p, &s, bytes + len);
        if (len > sizeof(bytes) - 128 || i == MESSAGES - 1) {
            peer_send(&p, bytes, len);
            len = 0;
        }
    }
    atomic_store(&done, true);
    return arg;
}

static void others_get_their_turn(void **state)
{
    pthread_t t;
    unsigned turns = 0;
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    memset(p.victim.buf, 0, SIDE_BYTES);
    witness_goes_on(); /* so that ThreadSanitizer sees this come before what the peer sends */
    side_recv(&p.victim, 1, 0, 0);
    size_t before = witness_memory();
    assert_int_equal(pthread_create(&t, NULL, send_tiny, NULL), 0);
    do {
        witness_goes_on();
        turns++;
    } while (!atomic_load(&done));
    assert_int_equal(pthread_join(t, NULL), 0);
    struct peer_seg s = peer_untagged(&p, PEER_SEND, NULL, 0);
    peer_send_seg(&p, &s);
    assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
    assert_true(turns > 0);
    assert_in_range(witness_memory(), 0, before + 2 * MB);
    for (uint32_t i = 0; i < MESSAGES; i++)
        assert_int_equal(p.victim.buf[i], i % 3 ? (uint8_t)i : 0);
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_get_their_turn),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
