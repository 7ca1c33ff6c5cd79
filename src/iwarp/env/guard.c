/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/guard.h"

#include "common/sanitizer.h"
#include "env/conf.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* The compiler's own way saves three registers and lets it see to the rest; the sanitizers know
 * libc's. */
#if defined(__x86_64__) && !defined(ANYWARP_ASAN) && !defined(ANYWARP_TSAN)
typedef void *place[5];
#define place_set(p)   __builtin_setjmp(p)
#define place_go_to(p) __builtin_longjmp(p, 1)
#else
typedef jmp_buf place;
#define place_set(p)   _setjmp(p)
#define place_go_to(p) _longjmp(p, 1)
#endif

#define PAGE_MIN 4096 /* some machines tell the page of a fault only */

struct guard {
    const struct iovec *v;
    unsigned n;
    const void *volatile fault;
    place back;
};

static __thread struct guard *volatile guard; /* of the touch that this thread is in */

static void (*volatile told)(int signal);
static bool (*volatile watcher)(const void *at, const void *pc);

__attribute__((noinline)) const void *iw_guarded(void (*touch)(void *), void *arg,
                                                 const struct iovec *v, unsigned n)
{
    struct guard g;
    g.v = v;
    g.n = n;
    if (place_set(g.back))
        return g.fault;
    guard = &g;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    touch(arg);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    guard = NULL;
    return NULL;
}

/* ---- the handler ---- */

static __attribute__((noreturn)) void go_back(struct guard *g)
{
    place_go_to(g->back);
}

/**
 * Has the thread go back when the handler returns: signal mask and alternate stack are then what
 * they were.
 */
static void leave_touch(struct guard *g, ucontext_t *at)
{
#if defined(__x86_64__)
    greg_t *r = at->uc_mcontext.gregs;
    r[REG_RSP] = ((r[REG_RSP] - 256) & -16) - 8; /* below the red zone, as if called */
    r[REG_RDI] = (greg_t)g;
    r[REG_RIP] = (greg_t)go_back;
#elif defined(__aarch64__)
    at->uc_mcontext.sp = (at->uc_mcontext.sp - 256) & ~15ull;
    at->uc_mcontext.regs[0] = (uintptr_t)g;
    at->uc_mcontext.pc = (uintptr_t)go_back;
#else
    pthread_sigmask(SIG_SETMASK, &at->uc_sigmask, NULL);
    go_back(g);
#endif
}

static bool is_inside(const struct guard *g, const void *fault)
{
    uintptr_t at = (uintptr_t)fault;
    for (unsigned i = 0; i < g->n; i++) {
        uintptr_t from = (uintptr_t)g->v[i].iov_base;
        if (g->v[i].iov_len && at >= (from & -(uintptr_t)PAGE_MIN) &&
            at - from + PAGE_MIN < g->v[i].iov_len + PAGE_MIN)
            return true;
    }
    return false;
}

/** What SIG_DFL would do. A fault comes again by itself, with all that a core dump tells of it. */
static void die(int signal, siginfo_t *info)
{
    struct sigaction dies = {.sa_handler = SIG_DFL};
    if (told)
        told(signal);
    sigaction(signal, &dies, NULL);
    bool again = info->si_code > 0 && !(signal == SIGBUS && info->si_code == BUS_MCEERR_AO);
    if (!again)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
}

static const void *pc_of(const ucontext_t *at)
{
#if defined(__x86_64__)
    return (const void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (const void *)at->uc_mcontext.pc;
#else
    (void)at;
    return NULL;
#endif
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    struct guard *g = guard;
    if (g && info->si_code > 0 && is_inside(g, info->si_addr)) {
        guard = NULL;
        g->fault = info->si_addr;
        leave_touch(g, context);
    } else if (!watcher || info->si_code <= 0 || !watcher(info->si_addr, pc_of(context))) {
        die(signal, info);
    }
}

static void handle(int signal)
{
    struct sigaction old, ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int saved = errno;
    if (sigaction(signal, NULL, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
        old.sa_handler == SIG_DFL)
        sigaction(signal, &ours, NULL);
    errno = saved;
}

static void install(void)
{
    if (!iw_conf()->faults)
        return;
    handle(SIGSEGV);
    handle(SIGBUS);
}

void iw_guard_tell(void (*crash)(int signal))
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    told = crash;
    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        handle(signals[i]);
}

void iw_guard_install(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

bool iw_guard_watch(bool (*late)(const void *at, const void *pc))
{
    struct sigaction now;
    watcher = late;
    iw_guard_install();
    return sigaction(SIGSEGV, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_fault;
}
