/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/pcap_file.h"

#include "common/sys.h"
#include "env/conf.h"
#include "env/fd.h"
#include "env/log.h"
#include "wire/text.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MB (1024 * 1024)

static struct {
    bool tried;
    int fd; /* -1: nothing is captured, or no more */
    uint64_t size, max;
    dev_t dev;
    ino_t ino;
    char path[512];
} file = {.fd = -1};

/** Each %p of the pattern is the number of the process. */
static void make_path(const char *pattern)
{
    file.path[0] = 0;
    for (const char *p; (p = strstr(pattern, "%p")); pattern = p + 2)
        text_add(file.path, sizeof(file.path), "%.*s%d", (int)(p - pattern), pattern,
                 (int)getpid());
    text_add(file.path, sizeof(file.path), "%s", pattern);
}

static void stop(const char *why)
{
    iw_log(IW_LOG_ASKED, "%s: %s: no more is captured", file.path, why);
    if (file.fd >= 0)
        sys_close(file.fd);
    file.fd = -1;
}

static bool write_all(const struct iovec *iov, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    long r = sys_pwritev(file.fd, iov, n, (int64_t)file.size);
    if (r == (long)len) {
        file.size += len;
        return true;
    }
    stop(ftruncate(file.fd, (off_t)file.size) || r >= 0 ? strerror(EIO) : strerror((int)-r));
    return false;
}

/** The program may have closed what it does not know, and opened something else. */
static bool is_ours(void)
{
    struct stat st;
    return !fstat(file.fd, &st) && st.st_dev == file.dev && st.st_ino == file.ino;
}

/** Whether what was opened is there to be written over. @return NULL, or why not */
static const char *refuse(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "no regular file";
    if (st->st_uid != geteuid())
        return "the file of another user";
    return st->st_nlink > 1 ? "it has another name, too" : NULL;
}

/** @return NULL, or why not */
static const char *open_it(void)
{
    struct stat st;
    uint8_t start[PCAPNG_START_MAX];
    int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    long fd = sys_open(file.path, flags, 0600);
    if (fd == -ELOOP)
        return "a symbolic link";
    if (fd < 0)
        return strerror((int)-fd);
    file.fd = iw_fd_high((int)fd);
    if (fstat(file.fd, &st))
        return strerror(errno);
    const char *why = refuse(&st);
    if (why)
        return why;
    if (flock(file.fd, LOCK_EX | LOCK_NB))
        return "another process writes it; %p in the name makes it each process's own";
    if (fchmod(file.fd, 0600) || ftruncate(file.fd, 0))
        return strerror(errno);
    file.dev = st.st_dev;
    file.ino = st.st_ino;
    struct iovec iov = {.iov_base = start,
                        .iov_len = pcapng_start(start, "anywarp " PACKAGE_VERSION)};
    write_all(&iov, 1);
    return NULL;
}

bool iw_pcap_file_open(void)
{
    const struct iw_conf *conf = iw_conf();
    struct rlimit limit;
    if (file.tried)
        return file.fd >= 0;
    file.tried = true;
    file.size = 0;
    file.max = (uint64_t)conf->pcap_mb * MB;
    if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur < file.max) /* else a signal comes */
        file.max = limit.rlim_cur;
    if (!conf->pcap[0] || getauxval(AT_SECURE))
        return false;
    make_path(conf->pcap);
    const char *why = open_it();
    if (why)
        stop(why);
    return file.fd >= 0;
}

void iw_pcap_file_add(const struct tcp_ip *h, const uint8_t *data, uint32_t len, bool outgoing)
{
    uint8_t head[PCAPNG_HEAD + PCAPNG_TCP_IP_MAX], tail[PCAPNG_TAIL_MAX];
    struct timespec ts;
    if (file.fd < 0)
        return;
    if (!is_ours()) {
        file.fd = -1;
        stop("the program closed it");
        return;
    }
    clock_gettime(CLOCK_REALTIME, &ts);
    size_t ip = tcp_ip_encode(head + PCAPNG_HEAD, h, data, len);
    uint32_t packet = (uint32_t)ip + len;
    pcapng_head(head, (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec, packet);
    struct iovec iov[] = {
        {.iov_base = head, .iov_len = PCAPNG_HEAD + ip},
        {.iov_base = (void *)data, .iov_len = len},
        {.iov_base = tail, .iov_len = pcapng_tail(tail, packet, outgoing)},
    };
    if (file.size + iov[0].iov_len + iov[1].iov_len + iov[2].iov_len > file.max)
        stop("it has the size of ANYWARP_PCAP_MB, or the largest that is allowed");
    else
        write_all(iov, 3);
}

void iw_pcap_file_leave(void)
{
    if (file.fd >= 0 && is_ours())
        sys_close(file.fd);
    file.fd = -1;
    if (file.tried) /* else the child may be the first to open it */
        file.tried = !strstr(iw_conf()->pcap, "%p");
}
