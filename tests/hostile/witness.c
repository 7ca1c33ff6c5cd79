/* SPDX-License-Identifier: BSD-2-Clause */
#include "witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES     3000
#define MS_PER_S  1000
#define NS_PER_MS 1000000
#define WORK_MS   3000

static struct pair other;

int witness_setup(void **state)
{
    int r = log_setup(state);
    if (!r)
        pair_open(&other, &(struct pair_conf){.depth = 1});
    return r;
}

int witness_teardown(void **state)
{
    pair_close(&other, 1);
    return log_teardown(state);
}

static void expect(struct side *s, uint64_t wr_id)
{
    struct ibv_wc wc = side_poll(s);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, wr_id);
}

static void one_way(struct side *from, struct side *to)
{
    static uint8_t count;
    memset(from->buf, ++count, BYTES);
    side_recv(to, 1, BYTES, BYTES);
    side_post(from, to, IBV_WR_RDMA_WRITE, 2, 0, BYTES, 0, 0);
    side_post(from, to, IBV_WR_SEND, 3, 0, BYTES, 0, 0);
    expect(to, 1);
    expect(from, 2);
    expect(from, 3);
    assert_memory_equal(to->buf, from->buf, BYTES);
    assert_memory_equal(to->buf + BYTES, from->buf, BYTES);
    side_post(from, to, IBV_WR_RDMA_READ, 4, BYTES, BYTES, BYTES, 0);
    expect(from, 4);
    assert_memory_equal(from->buf + BYTES, from->buf, BYTES);
}

void witness_goes_on(void)
{
    one_way(&other.a, &other.b);
    one_way(&other.b, &other.a);
}

static long cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * MS_PER_S + t.tv_nsec / NS_PER_MS;
}

void witness_sleeps(int ms)
{
    struct timespec t = {.tv_sec = ms / MS_PER_S, .tv_nsec = (long)(ms % MS_PER_S) * NS_PER_MS};
    long used = ms;
    for (int waited = 0; used > ms / 4; waited += ms) {
        if (waited > WORK_MS)
            fail_msg("%ld of %d ms busy, for %d ms", used, ms, waited);
        long before = cpu_ms();
        nanosleep(&t, NULL);
        used = cpu_ms() - before;
    }
}

size_t witness_memory(void)
{
/* Its own memory grows with what is touched, and AddressSanitizer's since gcc 13 with each thread.
 */
#if defined(__SANITIZE_THREAD__) || (defined(__SANITIZE_ADDRESS__) && __GNUC__ > 12)
    return 0;
#else
    size_t pages = 0, size;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%zu %zu", &size, &pages), 2);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
#endif
}

void witness_end(struct peer *p, unsigned receives, const char *line)
{
    struct side *s = &p->victim;
    char all[512];
    for (unsigned i = 0; i < receives; i++) {
        struct ibv_wc wc = side_poll(s);
        assert_int_equal(wc.wr_id, 51 + i);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    side_event(s, RDMA_CM_EVENT_DISCONNECTED);
    side_poll_none(s, 1);
    assert_int_equal(s->id->qp->state, IBV_QPS_ERR);
    snprintf(all, sizeof(all), "%s; * send and * receive work requests flushed", line);
    log_expect(s->id->qp->qp_num, all);
    log_clear();
    witness_goes_on();
}

void witness_untouched(const struct peer *p, uint8_t fill)
{
    for (size_t i = 0; i < SIDE_BYTES; i++)
        if (p->victim.buf[i] != fill)
            fail_msg("byte %zu was changed", i);
}
