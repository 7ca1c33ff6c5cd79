/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is killed in the midst of its work, again and again; the queue pair that it worked on
 * is reset, under the same number, and connected with the next one. Of every work request that the
 * peer saw complete the effect is there, and no effect is there twice or of one that was not
 * posted.
 */
#include "by_number.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS     20
#define RECEIVES   8
#define SLOTS      64    /* that are written, in turn */
#define COUNTER    SLOTS /* what atomics add to; behind it is what receives take in */
#define INBOX      (COUNTER + 1)
#define KINDS      3
#define WINDOW     6
#define MS_AT_MOST 30

/** What the peer has done, as it goes on; it survives the peer. */
struct progress {
    atomic_ulong posted, done;
};

/** Where the peer is to work. */
struct place {
    uint32_t number, rkey;
    uint64_t to;
};

static struct end self;
static struct progress *progress;

static void say(int fd, const void *p, size_t len)
{
    assert_int_equal(write(fd, p, len), len);
}

static void hear(int fd, void *p, size_t len)
{
    assert_int_equal(recv(fd, p, len, MSG_WAITALL), len);
}

static void map(int fd)
{
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(progress != MAP_FAILED);
}

/* ---- the peer ---- */

/** Number @p seq is a Write of itself, a Send of itself, or an addition of 1. */
static void post(const struct place *target, unsigned long seq)
{
    static const enum ibv_wr_opcode ops[KINDS] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND,
                                                  IBV_WR_ATOMIC_FETCH_AND_ADD};
    uint64_t *from = self.data + seq % WINDOW;
    struct ibv_sge sge = {(uintptr_t)from, 8, self.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = seq,
                                   .opcode = ops[seq % KINDS],
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED};
    *from = seq;
    if (wr.opcode == IBV_WR_RDMA_WRITE) {
        wr.wr.rdma.remote_addr = target->to + 8 * (seq % SLOTS);
        wr.wr.rdma.rkey = target->rkey;
    } else if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = target->to + 8ul * COUNTER;
        wr.wr.atomic.rkey = target->rkey;
        wr.wr.atomic.compare_add = 1;
    }
    atomic_store(&progress->posted, seq);
    assert_int_equal(ibv_post_send(self.qp, &wr, &bad), 0);
}

static int work_fd;

static int work(void)
{
    struct place target;
    end_make(&self);
    say(work_fd, &self.qp->qp_num, sizeof(self.qp->qp_num));
    hear(work_fd, &target, sizeof(target));
    end_init(&self);
    end_rtr(&self, target.number);
    end_rts(&self, 7);
    for (unsigned long seq = 1; seq; seq++) {
        post(&target, seq);
        if (seq < WINDOW)
            continue;
        struct ibv_wc wc = end_next(&self);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.wr_id, seq - WINDOW + 1);
        atomic_store(&progress->done, wc.wr_id);
    }
    return 0;
}

/* ---- the one who stays ---- */

/** Not fork(): a child of that has this process's locks and threads to think of. */
static pid_t start(int memory, int *fd)
{
    int pair[2];
    char to[16], map[16], *argv[] = {"number_kill_test", to, map, NULL};
    pid_t pid;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    *fd = pair[0];
    snprintf(to, sizeof(to), "%d", pair[1]);
    snprintf(map, sizeof(map), "%d", memory);
    assert_int_equal(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    close(pair[1]);
    return pid;
}

static void receive_next(void)
{
    struct ibv_sge sge = {(uintptr_t)(self.data + INBOX), 8, self.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = END_RECV, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(self.qp, &wr, &bad), 0);
}

static uint64_t ns_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/** @return how many Sends came in until then, and none after */
static unsigned long receive_until(uint64_t then)
{
    unsigned long received = 0;
    struct ibv_wc wc;
    bool found = true;
    while (found || ns_now() < then) {
        found = ibv_poll_cq(self.cq, 1, &wc) == 1;
        if (!found)
            continue;
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        received++;
        receive_next();
    }
    return received;
}

/** Work requests of a kind up to @p seq. */
static unsigned long of_kind(unsigned kind, unsigned long seq)
{
    return (seq + KINDS - kind) / KINDS - (kind == 0);
}

/** What the engine's thread has stored is in order by way of the other process alone. */
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
static void
check(unsigned long received, unsigned long done, unsigned long posted)
{
    unsigned long added = self.data[COUNTER];
    assert_in_range(received, of_kind(1, done), of_kind(1, posted));
    assert_in_range(added, of_kind(2, done), of_kind(2, posted));
    for (unsigned long seq = KINDS; seq <= done; seq += KINDS) {
        uint64_t is = self.data[seq % SLOTS];
        assert_in_range(is, seq, posted);
        assert_int_equal(is % KINDS, 0);
        assert_int_equal(is % SLOTS, seq % SLOTS);
    }
}

/** @return work requests that the peer saw complete */
static unsigned long play(int memory)
{
    struct place own = {self.qp->qp_num, self.mr->rkey, (uintptr_t)self.data};
    uint32_t number;
    int fd, status;
    memset(self.data, 0, sizeof(self.data));
    *progress = (struct progress){0};
    pid_t pid = start(memory, &fd);
    hear(fd, &number, sizeof(number));
    end_init(&self);
    for (int i = 0; i < RECEIVES; i++)
        receive_next();
    end_rtr(&self, number);
    end_rts(&self, 7);
    say(fd, &own, sizeof(own));
    unsigned long received = 0;
    while (!atomic_load(&progress->done))
        received += receive_until(0);
    received += receive_until(ns_now() + (uint64_t)(rand() % MS_AT_MOST) * 1000000);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    unsigned long done = atomic_load(&progress->done), posted = atomic_load(&progress->posted);
    received += receive_until(0); /* what it saw complete is in the CQ by now */
    check(received, done, posted);
    assert_int_equal(end_state(&self), IBV_QPS_RTS);
    end_move(&self, IBV_QPS_RESET);
    close(fd);
    return done;
}

static void killed_again_and_again(void **state)
{
    const char *rounds = getenv("ANYWARP_KILL_ROUNDS");
    unsigned long all = 0;
    int memory = memfd_create("progress", 0);
    (void)state;
    assert_int_equal(ftruncate(memory, sizeof(*progress)), 0);
    map(memory);
    end_make(&self);
    uint32_t number = self.qp->qp_num;
    for (int i = rounds ? atoi(rounds) : ROUNDS; i > 0; i--)
        all += play(memory);
    assert_int_equal(self.qp->qp_num, number);
    print_message("%lu work requests\n", all);
    end_drop(&self);
    munmap(progress, sizeof(*progress));
    close(memory);
}

static int tests(void)
{
    const struct CMUnitTest all[] = {cmocka_unit_test(killed_again_and_again)};
    return cmocka_run_group_tests(all, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return ends_run(tests);
    work_fd = atoi(argv[1]);
    map(atoi(argv[2]));
    return ends_run(work);
}
