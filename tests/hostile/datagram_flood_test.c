/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of strangers without end, by UDP and on this host, at a QP of datagrams: memory stays
 * bounded, and the process goes on with its work, other QPs of datagrams among it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define QKEY      7
#define GRH       40
#define ROUNDS    2000
#define WAIT_S    60
#define GROWTH_KB (64 * 1024) /* sanitizers keep what was freed */

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static uint8_t bytes[4][512];
static atomic_bool stop;
static atomic_ulong sent;

static struct ibv_qp *make(void)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    assert_non_null(qp);
    assert_int_equal(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY), 0);
    attr.qp_state = IBV_QPS_RTR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    return qp;
}

static void receive(struct ibv_qp *qp, unsigned i)
{
    struct ibv_sge sge = {(uintptr_t)bytes[i], sizeof(bytes[i]), mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void send_to(struct ibv_qp *from, const struct ibv_qp *to, uint32_t imm)
{
    struct ibv_sge sge = {(uintptr_t)bytes[3], 64, mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = 9,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND_WITH_IMM,
                                   .imm_data = imm,
                                   .wr.ud = {ah, to->qp_num, QKEY}};
    assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
}

static struct ibv_wc next(void)
{
    time_t end = time(NULL) + WAIT_S;
    struct ibv_wc wc;
    while (!ibv_poll_cq(cq, 1, &wc))
        if (time(NULL) > end)
            fail_msg("no completion came");
    return wc;
}

/* ---- the strangers ---- */

struct target {
    struct sockaddr_storage addr;
    socklen_t len;
    int family;
};

static void *flood(void *arg)
{
    const struct target *t = arg;
    uint8_t junk[2048];
    unsigned seed = 1;
    int fd = socket(t->family, SOCK_DGRAM, 0);
    for (unsigned i = 0; i < sizeof(junk); i++)
        junk[i] = (uint8_t)rand_r(&seed);
    while (!atomic_load(&stop)) {
        size_t len = (size_t)rand_r(&seed) % sizeof(junk);
        if (rand_r(&seed) % 2)
            memcpy(junk, "AWD\1\0\0\0\0", 8);
        junk[rand_r(&seed) % 32] ^= 1;
        if (sendto(fd, junk, len, MSG_DONTWAIT, (const struct sockaddr *)&t->addr, t->len) >= 0)
            atomic_fetch_add(&sent, 1);
    }
    close(fd);
    return NULL;
}

static struct target by_udp(const struct ibv_qp *qp)
{
    struct target t = {.family = AF_INET, .len = sizeof(struct sockaddr_in)};
    struct sockaddr_in *a = (struct sockaddr_in *)&t.addr;
    a->sin_family = AF_INET;
    a->sin_port = htons((uint16_t)(qp->qp_num >> 8));
    a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return t;
}

static struct target on_this_host(const struct ibv_qp *qp)
{
    struct target t = {.family = AF_UNIX};
    struct sockaddr_un *a = (struct sockaddr_un *)&t.addr;
    a->sun_family = AF_UNIX;
    int len = snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "anywarp-ud-%06x", qp->qp_num);
    t.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return t;
}

/* ---- */

static long peak_kb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/** The victim of the flood receives nothing of it; two others go on. */
static void goes_on(bool udp)
{
    struct ibv_qp *victim = make(), *a = make(), *b = make();
    struct target t = udp ? by_udp(victim) : on_this_host(victim);
    pthread_t thread;
    receive(victim, 0);
    atomic_store(&stop, false);
    atomic_store(&sent, 0);
    assert_int_equal(pthread_create(&thread, NULL, flood, &t), 0);
    long before = peak_kb();
    for (uint32_t i = 0; i < ROUNDS || atomic_load(&sent) < ROUNDS; i++) {
        receive(b, 1);
        send_to(a, b, i);
        struct ibv_wc wc = next();
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.qp_num, b->qp_num);
        assert_int_equal(wc.imm_data, i);
    }
    assert_true(peak_kb() - before < GROWTH_KB);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    send_to(a, victim, 3); /* it is well */
    struct ibv_wc wc = next();
    assert_int_equal(wc.qp_num, victim->qp_num);
    assert_int_equal(wc.imm_data, 3);
    assert_int_equal(ibv_destroy_qp(victim), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
}

static void by_the_network(void **state)
{
    (void)state;
    goes_on(true);
}

static void by_a_process_of_this_host(void **state)
{
    (void)state;
    goes_on(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_network),
        cmocka_unit_test(by_a_process_of_this_host),
    };
    unsetenv("IBV_CONFIG_DIR");
    setenv("ANYWARP_DEVICES", "r0=roce:lo", 1);
    struct ibv_device **list = ibv_get_device_list(NULL);
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(ctx);
    cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
    struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
    ibv_query_gid(ctx, 1, 0, &attr.grh.dgid);
    ah = ibv_create_ah(pd, &attr);
    if (!cq || !mr || !ah)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ibv_destroy_ah(ah);
    ibv_dereg_mr(mr);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
    ibv_close_device(ctx);
    return failed;
}
