/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/eventfd.h"

#include "common/sys.h"
#include "env/error_text.h"
#include "env/fd.h"
#include "env/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What stands under each descriptor number, so that fork() finds what is ours. */
#define CHUNK  1024
#define CHUNKS 1024

enum state { FOREIGN, QUIET, RAISED };

typedef _Atomic(uint8_t) fd_state;
static fd_state *_Atomic table[CHUNKS];

/** @return where the state of @p fd is kept, NULL if it cannot be ours */
static fd_state *state_of(int fd)
{
    unsigned i = (unsigned)fd;
    fd_state *chunk = i < CHUNK * CHUNKS ? atomic_load(&table[i / CHUNK]) : NULL;
    return chunk ? &chunk[i % CHUNK] : NULL;
}

static void note(int fd, enum state state)
{
    fd_state *s = state_of(fd);
    if (s) /* under the lock of whose descriptor it is; fork() has them all */
        atomic_store_explicit(s, (uint8_t)state, memory_order_relaxed);
}

/** Makes the state of @p fd be kept. @return 0, -EMFILE or -ENOMEM */
static int keep(int fd)
{
    unsigned i = (unsigned)fd / CHUNK;
    if (i >= CHUNKS)
        return -EMFILE;
    if (!atomic_load(&table[i])) {
        fd_state *none = NULL, *chunk = calloc(CHUNK, sizeof(*chunk));
        if (!chunk)
            return -ENOMEM;
        if (!atomic_compare_exchange_strong(&table[i], &none, chunk))
            free(chunk);
    }
    note(fd, QUIET);
    return 0;
}

static void tell_refusal(int error)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    char text[IW_ERROR_TEXT_MAX];
    if (atomic_flag_test_and_set(&told))
        return;
    iw_error_text(error, text);
    iw_log(IW_LOG_WARN, "no device is opened, and no channel made, as an eventfd is refused: %s",
           text);
}

static int create(int (*place)(int fd))
{
    int fd;
    do
        fd = (int)sys_eventfd(0, 0);
    while (fd == -EMFILE && iw_fd_more());
    if (sys_is_refused(fd))
        tell_refusal(-fd);
    if (fd >= 0 && place)
        fd = place(fd);
    int r = fd < 0 ? fd : keep(fd);
    if (r && fd >= 0)
        sys_close(fd);
    return r ? r : fd;
}

int iw_eventfd_create(void)
{
    return create(NULL);
}

int iw_eventfd_create_hidden(void)
{
    return create(iw_fd_high);
}

void iw_eventfd_raise(int fd)
{
    note(fd, RAISED);
    sys_write(fd, &(uint64_t){1}, sizeof(uint64_t));
}

void iw_eventfd_drain(int fd)
{
    uint64_t count;
    note(fd, QUIET);
    sys_read(fd, &count, sizeof(count));
}

bool iw_eventfd_nonblocking(int fd)
{
    long flags = sys_fcntl(fd, F_GETFL, 0);
    return flags >= 0 && (flags & O_NONBLOCK);
}

/** Crash handlers say nothing about a wait: these come from the thread's own instructions. */
static bool is_fault(int sig)
{
    return sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP ||
           sig == SIGSYS;
}

bool iw_eventfd_restarts(void)
{
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction sa;
        if (is_fault(sig) || sigaction(sig, NULL, &sa) || sa.sa_handler == SIG_DFL ||
            sa.sa_handler == SIG_IGN)
            continue;
        if (!(sa.sa_flags & SA_RESTART))
            return false;
    }
    return true;
}

int iw_eventfd_wait(int fd)
{
    for (;;) {
        long r = sys_wait_fd(fd, -1);
        if (r != -EINTR)
            return r < 0 ? (int)r : 0;
        if (!iw_eventfd_restarts())
            return -EINTR;
    }
}

void iw_eventfd_close(int fd)
{
    note(fd, FOREIGN);
    iw_fd_leave_anonymous(fd);
}

/* ---- fork ---- */

static void renew(int fd, bool raised)
{
    long status = sys_fcntl(fd, F_GETFL, 0), flags = sys_fcntl(fd, F_GETFD, 0);
    if (status < 0 || flags < 0 || !iw_fd_is_anonymous(fd))
        return; /* the program closed it */
    int own = (int)sys_eventfd(raised, (int)status & O_NONBLOCK);
    if (own < 0)
        return;
    sys_dup3(own, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    sys_close(own);
}

void iw_eventfd_fork(enum fork_step step)
{
    for (int i = 0; step == FORK_CHILD && i < CHUNKS; i++) {
        fd_state *chunk = atomic_load(&table[i]);
        for (int k = 0; chunk && k < CHUNK; k++)
            if (chunk[k] != FOREIGN)
                renew(i * CHUNK + k, chunk[k] == RAISED);
    }
}
