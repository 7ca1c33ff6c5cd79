/* SPDX-License-Identifier: BSD-2-Clause */
/* Resizing a CQ: what it holds stays, in order, wherever the ring wraps. */
#include "cq/cq.h"
#include "env/limits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cmocka.h>

static struct ibv_context ctx = {.num_comp_vectors = 1};

static struct iw_cq *cq_at(uint32_t pos)
{
    struct iw_cq *cq = iw_cq_create(&ctx, 7, NULL, NULL, 0, NULL);
    assert_non_null(cq);
    atomic_store(&cq->head, pos);
    atomic_store(&cq->tail, pos);
    cq->raised_at = cq->matched_at = pos;
    return cq;
}

/* Not iw_cq_destroy(), which looks for events in a whole context. */
static void done(struct iw_cq *cq)
{
    lock_fini(&cq->lock);
    free(cq->ring);
    free(cq);
}

static void add(struct iw_cq *cq, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        struct iw_cq_wakes w = {0};
        assert_true(iw_cq_add(cq, &(struct iw_cqe){.wc.wr_id = from}, &w));
    }
}

static void take(struct iw_cq *cq, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        struct ibv_wc wc;
        assert_int_equal(iw_cq_take(cq, 1, &wc), 1);
        assert_int_equal(wc.wr_id, from);
    }
    assert_true(iw_cq_is_empty(cq));
}

static void what_it_holds_stays(void **state)
{
    static const struct {
        int cqe, err, given;
    } rows[] = {
        {0, EINVAL, 7},  {-5, EINVAL, 7}, {IW_MAX_CQE + 1, EINVAL, 7}, {3, EINVAL, 7}, {20, 0, 31},
        {3, EINVAL, 31}, {5, 0, 7},
    };
    static const uint32_t starts[] = {0, 3, 5, 7, UINT32_MAX - 2, UINT32_MAX};
    (void)state;
    for (size_t k = 0; k < sizeof(starts) / sizeof(starts[0]); k++) {
        struct iw_cq *cq = cq_at(starts[k]);
        add(cq, 0, 5);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            int r = iw_cq_resize(cq, rows[i].cqe);
            if (r != rows[i].err || cq->pub.cqe != rows[i].given)
                fail_msg("start %u, row %zu: %d, cqe %d", starts[k], i, r, cq->pub.cqe);
        }
        add(cq, 5, 7);
        take(cq, 0, 7);
        done(cq);
    }
}

/* There if the program is built with a sanitizer, which has allocators and limits of its own. */
void __asan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

/** What stands in for a kernel may take the limit and not keep it. */
static bool is_limited(const struct rlimit *low)
{
    void *p = mmap(NULL, low->rlim_cur, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED)
        munmap(p, low->rlim_cur);
    return p == MAP_FAILED;
}

static void without_memory_nothing_has_changed(void **state)
{
    struct rlimit old, low;
    (void)state;
    if (__asan_init || __tsan_init)
        skip();
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    low = old;
    low.rlim_cur = 200u << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &low), 0);
    if (!is_limited(&low)) {
        print_message("setrlimit() does not limit the address space here\n");
        skip();
    }
    struct iw_cq *cq = cq_at(0);
    add(cq, 0, 3);
    int r = iw_cq_resize(cq, IW_MAX_CQE);
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    assert_int_equal(r, ENOMEM);
    assert_int_equal(cq->pub.cqe, 7);
    take(cq, 0, 3);
    done(cq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_it_holds_stays),
        cmocka_unit_test(without_memory_nothing_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
