/* SPDX-License-Identifier: BSD-2-Clause */
#include "local/pages.h"

#include "common/sys.h"
#include "env/cgroup.h"
#include "env/fd.h"

#include <linux/magic.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define RINGS     2
#define RING_MAX  (16u << 20)
#define PAIRS_MAX 1024                  /* of a process: a map has an end */
#define BYTES_MAX (256ul * 1024 * 1024) /* of all of them */
#define SHARE     8                     /* of the memory that it may have: a part */

static atomic_uint pairs;
static atomic_ulong bytes;
static unsigned long bytes_max;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void find_max(void)
{
    uint64_t allowed = iw_cgroup_memory(""), all = (uint64_t)sysconf(_SC_PHYS_PAGES) * page(),
             share = (allowed < all ? allowed : all) / SHARE;
    bytes_max = share < BYTES_MAX ? (unsigned long)share : BYTES_MAX;
}

static size_t file_size(size_t ring)
{
    return page() + RINGS * ring;
}

static void uncount(size_t ring)
{
    atomic_fetch_sub(&pairs, 1);
    atomic_fetch_sub(&bytes, RINGS * ring);
}

/** @return false if the process has enough */
static bool count(size_t ring)
{
    pthread_once(&once, find_max);
    bool few = atomic_fetch_add(&pairs, 1) < PAIRS_MAX;
    bool small = atomic_fetch_add(&bytes, RINGS * ring) + RINGS * ring <= bytes_max;
    if (!few || !small)
        uncount(ring);
    return few && small;
}

static bool map_at(uint8_t *at, size_t len, int fd, size_t from)
{
    return mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)from) == at;
}

static int map(struct iw_pages *p, int fd, size_t ring)
{
    size_t first = page();
    p->ring = ring;
    p->mapped = first + RINGS * 2 * ring;
    p->base = mmap(NULL, p->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->base == MAP_FAILED) {
        p->base = NULL;
        return -ENOMEM;
    }
    bool done = map_at(p->base, first, fd, 0);
    for (size_t i = 0; i < (size_t)RINGS * 2 && done; i++)
        done = map_at(p->base + first + i * ring, ring, fd, first + i / 2 * ring);
    if (done)
        done = madvise(p->base, p->mapped, MADV_DONTFORK) == 0;
    if (done)
        return 0;
    munmap(p->base, p->mapped);
    p->base = NULL;
    return -ENOMEM;
}

static int counted_map(struct iw_pages *p, int fd, size_t ring)
{
    if (!count(ring))
        return -ENOSPC;
    int r = map(p, fd, ring);
    if (r)
        uncount(ring);
    return r;
}

/** Whether the process may have a file of that size: else making it would raise SIGXFSZ. */
static bool may_be(size_t size)
{
    struct rlimit l;
    return getrlimit(RLIMIT_FSIZE, &l) || l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= size;
}

int iw_pages_make(struct iw_pages *p, size_t ring)
{
    if (!may_be(file_size(ring)))
        return -EFBIG;
    int fd = (int)sys_memfd_create("anywarp", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return fd;
    fd = iw_fd_high(fd);
    int r = (int)sys_ftruncate(fd, (long)file_size(ring));
    if (!r)
        r = (int)sys_fcntl(fd, F_ADD_SEALS, SEALS);
    if (!r)
        r = counted_map(p, fd, ring);
    if (!r)
        return fd;
    sys_close(fd);
    return r;
}

/** Whether it is memory that stays as it is: not of huge pages, which can run out. */
static bool is_safe(int fd)
{
    struct statfs fs;
    long seals = sys_fcntl(fd, F_GET_SEALS, 0);
    return seals >= 0 && (seals & SEALS) == SEALS && sys_fstatfs(fd, &fs) == 0 &&
           fs.f_type == TMPFS_MAGIC;
}

int iw_pages_open(struct iw_pages *p, int fd, size_t ring)
{
    if (ring < page() || ring > RING_MAX || (ring & (ring - 1)))
        return -EINVAL;
    if (!is_safe(fd))
        return -EPERM;
    if (sys_lseek(fd, 0, SEEK_END) != (long)file_size(ring))
        return -EINVAL;
    return counted_map(p, fd, ring);
}

struct iwc_shm_rings iw_pages_rings(const struct iw_pages *p, bool made, int bell)
{
    struct iwc_ring_ctl *ctl = (struct iwc_ring_ctl *)p->base;
    uint8_t *data = p->base + page();
    struct iwc_shm_rings r = {.out_ctl = &ctl[!made],
                              .in_ctl = &ctl[made],
                              .out = data + !made * 2 * p->ring,
                              .in = data + made * 2 * p->ring,
                              .size = p->ring,
                              .bell = bell};
    return r;
}

void iw_pages_close(struct iw_pages *p)
{
    if (!p->base)
        return;
    munmap(p->base, p->mapped);
    uncount(p->ring);
    p->base = NULL;
}

void iw_pages_forget(struct iw_pages *p)
{
    if (p->base)
        uncount(p->ring);
    p->base = NULL;
}
