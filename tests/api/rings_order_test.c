/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As order_test.c, where all connections are in rings: those that pollers run, those that are at
 * rest, and more of them than there are places. A child writes over one and tells over another,
 * when that is complete; who hears it polls for messages alone.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT  120 /* s */
#define FEW    3
#define MANY   20 /* connections with data, more than pollers run without being told */
#define ROUNDS 4000
#define RESTS  80
#define STRIDE 4096 /* what each connection has in the memory of both: the last is for messages */
#define WRS    16

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s, line %d: %s\n", who, __LINE__, #what);                            \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static const char *who = "test";

/* A child of a process with threads starts some, too. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

struct message {
    uint64_t value;
    uint32_t from, len;
};

struct memory {
    uint64_t addr;
    uint32_t rkey;
};

/** One of the two processes. */
static struct {
    struct rdma_cm_id *data[MANY], *word;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq *writes, *words;
    _Alignas(STRIDE) uint8_t buf[(MANY + 1) * STRIDE];
} my;

static uint8_t *part(unsigned i)
{
    return my.buf + (size_t)i * STRIDE;
}

static void make_qp(struct rdma_cm_id *id, bool word)
{
    if (!my.pd) {
        my.pd = ibv_alloc_pd(id->verbs);
        my.mr = ibv_reg_mr(my.pd, my.buf, sizeof(my.buf),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        my.writes = ibv_create_cq(id->verbs, WRS * MANY, NULL, NULL, 0);
        my.words = ibv_create_cq(id->verbs, WRS * 2, NULL, NULL, 0);
        CHECK(my.mr && my.writes && my.words);
    }
    struct ibv_cq *cq = word ? my.words : my.writes;
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK(rdma_create_qp(id, my.pd, &attr) == 0);
}

static void receive(void)
{
    struct ibv_sge sge = {(uintptr_t)part(MANY), sizeof(struct message), my.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
    CHECK(ibv_post_recv(my.word->qp, &wr, &bad) == 0);
}

static void complete(struct ibv_cq *cq, enum ibv_wc_opcode op)
{
    struct ibv_wc wc;
    int n;
    do {
        while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
            ;
        CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
    } while (wc.opcode != op);
}

static void tell(const struct message *m)
{
    struct ibv_sge sge = {(uintptr_t)m, sizeof(*m), 0};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED};
    CHECK(ibv_post_send(my.word->qp, &wr, &bad) == 0);
}

static void write_it(unsigned i, uint64_t value, uint32_t len, const struct memory *to)
{
    uint64_t *p = (uint64_t *)part(i);
    struct ibv_sge sge = {(uintptr_t)p, len, my.mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = IBV_WR_RDMA_WRITE,
              .send_flags = IBV_SEND_SIGNALED,
              .wr.rdma = {.remote_addr = to->addr + (size_t)i * STRIDE, .rkey = to->rkey}};
    p[0] = p[len / sizeof(*p) - 1] = value;
    CHECK(ibv_post_send(my.data[i]->qp, &wr, &bad) == 0);
    complete(my.writes, IBV_WC_RDMA_WRITE);
}

/* ---- the child ---- */

static struct rdma_cm_id *call(uint16_t port, bool word, struct memory *to)
{
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_conn_param param = {.retry_count = 7};
    struct rdma_cm_id *id;
    CHECK(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0);
    CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 5000) == 0);
    CHECK(rdma_resolve_route(id, 5000) == 0);
    make_qp(id, word);
    CHECK(rdma_connect(id, &param) == 0);
    memcpy(to, id->event->param.conn.private_data, sizeof(*to));
    return id;
}

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

static _Noreturn void be_child(int port_fd, unsigned n)
{
    struct memory to;
    uint16_t port;
    who = "child";
    alarm(LIMIT);
    CHECK(read(port_fd, &port, sizeof(port)) == sizeof(port));
    my.word = call(port, true, &to);
    for (unsigned i = 0; i < n; i++)
        my.data[i] = call(port, false, &to);
    for (unsigned i = 0; i < ROUNDS + RESTS; i++) {
        unsigned from = i % 2 ? i % n : i / 100 % n; /* some of them more often */
        struct message m = {.value = i + 1, .from = from, .len = i % 7 ? 64 : STRIDE};
        if (i >= ROUNDS)
            rest();
        receive();
        write_it(from, m.value, m.len, &to);
        tell(&m);
        complete(my.words, IBV_WC_RECV);
    }
    _exit(0);
}

/* ---- who hears it ---- */

static struct rdma_cm_id *answer(struct rdma_cm_id *listener, bool word)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_get_request(listener, &id), 0);
    make_qp(id, word);
    if (word) {
        my.word = id;
        receive();
    }
    struct memory here = {.addr = (uintptr_t)my.buf, .rkey = my.mr->rkey};
    struct rdma_conn_param param = {.private_data = &here, .private_data_len = sizeof(here)};
    assert_int_equal(rdma_accept(id, &param), 0);
    return id;
}

static void hear(uint64_t value)
{
    struct message m;
    complete(my.words, IBV_WC_RECV);
    memcpy(&m, part(MANY), sizeof(m));
    uint64_t *p = (uint64_t *)part(m.from);
    assert_int_equal(m.value, value);
    assert_int_equal(p[0], value);
    assert_int_equal(p[m.len / sizeof(*p) - 1], value);
    receive();
    tell(&m);
}

static void end(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    rdma_destroy_id(id);
}

static void among(unsigned n)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct rdma_cm_id *listener;
    int fds[2], status;
    memset(&my, 0, sizeof(my));
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_child(fds[0], n);
    assert_int_equal(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(listener, (struct sockaddr *)&sin), 0);
    assert_int_equal(rdma_listen(listener, MANY + 1), 0);
    uint16_t port = rdma_get_src_port(listener);
    assert_int_equal(write(fds[1], &port, sizeof(port)), sizeof(port));
    answer(listener, true);
    for (unsigned i = 0; i < n; i++)
        my.data[i] = answer(listener, false);
    for (uint64_t i = 0; i < ROUNDS + RESTS; i++)
        hear(i + 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    end(my.word);
    for (unsigned i = 0; i < n; i++)
        end(my.data[i]);
    assert_int_equal(ibv_destroy_cq(my.words), 0);
    assert_int_equal(ibv_destroy_cq(my.writes), 0);
    assert_int_equal(ibv_dereg_mr(my.mr), 0);
    assert_int_equal(ibv_dealloc_pd(my.pd), 0);
    assert_int_equal(rdma_destroy_id(listener), 0);
    close(fds[0]);
    close(fds[1]);
}

static void among_few(void **state)
{
    (void)state;
    among(FEW);
}

static void among_more_than_there_are_places(void **state)
{
    (void)state;
    among(MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(among_few),
        cmocka_unit_test(among_more_than_there_are_places),
    };
    alarm(LIMIT);
    return cmocka_run_group_tests_name("rings order", tests, NULL, NULL);
}
