/* SPDX-License-Identifier: BSD-2-Clause */
/* Every short form of <rdma/rdma_verbs.h>, on the two ends of a connection of endpoints. */
#include "cm_ep.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct ends {
    struct rdma_cm_id *listener, *a, *b;
    char buf_a[64], buf_b[64];
    struct ibv_mr *a_mr, *b_mr, *b_read, *b_write;
};

static void ends_open(struct ends *e)
{
    struct ibv_qp_init_attr attr = ep_small_qp();
    e->listener = ep_passive(NULL, &attr);
    e->a = ep_active(e->listener, NULL, &attr);
    e->b = ep_join(e->listener, e->a);
    e->a_mr = rdma_reg_msgs(e->a, e->buf_a, sizeof(e->buf_a));
    e->b_mr = rdma_reg_msgs(e->b, e->buf_b, sizeof(e->buf_b));
    e->b_read = rdma_reg_read(e->b, e->buf_b, sizeof(e->buf_b));
    e->b_write = rdma_reg_write(e->b, e->buf_b, sizeof(e->buf_b));
    assert_true(e->a_mr && e->b_mr && e->b_read && e->b_write);
}

static void ends_close(struct ends *e)
{
    assert_int_equal(rdma_dereg_mr(e->a_mr), 0);
    assert_int_equal(rdma_dereg_mr(e->b_mr), 0);
    assert_int_equal(rdma_dereg_mr(e->b_read), 0);
    assert_int_equal(rdma_dereg_mr(e->b_write), 0);
    rdma_destroy_ep(e->a);
    rdma_destroy_ep(e->b);
    rdma_destroy_ep(e->listener);
}

static void sent(struct rdma_cm_id *id, void *context, enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.wr_id, (uintptr_t)context);
}

static void received(struct rdma_cm_id *id, void *context, uint32_t bytes)
{
    struct ibv_wc wc;
    assert_int_equal(rdma_get_recv_comp(id, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.wr_id, (uintptr_t)context);
    assert_int_equal(wc.byte_len, bytes);
}

static void single_buffers(void **state)
{
    struct ends e = {.buf_b = "what b has"};
    (void)state;
    ends_open(&e);
    uint64_t there = (uintptr_t)e.buf_b;
    assert_int_equal(rdma_post_read(e.a, &e, e.buf_a, 11, e.a_mr, 0, there, e.b_read->rkey), 0);
    sent(e.a, &e, IBV_WC_RDMA_READ);
    assert_string_equal(e.buf_a, "what b has");

    strcpy(e.buf_a, "what a writes");
    assert_int_equal(rdma_post_write(e.a, &e.b, e.buf_a, 14, e.a_mr, 0, there, e.b_write->rkey), 0);
    sent(e.a, &e.b, IBV_WC_RDMA_WRITE);
    assert_int_equal(rdma_post_recv(e.b, &e.a, e.buf_b + 32, 32, e.b_mr), 0);
    strcpy(e.buf_a, "a message");
    assert_int_equal(rdma_post_send(e.a, NULL, e.buf_a, 10, e.a_mr, 0), 0);
    sent(e.a, NULL, IBV_WC_SEND);
    received(e.b, &e.a, 10);
    assert_string_equal(e.buf_b + 32, "a message");
    assert_string_equal(e.buf_b, "what a writes"); /* placed before the message came */

    /* Inline data need no registration. */
    char text[] = "inline";
    assert_int_equal(
        rdma_post_write(e.a, &e, text, sizeof(text), NULL, IBV_SEND_INLINE, there, e.b_write->rkey),
        0);
    memset(text, 'x', sizeof(text));
    sent(e.a, &e, IBV_WC_RDMA_WRITE);
    assert_int_equal(rdma_post_recv(e.b, &e, e.buf_b + 32, 32, e.b_mr), 0);
    assert_int_equal(rdma_post_send(e.a, &e, text, sizeof(text), NULL, IBV_SEND_INLINE), 0);
    sent(e.a, &e, IBV_WC_SEND);
    received(e.b, &e, sizeof(text));
    assert_string_equal(e.buf_b, "inline");
    ends_close(&e);
}

/** A message of no bytes needs none: neither list nor region. */
static void receives_without_memory(void **state)
{
    struct ends e = {0};
    (void)state;
    ends_open(&e);
    assert_int_equal(rdma_post_recv(e.b, &e.a, NULL, 0, NULL), 0);
    assert_int_equal(rdma_post_recvv(e.b, &e.b, NULL, 0), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rdma_post_send(e.a, &e, e.buf_a, 0, NULL, IBV_SEND_INLINE), 0);
        sent(e.a, &e, IBV_WC_SEND);
    }
    received(e.b, &e.a, 0);
    received(e.b, &e.b, 0);
    ends_close(&e);
}

static void gather_and_scatter(void **state)
{
    struct ends e = {.buf_b = "0123456789"};
    (void)state;
    ends_open(&e);
    uint64_t there = (uintptr_t)e.buf_b;
    struct ibv_sge at_a[] = {{(uintptr_t)e.buf_a, 4, e.a_mr->lkey},
                             {(uintptr_t)(e.buf_a + 32), 6, e.a_mr->lkey}};
    struct ibv_sge at_b[] = {{(uintptr_t)(e.buf_b + 20), 5, e.b_mr->lkey},
                             {(uintptr_t)(e.buf_b + 40), 5, e.b_mr->lkey}};
    assert_int_equal(rdma_post_readv(e.a, &e, at_a, 2, 0, there, e.b_read->rkey), 0);
    sent(e.a, &e, IBV_WC_RDMA_READ);
    assert_memory_equal(e.buf_a, "0123", 4);
    assert_memory_equal(e.buf_a + 32, "456789", 6);
    assert_int_equal(rdma_post_writev(e.a, &e, at_a, 2, 0, there + 1, e.b_write->rkey), 0);
    sent(e.a, &e, IBV_WC_RDMA_WRITE);
    assert_int_equal(rdma_post_recvv(e.b, &e, at_b, 2), 0);
    assert_int_equal(rdma_post_sendv(e.a, &e, at_a, 2, 0), 0);
    sent(e.a, &e, IBV_WC_SEND);
    received(e.b, &e, 10);
    assert_memory_equal(e.buf_b + 20, "01234", 5);
    assert_memory_equal(e.buf_b + 40, "56789", 5);
    assert_memory_equal(e.buf_b, "00123456789", 11);
    ends_close(&e);
}

static void *send_later(void *arg)
{
    struct rdma_cm_id *id = arg;
    struct ibv_wc wc;
    struct pollfd p = {.fd = id->recv_cq_channel->fd};
    poll(&p, 1, 50); /* likely asleep by then; either way it must come */
    assert_int_equal(rdma_post_send(id, NULL, (void *)(uintptr_t) "late", 5, NULL, IBV_SEND_INLINE),
                     0);
    assert_int_equal(rdma_get_send_comp(id, &wc), 1);
    return NULL;
}

static void completions_are_waited_for(void **state)
{
    struct ends e = {0};
    struct ibv_wc wc;
    pthread_t t;
    (void)state;
    ends_open(&e);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(rdma_post_recv(e.b, &e, e.buf_b, sizeof(e.buf_b), e.b_mr), 0);
        assert_int_equal(pthread_create(&t, NULL, send_later, e.a), 0);
        received(e.b, &e, 5);
        pthread_join(t, NULL);
    }
    /* Unless the program says that it does not want to wait. */
    assert_int_equal(fcntl(e.b->recv_cq_channel->fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rdma_get_recv_comp(e.b, &wc), -1);
    assert_int_equal(errno, EAGAIN);
    ends_close(&e);
}

static void errors_of_the_short_forms(void **state)
{
    struct ends e = {0};
    struct ibv_sge sge[17] = {{0}};
    (void)state;
    assert_int_equal(rdma_seterrno(0), 0);
    assert_int_equal(rdma_seterrno(EBUSY), -1);
    assert_int_equal(errno, EBUSY);
    ends_open(&e);
    assert_null(rdma_reg_msgs(e.a, NULL, 4096));
    assert_int_equal(errno, EFAULT);
    assert_int_equal(rdma_post_sendv(e.a, NULL, sge, 17, 0), -1);
    assert_int_not_equal(errno, 0);
    assert_int_equal(rdma_post_recvv(e.a, NULL, sge, 17), -1);
    /* Longer than what was agreed on as inline. */
    assert_int_equal(rdma_post_send(e.a, NULL, e.buf_a, 4096, NULL, IBV_SEND_INLINE), -1);
    /* A datagram there is not: on a connection its address is not looked at. */
    assert_int_equal(rdma_post_recv(e.b, &e, e.buf_b, 32, e.b_mr), 0);
    assert_int_equal(rdma_post_ud_send(e.a, &e, e.buf_a, 8, e.a_mr, 0, NULL, 1), 0);
    sent(e.a, &e, IBV_WC_SEND);
    received(e.b, &e, 8);
    ends_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_buffers),
        cmocka_unit_test(receives_without_memory),
        cmocka_unit_test(gather_and_scatter),
        cmocka_unit_test(completions_are_waited_for),
        cmocka_unit_test(errors_of_the_short_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
