/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who answers TCP lives, however long its window is closed; who does not is dead, whatever this
 * side waits for. The time for that is 6 seconds here. The dead are at the other end of a cable
 * that is cut: in a network of their own.
 */
#include "witness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define SILENCE  "6"
#define EARLY_MS 5000  /* nobody is dead before */
#define LATE_MS  12000 /* or later */
#define LIVES_MS 15000 /* with a closed window */
#define MANY     64    /* of SIDE_BYTES: more than TCP takes */
#define SMALL    4096  /* buffer */
#define HERE     "10.78.0.1"
#define THERE    "10.78.0.2"

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool event_within(struct peer *p, long ms)
{
    struct pollfd f = {.fd = p->victim.events->fd, .events = POLLIN};
    return poll(&f, 1, ms < 0 ? 0 : (int)ms) == 1;
}

static void post_writes(struct side *v, int n, uint32_t len)
{
    struct side remote = {.buf = v->buf, .mr = v->mr};
    for (int i = 0; i < n; i++)
        assert_int_equal(side_post(v, &remote, IBV_WR_RDMA_WRITE, 1, 0, len, 0, 0), 0);
}

/* ---- closed windows, all the while ---- */

static const struct {
    int writes;
    uint32_t len;
} waiting[] = {
    {MANY, SIDE_BYTES}, /* TCP is full */
    {1, 65536},         /* it has taken all */
};
#define WAITING (sizeof(waiting) / sizeof(waiting[0]))

static struct peer patient[WAITING];
static long closed_since;

static void windows_close(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAITING; i++) {
        peer_open(
            &patient[i],
            &(struct peer_conf){.small_window = true, .no_crc = true, .side = {.send_wr = MANY}});
        post_writes(&patient[i].victim, waiting[i].writes, waiting[i].len);
    }
    closed_since = now_ms();
}

/** They get all that waits. */
static void they_are_open_again(void **state)
{
    (void)state;
    poll(NULL, 0, (int)(closed_since + LIVES_MS - now_ms()));
    witness_goes_on();
    for (size_t i = 0; i < WAITING; i++) {
        struct peer *p = &patient[i];
        size_t bytes = 0, most = 2 * (size_t)waiting[i].len;
        assert_false(event_within(p, 0));
        setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &(int){1 << 20}, sizeof(int));
        while (bytes < most && bytes < waiting[i].writes * (size_t)waiting[i].len) {
            ssize_t n = recv(p->fd, p->in, sizeof(p->in), 0);
            assert_true(n > 0);
            bytes += (size_t)n;
        }
        assert_int_equal(side_poll(&p->victim).status, IBV_WC_SUCCESS);
        peer_hang_up(p, true);
        side_event(&p->victim, RDMA_CM_EVENT_DISCONNECTED);
        peer_close(p);
    }
    log_clear();
}

/* ---- the dead ---- */

static int here = -1, there; /* networks */

static bool shell(const char *commands)
{
    char all[512];
    snprintf(all, sizeof(all), "exec >/dev/null 2>&1; set -e; %s", commands);
    return system(all) == 0;
}

/** Two networks and a cable; the process is in the first. */
static bool make_networks(void)
{
    char join[256];
    if (unshare(CLONE_NEWNET) || !shell("ip link set lo up"))
        return false;
    int first = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET))
        return false;
    there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    snprintf(join, sizeof(join),
             "ip link add near type veth peer name far; ip link set far netns /proc/$PPID/fd/%d; "
             "ip addr add " HERE "/24 dev near; ip link set near up",
             there);
    if (setns(first, CLONE_NEWNET) || !shell(join) || setns(there, CLONE_NEWNET) ||
        !shell("ip addr add " THERE "/24 dev far; ip link set far up") ||
        setns(first, CLONE_NEWNET))
        return false;
    here = first;
    return true;
}

static void cut(void)
{
    assert_return_code(setns(there, CLONE_NEWNET), errno);
    assert_true(shell("ip link set far down"));
    assert_return_code(setns(here, CLONE_NEWNET), errno);
}

static int listen_there(struct sockaddr_in *addr)
{
    socklen_t len = sizeof(*addr);
    *addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(THERE)};
    assert_return_code(setns(there, CLONE_NEWNET), errno);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(setns(here, CLONE_NEWNET), errno);
    assert_return_code(fd, errno);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){SMALL}, sizeof(int));
    assert_return_code(bind(fd, (struct sockaddr *)addr, len), errno);
    assert_return_code(listen(fd, 1), errno);
    assert_return_code(getsockname(fd, (struct sockaddr *)addr, &len), errno);
    return fd;
}

static void open_there(struct peer *p)
{
    uint8_t reply[PEER_REPLY_MAX];
    struct sockaddr_in addr;
    p->fd = p->quoted = -1;
    p->listening = listen_there(&addr);
    peer_prepare(p, &addr, &(struct pair_conf){.send_wr = MANY});
    peer_called(p);
    peer_take_request(p);
    peer_send(p, reply, peer_reply(p, reply));
    side_event(&p->victim, RDMA_CM_EVENT_ESTABLISHED);
}

static void the_dead_are_found(void **state)
{
    enum { IDLE, SENDING, CLOSED, FULL, CASES };
    static struct peer p[CASES];
    (void)state;
    if (here < 0)
        skip();
    for (int i = 0; i < CASES; i++)
        open_there(&p[i]);
    post_writes(&p[CLOSED].victim, 1, 65536);
    post_writes(&p[FULL].victim, MANY, SIDE_BYTES);
    poll(NULL, 0, 3000); /* until probes are as rare as they get */
    cut();
    long start = now_ms();
    post_writes(&p[SENDING].victim, 1, 100);
    for (int i = 0; i < CASES; i++) {
        struct side *v = &p[i].victim;
        bool found = event_within(&p[i], start + LATE_MS - now_ms());
        if (!found || now_ms() - start < EARLY_MS)
            fail_msg("case %d after %ld ms", i, now_ms() - start);
        side_event(v, RDMA_CM_EVENT_DISCONNECTED);
        log_expect(v->id->qp->qp_num, "TCP connection lost: ETIMEDOUT, Connection timed out; "
                                      "* send and * receive work requests flushed");
    }
    for (int i = 0; i < CASES; i++)
        peer_close(&p[i]);
    log_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_close),
        cmocka_unit_test(the_dead_are_found),
        cmocka_unit_test(they_are_open_again),
    };
    setenv("ANYWARP_SILENCE_S", SILENCE, 1);
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (!make_networks()) {
        print_message("no networks can be made here: nobody dies\n");
        setns(home, CLONE_NEWNET);
    }
    return cmocka_run_group_tests(tests, witness_setup, witness_teardown);
}
