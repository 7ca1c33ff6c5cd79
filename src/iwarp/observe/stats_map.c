/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/stats_map.h"

#include "common/sys.h"
#include "device/device.h"
#include "env/conf.h"
#include "env/log.h"
#include "observe/stats_file.h"
#include "wire/text.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define QPS_FIRST 16 /* rows that the file has room for at first */
#define QPS_STEP  256
#define PAGE_MAX  65536 /* of any machine */

static struct {
    bool tried;
    bool full;  /* it cannot grow any more */
    size_t end; /* bytes of the page that are the file's */
    char dir[STATS_PATH_MAX];
    char name[STATS_NAME_MAX]; /* empty: there is no file */
    dev_t dev;
    ino_t ino;
} file;

/** Begins somewhere in a page of the machine, and the last row ends somewhere in another. */
static uint8_t room[sizeof(struct stats_page) + 2 * PAGE_MAX];

struct stats_page *iw_stats_page(void)
{
    uintptr_t to = (uintptr_t)getpagesize() - 1;
    return (struct stats_page *)(((uintptr_t)room + to) & ~to);
}

/** Where the page ends that has the last byte of so many rows. */
static size_t end_of(size_t qps)
{
    size_t to = (size_t)getpagesize() - 1;
    return (offsetof(struct stats_page, qps) + qps * sizeof(struct stats_qp) + to) & ~to;
}

/** Makes the memory up to @p end that of the file @p fd. @return 0 or a negative errno */
static long extend(int fd, size_t end)
{
    uint8_t *from = (uint8_t *)iw_stats_page() + file.end;
    size_t len = end - file.end;
    assert(from + len <= room + sizeof(room));
    struct rlimit limit; /* beyond it a signal would come */
    if (getrlimit(RLIMIT_FSIZE, &limit) || end > limit.rlim_cur)
        return -EFBIG;
    if (fallocate(fd, 0, (off_t)file.end, (off_t)len))
        return -errno;
    for (size_t done = 0; done < len;) {
        ssize_t n = pwrite(fd, from + done, len - done, (off_t)(file.end + done));
        if (n <= 0)
            return n ? -errno : -EIO;
        done += (size_t)n;
    }
    if (mmap(from, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)file.end) ==
        MAP_FAILED)
        return -errno;
    file.end = end;
    return 0;
}

bool iw_stats_map_wanted(void)
{
    return !file.tried;
}

static void list_devices(char *out, size_t size)
{
    int n;
    struct ibv_device **list = iw_device_list(&n);
    *out = 0;
    for (struct ibv_device **d = list; d && *d; d++) {
        const char *interface = iw_device(*d)->interface;
        text_add(out, size, "%s%s%s%s", *out ? " " : "", (*d)->name, *interface ? "=" : "",
                 interface);
    }
    if (list)
        iw_device_list_free(list);
}

static void describe(struct stats_head *h, const struct stats_owner *self)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    memcpy(h->magic, STATS_MAGIC, sizeof(h->magic));
    h->version = STATS_VERSION;
    h->pid = self->pid;
    h->uid = geteuid();
    h->start = self->start;
    h->ns = self->ns;
    h->began = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
    snprintf(h->release, sizeof(h->release), "%s", PACKAGE_VERSION);
    snprintf(h->command, sizeof(h->command), "%s", program_invocation_short_name);
    list_devices(h->devices, sizeof(h->devices));
}

/** Opens the file in its directory, as often as it is needed. @return as sys_openat() */
static long open_own(int flags)
{
    int dir = stats_dir_open(file.dir);
    if (dir < 0)
        return dir;
    long fd = sys_openat(dir, file.name, flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    sys_close(dir);
    return fd;
}

static void unlink_own(void)
{
    int dir = stats_dir_open(file.dir);
    if (dir < 0)
        return;
    unlinkat(dir, file.name, 0);
    sys_close(dir);
}

/** @return a descriptor of the new file, or a negative errno */
static long create(const struct stats_owner *self)
{
    if (mkdir(file.dir, 0700) && errno != EEXIST)
        return -errno;
    int dir = stats_dir_open(file.dir);
    if (dir < 0)
        return dir;
    stats_evict(dir, STATS_KEEP);
    sys_close(dir);
    stats_name(file.name, self);
    unlink_own(); /* of what this process was before it called exec() */
    return open_own(O_CREAT | O_EXCL);
}

static void close_file(long fd)
{
    if (fd >= 0)
        sys_close((int)fd);
}

static long open_in(const struct stats_owner *self, size_t end)
{
    struct stat st;
    long fd = create(self);
    long r = fd < 0 ? fd : fstat((int)fd, &st) ? -errno : extend((int)fd, end);
    close_file(fd);
    if (r && fd >= 0)
        unlink_own();
    if (r) {
        file.name[0] = 0;
        return r;
    }
    file.dev = st.st_dev;
    file.ino = st.st_ino;
    return 0;
}

static void open_file(size_t qps)
{
    const struct iw_conf *conf = iw_conf();
    struct stats_owner self;
    long r = -ENOENT;
    file.tried = true;
    if (!conf->stats || getauxval(AT_SECURE))
        return;
    self = stats_self();
    describe(&iw_stats_page()->head, &self);
    for (unsigned i = 0; r && stats_dir(conf->stats_dir, i, file.dir); i++) {
        r = open_in(&self, end_of(qps < QPS_FIRST ? QPS_FIRST : qps));
        if (r)
            iw_log(conf->stats_dir[0] == '/' ? IW_LOG_ASKED : IW_LOG_INFO,
                   "no statistics in %s: %s", file.dir,
                   r == -EPERM ? "others may use it, or it is another's" : strerror((int)-r));
    }
}

static void grow(size_t qps)
{
    struct stat st;
    size_t step = qps < QPS_STEP ? qps : QPS_STEP;
    size_t end = end_of(qps + step < STATS_QPS ? qps + step : STATS_QPS);
    long fd = open_own(0);
    long r = fd < 0 ? fd : fstat((int)fd, &st) ? -errno : 0;
    if (!r && (st.st_dev != file.dev || st.st_ino != file.ino))
        r = -ESTALE;
    if (!r)
        r = extend((int)fd, end);
    close_file(fd);
    if (r) {
        iw_log(IW_LOG_INFO, "statistics of more than %zu queue pairs are not shown: %s", qps - 1,
               strerror((int)-r));
        file.full = true;
    }
}

/** Runs it with cancellation off: much of it waits for a disk, and the caller holds a lock. */
static void uncancelled(void (*body)(size_t), size_t qps)
{
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    body(qps);
    pthread_setcancelstate(state, &state);
}

void iw_stats_map_open(size_t qps)
{
    uncancelled(open_file, qps);
}

void iw_stats_map_grow(size_t qps)
{
    if (file.name[0] && !file.full && end_of(qps) > file.end)
        uncancelled(grow, qps);
}

/** Memory of the file becomes the process's own where it is: there may be no room for more. */
static void own(uint8_t *from, size_t len)
{
    static uint8_t saved[PAGE_MAX]; /* the child has one thread */
    assert(len <= sizeof(saved));
    memcpy(saved, from, len);
    if (mmap(from, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
        abort(); /* or it would write over its parent's */
    memcpy(from, saved, len);
}

void iw_stats_map_leave(void)
{
    for (size_t at = 0, len; at < file.end; at += len) {
        len = file.end - at < PAGE_MAX ? file.end - at : PAGE_MAX;
        own((uint8_t *)iw_stats_page() + at, len);
    }
    file.tried = file.full = false;
    file.end = 0;
    file.name[0] = 0;
}

/** At exit(), which may be called by a signal handler: no lock. */
static void __attribute__((destructor)) leave_file(void)
{
    struct stats_head *head = &iw_stats_page()->head;
    if (!file.name[0])
        return;
    if (__atomic_load_n(&head->gauge[STATS_errors], __ATOMIC_RELAXED))
        __atomic_store_n(&head->exited, 1, __ATOMIC_RELAXED);
    else
        unlink_own();
}
