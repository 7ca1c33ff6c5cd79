/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/probe.h"

#include "common/sys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define POPULATE_MAX 65536
#define PLACES       16 /* that are tried where mappings cannot be looked up */

static bool populate(uintptr_t page, size_t len, bool write)
{
    int saved = errno;
    int r = madvise((void *)page, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    errno = saved;
    return r == 0;
}

static bool advice_is_taken;

static void try_advice(void)
{
    advice_is_taken = !populate(0, 1, false);
}

/**
 * Whether to believe the above: some that stand in for the kernel say yes to all advice that they
 * do not know, as QEMU's user mode does. Then it is so where no program has memory, too.
 */
static bool can_populate(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, try_advice);
    return advice_is_taken;
}

static bool has_no_hole(uintptr_t page, size_t len)
{
    int saved = errno;
    /* MS_ASYNC writes nothing: it only walks the mappings. Not msync(), a cancellation point. */
    long r = syscall(SYS_msync, page, len, MS_ASYNC);
    errno = saved;
    return r == 0;
}

/* ---- mappings ---- */

/* Of linux/fs.h since 6.11. */
struct map_query {
    uint64_t size; /* of this struct */
    uint64_t flags;
    uint64_t addr;
    uint64_t start, end;
    uint64_t rights;
    uint64_t page_size, offset, inode;
    uint32_t major, minor;
    uint32_t name_size, build_id_size; /* 0: not wanted */
    uint64_t name, build_id;
};
#define MAP_QUERY    _IOWR('f', 17, struct map_query)
#define MAP_READABLE 1
#define MAP_WRITABLE 2

_Static_assert(sizeof(struct map_query) == 104, "struct procmap_query");

/** @return 0, -EFAULT, or another errno: the kernel does not know the call */
static int look_up(int maps, uintptr_t first, uintptr_t last, bool write)
{
    uint64_t need = write ? MAP_READABLE | MAP_WRITABLE : MAP_READABLE;
    struct map_query q = {.end = first};
    do {
        q = (struct map_query){.size = sizeof(q), .addr = q.end};
        long r = sys_ioctl(maps, MAP_QUERY, &q);
        if (r < 0)
            return r == -ENOENT ? -EFAULT : (int)r;
        if ((q.rights & need) != need)
            return -EFAULT;
    } while (q.end <= last);
    return 0;
}

/* ---- places ---- */

/** The kernel reads 8 bytes and then finds that it does not know what to do. */
static bool can_read(uintptr_t word)
{
    return sys_sigmask(-1, (const void *)word, NULL) != -EFAULT;
}

/** The kernel adds 0 to the 4 bytes, atomically. */
static bool can_write(uintptr_t word)
{
    static uint32_t nobody;
    return sys_futex_add(&nobody, (uint32_t *)word, 0) != -EFAULT;
}

static bool can_access(uintptr_t at, bool write)
{
    uintptr_t word = at & -(uintptr_t)8;
    return can_read(word) && (!write || can_write(word));
}

int iw_probe_places(const void *addr, size_t len, bool write)
{
    uintptr_t first = (uintptr_t)addr, last = first + (len - 1);
    uintptr_t page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t step = (last - first) / PLACES;
    if (!has_no_hole(page, last - page + 1) || !can_access(last, write))
        return EFAULT;
    for (unsigned i = 0; i < PLACES; i++)
        if (!can_access(first + i * step, write))
            return EFAULT;
    return 0;
}

/* ---- what is asked ---- */

int iw_prefetch(const void *addr, size_t len, bool write)
{
    uintptr_t first = (uintptr_t)addr, page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    if (can_populate() && populate(page, len + (first - page), write))
        return 0;
    return iw_probe(addr, len, write);
}

bool iw_probe_gone(const void *addr)
{
    uintptr_t page = (uintptr_t)addr & -(uintptr_t)sysconf(_SC_PAGESIZE);
    int saved = errno;
    int error = madvise((void *)page, 1, MADV_POPULATE_READ) ? errno : 0;
    errno = saved;
    if (error == EINVAL || !can_populate()) /* or not allowed, or not known to this mapping */
        return iw_probe(addr, 1, false);
    return error == ENOMEM || error == EFAULT;
}

bool iw_probe_hole(const void *addr, size_t len)
{
    uintptr_t first = (uintptr_t)addr, page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    return !has_no_hole(page, len + (first - page));
}

int iw_probe(const void *addr, size_t len, bool write)
{
    uintptr_t first = (uintptr_t)addr, last = first + (len - 1);
    uintptr_t page = first & -(uintptr_t)sysconf(_SC_PAGESIZE);
    size_t span = last - page + 1;

    if (span <= POPULATE_MAX && can_populate() && populate(page, span, write))
        return 0;
    static atomic_bool unknown; /* MAP_QUERY */
    int r = -ENOTTY, maps = -1;
    if (!atomic_load(&unknown))
        maps = (int)sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (maps >= 0) {
        r = look_up(maps, first, last, write);
        sys_close(maps);
        if (r == -ENOTTY)
            atomic_store(&unknown, true);
    }
    return r == 0 || r == -EFAULT ? -r : iw_probe_places(addr, len, write);
}
