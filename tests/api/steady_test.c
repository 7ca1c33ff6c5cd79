/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the steady data path costs: one system call sends a list, one sends a burst, and no message
 * allocates. This program stands in for malloc().
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
    return 77; /* the sanitizer stands in for malloc() itself */
}

#else

#include "calls.h"
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#define WRS         128
#define LIST        16
#define PINGS       500
#define BURST       64
#define SINGLES     16 /* at most, after which the next does not wait */
#define TRIES       1000
#define BULK        16
#define WARM_UP     100
#define THREADS_OWN 16 /* buffers that a thread takes when it does some of the work */

#define STANDS_IN __attribute__((visibility("default")))

static atomic_uint allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

STANDS_IN void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

STANDS_IN void *calloc(size_t n, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(n, size);
}

static void ping(struct side *from, struct side *to, uint64_t id)
{
    side_recv(to, id, 4096, 64);
    assert_int_equal(side_post(from, to, IBV_WR_SEND, id, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(to).wr_id, id);
    assert_int_equal(side_poll(from).wr_id, id);
}

/** One message each way at a time: a system call for each, and nothing else. */
static void ping_pong(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (int i = 0; i < WARM_UP; i++)
        i % 2 ? ping(&p.a, &p.b, i) : ping(&p.b, &p.a, i);
    unsigned sent = calls_sends, changed = calls_epoll_changes, allocated = allocations;
    for (int i = 0; i < PINGS; i++)
        i % 2 ? ping(&p.a, &p.b, i) : ping(&p.b, &p.a, i);
    assert_int_equal(calls_sends - sent, PINGS);
    assert_true(allocations - allocated < THREADS_OWN);
    assert_true(calls_epoll_changes - changed < PINGS / 4); /* the engine's, at leases */
    pair_close(&p, 1);
}

static void post_writes(struct pair *p, unsigned n, unsigned list, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)p->a.buf, len, p->a.mr->lkey};
    struct ibv_send_wr wr[LIST], *bad;
    for (unsigned i = 0; i < list; i++)
        wr[i] = (struct ibv_send_wr){.next = i + 1 < list ? &wr[i + 1] : NULL,
                                     .sg_list = &sge,
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .wr.rdma = {(uintptr_t)p->b.buf, p->b.mr->rkey}};
    for (unsigned i = 0; i < n; i += list)
        assert_int_equal(ibv_post_send(p->a.id->qp, wr, &bad), 0);
}

static void complete(struct pair *p, unsigned n)
{
    while (n-- > 0)
        assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

/** A list goes out whole, at once or at the poll that follows. */
static void lists(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (int i = 0; i < WARM_UP; i++) {
        unsigned sent = calls_sends, allocated = allocations;
        post_writes(&p, LIST, LIST, 64);
        complete(&p, LIST);
        assert_int_equal(calls_sends - sent, 1);
        assert_true(allocations - allocated < THREADS_OWN);
    }
    pair_close(&p, 1);
}

/** Until a burst goes out at once, as posts do that are left to the next poll. */
static void post_bursts(struct pair *p)
{
    unsigned sent, tries = 0;
    do {
        sent = calls_sends;
        post_writes(p, BURST, 1, 64);
        complete(p, BURST);
    } while (calls_sends - sent > 2 && ++tries < TRIES);
    assert_true(tries < TRIES);
}

/** @return how many of @p n, with a poll behind each, were sent before it */
static unsigned post_singles(struct pair *p, unsigned n)
{
    unsigned at_once = 0;
    for (unsigned i = 0; i < n; i++) {
        unsigned sent = calls_sends;
        post_writes(p, 1, 1, 64);
        at_once += calls_sends - sent;
        complete(p, 1);
    }
    return at_once;
}

/** Under a lease, which a program gets that keeps polling, single posts go out together; but those
 * that come one by one do not wait. */
static void bursts(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (int i = 0; i < 3; i++) {
        post_bursts(&p);
        assert_true(post_singles(&p, WARM_UP) >= WARM_UP - SINGLES);
    }
    pair_close(&p, 1);
}

static __thread unsigned looks;

static int count_looks(long number, const long args[6])
{
    (void)args;
    looks += number == SYS_epoll_pwait;
    return 0;
}

/** Under a lease, who only posts looks at what came in, too. */
static void posts_make_passes(void **state)
{
    struct pair p;
    unsigned seen = 0;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    for (int i = 0; i < WARM_UP && !seen; i++) {
        post_bursts(&p);
        looks = 0;
        atomic_store(&calls_before, count_looks);
        post_writes(&p, WRS, 1, 65536);
        seen = looks;
        atomic_store(&calls_before, NULL);
        complete(&p, WRS);
    }
    assert_true(seen);
    pair_close(&p, 1);
}

/** A megabyte takes few calls, however TCP cuts it, and no memory. */
static void bulk(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.send_wr = WRS, .recv_wr = WRS});
    post_writes(&p, BULK, 1, SIDE_BYTES);
    complete(&p, BULK);
    unsigned allocated = allocations;
    post_writes(&p, BULK, 1, SIDE_BYTES);
    complete(&p, BULK);
    assert_true(allocations - allocated < THREADS_OWN);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ping_pong),         cmocka_unit_test(lists), cmocka_unit_test(bursts),
        cmocka_unit_test(posts_make_passes), cmocka_unit_test(bulk),
    };
    setenv("ANYWARP_SHM", "off", 1); /* it counts what TCP does */
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
