/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that sends without a break, and has no time for polls, hears its peer all the same:
 * even where the engine's thread gets nothing to read, as if another thread had the processor, or
 * the lock of the socket.
 */
#include "calls.h"
#include "hostile/peer.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WRS      64
#define BYTES    65536
#define ENOUGH   1000 /* messages */
#define PAUSE_US 20
#define LIMIT_S  10

static atomic_bool busy;
static __thread bool sends;

static int before(long number, const long args[6])
{
    (void)args;
    return number == SYS_recvfrom && busy && !sends ? EAGAIN : 0;
}

/** The peer's program: takes everything. */
static void *take(void *arg)
{
    static char bytes[BYTES];
    const struct peer *p = arg;
    while (recv(p->fd, bytes, sizeof(bytes), 0) > 0)
        ;
    return NULL;
}

/** @return whether there was room */
static bool post(struct side *s)
{
    struct ibv_sge sge = {(uintptr_t)s->buf + BYTES, BYTES, s->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    int r = ibv_post_send(s->id->qp, &wr, &bad);
    assert_true(r == 0 || r == ENOMEM);
    return r == 0;
}

static void it_hears(void **state)
{
    static struct peer p;
    pthread_t taker;
    (void)state;
    peer_open(&p, &(struct peer_conf){.no_crc = true, .side = {.send_wr = WRS}});
    volatile uint8_t *word = p.victim.buf;
    *word = 0;
    assert_int_equal(pthread_create(&taker, NULL, take, &p), 0);
    busy = sends = true;
    struct peer_seg s = peer_tagged(PEER_WRITE, p.victim.mr->rkey, (uintptr_t)word, "\1", 1);
    peer_send_seg(&p, &s);
    time_t end = time(NULL) + LIMIT_S;
    for (unsigned posted = 0; posted < ENOUGH && !*word && time(NULL) < end;) {
        posted += post(&p.victim);
        usleep(PAUSE_US);
    }
    assert_int_equal(*word, 1);
    busy = false;
    shutdown(p.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(taker, NULL), 0);
    peer_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_hears),
    };
    calls_before = before;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
