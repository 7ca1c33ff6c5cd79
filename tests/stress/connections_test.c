/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thousands of connections between two processes, one after another and all at once: nothing of
 * them is left over in either, and an idle one costs little.
 */
#include "entries.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED  1
#define SEQUENTIAL 1000
#define AT_ONCE    200
#else
#define SANITIZED  0
#define SEQUENTIAL 10000
#define AT_ONCE    1000
#endif
#define ROUNDS   3
#define WRS      16
#define BYTES    64
#define IDLE_MAX 12800 /* resident bytes a connection may cost each process */
#define SLACK    (1 << 20)
#define LIMIT_S  170

/* ---- what a process holds ---- */

struct holdings {
    int fds, threads;
    size_t heap, resident; /* bytes */
};

static struct holdings holdings(void)
{
    unsigned long pages = 0, resident = 0;
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu %lu", &pages, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (struct holdings){
        .fds = descriptors() - 3, /* the two dots, and the look */
        .threads = entries("/proc/self/task") - 2,
        .heap = mallinfo2().uordblks,
        .resident = resident * (size_t)sysconf(_SC_PAGESIZE),
    };
}

/* ---- one end of the process ---- */

struct end {
    struct rdma_event_channel *events;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    unsigned turn; /* the receive that comes next goes there: no two at once at one place */
    uint8_t bytes[(AT_ONCE + 1) * BYTES];
};

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            perror(#x);                                                                            \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static struct rdma_cm_id *next(struct end *e, enum rdma_cm_event_type *type)
{
    struct rdma_cm_event *ev;
    CHECK(!rdma_get_cm_event(e->events, &ev));
    struct rdma_cm_id *id = ev->id;
    *type = ev->event;
    CHECK(!rdma_ack_cm_event(ev));
    return id;
}

static void objects(struct end *e, struct ibv_context *ctx)
{
    if (e->pd)
        return;
    CHECK((e->pd = ibv_alloc_pd(ctx)));
    CHECK((e->cq = ibv_create_cq(ctx, AT_ONCE * 2 * WRS, NULL, NULL, 0)));
    CHECK((e->mr = ibv_reg_mr(e->pd, e->bytes, sizeof(e->bytes), IBV_ACCESS_LOCAL_WRITE)));
}

/** A QP with one receive posted. */
static void add_qp(struct end *e, struct rdma_cm_id *id)
{
    objects(e, id->verbs);
    struct ibv_qp_init_attr attr = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .cap = {.max_send_wr = WRS, .max_recv_wr = WRS, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
    };
    CHECK(!rdma_create_qp(id, e->pd, &attr));
    uint8_t *to = e->bytes + (size_t)(e->turn++ % AT_ONCE) * BYTES;
    struct ibv_sge sge = {(uintptr_t)to, BYTES, e->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(!ibv_post_recv(id->qp, &wr, &bad));
}

static void send_one(struct end *e, struct rdma_cm_id *id)
{
    struct ibv_sge sge = {(uintptr_t)e->bytes + AT_ONCE * BYTES, BYTES, e->mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    CHECK(!ibv_post_send(id->qp, &wr, &bad));
}

static void wait_completions(struct end *e, int n)
{
    struct ibv_wc wc[32];
    while (n > 0) {
        int got = ibv_poll_cq(e->cq, 32, wc);
        CHECK(got >= 0);
        for (int i = 0; i < got; i++)
            CHECK(wc[i].status == IBV_WC_SUCCESS);
        n -= got;
    }
}

static void drop(struct rdma_cm_id *id)
{
    rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

static void empty(struct end *e)
{
    struct ibv_wc wc[32];
    while (ibv_poll_cq(e->cq, 32, wc) > 0)
        ;
}

/* ---- the passive process ---- */

static void report(int out)
{
    struct holdings h = holdings();
    CHECK(write(out, &h, sizeof(h)) == sizeof(h));
}

static struct rdma_cm_id *listen_any(struct end *e, uint16_t *port)
{
    struct rdma_cm_id *id;
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    CHECK((e->events = rdma_create_event_channel()));
    CHECK(!rdma_create_id(e->events, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(id, (struct sockaddr *)&sin));
    CHECK(!rdma_listen(id, 0));
    *port = rdma_get_src_port(id);
    return id;
}

/** @p n connections come and go, which is told; with all of them up a message goes each way. */
static void serve(struct end *e, int n, int out)
{
    enum rdma_cm_event_type type;
    struct rdma_cm_id **up = calloc((size_t)n, sizeof(struct rdma_cm_id *));
    int ups = 0;
    CHECK(up);
    for (int gone = 0; gone < n;) {
        struct rdma_cm_id *id = next(e, &type);
        switch (type) {
        case RDMA_CM_EVENT_CONNECT_REQUEST: {
            struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
            add_qp(e, id);
            CHECK(!rdma_accept(id, &param));
            break;
        }
        case RDMA_CM_EVENT_ESTABLISHED:
            if (ups == n) {
                fprintf(stderr, "one connection too many: %d of %d have ended\n", gone, n);
                abort();
            }
            up[ups++] = id;
            if (ups < n || n == 1)
                break;
            for (int i = 0; i < n; i++)
                send_one(e, up[i]);
            wait_completions(e, 2 * n);
            report(out);
            break;
        case RDMA_CM_EVENT_DISCONNECTED:
            drop(id);
            gone++;
            break;
        default:
            fprintf(stderr, "unexpected %s\n", rdma_event_str(type));
            abort();
        }
    }
    empty(e);
    free(up);
    CHECK(write(out, &n, sizeof(n)) == sizeof(n));
}

static void passive(int in, int out)
{
    static struct end e;
    uint16_t port;
    int n;
    alarm(LIMIT_S);
    struct rdma_cm_id *listener = listen_any(&e, &port);
    CHECK(write(out, &port, sizeof(port)) == sizeof(port));
    while (read(in, &n, sizeof(n)) == sizeof(n)) {
        if (n)
            serve(&e, n, out);
        else
            report(out);
    }
    CHECK(!rdma_destroy_id(listener));
    rdma_destroy_event_channel(e.events);
    exit(0);
}

/* ---- the active one ---- */

static struct {
    struct end end;
    pid_t peer;
    int in, out;
    uint16_t port;
    int sequential; /* connections of a round */
} active;

/** A loopback of our own, as each connection keeps a port for a minute. @return 0 or -1 */
static int own_network(void)
{
    if (unshare(CLONE_NEWNET))
        return -1;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int r = ioctl(fd, SIOCSIFFLAGS, &lo);
    close(fd);
    return r;
}

static int start(void **state)
{
    int to[2], from[2];
    (void)state;
    active.sequential = own_network() ? SEQUENTIAL / 10 : SEQUENTIAL;
    if (pipe(to) || pipe(from))
        return -1;
    active.peer = fork();
    if (active.peer < 0)
        return -1;
    if (active.peer == 0) {
        close(to[1]);
        close(from[0]);
        passive(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    active.out = to[1];
    active.in = from[0];
    active.end.events = rdma_create_event_channel();
    alarm(LIMIT_S);
    return read(active.in, &active.port, sizeof(active.port)) == sizeof(active.port) &&
                   active.end.events
               ? 0
               : -1;
}

static int end_all(void **state)
{
    int status = 0;
    (void)state;
    close(active.out);
    waitpid(active.peer, &status, 0);
    return status;
}

static void ask(int n)
{
    CHECK(write(active.out, &n, sizeof(n)) == sizeof(n));
}

/** Until the peer has served @p n: it may hear of a connection's end later than of the next one. */
static void wait_served(int n)
{
    int served;
    CHECK(read(active.in, &served, sizeof(served)) == sizeof(served));
    assert_int_equal(served, n);
}

static struct holdings peer_holdings(void)
{
    struct holdings h;
    CHECK(read(active.in, &h, sizeof(h)) == sizeof(h));
    return h;
}

static void expect(enum rdma_cm_event_type wanted)
{
    enum rdma_cm_event_type type;
    next(&active.end, &type);
    if (type != wanted)
        fail_msg("got %s, wanted %s", rdma_event_str(type), rdma_event_str(wanted));
}

/** An id that only has to connect. */
static struct rdma_cm_id *prepare(void)
{
    struct rdma_cm_id *id;
    struct sockaddr_in sin = {
        .sin_family = AF_INET, .sin_port = active.port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    assert_int_equal(rdma_create_id(active.end.events, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 5000), 0);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 5000), 0);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    add_qp(&active.end, id);
    return id;
}

static void connect_id(struct rdma_cm_id *id)
{
    struct rdma_conn_param param = {.initiator_depth = 1, .responder_resources = 1};
    assert_int_equal(rdma_connect(id, &param), 0);
}

static void one_after_another(int n)
{
    for (int i = 0; i < n; i++) {
        ask(1);
        struct rdma_cm_id *id = prepare();
        connect_id(id);
        expect(RDMA_CM_EVENT_ESTABLISHED);
        assert_int_equal(rdma_disconnect(id), 0);
        expect(RDMA_CM_EVENT_DISCONNECTED);
        drop(id);
        wait_served(1);
    }
    empty(&active.end);
}

static void compare(const char *who, struct holdings before, struct holdings after)
{
    print_message("%s: %d descriptors, %d threads, heap %+ld bytes\n", who, after.fds,
                  after.threads, (long)after.heap - (long)before.heap);
    assert_int_equal(after.fds, before.fds);
    assert_int_equal(after.threads, before.threads);
    if (!SANITIZED)
        assert_true(after.heap <= before.heap + SLACK / 16);
}

static struct holdings ask_holdings(void)
{
    ask(0);
    return peer_holdings();
}

/** Sockets close on their own when the peer's FIN is in: waits until their number stays the same.
 */
static void settle(void)
{
    int same = 0, mine = 0, theirs = 0;
    for (int looks = 0; same < 10 && looks < 500; looks++) {
        int now = holdings().fds, theirs_now = ask_holdings().fds;
        same = now == mine && theirs_now == theirs ? same + 1 : 0;
        mine = now;
        theirs = theirs_now;
        usleep(20000);
    }
}

static void nothing_is_left_over(void **state)
{
    (void)state;
    one_after_another(16);
    settle();
    struct holdings mine = holdings(), theirs = ask_holdings();
    for (int round = 0; round < ROUNDS; round++) {
        one_after_another(active.sequential);
        settle();
        print_message("%d connections\n", active.sequential);
        compare("active", mine, holdings());
        compare("passive", theirs, ask_holdings());
    }
}

static void all_at_once(void **state)
{
    static struct rdma_cm_id *ids[AT_ONCE];
    (void)state;
    one_after_another(1);
    settle();
    struct holdings mine = holdings(), theirs = ask_holdings();
    ask(AT_ONCE);
    for (int i = 0; i < AT_ONCE; i++)
        ids[i] = prepare();
    for (int i = 0; i < AT_ONCE; i++)
        connect_id(ids[i]);
    for (int i = 0; i < AT_ONCE; i++)
        expect(RDMA_CM_EVENT_ESTABLISHED);
    for (int i = 0; i < AT_ONCE; i++)
        send_one(&active.end, ids[i]);
    wait_completions(&active.end, 2 * AT_ONCE);
    struct holdings up = holdings(), theirs_up = peer_holdings();
    size_t each = (up.resident - mine.resident) / AT_ONCE;
    size_t theirs_each = (theirs_up.resident - theirs.resident) / AT_ONCE;
    print_message("%d connections: %zu resident bytes each, %zu on the passive side\n", AT_ONCE,
                  each, theirs_each);
    if (!SANITIZED) {
        assert_true(each <= IDLE_MAX);
        assert_true(theirs_each <= IDLE_MAX);
    }
    for (int i = 0; i < AT_ONCE; i++)
        assert_int_equal(rdma_disconnect(ids[i]), 0);
    for (int i = 0; i < AT_ONCE; i++)
        expect(RDMA_CM_EVENT_DISCONNECTED);
    for (int i = 0; i < AT_ONCE; i++)
        drop(ids[i]);
    wait_served(AT_ONCE);
    empty(&active.end);
    settle();
    compare("active", mine, holdings());
    compare("passive", theirs, ask_holdings());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_left_over),
        cmocka_unit_test(all_at_once),
    };
    return cmocka_run_group_tests_name("connections", tests, start, end_all);
}
