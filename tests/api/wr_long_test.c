/* SPDX-License-Identifier: BSD-2-Clause */
/* The longest message goes through, a longer one is refused. */
#include "pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define REAL (4u << 20) /* bytes of memory behind each long range of addresses */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUICK 1
#else
#define QUICK 0
#endif

/** @p len bytes of addresses, all of them the same memory again and again. */
static uint8_t *long_range(size_t len)
{
    int fd = memfd_create("anywarp-test", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, REAL), 0);
    uint8_t *p = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    for (size_t at = 0; at < len; at += REAL)
        assert_ptr_equal(mmap(p + at, REAL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0),
                         p + at);
    close(fd);
    return p;
}

static uint32_t max_msg(struct ibv_context *context)
{
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_port(context, 1, &port), 0);
    return port.max_msg_sz;
}

static void a_longer_message_is_refused(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE,
                                             IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ};
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.sge = 16});
    uint32_t max = max_msg(p.a.id->verbs);
    assert_true(max >= 1u << 31);
    for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        for (unsigned n = 2; n <= 16; n += 7) {
            struct ibv_sge sge[16];
            struct ibv_send_wr *bad = NULL, wr = {.sg_list = sge,
                                                  .num_sge = (int)n,
                                                  .opcode = ops[i],
                                                  .send_flags = IBV_SEND_SIGNALED};
            /* One byte too many, also where the sum does not fit into 32 bits. */
            for (unsigned k = 0; k < n; k++)
                sge[k] = (struct ibv_sge){(uintptr_t)p.a.buf, k ? 1u << 31 : 0, p.a.mr->lkey};
            sge[0].length = n == 2 ? max - (1u << 31) + 1 : 0;
            assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), EINVAL);
            assert_ptr_equal(bad, &wr);
        }
    side_poll_none(&p.a, 5);
    pair_close(&p, 1);
}

/** As side_poll(), with time for 2 GB on a busy machine. */
static struct ibv_wc poll_long(struct side *s)
{
    struct ibv_wc wc = {0};
    int n = 0;
    for (time_t end = time(NULL) + 100; n == 0 && time(NULL) < end;)
        n = ibv_poll_cq(s->cq, 1, &wc);
    assert_int_equal(n, 1);
    return wc;
}

static struct ibv_mr *reg(struct side *s, uint8_t *p, size_t len)
{
    struct ibv_mr *mr = ibv_reg_mr(
        s->pd, p, len, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    assert_non_null(mr);
    return mr;
}

static void the_longest_message_arrives(void **state)
{
    struct pair p;
    (void)state;
    if (QUICK)
        skip();
    pair_open(&p, &(struct pair_conf){0});
    uint32_t len = max_msg(p.a.id->verbs);
    size_t room = ((size_t)len + REAL - 1) / REAL * REAL;
    uint8_t *from = long_range(room), *to = long_range(room);
    struct ibv_mr *mr_a = reg(&p.a, from, room), *mr_b = reg(&p.b, to, room);
    struct ibv_sge out = {(uintptr_t)from, len, mr_a->lkey}, in = {(uintptr_t)to, len, mr_b->lkey};
    struct ibv_recv_wr *bad_recv, recv = {.wr_id = 2, .sg_list = &in, .num_sge = 1};
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .sg_list = &out,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SIGNALED};
    for (uint32_t i = 0; i < REAL; i++)
        from[i] = (uint8_t)(i * 11 + i / 256);
    assert_int_equal(ibv_post_recv(p.b.id->qp, &recv, &bad_recv), 0);
    assert_int_equal(ibv_post_send(p.a.id->qp, &wr, &bad), 0);
    struct ibv_wc wc = poll_long(&p.b);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, len);
    assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    assert_memory_equal(from, to, REAL);
    assert_int_equal(ibv_dereg_mr(mr_a), 0);
    assert_int_equal(ibv_dereg_mr(mr_b), 0);
    assert_int_equal(munmap(from, room), 0);
    assert_int_equal(munmap(to, room), 0);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_longer_message_is_refused),
        cmocka_unit_test(the_longest_message_arrives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
