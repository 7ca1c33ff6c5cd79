/* SPDX-License-Identifier: BSD-2-Clause */
/* UD: datagrams from any QP to any other of that type, on both kinds of device. */
#include "ud_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- a datagram ---- */

static void what_arrives(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 100);
    union ibv_gid gid;
    (void)state;
    receive(&b, 0, 256);
    memset(b.data, 0xee, 256);
    memcpy(a.data + HALF, "datagram", 8);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    struct ibv_wc wc = received(&b, 0);
    assert_int_equal(wc.byte_len, GRH + 100);
    assert_int_equal(wc.src_qp, a.qp->qp_num);
    assert_int_equal(wc.qp_num, b.qp->qp_num);
    assert_int_equal(wc.slid | wc.pkey_index | wc.dlid_path_bits, 0);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH);
    assert_memory_equal(b.data + GRH, "datagram", 8);
    assert_int_equal(b.data[GRH + 100], 0xee);
    assert_int_equal(ibv_query_gid(ctx, 1, gid_index, &gid), 0);
    if (gid.raw[10] == 0xff) { /* an IPv4 header in the last 20 bytes */
        assert_int_equal(b.data[20], 0x45);
        assert_int_equal(wc.sl, 10);
        assert_memory_equal(b.data + 32, gid.raw + 12, 4);
        assert_memory_equal(b.data + 36, gid.raw + 12, 4);
    } else {
        assert_int_equal(b.data[0] >> 4, 6);
        assert_int_equal(wc.sl, 9);
        assert_memory_equal(b.data + 24, gid.raw, 16);
    }
}

static void immediate_and_inline(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 30);
    struct ibv_cq *cq;
    void *context;
    (void)state;
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = htonl(0xcafe);
    wr.send_flags |= IBV_SEND_INLINE | IBV_SEND_SOLICITED;
    sge.lkey = 0x5a5a5a; /* not looked at */
    assert_int_equal(ibv_req_notify_cq(b.cq, 1), 0);
    receive(&b, 0, 256);
    assert_int_equal(post(&a, &wr), 0);
    memset(a.data + HALF, 0x77, 30); /* too late to be sent */
    sent(&a);
    assert_int_equal(ibv_get_cq_event(b.channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    struct ibv_wc wc = received(&b, 0);
    assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
    assert_int_equal(ntohl(wc.imm_data), 0xcafe);
    assert_int_equal(b.data[GRH], 0);
}

static void the_q_key_decides(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    (void)state;
    receive(&b, 0, 256);
    wr.wr.ud.remote_qkey = QKEY + 1;
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    wr.wr.ud.remote_qkey = 0x80000000u; /* the QP's own */
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 5;
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&b, 0).imm_data, 5);
    struct ibv_qp_attr attr = {.qkey = QKEY + 1};
    assert_int_equal(ibv_modify_qp(b.qp, &attr, IBV_QP_QKEY), 0);
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(b.qp, &attr, IBV_QP_QKEY, &init), 0);
    assert_int_equal(attr.qkey, QKEY + 1);
    wr.wr.ud.remote_qkey = QKEY + 1;
    receive(&b, 1, 256);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    received(&b, 1);
}

static void to_itself_and_by_two_entries(void **state)
{
    (void)state;
    pass(&a, &a, 3);
    struct ibv_sge in[2] = {{(uintptr_t)b.data, 45, b.mr->lkey},
                            {(uintptr_t)(b.data + 512), 100, b.mr->lkey}};
    struct ibv_recv_wr *bad_in, r = {.wr_id = TO_RECV, .sg_list = in, .num_sge = 2};
    struct ibv_sge out[2] = {{(uintptr_t)(a.data + HALF), 4, a.mr->lkey},
                             {(uintptr_t)(a.data + HALF + 64), 6, a.mr->lkey}};
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 0);
    wr.sg_list = out;
    wr.num_sge = 2;
    memcpy(a.data + HALF, "abcd", 4);
    memcpy(a.data + HALF + 64, "efghij", 6);
    assert_int_equal(ibv_post_recv(b.qp, &r, &bad_in), 0);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&b, 0).byte_len, GRH + 10);
    assert_memory_equal(b.data + GRH, "abcde", 5);
    assert_memory_equal(b.data + 512, "fghij", 5);
}

static void the_answer_by_the_completion(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8), back;
    (void)state;
    receive(&b, 0, 256);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    struct ibv_wc wc = received(&b, 0);
    struct ibv_ah *ah = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)b.data, 1);
    assert_non_null(ah);
    back = request(&b, &a, &sge, 8);
    back.wr.ud.ah = ah;
    back.wr.ud.remote_qpn = wc.src_qp;
    receive(&a, 0, 256);
    assert_int_equal(post(&b, &back), 0);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    sent(&b);
    assert_int_equal(received(&a, 0).src_qp, b.qp->qp_num);
}

static void built_by_calls(void **state)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a.qp);
    (void)state;
    assert_non_null(ex);
    receive(&b, 0, 256);
    receive(&b, 1, 256);
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(ex);
    ibv_wr_set_ud_addr(ex, a.ah, b.qp->qp_num, QKEY);
    ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)(a.data + HALF), 20);
    ibv_wr_send_imm(ex, 9);
    ibv_wr_set_inline_data(ex, a.data + HALF, 4);
    ibv_wr_set_ud_addr(ex, a.ah, b.qp->qp_num, QKEY);
    assert_int_equal(ibv_wr_complete(ex), 0);
    sent(&a);
    sent(&a);
    assert_int_equal(received(&b, 0).byte_len, GRH + 20);
    assert_int_equal(received(&b, 1).imm_data, 9);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    ibv_wr_set_sge(ex, a.mr->lkey, (uintptr_t)(a.data + HALF), 20);
    assert_int_equal(ibv_wr_complete(ex), EINVAL); /* to nobody */
}

/* ---- what is at fault ---- */

static void the_longest_and_what_is_longer(void **state)
{
    struct ibv_port_attr port;
    struct ibv_sge sge;
    (void)state;
    assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
    uint32_t max = 128u << port.active_mtu;
    struct ibv_send_wr wr = request(&a, &b, &sge, max);
    receive(&b, 0, GRH + max);
    a.data[HALF + max - 1] = 0x3c;
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&b, 0).byte_len, GRH + max);
    assert_int_equal(b.data[GRH + max - 1], 0x3c);
    sge.length++;
    assert_int_equal(post(&a, &wr), EINVAL);
}

static void longer_than_its_receive(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    (void)state;
    receive(&b, 0, GRH + 7);
    receive(&b, 1, 256);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    struct ibv_wc wc = next(&b);
    assert_int_equal(wc.wr_id, TO_RECV);
    assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
    wc = next(&b);
    assert_int_equal(wc.wr_id, TO_RECV + 1);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(&b), IBV_QPS_ERR);
    move(&b, IBV_QPS_RESET);
    to_rts(&b);
    pass(&a, &b, 4);
}

static void a_receive_with_a_bad_key(void **state)
{
    struct ibv_sge bad_sge = {(uintptr_t)b.data, 256, 0x5a5a5a}, sge;
    struct ibv_recv_wr *bad, r = {.wr_id = TO_RECV, .sg_list = &bad_sge, .num_sge = 1};
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    (void)state;
    assert_int_equal(ibv_post_recv(b.qp, &r, &bad), 0);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(next(&b).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(state_of(&b), IBV_QPS_ERR);
}

static void a_send_with_a_bad_key(void **state)
{
    struct ibv_sge good, sge;
    struct ibv_send_wr last = request(&a, &b, &good, 8), wr = request(&a, &b, &sge, 8);
    (void)state;
    sge.lkey = 0x5a5a5a;
    wr.wr_id = 7;
    wr.next = &last;
    assert_int_equal(post(&a, &wr), 0);
    struct ibv_wc wc = next(&a);
    assert_int_equal(wc.wr_id, 7);
    assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(next(&a).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(state_of(&a), IBV_QPS_SQE);
    wr.next = NULL;
    assert_int_equal(post(&a, &last), 0);
    assert_int_equal(next(&a).status, IBV_WC_WR_FLUSH_ERR);
    pass(&b, &a, 8); /* it receives */
    move(&a, IBV_QPS_RTS);
    pass(&a, &b, 9);
}

static void what_it_has_not(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    static const enum ibv_wr_opcode none[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                              IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
                                              IBV_WR_ATOMIC_FETCH_AND_ADD};
    (void)state;
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        wr.opcode = none[i];
        assert_int_equal(post(&a, &wr), EINVAL);
    }
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud.ah = NULL;
    assert_int_equal(post(&a, &wr), EINVAL);
    struct ibv_qp_init_attr_ex init = {
        .qp_type = IBV_QPT_UD,
        .send_cq = a.cq,
        .recv_cq = a.cq,
        .cap = {1, 1, 1, 1, 0},
        .pd = pd,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    };
    assert_null(ibv_create_qp_ex(ctx, &init));
    assert_int_equal(errno, EOPNOTSUPP);
}

/* ---- states ---- */

static void states(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    uint32_t number = a.qp->qp_num;
    (void)state;
    receive(&a, 0, 256);
    move(&a, IBV_QPS_ERR);
    assert_int_equal(next(&a).status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(post(&a, &wr), 0);
    assert_int_equal(next(&a).status, IBV_WC_WR_FLUSH_ERR);
    move(&a, IBV_QPS_RESET);
    assert_int_equal(ibv_modify_qp(a.qp, &attr, INIT | IBV_QP_ACCESS_FLAGS), EINVAL);
    assert_int_equal(ibv_modify_qp(a.qp, &attr, INIT & ~IBV_QP_QKEY), EINVAL);
    to_init(&a);
    assert_int_equal(post(&a, &wr), EINVAL);
    move(&a, IBV_QPS_RTR);
    assert_int_equal(post(&a, &wr), EINVAL);
    pass(&b, &a, 1);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), EINVAL); /* no SQ_PSN */
    a.qp->state = IBV_QPS_RTR;
    move(&a, IBV_QPS_RTS);
    assert_int_equal(a.qp->qp_num, number);
    pass(&a, &b, 2);
    move(&a, IBV_QPS_SQD);
    receive(&b, 0, 256);
    assert_int_equal(post(&a, &wr), 0); /* goes out behind SQD */
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(a.cq, 1, &wc), 0);
    move(&a, IBV_QPS_RTS);
    sent(&a);
    received(&b, 0);
}

static void a_receiver_without_receives_holds_up_nobody(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 1024);
    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        assert_int_equal(post(&a, &wr), 0);
        sent(&a);
    }
    /* What it has dropped does not come, once what it may have kept is gone. */
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 1;
    for (unsigned i = 0; i < 32; i++)
        receive(&b, 0, 256 * 8);
    struct ibv_wc wc = {0};
    time_t end = time(NULL) + WAIT_S;
    while (!(wc.wc_flags & IBV_WC_WITH_IMM) && time(NULL) < end) {
        assert_int_equal(post(&a, &wr), 0);
        sent(&a);
        while (ibv_poll_cq(b.cq, 1, &wc) == 1 && !(wc.wc_flags & IBV_WC_WITH_IMM))
            receive(&b, 0, 256 * 8);
    }
    assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
}

/** A process of this host that is stopped, as far as anybody can tell: a socket that is not read.
 */
static int stopped_process(uint32_t number)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    int len = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "anywarp-ud-%06x", number);
    assert_int_equal(bind(fd, (struct sockaddr *)&name,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)),
                     0);
    return fd;
}

static void a_stopped_process_holds_up_nobody(void **state)
{
    struct ibv_sge sge, other;
    struct ibv_send_wr wr = request(&a, &b, &sge, 1024), dead = request(&a, &b, &other, 1024);
    const uint32_t number = 0x000345;
    int fd = stopped_process(number);
    (void)state;
    dead.wr.ud.remote_qpn = number;
    dead.next = &wr;
    for (unsigned i = 0; i < 1500; i++) { /* more than a queue of the kernel's has */
        receive(&b, 0, 2048);
        assert_int_equal(post(&a, &dead), 0);
        sent(&a);
        sent(&a);
        received(&b, 0);
    }
    dead.next = NULL;
    for (unsigned i = 0; i < 20; i++) { /* nothing is behind it */
        assert_int_equal(post(&a, &dead), 0);
        sent(&a);
    }
    char byte[4096];
    while (recv(fd, byte, sizeof(byte), MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(post(&a, &dead), 0); /* it goes on */
    sent(&a);
    assert_true(recv(fd, byte, sizeof(byte), 0) > 1024);
    close(fd);
}

/** A child has the memory, and not the sockets. */
static void a_child_sends_and_receives_nothing(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    int status;
    (void)state;
    receive(&b, 0, 256);
    pid_t child = fork();
    if (!child) {
        struct ibv_wc wc;
        if (post(&a, &wr) || ibv_poll_cq(a.cq, 1, &wc) != 1 || wc.status)
            _exit(1);
        if (ibv_destroy_qp(b.qp) || ibv_destroy_qp(a.qp))
            _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct ibv_wc wc;
    assert_int_equal(ibv_poll_cq(b.cq, 1, &wc), 0);
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    wr.imm_data = 17;
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&b, 0).imm_data, 17);
}

static void to_nobody(void **state)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 8);
    (void)state;
    wr.wr.ud.remote_qpn = 0x000123;
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    pass(&a, &b, 2);
}

static void many_at_once_in_order(void **state)
{
    struct ibv_sge sge[64];
    struct ibv_send_wr wr[64];
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        receive(&b, 0, 256);
        wr[i] = request(&a, &b, &sge[i], 8);
        wr[i].opcode = IBV_WR_SEND_WITH_IMM;
        wr[i].imm_data = i;
        wr[i].next = i < 59 ? &wr[i + 1] : NULL;
    }
    assert_int_equal(post(&a, wr), 0);
    for (unsigned i = 0; i < 60; i++)
        assert_int_equal(received(&b, 0).imm_data, i);
    for (unsigned i = 0; i < 60; i++)
        sent(&a);
}

static void by_a_shared_receive_queue(void **state)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct peer c;
    struct ibv_sge sge, in;
    struct ibv_recv_wr *bad, r = {.wr_id = TO_RECV, .sg_list = &in, .num_sge = 1};
    (void)state;
    make_with(&c, srq, 0);
    to_rts(&c);
    struct ibv_send_wr wr = request(&a, &c, &sge, 8);
    in = (struct ibv_sge){(uintptr_t)c.data, 256, c.mr->lkey};
    assert_int_equal(ibv_post_srq_recv(srq, &r, &bad), 0);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    assert_int_equal(received(&c, 0).src_qp, a.qp->qp_num);
    assert_int_equal(post(&a, &wr), 0); /* waits a while for this one */
    sent(&a);
    assert_int_equal(ibv_post_srq_recv(srq, &r, &bad), 0);
    assert_int_equal(post(&a, &wr), 0);
    sent(&a);
    received(&c, 0);
    drop(&c);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ---- groups ---- */

static void into_group(struct peer *p, const union ibv_gid *gid)
{
    assert_int_equal(ibv_attach_mcast(p->qp, gid, 0), 0);
}

static struct ibv_send_wr to_group(struct peer *from, struct ibv_sge *sge, struct ibv_ah *ah)
{
    struct ibv_send_wr wr = request(from, from, sge, 8);
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = GROUPS;
    return wr;
}

static void groups_of(const union ibv_gid *gid)
{
    struct peer c;
    struct ibv_sge sge;
    make_with(&c, NULL, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
    to_rts(&c);
    struct ibv_ah *ah = handle(gid);
    struct ibv_send_wr wr = to_group(&c, &sge, ah);
    into_group(&a, gid);
    into_group(&b, gid);
    into_group(&b, gid); /* once more does no harm */
    into_group(&c, gid);
    receive(&a, 0, 256);
    receive(&b, 0, 256);
    receive(&c, 0, 256);
    assert_int_equal(post(&c, &wr), 0);
    sent(&c);
    assert_int_equal(received(&a, 0).src_qp, c.qp->qp_num);
    assert_int_equal(received(&b, 0).src_qp, c.qp->qp_num);
    struct ibv_wc wc = {.slid = 0, .wc_flags = IBV_WC_GRH};
    struct ibv_ah *back = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)a.data, 1);
    assert_non_null(back);
    assert_int_equal(ibv_destroy_ah(back), 0);
    assert_int_equal(ibv_detach_mcast(b.qp, gid, 0), 0);
    assert_int_equal(ibv_detach_mcast(b.qp, gid, 0), EINVAL);
    receive(&b, 0, 256);
    struct ibv_send_wr own = to_group(&a, &sge, ah); /* comes back to the sender */
    receive(&a, 1, 256);
    assert_int_equal(post(&a, &own), 0);
    struct ibv_wc first = next(&a), second = next(&a);
    assert_int_equal(first.status | second.status, IBV_WC_SUCCESS);
    assert_int_equal(first.opcode + second.opcode, IBV_WC_SEND + IBV_WC_RECV);
    assert_int_equal(received(&c, 0).src_qp, a.qp->qp_num);
    pass(&a, &b, 6); /* which takes the receive that is there */
    assert_int_equal(ibv_destroy_ah(ah), 0);
    drop(&c);
}

static void groups(void **state)
{
    union ibv_gid ipv4 = {.raw = {[10] = 0xff, 0xff, 239, 1, 2, 3}},
                  made = {.raw = {0xff, 0x0e, [10] = 0xff, 0xff, 239, 1, 2, 4}},
                  none = {.raw = {1}};
    (void)state;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux loses the interface of a group of IPv4 */
    assert_int_equal(ibv_attach_mcast(a.qp, &none, 0), EINVAL);
    assert_int_equal(ibv_attach_mcast(NULL, &ipv4, 0), EINVAL);
    assert_int_equal(ibv_detach_mcast(NULL, &ipv4, 0), EINVAL);
    groups_of(&ipv4);
    groups_of(&made);
}

static void more_groups_than_the_system_allows(void **state)
{
    int r = 0;
    (void)state;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux loses the interface of a group of IPv4 */
    for (unsigned i = 0; i < 5000 && !r; i++) {
        union ibv_gid gid = {.raw = {[10] = 0xff, 0xff, 239, 2, (uint8_t)(i >> 8), (uint8_t)i}};
        r = ibv_attach_mcast(a.qp, &gid, 0);
    }
    assert_true(r == 0 || r == ENOMEM);
}

static void *polls(void *stop)
{
    struct ibv_wc wc;
    for (unsigned i = 0; !atomic_load((atomic_bool *)stop); i++) {
        ibv_poll_cq(a.cq, 1, &wc);
        if (i % 64 == 0)
            usleep(50);
    }
    return NULL;
}

/* Who polls the CQ tries to send what waits. */
static void destroyed_while_its_receiver_is_full(void **state)
{
    struct ibv_qp_init_attr init = {
        .send_cq = a.cq, .recv_cq = a.cq, .qp_type = IBV_QPT_UD, .cap = {64, 1, 1, 1, 0}};
    struct ibv_sge sge;
    struct ibv_send_wr wr = request(&a, &b, &sge, 2000);
    atomic_bool stop = false;
    pthread_t thread;
    (void)state;
    wr.send_flags = 0;
    assert_int_equal(pthread_create(&thread, NULL, polls, &stop), 0);
    for (unsigned round = 0; round < 300; round++) {
        struct peer c = {.qp = ibv_create_qp(pd, &init)};
        assert_non_null(c.qp);
        to_rts(&c);
        for (unsigned i = 0; i < 64; i++)
            (void)post(&c, &wr);
        assert_int_equal(ibv_destroy_qp(c.qp), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* ---- strangers ---- */

static const uint8_t good[28] = {'A', 'W', 'D', 1};

/** A datagram from a socket of UDP on port @p port_claimed, 0: its own, to @p p. */
static void from_socket(struct peer *p, int fd, uint16_t port, const uint8_t *bytes, size_t len)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)(p->qp->qp_num >> 8)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint8_t copy[8192];
    uint32_t word;
    memcpy(copy, bytes, len);
    if (len >= sizeof(good)) {
        word = htonl(p->qp->qp_num), memcpy(copy + 8, &word, 4);
        word = htonl((uint32_t)port << 8 | 7), memcpy(copy + 12, &word, 4);
        word = htonl(QKEY), memcpy(copy + 16, &word, 4);
    }
    assert_int_equal(sendto(fd, copy, len, 0, (struct sockaddr *)&to, sizeof(to)), len);
}

static void strangers(void **state)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t own_len = sizeof(own);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    uint8_t bytes[6000] = {0};
    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&own, own_len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &own_len), 0);
    uint16_t port = ntohs(own.sin_port);
    receive(&b, 0, 256);
    from_socket(&b, fd, port, bytes, 0);
    from_socket(&b, fd, port, bytes, 100); /* no datagram of ours */
    memcpy(bytes, good, sizeof(good));
    from_socket(&b, fd, port, bytes, 27);
    from_socket(&b, fd, port, bytes, sizeof(bytes));      /* too long */
    from_socket(&b, fd, (uint16_t)(port ^ 1), bytes, 36); /* of another port */
    bytes[3] = 2;
    from_socket(&b, fd, port, bytes, 36); /* another version */
    bytes[3] = 1;
    bytes[4] = 0x80;
    from_socket(&b, fd, port, bytes, 36); /* a flag that is none */
    bytes[4] = 0;
    bytes[28] = 0x42;
    from_socket(&b, fd, port, bytes, 36); /* this one is */
    struct ibv_wc wc = received(&b, 0);
    assert_int_equal(wc.byte_len, GRH + 8);
    assert_int_equal(wc.src_qp, (uint32_t)port << 8 | 7);
    assert_int_equal(b.data[GRH], 0x42);
    assert_int_equal(b.data[20], 0x45);
    assert_memory_equal(b.data + 32, &own.sin_addr, 4);
    assert_memory_equal(b.data + 36, &own.sin_addr, 4);
    close(fd);
    pass(&a, &b, 5);
}

static int run(const char *device, uint8_t index)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_arrives, setup, teardown),
        cmocka_unit_test_setup_teardown(immediate_and_inline, setup, teardown),
        cmocka_unit_test_setup_teardown(the_q_key_decides, setup, teardown),
        cmocka_unit_test_setup_teardown(to_itself_and_by_two_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(the_answer_by_the_completion, setup, teardown),
        cmocka_unit_test_setup_teardown(built_by_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(the_longest_and_what_is_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(longer_than_its_receive, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receive_with_a_bad_key, setup, teardown),
        cmocka_unit_test_setup_teardown(a_send_with_a_bad_key, setup, teardown),
        cmocka_unit_test_setup_teardown(what_it_has_not, setup, teardown),
        cmocka_unit_test_setup_teardown(states, setup, teardown),
        cmocka_unit_test_setup_teardown(a_receiver_without_receives_holds_up_nobody, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_stopped_process_holds_up_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(a_child_sends_and_receives_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(to_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(many_at_once_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(by_a_shared_receive_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(groups, setup, teardown),
        cmocka_unit_test_setup_teardown(more_groups_than_the_system_allows, setup, teardown),
        cmocka_unit_test_setup_teardown(destroyed_while_its_receiver_is_full, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers, setup, teardown),
    };
    open_device(device, index);
    int failed = cmocka_run_group_tests_name(device, tests, NULL, NULL);
    close_device();
    return failed;
}

int main(void)
{
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "w0=iwarp:lo r0=roce:lo", 1);
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return run("w0", 1) + run("r0", 0);
}
