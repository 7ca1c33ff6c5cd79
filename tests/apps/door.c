/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every call of libc that the door of --system-libraries takes, on descriptors of the devices and
 * on others. Linked with nothing: the devices are there because the door is. "door gids" prints the
 * GID table as sysfs has it, again for each line that it reads.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEVICE "/dev/infiniband/uverbs0"
#define CM     "/dev/infiniband/rdma_cm"

static int failures;

#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #cond, errno);   \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

/* A command without more than a response. @return 0 or errno */
static int command(int fd, uint32_t number, void *resp, size_t out)
{
    struct ib_uverbs_cmd_hdr hdr = {number, 4, (uint16_t)(out / 4)};
    uint64_t bytes[2] = {0, (uintptr_t)resp};
    memcpy(bytes, &hdr, sizeof hdr);
    ssize_t n = write(fd, bytes, sizeof bytes);
    return n == sizeof bytes ? 0 : n < 0 ? errno : EIO;
}

static int has_context(int fd)
{
    uint32_t device[44];
    return command(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, device, sizeof device) == 0;
}

static int open_context(void)
{
    uint32_t resp[2];
    int fd = open(DEVICE, O_RDWR | O_CLOEXEC);
    EXPECT(fd >= 0);
    EXPECT(command(fd, IB_USER_VERBS_CMD_GET_CONTEXT, resp, sizeof resp) == 0);
    EXPECT(close((int)resp[0]) == 0);
    return fd;
}

static void is_opened(int fd, int cloexec)
{
    struct stat st;
    EXPECT(fd >= 0);
    EXPECT(fstat(fd, &st) == 0 && S_ISCHR(st.st_mode));
    EXPECT(fcntl(fd, F_GETFD) == (cloexec ? FD_CLOEXEC : 0));
    EXPECT(close(fd) == 0);
    EXPECT(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

static void all_ways_to_open(void)
{
    int (*open_2)(const char *, int) = dlsym(RTLD_DEFAULT, "__open_2");
    int (*open64_2)(const char *, int) = dlsym(RTLD_DEFAULT, "__open64_2");
    is_opened(open(DEVICE, O_RDWR), 0);
    is_opened(open64(DEVICE, O_RDWR | O_CLOEXEC), 1);
    is_opened(openat(AT_FDCWD, CM, O_RDWR | O_CLOEXEC), 1);
    is_opened(openat64(-1, CM, O_RDWR), 0);
    is_opened(open_2(DEVICE, O_RDWR | O_CLOEXEC), 1);
    is_opened(open64_2(CM, O_RDWR), 0);
    EXPECT(open("/dev/infiniband/uverbs7", O_RDWR) == -1);
    EXPECT(open("/dev/infiniband/issm0", O_RDWR) == -1 && errno == ENOENT);

    char path[] = "/tmp/door.XXXXXX";
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    struct stat st;
    EXPECT(fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & 0137));
    EXPECT(close(fd) == 0 && unlink(path) == 0);
}

static void is_device(int result, const struct stat *st, dev_t dev)
{
    EXPECT(result == 0 && S_ISCHR(st->st_mode) && st->st_rdev == dev);
}

/* Programs of before glibc 2.33 have those with two underscores in them. */
static void both_families_of_stat(void)
{
    static const char *const paths[] = {"__xstat", "__xstat64"};
    static const char *const fds[] = {"__fxstat", "__fxstat64"};
    struct stat st;
    struct stat64 st64;
    int fd = open(DEVICE, O_RDWR | O_CLOEXEC), root = open("/", O_RDONLY | O_CLOEXEC);
    dev_t dev = makedev(231, 192);
    is_device(stat(DEVICE, &st), &st, dev);
    is_device(fstat(fd, &st), &st, dev);
    is_device(stat(CM, &st), &st, makedev(10, 58));
    EXPECT(stat64(DEVICE, &st64) == 0 && S_ISCHR(st64.st_mode));
    EXPECT(fstat64(fd, &st64) == 0 && st64.st_rdev == dev);
    for (int i = 0; i < 2; i++) {
        int (*xstat)(int, const char *, void *) = dlsym(RTLD_DEFAULT, paths[i]);
        int (*fxstat)(int, int, void *) = dlsym(RTLD_DEFAULT, fds[i]);
        is_device(xstat(1, DEVICE, &st), &st, dev);
        is_device(fxstat(1, fd, &st), &st, dev);
#ifdef __x86_64__ /* others number their structs differently, or have none but the newest */
        EXPECT(xstat(1, "/", &st) == 0 && S_ISDIR(st.st_mode));
        EXPECT(fxstat(1, root, &st) == 0 && S_ISDIR(st.st_mode));
#endif
    }
    EXPECT(stat("/", &st) == 0 && S_ISDIR(st.st_mode));
    EXPECT(fstat(root, &st) == 0 && S_ISDIR(st.st_mode));
    EXPECT(stat("/dev/infiniband/none", &st) == -1);
    EXPECT(close(fd) == 0 && close(root) == 0);
}

/* Whatever makes a duplicate, it is the same device, and stays when the first is closed. */
static void all_ways_to_duplicate(void)
{
    for (int way = 0; way < 5; way++) {
        int fd = open_context();
        int copy = way == 0   ? dup(fd)
                   : way == 1 ? dup2(fd, 200)
                   : way == 2 ? dup3(fd, 201, O_CLOEXEC)
                   : way == 3 ? fcntl(fd, F_DUPFD, 202)
                              : fcntl(fd, F_DUPFD_CLOEXEC, 203);
        EXPECT(copy >= (way ? 199 + way : 0));
        EXPECT(close(fd) == 0);
        EXPECT(has_context(copy));
        EXPECT(close(copy) == 0);
        EXPECT(write(copy, &fd, 4) == -1 && errno == EBADF);
    }
    /* A foreign one takes the place of one of ours, and the other way round. */
    int fd = open_context(), other = eventfd(0, EFD_CLOEXEC), number = fd;
    uint64_t one = 1;
    EXPECT(dup2(other, fd) == number);
    EXPECT(write(fd, &one, sizeof one) == sizeof one);
    EXPECT(read(other, &one, sizeof one) == sizeof one && one == 1);
    fd = open_context();
    EXPECT(dup2(fd, other) == other && has_context(other));
    EXPECT(dup2(fd, fd) == fd && has_context(fd));
    EXPECT(close(fd) == 0 && close(other) == 0 && close(number) == 0);
}

static void all_ways_to_close(void)
{
    int (*range)(unsigned, unsigned, int) = dlsym(RTLD_DEFAULT, "close_range");
    int fd = open_context();
    EXPECT(range(7, 3, 0) == -1 && errno == EINVAL && has_context(fd));
    EXPECT(range((unsigned)fd, (unsigned)fd, 1 << 20) == -1 && has_context(fd));
    if (range((unsigned)fd, (unsigned)fd, 0) == 0) {
        EXPECT(!has_context(fd));
        EXPECT(fcntl(fd, F_GETFD) == -1);
        fd = open_context();
        EXPECT(range((unsigned)fd, (unsigned)fd, 4) == 0 && has_context(fd)); /* CLOEXEC */
    } else {
        EXPECT(errno == ENOSYS && has_context(fd)); /* before Linux 5.9 */
    }
    EXPECT(close(fd) == 0);
}

static int status_of(pid_t pid)
{
    int status = -1;
    EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* In a child, as programs do it: it takes away the engine's own descriptors, too. */
static void from_here_on(void)
{
    void (*close_from)(int) = dlsym(RTLD_DEFAULT, "closefrom");
    if (!dlvsym(RTLD_NEXT, "closefrom", "GLIBC_2.34"))
        return;
    int parents = open_context();
    pid_t pid = fork();
    if (pid == 0) {
        failures = 0;
        int fd = open_context();
        close_from(fd < parents ? fd : parents);
        EXPECT(!has_context(fd) && fcntl(fd, F_GETFD) == -1);
        _exit(failures != 0);
    }
    EXPECT(status_of(pid) == 0);
    EXPECT(has_context(parents) && close(parents) == 0);
}

/* A child closes what it got, as children do, and opens a device of its own. */
static void children_destroy_nothing(void)
{
    int fd = open_context();
    uint32_t pd;
    EXPECT(command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd, 4) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        failures = 0;
        EXPECT(command(fd, IB_USER_VERBS_CMD_ALLOC_PD, &pd, 4) == EBADF);
        EXPECT(close(fd) == 0 && close(fd) == -1);
        fd = open_context();
        EXPECT(has_context(fd) && close(fd) == 0);
        _exit(failures != 0);
    }
    EXPECT(status_of(pid) == 0);
    EXPECT(has_context(fd));
    pid = vfork();
    if (pid == 0) {
        close(fd);
        dup2(0, fd);
        _exit(0);
    }
    EXPECT(status_of(pid) == 0);
    EXPECT(has_context(fd));
    uint32_t dealloc[3] = {IB_USER_VERBS_CMD_DEALLOC_PD, 3, pd};
    EXPECT(write(fd, dealloc, sizeof dealloc) == sizeof dealloc);
    EXPECT(close(fd) == 0);
}

static void polled_by_the_kernel(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    ssize_t (*read_chk)(int, void *, size_t, size_t) = dlsym(RTLD_DEFAULT, "__read_chk");
    int fd = open_context(), channel, set = epoll_create1(EPOLL_CLOEXEC);
    uint64_t record;
    EXPECT(command(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, &channel, 4) == 0);
    EXPECT(epoll_ctl(set, EPOLL_CTL_ADD, channel, &event) == 0);
    EXPECT(epoll_wait(set, &event, 1, 0) == 0);
    struct pollfd none = {channel, POLLIN, 0};
    EXPECT(poll(&none, 1, 0) == 0);
    EXPECT(fcntl(channel, F_SETFL, O_NONBLOCK) == 0);
    EXPECT(read(channel, &record, sizeof record) == -1 && errno == EAGAIN);
    EXPECT(read_chk(channel, &record, 8, 8) == -1 && errno == EAGAIN);
    EXPECT(close(set) == 0 && close(channel) == 0 && close(fd) == 0);
}

static void calls_of_others_go_on(void)
{
    enum { RDMA = 20, ROUTE = 0 };
    int ends[2], n = 0;
    char byte = 'x';
    EXPECT(socket(AF_NETLINK, SOCK_RAW, RDMA) == -1 && errno == EPROTONOSUPPORT);
    int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, ROUTE);
    EXPECT(s >= 0 && close(s) == 0);
    EXPECT(pipe(ends) == 0 && write(ends[1], &byte, 1) == 1);
    EXPECT(ioctl(ends[0], FIONREAD, &n) == 0 && n == 1);
    EXPECT(ioctl(ends[0], RDMA_VERBS_IOCTL, &n) == -1 && errno == ENOTTY);
    EXPECT(read(ends[0], &byte, 1) == 1);
    EXPECT(close(ends[0]) == 0 && close(ends[1]) == 0);
    EXPECT(close(-1) == -1 && errno == EBADF);
}

/* The trace's descriptor goes, as with a program that closes all, and is another file's then. */
static void traces_into_no_other_file(void)
{
    char path[64], at[512];
    const char *trace = getenv("ANYWARP_UVERBS_TRACE");
    int fd = open_context();
    for (int i = 3; trace && i < 64; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        ssize_t n = readlink(path, at, sizeof at - 1);
        at[n > 0 ? n : 0] = '\0';
        if (strcmp(at, trace) != 0)
            continue;
        int other = memfd_create("other", MFD_CLOEXEC);
        struct stat st;
        EXPECT(dup2(other, i) == i);
        EXPECT(has_context(fd));
        EXPECT(fstat(other, &st) == 0 && st.st_size == 0);
        EXPECT(close(i) == 0 && close(other) == 0);
        trace = NULL;
    }
    EXPECT(!trace);
    EXPECT(close(fd) == 0);
}

static int threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static int print_gids(void)
{
    char path[512], line[128];
    const char *folder = getenv("SYSFS_PATH");
    do {
        for (int i = 0; i < 16; i++) {
            snprintf(path, sizeof path, "%s/class/infiniband/anywarp0/ports/1/gids/%d",
                     folder ? folder : "", i);
            int fd = open(path, O_RDONLY | O_CLOEXEC);
            ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof line);
            if (fd < 0 || n <= 0 || close(fd) != 0)
                return 1;
            if (write(1, line, (size_t)n) != n)
                return 1;
        }
    } while (fgets(line, sizeof line, stdin));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "gids"))
        return print_gids();
    EXPECT(threads() == 1);
    all_ways_to_open();
    both_families_of_stat();
    all_ways_to_duplicate();
    children_destroy_nothing();
    polled_by_the_kernel();
    calls_of_others_go_on();
    all_ways_to_close();
    from_here_on();
    traces_into_no_other_file();
    return failures != 0;
}
