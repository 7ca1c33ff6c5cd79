/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that is not there any more: unmapped, protected, or behind the new end of its
 * file. Whoever touches it first, the connection ends and the process lives, unless the program has
 * a handler of its own, or does not want ours.
 *
 * Each case is a process of its own, as cmocka has handlers, too: this program with arguments.
 */
#include "pair.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define SMALL     64
#define LARGE     (200 * 1024)
#define FAR       ((size_t)16 << 30)
#define LIMIT_S   120
#define OWN_EXITS 42 /* status of the program's own handler */
#define EITHER    ((enum ibv_wc_status) - 1)
#define ALL_ACCESS                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

/* The sanitizers' own handlers would be the program's. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0";
}

const char *__tsan_default_options(void)
{
    return "handle_segv=0:handle_sigbus=0:atexit_sleep_ms=0";
}

/* ---- what side a does, and whose memory is gone ---- */

enum whose { LOCAL, REMOTE, RECEIVE };

static const struct deed {
    const char *name;
    enum ibv_wr_opcode op;
    enum whose whose;
    enum ibv_wc_status status;     /* of a's work request */
    enum ibv_wc_status if_started; /* where bytes of an FPDU are out, which cannot be finished */
    const char *line;
} deeds[] = {
    {"write", IBV_WR_RDMA_WRITE, REMOTE, EITHER, EITHER, "tagged message to registered memory"},
    {"read", IBV_WR_RDMA_READ, REMOTE, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR,
     "read or atomic on registered memory"},
    {"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, REMOTE, IBV_WC_REM_ACCESS_ERR, EITHER,
     "read or atomic on registered memory"},
    {"send", IBV_WR_SEND, LOCAL, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR, "scatter/gather entry"},
    {"write-from", IBV_WR_RDMA_WRITE, LOCAL, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR,
     "scatter/gather entry"},
    {"read-into", IBV_WR_RDMA_READ, LOCAL, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR,
     "scatter/gather entry"},
    {"atomic-into", IBV_WR_ATOMIC_FETCH_AND_ADD, LOCAL, IBV_WC_LOC_PROT_ERR, EITHER,
     "scatter/gather entry"},
    {"receive", IBV_WR_SEND, RECEIVE, EITHER, EITHER, "scatter/gather entry"},
};

static const char *const ways[] = {"unmap", "protect", "truncate"};

/** Some memory, and how it goes. */
struct memory {
    const char *way;
    int fd;
    uint8_t *at;
    struct ibv_mr *mr;
};

static void map(struct memory *m, struct ibv_pd *pd)
{
    bool file = !strcmp(m->way, "truncate");
    m->fd = file ? memfd_create("memory", 0) : -1;
    assert_true(!file || ftruncate(m->fd, LARGE) == 0);
    void *lone = mmap(NULL, FAR, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_int_equal(munmap(lone, FAR), 0); /* no other mapping takes this place later */
    m->at = mmap(lone, LARGE, PROT_READ | PROT_WRITE,
                 file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, m->fd, 0);
    assert_ptr_not_equal(m->at, MAP_FAILED);
    m->mr = ibv_reg_mr(pd, m->at, LARGE, ALL_ACCESS);
    assert_non_null(m->mr);
}

/** A copy of more than a page stops in its middle. */
static void take_away(struct memory *m, size_t len)
{
    size_t kept = len > SMALL ? (size_t)getpagesize() : 0;
    if (!strcmp(m->way, "unmap"))
        assert_int_equal(munmap(m->at + kept, LARGE - kept), 0);
    else if (!strcmp(m->way, "protect"))
        assert_int_equal(mprotect(m->at + kept, LARGE - kept, PROT_NONE), 0);
    else
        assert_int_equal(ftruncate(m->fd, (off_t)kept), 0);
}

static void exchange(struct pair *p)
{
    side_recv(&p->b, 7, 0, 64);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 8, 0, 64, 0, 0), 0);
    assert_int_equal(side_poll(&p->b).status, IBV_WC_SUCCESS);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

static void do_it(struct pair *p, const struct deed *d, const struct memory *m, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)p->a.buf, len, p->a.mr->lkey};
    uint64_t remote = ((uintptr_t)p->b.buf + 7) & ~(uintptr_t)7;
    uint32_t rkey = p->b.mr->rkey;
    if (d->whose == LOCAL)
        sge = (struct ibv_sge){(uintptr_t)m->at, len, m->mr->lkey};
    if (d->whose == REMOTE) {
        remote = (uintptr_t)m->at;
        rkey = m->mr->rkey;
    }
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .opcode = d->op,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .send_flags = IBV_SEND_SIGNALED};
    if (d->op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        sge.length = 8;
        wr.wr.atomic.remote_addr = remote;
        wr.wr.atomic.rkey = rkey;
    } else {
        wr.wr.rdma.remote_addr = remote;
        wr.wr.rdma.rkey = rkey;
    }
    assert_int_equal(ibv_post_send(p->a.id->qp, &wr, &bad), 0);
}

static void receive_there(struct pair *p, const struct memory *m, uint32_t len)
{
    struct ibv_sge sge = {(uintptr_t)m->at, len, m->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(ibv_post_recv(p->b.id->qp, &wr, &bad), 0);
}

static void access_event(struct side *s)
{
    struct ibv_async_event ev;
    bool own;
    do {
        assert_int_equal(ibv_get_async_event(s->id->verbs, &ev), 0);
        own = ev.element.qp == s->id->qp;
        assert_true(!own || ev.event_type == IBV_EVENT_QP_ACCESS_ERR);
        ibv_ack_async_event(&ev);
    } while (!own);
}

/** One connection ends, and the other lives. */
static void touch(const struct deed *d, const char *way, uint32_t len, bool asleep)
{
    static struct pair p, other;
    struct memory m = {.way = way};
    struct side *victim = d->whose == LOCAL ? &p.a : &p.b;
    pair_open(&p, &(struct pair_conf){0});
    pair_open(&other, &(struct pair_conf){0});
    map(&m, victim->pd);
    exchange(&p);
    exchange(&other);
    if (d->op == IBV_WR_SEND && d->whose == LOCAL)
        side_recv(&p.b, 2, 0, len);
    else if (d->whose == RECEIVE)
        receive_there(&p, &m, len);
    take_away(&m, len);
    do_it(&p, d, &m, len);
    if (asleep) /* the engine's thread does it */
        access_event(victim);
    enum ibv_wc_status status = side_poll(&p.a).status;
    bool crc = getenv("ANYWARP_CRC");
    enum ibv_wc_status want = len > SMALL && !crc ? d->if_started : d->status;
    if (want != EITHER && status != want)
        print_error("%s: %s\n", d->name, ibv_wc_status_str(status));
    assert_true(want == EITHER || status == want);
    if (d->whose == RECEIVE)
        assert_int_equal(side_poll(&p.b).status, IBV_WC_LOC_PROT_ERR);
    if (!asleep)
        access_event(victim);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    exchange(&other);
    pair_close(&other, 1);
    assert_int_equal(ibv_dereg_mr(m.mr), 0);
}

/* ---- handlers ---- */

static struct sigaction before;

static void own(int signal)
{
    (void)signal;
    _exit(OWN_EXITS);
}

static void forwards(int signal, siginfo_t *info, void *context)
{
    before.sa_sigaction(signal, info, context);
}

static void be_written_to(void)
{
    touch(&deeds[0], "unmap", SMALL, true);
}

static struct ibv_mr *be_registered(struct pair *p)
{
    pair_open(p, &(struct pair_conf){0});
    return p->a.mr;
}

static void *gone(void)
{
    static struct pair p;
    struct memory m = {.way = "unmap"};
    pair_open(&p, &(struct pair_conf){0});
    map(&m, p.a.pd);
    take_away(&m, SMALL);
    return m.at;
}

static void own_before(void)
{
    signal(SIGSEGV, own);
    be_written_to();
}

static void own_after(void)
{
    static struct pair p;
    be_registered(&p);
    signal(SIGSEGV, own);
    be_written_to();
}

static void forward(void)
{
    static struct pair p;
    struct sigaction act = {.sa_sigaction = forwards, .sa_flags = SA_SIGINFO};
    be_registered(&p);
    assert_int_equal(sigaction(SIGSEGV, &act, &before), 0);
    assert_true(before.sa_flags & SA_SIGINFO);
}

static void own_forwards(void)
{
    forward();
    be_written_to();
}

static void own_forwards_a_fault(void)
{
    volatile char *p = gone();
    forward();
    *p = 1;
}

static void is_lazy(void)
{
    static struct pair p;
    struct sigaction now;
    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, SIG_DFL);
    be_registered(&p);
    assert_int_equal(sigaction(SIGBUS, NULL, &now), 0);
    if (getenv("ANYWARP_FAULTS"))
        assert_ptr_equal(now.sa_handler, SIG_DFL);
    else
        assert_ptr_not_equal(now.sa_handler, SIG_DFL);
}

/** The program itself, in memory that was registered. */
static void own_access(void)
{
    volatile char *p = gone();
    *p = 1;
}

static void own_access_to_file(void)
{
    static struct pair p;
    struct memory m = {.way = "truncate"};
    pair_open(&p, &(struct pair_conf){0});
    map(&m, p.a.pd);
    take_away(&m, SMALL);
    *(volatile char *)m.at = 1;
}

static void killed(void)
{
    static struct pair p;
    be_registered(&p);
    kill(getpid(), SIGSEGV);
    sleep(LIMIT_S);
}

static const struct special {
    const char *name;
    void (*run)(void);
    bool off;
    int signal, status; /* what it ends by */
} specials[] = {
    {"is_lazy", is_lazy, false, 0, 0},
    {"is_lazy", is_lazy, true, 0, 0},
    {"be_written_to", be_written_to, true, SIGSEGV, 0},
    {"own_before", own_before, false, 0, OWN_EXITS},
    {"own_after", own_after, false, 0, OWN_EXITS},
    {"own_forwards", own_forwards, false, 0, 0},
    {"own_forwards_a_fault", own_forwards_a_fault, false, SIGSEGV, 0},
    {"own_access", own_access, false, SIGSEGV, 0},
    {"own_access_to_file", own_access_to_file, false, SIGBUS, 0},
    {"killed", killed, false, SIGSEGV, 0},
};

/* ---- the processes ---- */

static int child(char **argv)
{
    alarm(LIMIT_S);
    for (size_t i = 0; i < COUNT(specials); i++) {
        if (!strcmp(argv[1], specials[i].name)) {
            specials[i].run();
            return 0;
        }
    }
    for (size_t i = 0; i < COUNT(deeds); i++)
        if (!strcmp(argv[1], deeds[i].name))
            touch(&deeds[i], argv[2], (uint32_t)atoi(argv[3]), atoi(argv[4]));
    return 0;
}

static char told[16384];

/** Runs it with its log in told[]. @return its wait status */
static int run(const char *const *argv, const char *variable, const char *value)
{
    int out[2], status;
    size_t n = 0;
    assert_int_equal(pipe(out), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        dup2(out[1], STDERR_FILENO);
        dup2(out[1], STDOUT_FILENO);
        setenv("VERBS_LOG_LEVEL", "2", 1);
        unsetenv("VERBS_LOG_FILE");
        if (variable)
            setenv(variable, value, 1);
        execv("/proc/self/exe", (char *const *)argv);
        _exit(127);
    }
    close(out[1]);
    for (ssize_t r; n < sizeof(told) - 1; n += (size_t)r)
        if ((r = read(out[0], told + n, sizeof(told) - 1 - n)) <= 0)
            break;
    told[n] = 0;
    close(out[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static unsigned times_told(const char *what)
{
    unsigned n = 0;
    for (const char *p = told; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void one_way(const struct deed *d, const char *way, uint32_t len, bool asleep, bool crc)
{
    char number[16];
    snprintf(number, sizeof(number), "%u", len);
    const char *argv[] = {"gone_test", d->name, way, number, asleep ? "1" : "0", NULL};
    int status = run(argv, crc ? "ANYWARP_CRC" : NULL, "on");
    if (strstr(told, "cpu_exec: assertion failed")) {
        print_message("QEMU's user mode has broken: cpu_exec: assertion failed\n");
        skip();
    }
    bool good = status == 0 && times_told(d->line) == 1 &&
                times_told(" that was unmapped or protected: ") == 1 && times_told(", key 0x") >= 1;
    if (!good)
        print_error("%s, %s, %u bytes%s%s: status 0x%x\n%s", d->name, way, len,
                    asleep ? ", asleep" : "", crc ? ", CRC" : "", status, told);
    assert_true(good);
}

static void costs_a_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(deeds); i++)
        for (size_t w = 0; w < COUNT(ways); w++)
            for (int bits = 0; bits < 8; bits++) {
                bool atomic = deeds[i].op == IBV_WR_ATOMIC_FETCH_AND_ADD;
                if (!(bits & 1) || !atomic)
                    one_way(&deeds[i], ways[w], bits & 1 ? LARGE : SMALL, bits & 2, bits & 4);
            }
}

static void leaves_the_program_its_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(specials); i++) {
        const struct special *s = &specials[i];
        const char *argv[] = {"gone_test", s->name, NULL};
        int status = run(argv, s->off ? "ANYWARP_FAULTS" : NULL, "off");
        bool good = s->signal ? WIFSIGNALED(status) && WTERMSIG(status) == s->signal
                              : WIFEXITED(status) && WEXITSTATUS(status) == s->status;
        if (!good)
            print_error("%s: status 0x%x\n%s", s->name, status, told);
        assert_true(good);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_a_connection),
        cmocka_unit_test(leaves_the_program_its_faults),
    };
    if (argc > 1)
        return child(argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
