/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that leave TCP for rings in shared memory: what goes through them, and how they end.
 * That they are there is seen in the process's map of memory.
 */
#include "by_number.h"
#include "child.h"
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WARM      100 /* messages make a connection leave TCP */
#define BULK      (256 * 1024)
#define LIMIT     30 /* s */
#define ROUNDS    2000
#define LINE      128 /* of iwc_ring_ctl */
#define FLAGS     256 /* the line of `awake` and, 4 further, `wants_room` */
#define DIRECTION 384

/* A child of a process with threads starts some, too. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}

/** How often the control lines of a pair of rings are mapped. @param at  [out] the last, or NULL */
static unsigned mapped(uint8_t **at)
{
    char line[512];
    unsigned n = 0;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long from, to, offset;
        if (!strstr(line, "memfd:anywarp") ||
            sscanf(line, "%lx-%lx %*s %lx", &from, &to, &offset) != 3 || offset)
            continue;
        n++;
        if (at)
            *at = (uint8_t *)from;
    }
    fclose(f);
    return n;
}

/** The control lines and the first ring once more, which stay when the library unmaps them. */
static uint8_t *own_view(size_t *len)
{
    uint8_t *at = NULL;
    mapped(&at);
    *len = (size_t)sysconf(_SC_PAGESIZE) + BULK;
    uint8_t *view = mremap(at, 0, *len, MREMAP_MAYMOVE);
    assert_true(view != MAP_FAILED);
    return view;
}

/** The test ends here where there is no such view, as in QEMU's emulation of Linux. */
static void need_views(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *one = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(one != MAP_FAILED);
    void *two = mremap(one, 0, page, MREMAP_MAYMOVE);
    munmap(one, page);
    if (two == MAP_FAILED)
        skip();
    munmap(two, page);
}

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void await_mapped(unsigned n)
{
    for (int i = 0; i < LIMIT * 100 && mapped(NULL) != n; i++)
        pause_ms(10);
    assert_int_equal(mapped(NULL), n);
}

static void send_one(struct side *from, struct side *to, uint64_t wr_id)
{
    memcpy(from->buf, &wr_id, sizeof(wr_id));
    side_recv(to, wr_id, 4096, 64);
    assert_int_equal(side_post(from, to, IBV_WR_SEND, wr_id, 0, 64, 0, IBV_SEND_SIGNALED), 0);
    struct ibv_wc sent = side_poll(from), got = side_poll(to);
    assert_int_equal(sent.status, IBV_WC_SUCCESS);
    assert_int_equal(got.status, IBV_WC_SUCCESS);
    assert_int_equal(got.wr_id, wr_id);
    assert_memory_equal(to->buf + 4096, &wr_id, sizeof(wr_id));
}

static void ping_pong(struct pair *p, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        send_one(&p->a, &p->b, 2 * i);
        send_one(&p->b, &p->a, 2 * i + 1);
    }
}

/** A pair that is in rings. */
static void open_in_rings(struct pair *p)
{
    pair_open(p, &(struct pair_conf){.depth = 16});
    ping_pong(p, WARM);
    await_mapped(2);
    ping_pong(p, WARM);
}

static void leaves_tcp_when_it_is_used(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 16});
    ping_pong(&p, 3);
    pause_ms(50);
    assert_int_equal(mapped(NULL), 0);
    ping_pong(&p, WARM);
    await_mapped(2); /* each end has its own */
    ping_pong(&p, ROUNDS);
    pair_close(&p, 1);
    await_mapped(0);
}

static void writes_leave_it_too(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.depth = 16});
    for (unsigned i = 0; i < WARM; i++) {
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, i, 0, 8192, 0, IBV_SEND_SIGNALED),
                         0);
        assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
    }
    await_mapped(2);
    pair_close(&p, 1);
}

/** Connected with a GID and a number, where the peer acknowledges what it has; and once more. */
static int with_numbers(void)
{
    struct end x, y;
    end_make(&x);
    end_make(&y);
    for (int i = 0; i < 2; i++) {
        ends_connect(&x, &y);
        for (uint64_t k = 0; k < WARM; k++) {
            end_send_once(&x, &y, k);
            end_send_once(&y, &x, k);
        }
        await_mapped(2);
        for (uint64_t k = 0; k < ROUNDS; k++)
            end_send_once(&x, &y, k);
        end_move(&x, IBV_QPS_RESET);
        end_move(&y, IBV_QPS_RESET);
        await_mapped(0);
    }
    end_drop(&x);
    end_drop(&y);
    return 0;
}

static void by_number_too(void **state)
{
    (void)state;
    assert_int_equal(ends_run(with_numbers), 0);
}

/** Larger than a ring, each kind of message, and all bytes are checked. */
static void each_kind_of_message(void **state)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
                                             IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM};
    static const uint32_t lengths[] = {0, 1, 4095, 4096, 65536, 3 * BULK / 2};
    struct pair p;
    (void)state;
    open_in_rings(&p);
    for (unsigned i = 0; i < 30; i++) {
        enum ibv_wr_opcode op = ops[i % 5];
        bool read = op == IBV_WR_RDMA_READ;
        bool receives =
            op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_RDMA_WRITE_WITH_IMM;
        uint32_t len = lengths[i / 5];
        struct side *from = read ? &p.b : &p.a, *to = read ? &p.a : &p.b;
        for (uint32_t k = 0; k < len; k++)
            from->buf[k] = (uint8_t)(k * 13 + i);
        memset(to->buf + SIDE_BYTES / 2, 0, SIDE_BYTES / 2);
        if (receives)
            side_recv(&p.b, i, SIDE_BYTES / 2, SIDE_BYTES / 2);
        size_t local = read ? SIDE_BYTES / 2 : 0, remote = read ? 0 : SIDE_BYTES / 2;
        assert_int_equal(side_post(&p.a, &p.b, op, i, local, len, remote, IBV_SEND_SIGNALED), 0);
        assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
        if (receives) {
            struct ibv_wc wc = side_poll(&p.b);
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
            if (op != IBV_WR_RDMA_WRITE_WITH_IMM)
                assert_int_equal(wc.byte_len, len);
        }
        if (op == IBV_WR_RDMA_WRITE) /* a Read behind it tells that it is there */
            assert_int_equal(side_post(&p.a, &p.b, IBV_WR_RDMA_READ, 99, 0, 1, SIDE_BYTES - 1,
                                       IBV_SEND_SIGNALED),
                             0);
        if (op == IBV_WR_RDMA_WRITE)
            assert_int_equal(side_poll(&p.a).status, IBV_WC_SUCCESS);
        for (uint32_t k = op == IBV_WR_RDMA_WRITE; k < len; k++)
            if (to->buf[SIDE_BYTES / 2 + k] != (uint8_t)(k * 13 + i))
                fail_msg("opcode %d, length %u: byte %u is another", op, len, k);
    }
    pair_close(&p, 1);
}

/** More than the ring holds waits for a receiver that does not receive, and goes on. */
static void a_full_ring_is_waited_for(void **state)
{
    struct pair p;
    (void)state;
    open_in_rings(&p);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, BULK, 0, IBV_SEND_SIGNALED), 0);
    pause_ms(300);
    for (unsigned i = 0; i < 16; i++) {
        side_recv(&p.b, i, 0, BULK);
        assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    }
    for (unsigned i = 0; i < 16; i++) {
        struct ibv_wc wc = side_poll(&p.a);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
    }
    ping_pong(&p, WARM);
    pair_close(&p, 1);
}

/** Pages of the ring behind the control lines at @p at that are there. */
static unsigned resident_pages(uint8_t *at)
{
    unsigned char in[BULK / 4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned n = 0;
    for (int ring = 0; ring < 2; ring++) { /* each is mapped twice */
        assert_int_equal(mincore(at + page + (size_t)ring * 2 * BULK, BULK, in), 0);
        for (size_t i = 0; i < BULK / page; i++)
            n += in[i] & 1;
    }
    return n;
}

static void pages_go_while_nothing_is_sent(void **state)
{
    struct pair p;
    uint8_t *at = NULL;
    (void)state;
    need_views(); /* which does not know MADV_REMOVE either */
    open_in_rings(&p);
    assert_int_equal(mapped(&at), 2);
    for (int round = 0; round < 2; round++) {
        assert_true(resident_pages(at) > 0);
        for (int i = 0; i < LIMIT * 100 && resident_pages(at); i++)
            pause_ms(10);
        assert_int_equal(resident_pages(at), 0);
        ping_pong(&p, WARM);
    }
    pair_close(&p, 1);
}

/** First of all tests: the child is the first to read the environment. */
static void a_capture_sees_what_goes_through(void **state)
{
    char path[] = "/tmp/rings-XXXXXX";
    struct stat st;
    int status, fd = mkstemp(path);
    (void)state;
    close(fd);
    unlink(path);
    pid_t pid = fork();
    if (pid == 0) {
        struct pair p;
        alarm(LIMIT);
        setenv("ANYWARP_PCAP", path, 1);
        open_in_rings(&p);
        ping_pong(&p, ROUNDS);
        pair_close(&p, 1);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 2 * ROUNDS * 64);
    unlink(path);
}

static struct ibv_wc sleep_for(struct side *s)
{
    struct ibv_wc wc;
    for (;;) {
        struct ibv_cq *cq;
        void *context;
        int n = ibv_poll_cq(s->cq, 1, &wc);
        if (n == 0) {
            ibv_req_notify_cq(s->cq, 0);
            n = ibv_poll_cq(s->cq, 1, &wc);
        }
        if (n)
            return wc;
        ibv_get_cq_event(s->channel, &cq, &context);
        ibv_ack_cq_events(cq, 1);
    }
}

static void *answer_asleep(void *arg)
{
    struct side *b = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        while (sleep_for(b).opcode != IBV_WC_RECV)
            ;
        if (i < ROUNDS - 1)
            side_recv(b, 0, 4096, 64);
        if (i % 64 == 0)
            pause_ms(2); /* the other side goes to sleep, too */
        side_post(b, b, IBV_WR_SEND, 0, 0, 64, 0, IBV_SEND_SIGNALED);
    }
    return NULL;
}

static void who_sleeps_is_woken(void **state)
{
    struct pair p;
    pthread_t thread;
    (void)state;
    open_in_rings(&p);
    side_recv(&p.b, 0, 4096, 64);
    assert_int_equal(pthread_create(&thread, NULL, answer_asleep, &p.b), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        side_recv(&p.a, 0, 4096, 64);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 64, 0, IBV_SEND_SIGNALED), 0);
        while (sleep_for(&p.a).opcode != IBV_WC_RECV)
            ;
    }
    pthread_join(thread, NULL);
    pair_close(&p, 1);
}

/** A poller that stops without a word: what comes afterwards is taken in all the same. */
static void a_poller_that_stops(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    void *context;
    (void)state;
    open_in_rings(&p);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
        side_recv(&p.b, i, 4096, 64);
        for (int k = 0; k < 200; k++) { /* of the other CQ */
            struct ibv_wc wc;
            assert_int_equal(ibv_poll_cq(p.a.cq, 1, &wc), 0);
        }
        pause_ms(i % 3 * 3);
        assert_int_equal(side_post(&p.a, &p.b, IBV_WR_SEND, i, 0, 64, 0, IBV_SEND_SIGNALED), 0);
        assert_int_equal(ibv_get_cq_event(p.b.channel, &cq, &context), 0);
        ibv_ack_cq_events(cq, 1);
        assert_int_equal(side_poll(&p.b).wr_id, i);
        assert_int_equal(side_poll(&p.a).wr_id, i);
    }
    pair_close(&p, 1);
}

/* ---- scribbles ---- */

static bool ended(struct pair *p)
{
    struct ibv_qp_attr a, b;
    struct ibv_qp_init_attr init;
    assert_int_equal(ibv_query_qp(p->a.id->qp, &a, IBV_QP_STATE, &init), 0);
    assert_int_equal(ibv_query_qp(p->b.id->qp, &b, IBV_QP_STATE, &init), 0);
    return a.qp_state == IBV_QPS_ERR && b.qp_state == IBV_QPS_ERR;
}

static void drain(struct pair *p)
{
    struct ibv_wc wc[16];
    while (ibv_poll_cq(p->a.cq, 16, wc) > 0 || ibv_poll_cq(p->b.cq, 16, wc) > 0)
        ;
}

/**
 * Traffic over it until both ends have failed. The lie stands when a producer looks for room, and
 * when a consumer looks for bytes: each overwrites the counter of its own.
 */
static void until_ended(struct pair *p, volatile uint64_t *at, uint64_t lie)
{
    time_t end = time(NULL) + LIMIT;
    for (uint64_t i = 0; !ended(p); i++) {
        assert_true(time(NULL) < end);
        *at = lie;
        side_post(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 0, 4000, SIDE_BYTES / 2, IBV_SEND_SIGNALED);
        side_post(&p->b, &p->a, IBV_WR_RDMA_WRITE, i, 0, 4000, SIDE_BYTES / 2, IBV_SEND_SIGNALED);
        *at = lie;
        drain(p);
    }
}

static void close_ended(struct pair *p, uint8_t *view, size_t len)
{
    side_event(&p->a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    pair_close(p, 0);
    munmap(view, len);
    await_mapped(0);
}

static void lies_end_the_connection(void **state)
{
    static const uint64_t lies[] = {1ull << 40, UINT64_MAX, 1ull << 63, 12345678901ull};
    (void)state;
    need_views();
    for (unsigned i = 0; i < 16; i++) {
        struct pair p;
        size_t len;
        open_in_rings(&p);
        uint8_t *at = own_view(&len);
        /* Two directions; the producer's counter and the consumer's. */
        size_t counter = i % 4 / 2 * DIRECTION + i % 2 * LINE;
        until_ended(&p, (volatile uint64_t *)(at + counter), lies[i / 4]);
        close_ended(&p, at, len);
    }
}

static void garbage_in_the_data_ends_it(void **state)
{
    (void)state;
    need_views();
    for (unsigned seed = 0; seed < 8; seed++) {
        struct pair p;
        size_t len;
        open_in_rings(&p);
        uint8_t *at = own_view(&len);
        time_t end = time(NULL) + LIMIT;
        for (uint64_t i = 0; !ended(&p); i++) {
            assert_true(time(NULL) < end);
            side_post(&p.a, &p.b, IBV_WR_RDMA_WRITE, i, 0, 4000, 0, IBV_SEND_SIGNALED);
            for (unsigned k = 0; k < 4096; k++)
                at[sysconf(_SC_PAGESIZE) + (unsigned)rand_r(&seed) % BULK] = (uint8_t)rand_r(&seed);
            drain(&p);
        }
        close_ended(&p, at, len);
    }
}

/** Flags that are not true cost time, and at most the connection. */
static void flags_that_are_scribbled_over(void **state)
{
    struct pair p;
    size_t len;
    (void)state;
    need_views();
    open_in_rings(&p);
    uint8_t *at = own_view(&len);
    volatile uint32_t *flags[] = {(void *)(at + FLAGS), (void *)(at + DIRECTION + FLAGS)};
    for (unsigned i = 0; i < ROUNDS; i++) {
        flags[0][1] = flags[1][1] = i; /* both directions want room */
        flags[0][0] = flags[1][0] = 0; /* and are armed */
        ping_pong(&p, 1);
    }
    pair_close(&p, 1);
    munmap(at, len);
}

/* ---- two processes ---- */

#define SENDS 200

struct child {
    pid_t pid;
    int to; /* a byte: go on */
};

/** The active side, which sends; the first bytes of each message are its number. */
static void child_main(int ports, int commands,
                       void (*then)(struct rdma_cm_id *, struct ibv_mr *, struct ibv_cq *,
                                    uint8_t *, int))
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    CHECK(ch);
    struct rdma_cm_id *id = child_resolve(ch, ports);
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 512, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 256, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    CHECK(pd && cq && rdma_create_qp(id, pd, &attr) == 0);
    static uint8_t buf[4096];
    struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
    struct rdma_conn_param param = {0};
    CHECK(mr && rdma_connect(id, &param) == 0);
    child_event(ch, RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    then(id, mr, cq, buf, commands);
    _exit(0);
}

/** Sends, and ends as soon as all is complete. */
static void sends_and_exits(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq,
                            uint8_t *buf, int commands)
{
    (void)commands;
    for (uint32_t i = 0; i < SENDS; i++)
        CHECK(child_send(id, mr, cq, buf, i) == 0);
    _exit(0);
}

static void sends_and_is_killed(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq,
                                uint8_t *buf, int commands)
{
    (void)commands;
    for (uint32_t i = 0; i < SENDS; i++)
        CHECK(child_send(id, mr, cq, buf, i) == 0);
    raise(SIGKILL);
}

/** Sends half, stops, is sent on, and sends the rest. */
static void sends_and_stops(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq,
                            uint8_t *buf, int commands)
{
    for (uint32_t i = 0; i < SENDS; i++) {
        while (i == SENDS / 2 && !mapped(NULL)) /* enough has gone over TCP */
            pause_ms(10);
        if (i == SENDS / 2) {
            pause_ms(200); /* for the other end to have them, too */
            raise(SIGSTOP);
        }
        CHECK(child_send(id, mr, cq, buf, i) == 0);
    }
    child_wait_command(commands);
}

/** Sends all, stops, and is told of the end when it goes on. */
static void sends_stops_and_ends(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq,
                                 uint8_t *buf, int commands)
{
    (void)commands;
    for (uint32_t i = 0; i < SENDS; i++)
        CHECK(child_send(id, mr, cq, buf, i) == 0);
    while (!mapped(NULL))
        pause_ms(10);
    pause_ms(200);
    raise(SIGSTOP);
    child_event(id->channel, RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    _exit(0);
}

/** A child of the child, which has no part in the connection, comes and goes. */
static void sends_and_forks(struct rdma_cm_id *id, struct ibv_mr *mr, struct ibv_cq *cq,
                            uint8_t *buf, int commands)
{
    for (uint32_t i = 0; i < SENDS; i++) {
        CHECK(child_send(id, mr, cq, buf, i) == 0);
        if (i % 50)
            continue;
        int status;
        pid_t pid = fork();
        if (pid == 0) {
            struct ibv_wc wc;
            ibv_poll_cq(cq, 1, &wc);
            _exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    child_wait_command(commands);
}

typedef void child_then(struct rdma_cm_id *, struct ibv_mr *, struct ibv_cq *, uint8_t *, int);

/** The passive side of a child, in this process. */
struct passive {
    struct rdma_event_channel *events;
    struct rdma_cm_id *listener;
    struct side b;
    struct child child;
};

static void passive_open(struct passive *p, child_then *then)
{
    int ports[2], commands[2];
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct pair_conf conf = {.send_wr = 8, .recv_wr = 256, .sge = 1};
    struct rdma_cm_event *ev;
    memset(p, 0, sizeof(*p));
    assert_int_equal(pipe(ports) | pipe(commands), 0);
    p->child.pid = fork();
    if (p->child.pid == 0) {
        alarm(LIMIT);
        child_main(ports[0], commands[0], then);
    }
    p->child.to = commands[1];
    close(ports[0]);
    close(commands[0]);
    p->events = rdma_create_event_channel();
    assert_non_null(p->events);
    assert_int_equal(rdma_create_id(p->events, &p->listener, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_bind_addr(p->listener, (struct sockaddr *)&any), 0);
    assert_int_equal(rdma_listen(p->listener, 4), 0);
    uint16_t port = rdma_get_src_port(p->listener);
    assert_int_equal(write(ports[1], &port, sizeof(port)), sizeof(port));
    close(ports[1]);
    assert_int_equal(rdma_get_cm_event(p->events, &ev), 0);
    assert_int_equal(ev->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    p->b.id = ev->id;
    p->b.events = p->events;
    rdma_ack_cm_event(ev);
    side_open(&p->b, &conf);
    for (uint32_t i = 0; i < SENDS; i++)
        side_recv(&p->b, i, (size_t)i * 1024, 1024);
    assert_int_equal(rdma_accept(p->b.id, &(struct rdma_conn_param){0}), 0);
    side_event(&p->b, RDMA_CM_EVENT_ESTABLISHED);
}

/** Messages [from, to) have come, whole and in order. */
static void expect_messages(struct passive *p, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        uint32_t number;
        struct ibv_wc wc = side_poll(&p->b);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.byte_len, 1024);
        memcpy(&number, p->b.buf + (size_t)i * 1024, sizeof(number));
        assert_int_equal(number, i);
    }
}

static void passive_drop(struct passive *p)
{
    p->b.events = NULL;
    side_close(&p->b);
    rdma_destroy_id(p->listener);
    rdma_destroy_event_channel(p->events);
    await_mapped(0);
}

static void passive_close(struct passive *p, int status)
{
    int got;
    assert_true(write(p->child.to, "x", 1) == 1 || errno == EPIPE); /* it may have gone */
    assert_int_equal(waitpid(p->child.pid, &got, 0), p->child.pid);
    if (got != status)
        fail_msg("child: status 0x%x, wanted 0x%x", got, status);
    close(p->child.to);
    side_event(&p->b, RDMA_CM_EVENT_DISCONNECTED);
    rdma_disconnect(p->b.id);
    passive_drop(p);
}

static void what_was_complete_outlives_exit(void **state)
{
    struct passive p;
    (void)state;
    passive_open(&p, sends_and_exits);
    pause_ms(100); /* all of it waits in the ring, or was taken in by the engine */
    expect_messages(&p, 0, SENDS);
    passive_close(&p, 0);
}

static void what_was_complete_outlives_a_kill(void **state)
{
    struct passive p;
    (void)state;
    passive_open(&p, sends_and_is_killed);
    expect_messages(&p, 0, SENDS);
    passive_close(&p, SIGKILL);
}

static void a_stopped_peer_goes_on(void **state)
{
    struct passive p;
    int status;
    (void)state;
    passive_open(&p, sends_and_stops);
    expect_messages(&p, 0, SENDS / 2);
    await_mapped(1);
    assert_int_equal(waitpid(p.child.pid, &status, WUNTRACED), p.child.pid);
    assert_true(WIFSTOPPED(status));
    side_poll_none(&p.b, 300);
    kill(p.child.pid, SIGCONT);
    expect_messages(&p, SENDS / 2, SENDS);
    passive_close(&p, 0);
}

/** What is left of a second is not waited for: behind it the end comes by TCP alone. */
static void a_terminate_that_finds_no_room(void **state)
{
    struct passive p;
    unsigned sent = 0;
    int status;
    (void)state;
    passive_open(&p, sends_stops_and_ends);
    expect_messages(&p, 0, SENDS);
    await_mapped(1);
    assert_int_equal(waitpid(p.child.pid, &status, WUNTRACED), p.child.pid);
    assert_true(WIFSTOPPED(status));
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(side_post(&p.b, &p.b, IBV_WR_SEND, i, 0, BULK, 0, IBV_SEND_SIGNALED), 0);
    pause_ms(100);
    time_t from = time(NULL);
    assert_int_equal(qp_to_state(p.b.id->qp, IBV_QPS_ERR), 0);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    for (unsigned i = 0; i < 8; i++) {
        struct ibv_wc wc = side_poll(&p.b);
        assert_true(wc.status == IBV_WC_SUCCESS ? sent == i : wc.status == IBV_WC_WR_FLUSH_ERR);
        sent += wc.status == IBV_WC_SUCCESS;
    }
    assert_true(sent < 8); /* it was full */
    assert_int_equal(rdma_disconnect(p.b.id), 0);
    await_mapped(0);
    assert_true(time(NULL) - from < LIMIT / 3);
    kill(p.child.pid, SIGCONT);
    assert_int_equal(waitpid(p.child.pid, &status, 0), p.child.pid);
    assert_int_equal(status, 0);
    close(p.child.to);
    passive_drop(&p);
}

static void children_of_the_peer_are_no_matter(void **state)
{
    struct passive p;
    (void)state;
    passive_open(&p, sends_and_forks);
    expect_messages(&p, 0, SENDS);
    passive_close(&p, 0);
}

static void a_child_of_this_process_is_no_matter(void **state)
{
    struct pair p;
    int status;
    (void)state;
    need_views(); /* nor MADV_DONTFORK */
    open_in_rings(&p);
    pid_t pid = fork();
    if (pid == 0) {
        struct ibv_wc wc;
        alarm(LIMIT);
        for (int i = 0; i < 1000; i++)
            ibv_poll_cq(p.a.cq, 1, &wc);
        _exit(mapped(NULL) != 0);
    }
    ping_pong(&p, WARM);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    ping_pong(&p, WARM);
    pair_close(&p, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_capture_sees_what_goes_through),
        cmocka_unit_test(leaves_tcp_when_it_is_used),
        cmocka_unit_test(writes_leave_it_too),
        cmocka_unit_test(by_number_too),
        cmocka_unit_test(each_kind_of_message),
        cmocka_unit_test(a_full_ring_is_waited_for),
        cmocka_unit_test(pages_go_while_nothing_is_sent),
        cmocka_unit_test(who_sleeps_is_woken),
        cmocka_unit_test(a_poller_that_stops),
        cmocka_unit_test(lies_end_the_connection),
        cmocka_unit_test(garbage_in_the_data_ends_it),
        cmocka_unit_test(flags_that_are_scribbled_over),
        cmocka_unit_test(what_was_complete_outlives_exit),
        cmocka_unit_test(what_was_complete_outlives_a_kill),
        cmocka_unit_test(a_stopped_peer_goes_on),
        cmocka_unit_test(a_terminate_that_finds_no_room),
        cmocka_unit_test(children_of_the_peer_are_no_matter),
        cmocka_unit_test(a_child_of_this_process_is_no_matter),
    };
    setenv("ANYWARP_SHM", "on", 1);
    signal(SIGPIPE, SIG_IGN);
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
