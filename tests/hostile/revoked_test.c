/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that is taken back while the peer writes to it and reads from it: when ibv_dereg_mr() has
 * returned, the pages may go, and no byte is touched any more (RFC 5042 sections 6.2.2, 6.3.3).
 */
#include "witness.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cmocka.h>

#define ROUNDS 20
#define BYTES  (1 << 20)
#define PIECE  16384

static struct peer p;
static struct ibv_mr *mr;
static uint32_t key;
static uint8_t *memory;
static atomic_uint sent;

/** Sends until the victim ends it. */
static bool send_all(const uint8_t *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(p.fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    atomic_fetch_add(&sent, 1);
    return true;
}

static void *write_on(void *arg)
{
    static uint8_t fpdu[PEER_FPDU_MAX];
    struct peer_seg s = peer_tagged(PEER_WRITE, key, (uintptr_t)memory, NULL, PIECE);
    size_t len = peer_fpdu(&p, &s, fpdu);
    while (send_all(fpdu, len))
        ;
    return arg;
}

/** Reads all of it again and again, as fast as the answers come. */
static void *read_on(void *arg)
{
    uint8_t fpdu[128], hdr[28];
    struct peer_seg s, answer;
    bool goes_on = true;
    while (goes_on) {
        peer_read_request(hdr, 1, 0, BYTES, key, (uintptr_t)memory);
        s = peer_untagged(&p, PEER_READ_REQUEST, hdr, sizeof(hdr));
        goes_on = send_all(fpdu, peer_fpdu(&p, &s, fpdu));
        do
            goes_on = goes_on && peer_next(&p, &answer) &&
                      answer.rdmap == (PEER_RDMAP_V1 | PEER_READ_RESPONSE);
        while (goes_on && !(answer.ddp & PEER_LAST));
    }
    return arg;
}

static void round_of(void *(*act)(void *))
{
    pthread_t t;
    peer_open(&p, &(struct peer_conf){.no_crc = true});
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    mr = ibv_reg_mr(p.victim.pd, memory, BYTES,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    key = mr->rkey;
    atomic_store(&sent, 0);
    assert_int_equal(pthread_create(&t, NULL, act, NULL), 0);
    while (atomic_load(&sent) < 2)
        side_poll_none(&p.victim, 1);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_return_code(munmap(memory, BYTES), errno);
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    shutdown(p.fd, SHUT_RDWR); /* the thread, which may be sending still, ends */
    assert_int_equal(pthread_join(t, NULL), 0);
    peer_close(&p);
}

static void while_the_peer_writes(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        round_of(write_on);
    witness_goes_on();
}

static void while_the_peer_reads(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        round_of(read_on);
    witness_goes_on();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(while_the_peer_writes),
        cmocka_unit_test(while_the_peer_reads),
    };
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
