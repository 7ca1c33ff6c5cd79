/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program of sockets, one case after the other, with the answers of Linux: rspreload.sh plays it
 * by TCP and on rsockets.
 *
 *     sockets PORT [CASE...]
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 100

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "%s:%d: %s, %s\n", __FILE__, __LINE__, #what, strerror(errno));        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int listener, ends[2];
static struct sockaddr_in address;

static void open_ends(void)
{
    CHECK((ends[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(connect(ends[0], (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK((ends[1] = accept(listener, NULL, NULL)) >= 0);
}

static void close_ends(void)
{
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

/* ---- Numbers ---- */

/** The number of ends[0] was closed: a file has it now, and its bytes. */
static void file_takes_number(int fd)
{
    char bytes[8] = "";
    CHECK(fd == ends[0]);
    CHECK(write(fd, "file", 4) == 4);
    CHECK(recv(ends[1], bytes, sizeof(bytes), 0) == 0);
    CHECK(pread(fd, bytes, sizeof(bytes), 0) == 4 && !memcmp(bytes, "file", 4));
    close_ends();
}

/** By a call that is not seen. */
static int make_file(void)
{
    char path[] = "/tmp/sockets-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && unlink(path) == 0);
    return fd;
}

static void closed_by_fclose(void)
{
    open_ends();
    FILE *file = fdopen(ends[0], "r+");
    CHECK(file && fclose(file) == 0);
    file_takes_number(make_file());
}

static void closed_by_close_range(void)
{
    open_ends();
    CHECK(close_range((unsigned)ends[0], (unsigned)ends[0], 0) == 0);
    file_takes_number(make_file());
}

/** Nobody sees the end of the number, but that another one has it. */
static void closed_unseen(void)
{
    char path[] = "/tmp/sockets-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    open_ends();
    CHECK(syscall(SYS_close, ends[0]) == 0);
    int fd = open(path, O_RDWR);
    CHECK(unlink(path) == 0);
    file_takes_number(fd);
}

/* ---- Connecting ---- */

static int connect_to(const struct sockaddr_in *to)
{
    return connect(ends[0], (const struct sockaddr *)to, sizeof(*to));
}

/** Not blocking, and back. @return errno of the end, by SO_ERROR or by another connect() */
static int refusal(const struct sockaddr_in *to, bool by_option)
{
    int flags = fcntl(ends[0], F_GETFL), error = 0;
    struct pollfd p = {ends[0], POLLOUT, 0};
    CHECK(fcntl(ends[0], F_SETFL, flags | O_NONBLOCK) == 0);
    if (connect_to(to) < 0 && errno == EINPROGRESS) {
        CHECK(poll(&p, 1, 20000) == 1);
        if (by_option)
            CHECK(getsockopt(ends[0], SOL_SOCKET, SO_ERROR, &error, &(socklen_t){4}) == 0);
        CHECK(connect_to(to) < 0);
    }
    error = error ? error : errno;
    CHECK(fcntl(ends[0], F_SETFL, flags) == 0);
    return error;
}

/** Whom nobody heard may try again: on the same socket, bound or not. */
static void refused_again(void)
{
    struct sockaddr_in nobody = address, own = {.sin_family = AF_INET};
    nobody.sin_port = htons(1);
    own.sin_addr = address.sin_addr;
    for (int i = 0; i < 4; i++) {
        char byte;
        CHECK((ends[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        if (i % 2)
            CHECK(bind(ends[0], (struct sockaddr *)&own, sizeof(own)) == 0);
        CHECK(connect_to(&nobody) < 0 && errno == ECONNREFUSED);
        CHECK(connect_to(&nobody) < 0 && errno == ECONNREFUSED);
        CHECK(refusal(&nobody, i / 2) == ECONNREFUSED);
        CHECK(connect_to(&address) == 0);
        CHECK((ends[1] = accept(listener, NULL, NULL)) >= 0);
        CHECK(send(ends[0], "x", 1, 0) == 1 && recv(ends[1], &byte, 1, 0) == 1);
        CHECK(connect_to(&address) < 0 && errno == EISCONN);
        close_ends();
    }
}

/* ---- fork() ---- */

static atomic_bool connectors_end;

static void connect_once(void)
{
    struct sockaddr_in all = address;
    all.sin_addr.s_addr = INADDR_BROADCAST;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&all, sizeof(all)) < 0);
    CHECK(close(fd) == 0);
}

static void *connect_in_vain(void *unused)
{
    while (!atomic_load(&connectors_end))
        connect_once();
    return unused;
}

/** A child may connect, whatever other threads were at. */
static void children_connect(void)
{
    pthread_t connectors[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&connectors[i], NULL, connect_in_vain, NULL) == 0);
    for (int i = 0; i < 400; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(30);
            connect_once();
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
    }
    atomic_store(&connectors_end, true);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(connectors[i], NULL) == 0);
}

/* ---- select ---- */

#define BEYOND 1500

/** Numbers beyond FD_SETSIZE, in sets as large; @p n may be more than these. */
static void select_beyond(int n)
{
    char byte;
    struct timeval t = {0, 0}, long_enough = {20, 0};
    fd_set sets[2] = {0};
    uint64_t *word = (uint64_t *)sets + BEYOND / 64, bit = UINT64_C(1) << BEYOND % 64;
    *word = bit;
    CHECK(select(n, sets, NULL, NULL, &t) == 0 && *word == 0);
    *word = bit;
    CHECK(pselect(n, NULL, sets, NULL, NULL, NULL) == 1 && *word == bit);
    CHECK(send(ends[0], "x", 1, 0) == 1);
    FD_SET(ends[1], sets);
    CHECK(select(n, sets, NULL, NULL, &long_enough) == 2 && *word == bit);
    CHECK(FD_ISSET(ends[1], sets));
    CHECK(recv(ends[1], &byte, 1, 0) == 1);
}

static void selects_large_numbers(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max <= BEYOND || setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    open_ends();
    CHECK(dup2(ends[1], BEYOND) == BEYOND);
    select_beyond(BEYOND + 1);
    select_beyond(1 << 30);
    CHECK(close(BEYOND) == 0);
    close_ends();
}

/* ---- epoll ---- */

static int set_of(int fd, uint32_t events)
{
    int set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {events, {.fd = fd}};
    CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
    return set;
}

static void is_told(int set, int fd, uint32_t events)
{
    struct epoll_event event;
    CHECK(epoll_wait(set, &event, 1, 20000) == 1);
    CHECK(event.data.fd == fd && (event.events & events) == events);
}

struct waiter {
    int set;
    atomic_int thread;
};

static void *wait_for_one(void *data)
{
    struct waiter *w = data;
    struct epoll_event event;
    atomic_store(&w->thread, (int)syscall(SYS_gettid));
    CHECK(epoll_wait(w->set, &event, 1, -1) == 1);
    return NULL;
}

/** As far as can be seen from without. */
static bool sleeps(int thread)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    CHECK(file && fgets(line, sizeof(line), file) && fclose(file) == 0);
    return strstr(line, ") S ");
}

static void edges_of_listener(void)
{
    int set = set_of(listener, EPOLLIN | EPOLLET), flags = fcntl(listener, F_GETFL);
    CHECK(fcntl(listener, F_SETFL, flags | O_NONBLOCK) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK((ends[0] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        CHECK(connect(ends[0], (struct sockaddr *)&address, sizeof(address)) == 0);
        is_told(set, listener, EPOLLIN);
        CHECK((ends[1] = accept(listener, NULL, NULL)) >= 0);
        CHECK(i == 1 || (accept(listener, NULL, NULL) < 0 && errno == EAGAIN));
        close_ends();
    }
    CHECK(fcntl(listener, F_SETFL, flags) == 0);
    CHECK(close(set) == 0);
}

/** What was added by one number is told as long as another one is open, to which it does not
 * belong.
 */
static void duplicates_in_epoll(void)
{
    open_ends();
    int set = set_of(ends[1], EPOLLIN), first = ends[1];
    struct epoll_event event = {EPOLLIN, {.fd = first}};
    for (int i = 0; i < 2; i++) {
        char byte;
        int other = fcntl(ends[1], F_DUPFD_CLOEXEC, ends[1] + 1);
        CHECK(other >= 0 && close(ends[1]) == 0);
        ends[1] = other;
        CHECK(epoll_ctl(set, EPOLL_CTL_MOD, other, &event) < 0 && errno == ENOENT);
        CHECK(epoll_ctl(set, EPOLL_CTL_DEL, other, &event) < 0 && errno == ENOENT);
        CHECK(epoll_wait(set, &event, 1, 0) == 0);
        CHECK(send(ends[0], "x", 1, 0) == 1);
        is_told(set, first, EPOLLIN);
        CHECK(recv(other, &byte, 1, 0) == 1);
    }
    event = (struct epoll_event){EPOLLIN, {.fd = ends[1]}};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[1], &event) == 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_DEL, ends[1], NULL) == 0);
    close_ends();
    CHECK(epoll_wait(set, &event, 1, 0) == 0);
    CHECK(close(set) == 0);
}

static void edges_of_exact_reads(void)
{
    char bytes[4];
    open_ends();
    int set = set_of(ends[1], EPOLLIN | EPOLLET);
    for (int i = 0; i < 3; i++) {
        CHECK(send(ends[0], "abcd", 4, 0) == 4);
        is_told(set, ends[1], EPOLLIN);
        CHECK(recv(ends[1], bytes, 4, MSG_WAITALL) == 4);
    }
    CHECK(shutdown(ends[0], SHUT_WR) == 0);
    is_told(set, ends[1], EPOLLIN);
    CHECK(recv(ends[1], bytes, 4, 0) == 0);
    close_ends();
    CHECK(close(set) == 0);
}

/** Who closes a socket ends it, too, though another thread waits for it. */
static void closed_beside_epoll(void)
{
    char byte;
    pthread_t waiter;
    int at;
    open_ends();
    struct waiter w = {set_of(ends[1], EPOLLIN), 0};
    CHECK(pthread_create(&waiter, NULL, wait_for_one, &w) == 0);
    while (!(at = atomic_load(&w.thread)) || !sleeps(at))
        usleep(1000);
    CHECK(close(ends[1]) == 0);
    CHECK(recv(ends[0], &byte, 1, 0) == 0);
    CHECK(close(ends[0]) == 0);
    int other = eventfd(1, EFD_CLOEXEC);
    struct epoll_event event = {EPOLLIN, {.fd = other}};
    CHECK(other >= 0 && epoll_ctl(w.set, EPOLL_CTL_ADD, other, &event) == 0);
    CHECK(pthread_join(waiter, NULL) == 0);
    CHECK(close(other) == 0 && close(w.set) == 0);
}

#define THREADS 8

static int crowd_set;
static atomic_int crowd_began, crowd_heard;

/** Takes one event, and is busy with it until all have theirs. */
static void *take_one(void *unused)
{
    struct epoll_event event;
    atomic_fetch_add(&crowd_began, 1);
    CHECK(epoll_wait(crowd_set, &event, 1, -1) == 1);
    atomic_fetch_add(&crowd_heard, 1);
    while (atomic_load(&crowd_heard) < THREADS)
        usleep(1000);
    return unused;
}

static void start_crowd(pthread_t *threads)
{
    atomic_store(&crowd_began, 0);
    atomic_store(&crowd_heard, 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_one, NULL) == 0);
    while (atomic_load(&crowd_began) < THREADS)
        usleep(1000);
    usleep(10000);
}

/** What is added while many threads sleep is known to each of them. */
static void crowd_hears(void)
{
    int mine[THREADS], peers[THREADS];
    pthread_t threads[THREADS];
    struct epoll_event event = {EPOLLIN | EPOLLONESHOT, {.u64 = 0}};
    for (int i = 0; i < THREADS; i++) {
        open_ends();
        mine[i] = ends[0];
        peers[i] = ends[1];
    }
    for (int round = 0; round < 20; round++) {
        char byte;
        crowd_set = set_of(listener, EPOLLIN);
        start_crowd(threads);
        for (int i = 0; i < THREADS; i++)
            CHECK(epoll_ctl(crowd_set, EPOLL_CTL_ADD, peers[i], &event) == 0);
        usleep(10000);
        for (int i = 0; i < THREADS; i++)
            CHECK(send(mine[i], "x", 1, 0) == 1);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0 && recv(peers[i], &byte, 1, 0) == 1);
        CHECK(close(crowd_set) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(close(mine[i]) == 0 && close(peers[i]) == 0);
}

/* ---- Time limits ---- */

static void limit(int fd, int option)
{
    struct timeval t = {0, 200000};
    CHECK(setsockopt(fd, SOL_SOCKET, option, &t, sizeof(t)) == 0);
}

/** Also when a part of what is asked for came, or went. */
static void limits_end_calls(void)
{
    static char much[32 << 20];
    char bytes[8];
    struct iovec iov[2] = {{bytes, 2}, {bytes + 2, 6}};
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
    open_ends();
    limit(ends[0], SO_RCVTIMEO);
    limit(ends[0], SO_SNDTIMEO);
    CHECK(recv(ends[0], bytes, 8, 0) < 0 && errno == EAGAIN);
    CHECK(send(ends[1], "abcd", 4, 0) == 4);
    CHECK(recv(ends[0], bytes, 8, MSG_WAITALL) == 4);
    CHECK(send(ends[1], "abcd", 4, 0) == 4);
    CHECK(recv(ends[0], bytes, 4, MSG_WAITALL | MSG_PEEK) == 4);
    CHECK(recvmsg(ends[0], &msg, 0) == 4 && !memcmp(bytes, "abcd", 4));
    ssize_t sent = 0, n;
    while ((n = send(ends[0], much, sizeof(much) - (size_t)sent, 0)) > 0)
        sent += n;
    CHECK(n < 0 && errno == EAGAIN && sent > 0);
    CHECK(recv(ends[1], much, (size_t)sent, MSG_WAITALL) == sent);
    iov[1].iov_len = 2;
    CHECK(sendmsg(ends[0], &msg, 0) == 4);
    CHECK(recv(ends[1], bytes + 4, 4, MSG_WAITALL) == 4 && !memcmp(bytes + 4, "abcd", 4));
    CHECK(shutdown(ends[1], SHUT_WR) == 0);
    CHECK(recv(ends[0], bytes, 8, MSG_WAITALL) == 0);
    close_ends();
}

static void limit_ends_accept(void)
{
    struct timeval none = {0, 0};
    limit(listener, SO_RCVTIMEO);
    CHECK(accept(listener, NULL, NULL) < 0 && errno == EAGAIN);
    open_ends();
    close_ends();
    CHECK(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)) == 0);
}

/* ---- How much ---- */

static int readable(int fd)
{
    int count = -1;
    CHECK(ioctl(fd, FIONREAD, &count) == 0);
    return count;
}

static void tells_what_is_there(void)
{
    static char much[40000];
    int count, fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(fd >= 0 && readable(fd) == 0 && close(fd) == 0);
    CHECK(ioctl(listener, FIONREAD, &count) < 0 && errno == EINVAL);
    open_ends();
    CHECK(readable(ends[1]) == 0);
    CHECK(send(ends[0], much, sizeof(much), 0) == sizeof(much));
    CHECK(recv(ends[1], much, 1, MSG_PEEK) == 1);
    while (readable(ends[1]) < (int)sizeof(much))
        usleep(1000);
    CHECK(recv(ends[1], much, 10000, MSG_WAITALL) == 10000 && readable(ends[1]) == 30000);
    CHECK(shutdown(ends[0], SHUT_WR) == 0);
    CHECK(recv(ends[1], much, sizeof(much), MSG_WAITALL) == 30000 && readable(ends[1]) == 0);
    close_ends();
}

/* ---- Files ---- */

static char wanted[200000], got[200000];

static void *receive_all(void *unused)
{
    CHECK(recv(ends[1], got, sizeof(got) - 100, MSG_WAITALL) == sizeof(got) - 100);
    return unused;
}

static void files_are_sent(void)
{
    pthread_t receiver;
    int file = make_file(), pipes[2];
    off_t at = 100;
    open_ends();
    for (size_t i = 0; i < sizeof(wanted); i++)
        wanted[i] = (char)(i % 251);
    CHECK(write(file, wanted, sizeof(wanted)) == sizeof(wanted));
    CHECK(pthread_create(&receiver, NULL, receive_all, NULL) == 0);
    CHECK(sendfile(ends[0], file, &at, 1000000) == sizeof(wanted) - 100);
    CHECK(at == sizeof(wanted) && lseek(file, 0, SEEK_CUR) == sizeof(wanted));
    CHECK(pthread_join(receiver, NULL) == 0);
    CHECK(!memcmp(got, wanted + 100, sizeof(got) - 100));
    CHECK(lseek(file, 5, SEEK_SET) == 5 && sendfile(ends[0], file, NULL, 10) == 10);
    CHECK(recv(ends[1], got, 10, MSG_WAITALL) == 10 && lseek(file, 0, SEEK_CUR) == 15);
    CHECK(!memcmp(got, wanted + 5, 10));
    CHECK(pipe(pipes) == 0);
    CHECK(sendfile(ends[0], pipes[0], NULL, 10) < 0 && errno == EINVAL);
    CHECK(sendfile(file, ends[1], NULL, 10) < 0 && errno == EINVAL);
    CHECK(copy_file_range(file, NULL, ends[0], NULL, 10, 0) < 0 && errno == EINVAL);
    CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0 && close(file) == 0);
    close_ends();
}

/** Or cannot be, which leaves all as it was. */
static void pipes_are_spliced(void)
{
    char bytes[8];
    int pipes[2];
    open_ends();
    CHECK(pipe(pipes) == 0 && write(pipes[1], "abcd", 4) == 4);
    ssize_t n = splice(pipes[0], NULL, ends[0], NULL, 4, 0);
    CHECK(n == 4 || (n < 0 && errno == EINVAL && read(pipes[0], bytes, 8) == 4 &&
                     send(ends[0], bytes, 4, 0) == 4));
    CHECK(recv(ends[1], bytes, 1, MSG_PEEK) == 1);
    n = splice(ends[1], NULL, pipes[1], NULL, 4, 0);
    CHECK(n == 4 || (n < 0 && errno == EINVAL && recv(ends[1], bytes, 8, 0) == 4));
    CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0);
    close_ends();
}

/* ---- Signals ---- */

#define SIGNALS 20000

static void use_file(int unused)
{
    int saved = errno, fd = open("/dev/null", O_RDONLY);
    (void)unused;
    close(fd);
    errno = saved;
}

static atomic_bool signals_over;

static void *send_signals(void *thread)
{
    for (int i = 0; i < SIGNALS; i++)
        CHECK(pthread_kill(*(pthread_t *)thread, SIGUSR1) == 0);
    atomic_store(&signals_over, true);
    return NULL;
}

/** A handler may open and close files, whatever its thread is at. */
static void handler_beside_epoll(void)
{
    pthread_t self = pthread_self(), sender;
    open_ends();
    struct epoll_event event = {EPOLLIN, {.fd = ends[1]}};
    int set = set_of(ends[1], EPOLLIN);
    CHECK(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = use_file}, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, send_signals, &self) == 0);
    while (!atomic_load(&signals_over))
        CHECK(epoll_ctl(set, EPOLL_CTL_MOD, ends[1], &event) == 0);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(close(set) == 0);
    close_ends();
}

static void nothing(int unused)
{
    (void)unused;
}

static void *signal_sleeper(void *thread)
{
    while (!sleeps(atomic_load((atomic_int *)thread)))
        usleep(1000);
    CHECK(syscall(SYS_tgkill, getpid(), atomic_load((atomic_int *)thread), SIGUSR1) == 0);
    return NULL;
}

/** With a limit also if the handler has SA_RESTART. */
static void signals_end_limited_calls(void)
{
    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    struct timeval hour = {3600, 0};
    atomic_int self = (int)syscall(SYS_gettid);
    pthread_t sender;
    char byte;
    open_ends();
    CHECK(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &hour, sizeof(hour)) == 0);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&sender, NULL, signal_sleeper, &self) == 0);
    CHECK(recv(ends[0], &byte, 1, 0) < 0 && errno == EINTR);
    CHECK(pthread_join(sender, NULL) == 0);
    close_ends();
}

/* ---- All ---- */

static const struct {
    const char *name;
    void (*play)(void);
} cases[] = {
    {"children_connect", children_connect},
    {"closed_by_close_range", closed_by_close_range},
    {"closed_by_fclose", closed_by_fclose},
    {"closed_unseen", closed_unseen},
    {"closed_beside_epoll", closed_beside_epoll},
    {"crowd_hears", crowd_hears},
    {"duplicates_in_epoll", duplicates_in_epoll},
    {"edges_of_exact_reads", edges_of_exact_reads},
    {"edges_of_listener", edges_of_listener},
    {"files_are_sent", files_are_sent},
    {"handler_beside_epoll", handler_beside_epoll},
    {"limit_ends_accept", limit_ends_accept},
    {"limits_end_calls", limits_end_calls},
    {"pipes_are_spliced", pipes_are_spliced},
    {"refused_again", refused_again},
    {"selects_large_numbers", selects_large_numbers},
    {"signals_end_limited_calls", signals_end_limited_calls},
    {"tells_what_is_there", tells_what_is_there},
};

static void listen_on(const char *port)
{
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(listener, 8) == 0);
}

static int is_asked(const char *name, char **names)
{
    for (char **n = names; *n; n++)
        if (!strcmp(*n, name))
            return 1;
    return !*names;
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    alarm(LIMIT_S);
    listen_on(argv[1]);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!is_asked(cases[i].name, argv + 2))
            continue;
        puts(cases[i].name);
        fflush(stdout);
        cases[i].play();
    }
    CHECK(close(listener) == 0);
    puts("ok");
    return 0;
}
