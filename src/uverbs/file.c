/* SPDX-License-Identifier: BSD-2-Clause */
#include "uverbs/file.h"

#include "common/sys.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FDS = 65536, PAGE = 4096 };

static struct uv_file *files[FDS];

/*
 * Memory of files that are gone is used for files again and for nothing else: who found one in the
 * table may look at its count, and no further, although it has just been closed.
 */
static struct uv_file *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the table's writers, and of unused */

static unsigned process; /* as in struct uv_file */

bool uv_file_is(int fd)
{
    return fd >= 0 && fd < FDS && __atomic_load_n(&files[fd], __ATOMIC_RELAXED);
}

struct uv_file *uv_file_create(const struct uv_file_ops *ops, void *object)
{
    pthread_mutex_lock(&lock);
    struct uv_file *f = unused;
    if (f)
        unused = f->next_free;
    pthread_mutex_unlock(&lock);
    if (!f)
        f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->ops = ops;
    f->object = object;
    f->fds = 0;
    f->number = -1;
    f->process = process;
    __atomic_store_n(&f->refs, 1, __ATOMIC_RELEASE);
    return f;
}

void uv_file_ref(struct uv_file *f)
{
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
}

void uv_file_put(struct uv_file *f)
{
    if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    f->ops->destroy(f);
    pthread_mutex_lock(&lock);
    f->next_free = unused;
    unused = f;
    pthread_mutex_unlock(&lock);
}

void uv_file_drop(void *f)
{
    uv_file_put(f);
}

static struct uv_file *ref_unless_gone(struct uv_file *f)
{
    int refs = __atomic_load_n(&f->refs, __ATOMIC_RELAXED);
    while (refs > 0) {
        if (__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return f;
    }
    return NULL;
}

struct uv_file *uv_file_get(int fd)
{
    if (fd < 0 || fd >= FDS)
        return NULL;
    struct uv_file *f = __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE);
    if (!f || !ref_unless_gone(f))
        return NULL;
    if (f->process == process && __atomic_load_n(&files[fd], __ATOMIC_ACQUIRE) == f)
        return f;
    uv_file_put(f);
    return NULL;
}

/** @p f, or NULL, is behind @p fd from now on. @return whether another file was */
static bool put_at(int fd, struct uv_file *f)
{
    bool closed = false;
    pthread_mutex_lock(&lock);
    struct uv_file *old = files[fd];
    if (f) {
        f->fds++;
        uv_file_ref(f);
    }
    bool forked = old && old->process != process;
    if (old && !forked)
        closed = --old->fds == 0;
    __atomic_store_n(&files[fd], f, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    if (!old || forked)
        return old;
    if (closed && old->ops->close)
        old->ops->close(old);
    uv_file_put(old);
    return true;
}

int uv_file_open(struct uv_file *f, int fd)
{
    int copy = (int)sys_fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return copy;
    if (copy >= FDS) {
        sys_close(copy);
        return -EMFILE;
    }
    put_at(copy, f);
    return copy;
}

void uv_file_duplicated(int from, int to)
{
    if (to < 0 || to >= FDS || from == to || (!uv_file_is(from) && !uv_file_is(to)))
        return;
    struct uv_file *f = uv_file_get(from);
    put_at(to, f);
    if (f)
        uv_file_put(f);
}

bool uv_file_forget(int fd)
{
    return uv_file_is(fd) && put_at(fd, NULL);
}

void uv_file_forked(void)
{
    pthread_mutex_init(&lock, NULL); /* a thread that is not here may have held it */
    unused = NULL;
    process++;
}

/** Whether the page of @p at can be read: the kernel reads a mask before it refuses the rest. */
static bool page_readable(uint64_t at)
{
    int saved = errno;
    bool fault =
        syscall(SYS_rt_sigprocmask, -1, at & ~UINT64_C(7), NULL, (size_t)8) < 0 && errno == EFAULT;
    errno = saved;
    return !fault;
}

/**
 * Whether the page of @p at can be written: the kernel ORs nothing to a word there, which stays as
 * it is whoever else writes it, or says EFAULT. Nobody waits on it.
 */
static bool page_writable(uint64_t at)
{
    uint64_t word = at & ~UINT64_C(3);
    int saved = errno;
    bool fault = syscall(SYS_futex, word, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, word,
                         FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0)) < 0 &&
                 errno == EFAULT;
    errno = saved;
    return !fault;
}

/* Pages that a thread asked for lately, by their number. */
struct known {
    uint64_t pages[16];
};

static bool usable(uint64_t address, size_t len, bool quick, bool (*page_usable)(uint64_t),
                   struct known *known)
{
    uint64_t last = address + len - 1;
    if (address < PAGE || !len || last < address) /* nothing is known of page 0 */
        return false;
    for (uint64_t at = address;; at = (at | (PAGE - 1)) + 1) {
        uint64_t page = at / PAGE, *k = &known->pages[page % 16];
        if (!quick || *k != page) {
            if (!page_usable(at))
                return false;
            *k = page;
        }
        if ((at | (PAGE - 1)) >= last)
            return true;
    }
}

bool uv_readable(uint64_t address, size_t len, bool quick)
{
    static _Thread_local struct known known;
    return usable(address, len, quick, page_readable, &known);
}

bool uv_writable(uint64_t address, size_t len, bool quick)
{
    static _Thread_local struct known known;
    return usable(address, len, quick, page_writable, &known);
}
