/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a registration costs does not depend on how much else there is: mappings of the process,
 * queue pairs of the domain. Counted in system calls, and in locks that it can be kept from.
 */
#include "calls.h"
#include "pair.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMES  5
#define ROUNDS 20
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static __thread bool counting;
static atomic_uint calls;
static atomic_bool refuse_membarrier;
static atomic_uint refused;
static atomic_bool at_recv, stop_recv, go_on;

/** Counts; and keeps the first thread that receives, when it is told to, in the call. */
static int before(long number, const long args[6])
{
    (void)args;
    if (counting)
        atomic_fetch_add(&calls, 1);
    if (number == SYS_membarrier && atomic_load(&refuse_membarrier)) {
        atomic_fetch_add(&refused, 1);
        return EPERM;
    }
    if (number == SYS_recvfrom && atomic_exchange(&stop_recv, false)) {
        atomic_store(&at_recv, true);
        while (!atomic_load(&go_on))
            usleep(1000);
    }
    return 0;
}

static unsigned calls_of_one(struct ibv_pd *pd, void *addr, size_t len)
{
    atomic_store(&calls, 0);
    counting = true;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_mr *mr = ibv_reg_mr(pd, addr, len, ACCESS);
        assert_non_null(mr);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    counting = false;
    return atomic_load(&calls);
}

/** The least of several times: on a busy machine it may have to wait for another thread. */
static unsigned calls_of(struct ibv_pd *pd, void *addr, size_t len)
{
    unsigned least = UINT_MAX;
    for (int i = 0; i < TIMES; i++) {
        unsigned n = calls_of_one(pd, addr, len);
        if (n < least)
            least = n;
    }
    return least;
}

/** Every other page has other rights, so that each is one. */
static void mappings_of_the_process(void **state)
{
    enum { MAPPINGS = 4000 };
    const size_t page = (size_t)getpagesize();
    const size_t sizes[] = {page, 64 * 1024, 1 << 20, 16 << 20};
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *m = mmap(NULL, sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(m != MAP_FAILED);
        calls_of(p.a.pd, m, sizes[i]);
        unsigned few = calls_of(p.a.pd, m, sizes[i]);
        uint8_t *more = mmap(NULL, MAPPINGS * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(more != MAP_FAILED);
        for (size_t k = 0; k < MAPPINGS; k += 2)
            assert_int_equal(mprotect(more + k * page, page, PROT_READ), 0);
        unsigned many = calls_of(p.a.pd, m, sizes[i]);
        print_message("  %zu bytes: %u and %u calls\n", sizes[i], few, many);
        assert_int_equal(many, few);
        assert_int_equal(munmap(more, MAPPINGS * page), 0);
        assert_int_equal(munmap(m, sizes[i]), 0);
    }
    pair_close(&p, 1);
}

static void *receive(void *arg)
{
    struct pair *p = arg;
    struct ibv_wc wc;
    while (!atomic_load(&go_on))
        ibv_poll_cq(p->b.cq, 1, &wc);
    return NULL;
}

/** A thread is inside a queue pair of the domain, and copies nothing: it is not waited for. */
static void queue_pairs_of_the_domain(void **state)
{
    struct pair p;
    pthread_t thread;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_mw *mw = ibv_alloc_mw(p.b.pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    atomic_store(&stop_recv, true);
    assert_int_equal(pthread_create(&thread, NULL, receive, &p), 0);
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0), 0);
    while (!atomic_load(&at_recv))
        usleep(1000);
    alarm(60); /* of which this takes nothing */
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_mr *mr = ibv_reg_mr(p.b.pd, p.b.buf, SIDE_BYTES, ACCESS);
        assert_non_null(mr);
        assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    alarm(0);
    atomic_store(&go_on, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

/** A program has forbidden the call meanwhile: it is tried once. */
static void without_membarrier(void **state)
{
    struct pair p;
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* it knows no fences, so that the call is not made */
#endif
    pair_open(&p, &(struct pair_conf){0});
    volatile uint8_t *to = p.b.buf;
    *to = 0;
    p.a.buf[0] = 1;
    assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, 1, 0, 64, 0, 0), 0);
    while (!*to) /* so that another thread has copied */
        usleep(1000);
    atomic_store(&refuse_membarrier, true);
    calls_of(p.a.pd, p.a.buf, SIDE_BYTES);
    calls_of(p.a.pd, p.a.buf, SIDE_BYTES);
    assert_int_equal(atomic_load(&refused), 1);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings_of_the_process),
        cmocka_unit_test(queue_pairs_of_the_domain),
        cmocka_unit_test(without_membarrier),
    };
    calls_before = before;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
