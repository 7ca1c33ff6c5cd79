/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process posts over one connection, then over another: so it comes at a peer that polls, which
 * is another process, over TCP and through rings, and where there are more that want to run than
 * processors. Neither waits for a completion in between, nor polls the CQ of the first.
 */
#include "child.h"

#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS 1000
#define PAUSE  40 /* rounds between two in which pollers lose their lease */
#define LIMIT  60 /* s */
#define BUSY   3
#define BYTES  4096
#define DEPTH  8

/** "data" is written over, "word" brings messages. */
struct end {
    struct rdma_cm_id *data, *word;
    struct ibv_mr *mr;
    uint32_t *buf; /* BYTES */
};

struct place {
    uint64_t addr;
    uint32_t rkey;
};

static struct rdma_cm_id *endpoint(const char *port, int flags)
{
    struct rdma_addrinfo *res, hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP};
    struct ibv_qp_init_attr attr = {
        .cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct rdma_cm_id *id;
    CHECK(!rdma_getaddrinfo("127.0.0.1", port, &hints, &res));
    CHECK(!rdma_create_ep(&id, res, NULL, &attr));
    rdma_freeaddrinfo(res);
    return id;
}

static void register_for(struct end *e)
{
    e->buf = calloc(1, BYTES);
    CHECK(e->buf);
    e->mr = rdma_reg_write(e->word, e->buf, BYTES);
    CHECK(e->mr);
}

static void receive_next(struct end *e)
{
    CHECK(!rdma_post_recv(e->word, NULL, e->buf + BYTES / 8, 4, e->mr));
}

static void tell(struct end *e)
{
    CHECK(!rdma_post_send(e->word, NULL, e->buf, 4, e->mr, IBV_SEND_SIGNALED));
}

static void await(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;
    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void destroy(struct end *e)
{
    rdma_disconnect(e->word);
    rdma_disconnect(e->data);
    rdma_dereg_mr(e->mr);
    rdma_destroy_ep(e->word);
    rdma_destroy_ep(e->data);
    free(e->buf);
}

static void pause_at(unsigned round)
{
    if (round % PAUSE == 0)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

/* As programs look that watch their memory: the next Write comes when this one is answered. */
__attribute__((no_sanitize("thread"))) static uint32_t value(const struct end *e)
{
    return __atomic_load_n(e->buf, __ATOMIC_ACQUIRE);
}

static void take_it(int port_to)
{
    struct rdma_cm_id *listener = endpoint("0", RAI_PASSIVE);
    struct end e;
    CHECK(!rdma_listen(listener, 2));
    uint16_t port = rdma_get_src_port(listener);
    CHECK(write(port_to, &port, sizeof(port)) == sizeof(port));
    CHECK(!rdma_get_request(listener, &e.data) && !rdma_accept(e.data, NULL));
    CHECK(!rdma_get_request(listener, &e.word));
    register_for(&e);
    struct place place = {.addr = (uintptr_t)e.buf, .rkey = e.mr->rkey};
    struct rdma_conn_param param = {.private_data = &place, .private_data_len = sizeof(place)};
    receive_next(&e);
    CHECK(!rdma_accept(e.word, &param));
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        await(e.word->recv_cq);
        if (value(&e) != i) {
            fprintf(stderr, "message %u came before what was written\n", i);
            _exit(1);
        }
        receive_next(&e);
        pause_at(i);
        tell(&e);
        await(e.word->send_cq);
    }
    await(e.word->recv_cq);
    destroy(&e);
    rdma_destroy_ep(listener);
}

static void write_and_tell(int port_from)
{
    struct place place;
    uint16_t port;
    char text[8];
    CHECK(read(port_from, &port, sizeof(port)) == sizeof(port));
    snprintf(text, sizeof(text), "%u", ntohs(port));
    struct end e = {.data = endpoint(text, 0), .word = endpoint(text, 0)};
    CHECK(!rdma_connect(e.data, NULL));
    register_for(&e);
    receive_next(&e);
    CHECK(!rdma_connect(e.word, NULL));
    memcpy(&place, e.word->event->param.conn.private_data, sizeof(place));
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        *e.buf = i;
        CHECK(!rdma_post_write(e.data, NULL, e.buf, 4, e.mr, 0, place.addr + 64, place.rkey));
        CHECK(!rdma_post_write(e.data, NULL, e.buf, 4, e.mr, IBV_SEND_SIGNALED, place.addr,
                               place.rkey));
        tell(&e);
        await(e.word->recv_cq);
        receive_next(&e);
        await(e.word->send_cq);
        await(e.data->send_cq);
    }
    tell(&e);
    await(e.word->send_cq);
    destroy(&e);
}

static void be_busy(int fd)
{
    (void)fd;
    for (;;)
        ;
}

static pid_t start(void (*run)(int), int fd)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    alarm(LIMIT);
    run(fd);
    _exit(0);
}

static void expect_success(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("status %#x", (unsigned)status);
}

static void comes_in_order(const char *rings, unsigned busy)
{
    pid_t others[BUSY];
    int port[2];
    assert_int_equal(pipe(port), 0);
    setenv("ANYWARP_SHM", rings, 1);
    for (unsigned i = 0; i < busy; i++)
        others[i] = start(be_busy, 0);
    pid_t taker = start(take_it, port[1]), writer = start(write_and_tell, port[0]);
    expect_success(taker);
    expect_success(writer);
    for (unsigned i = 0; i < busy; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    close(port[0]);
    close(port[1]);
}

static void over_tcp(void **state)
{
    (void)state;
    comes_in_order("off", 0);
    comes_in_order("off", BUSY);
}

static void in_rings(void **state)
{
    (void)state;
    comes_in_order("on", 0);
    comes_in_order("on", BUSY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(in_rings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
