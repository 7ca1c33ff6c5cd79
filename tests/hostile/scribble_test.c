/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that changes while it is sent: the program's business, but the CRC is right all the same,
 * so that the stream goes on, and of nothing else than that memory is a byte sent.
 */
#include "witness.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

#define WRITES 8
#define ONE    0x11 /* the bytes are this or its complement */

static atomic_bool stop;

static void *scribble(void *arg)
{
    struct side *v = arg;
    for (uint8_t byte = ONE; !atomic_load(&stop); byte = (uint8_t)~byte)
        for (size_t i = 0; i < SIDE_BYTES; i++)
            __atomic_store_n(&v->buf[i], byte, __ATOMIC_RELAXED);
    return NULL;
}

static void the_crc_is_right_all_the_same(void **state)
{
    static struct peer p;
    pthread_t t;
    struct peer_seg s;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* the race is what this is about */
#endif
    peer_open(&p, &(struct peer_conf){.no_crc = false, .side = {.send_wr = WRITES}});
    struct side remote = {.buf = p.victim.buf, .mr = p.victim.mr};
    memset(p.victim.buf, ONE, SIDE_BYTES);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&t, NULL, scribble, &p.victim), 0);
    for (int i = 0; i < WRITES; i++)
        side_post(&p.victim, &remote, IBV_WR_RDMA_WRITE, 1, 0, SIDE_BYTES, 0, 0);
    for (int i = 0; i < WRITES; i++)
        do {
            assert_true(peer_next(&p, &s)); /* looks at the CRC */
            for (size_t k = 0; k < s.len; k++)
                if (((const uint8_t *)s.payload)[k] != ONE &&
                    ((const uint8_t *)s.payload)[k] != (uint8_t)~ONE)
                    fail_msg("a byte from elsewhere");
        } while (!(s.ddp & PEER_LAST));
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    for (int i = 0; i < WRITES; i++)
        assert_int_equal(side_poll(&p.victim).status, IBV_WC_SUCCESS);
    witness_goes_on();
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crc_is_right_all_the_same),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
