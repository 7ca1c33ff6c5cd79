/* SPDX-License-Identifier: BSD-2-Clause */
/* rsockets: two ends in one process, and what each call refuses. */
#include <rdma/rsocket.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000
#define MUCH    (1 << 20)

#define expect_errno(call, error)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal(call, -1);                                                                \
        assert_int_equal(errno, error);                                                            \
    } while (0)

struct ends {
    int listener, a, b;
};

static struct sockaddr_in loopback(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int stream(void)
{
    int fd = rsocket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    return fd;
}

static int listen_at(struct sockaddr_in *addr, int mappings)
{
    socklen_t len = sizeof *addr;
    int fd = stream();
    *addr = loopback();
    assert_int_equal(rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings), 0);
    assert_int_equal(rbind(fd, (struct sockaddr *)addr, sizeof *addr), 0);
    assert_int_equal(rlisten(fd, 4), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

static void join(struct ends *e)
{
    struct sockaddr_in addr;
    int mappings = 2;
    e->listener = listen_at(&addr, mappings);
    e->a = stream();
    assert_int_equal(rsetsockopt(e->a, SOL_RDMA, RDMA_IOMAPSIZE, &mappings, sizeof mappings), 0);
    assert_int_equal(rconnect(e->a, (struct sockaddr *)&addr, sizeof addr), 0);
    e->b = raccept(e->listener, NULL, NULL);
    assert_true(e->b >= 0);
}

static void part(const struct ends *e)
{
    assert_int_equal(rclose(e->a), 0);
    assert_int_equal(rclose(e->b), 0);
    assert_int_equal(rclose(e->listener), 0);
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {fd, events, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    assert_true(p.revents & events);
}

static void bytes_arrive(void **unused)
{
    (void)unused;
    struct ends e;
    char text[16] = {0};
    join(&e);
    assert_int_equal(rsend(e.a, "hello, world", 12, 0), 12);
    assert_int_equal(rrecv(e.b, text, 5, MSG_PEEK), 5);
    assert_int_equal(rrecv(e.b, text, 5, 0), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(rrecv(e.b, text, 7, MSG_WAITALL), 7);
    assert_string_equal(text, ", world");
    struct iovec out[2] = {{"ab", 2}, {"cde", 3}}, in[2] = {{text, 1}, {text + 8, 4}};
    assert_int_equal(rwritev(e.b, out, 2), 5);
    struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};
    assert_int_equal(rrecvmsg(e.a, &msg, MSG_WAITALL), 5);
    assert_memory_equal(text, "a", 1);
    assert_memory_equal(text + 8, "bcde", 4);
    assert_int_equal(rwrite(e.b, "fgh", 3), 3);
    assert_int_equal(rreadv(e.a, in, 2), 3);
    assert_memory_equal(text + 8, "gh", 2);
    part(&e);
}

static void *send_much(void *arg)
{
    int fd = *(int *)arg;
    uint8_t *data = malloc(MUCH);
    for (size_t i = 0; i < MUCH; i++)
        data[i] = (uint8_t)(i * 7 + (i >> 12));
    ssize_t n = rsend(fd, data, MUCH, 0);
    rshutdown(fd, SHUT_WR);
    free(data);
    return (void *)(intptr_t)n;
}

/* Several times around each ring, in pieces of odd sizes; then the end of it. */
static void much_arrives_in_order(void **unused)
{
    (void)unused;
    struct ends e;
    pthread_t thread;
    void *sent;
    uint8_t part_of[5003];
    size_t at = 0;
    ssize_t n;
    join(&e);
    pthread_create(&thread, NULL, send_much, &e.a);
    while ((n = rrecv(e.b, part_of, sizeof part_of, 0)) > 0)
        for (ssize_t i = 0; i < n; i++, at++)
            assert_int_equal(part_of[i], (uint8_t)(at * 7 + (at >> 12)));
    assert_int_equal(n, 0);
    assert_int_equal(at, MUCH);
    pthread_join(thread, &sent);
    assert_int_equal((intptr_t)sent, MUCH);
    assert_int_equal(rsend(e.b, "x", 1, 0), 1); /* the other direction is open */
    assert_int_equal(rrecv(e.a, part_of, 1, 0), 1);
    expect_errno(rsend(e.a, "x", 1, 0), ECONNRESET);
    part(&e);
}

static void nobody_reads(void **unused)
{
    (void)unused;
    struct ends e;
    static char block[4096];
    size_t sent = 0, got = 0;
    ssize_t n;
    join(&e);
    while ((n = rsend(e.a, block, sizeof block, MSG_DONTWAIT)) > 0)
        sent += (size_t)n;
    assert_int_equal(errno, EAGAIN);
    assert_in_range(sent, 1, MUCH);
    struct pollfd p = {e.a, POLLOUT, 0};
    assert_int_equal(rpoll(&p, 1, 0), 0);
    while (got < sent) {
        n = rrecv(e.b, block, sizeof block, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    wait_for(e.a, POLLOUT);
    expect_errno(rrecv(e.b, block, 1, MSG_DONTWAIT), EAGAIN);
    part(&e);
}

static void an_end_is_seen(void **unused)
{
    (void)unused;
    struct ends e;
    char c;
    join(&e);
    assert_int_equal(rsend(e.a, "z", 1, 0), 1);
    assert_int_equal(rclose(e.a), 0);
    wait_for(e.b, POLLIN);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    errno = 0;
    assert_int_equal(rrecv(e.b, &c, 1, 0), 0);
    assert_int_equal(errno, 0); /* rstream looks at it even so */
    struct pollfd p = {e.b, POLLIN, 0};
    assert_int_equal(rpoll(&p, 1, WAIT_MS), 1);
    assert_int_equal(p.revents, POLLIN);
    expect_errno(rsend(e.b, &c, 1, 0), ECONNRESET);
    assert_int_equal(rclose(e.b), 0);
    assert_int_equal(rclose(e.listener), 0);
}

static void connecting_without_waiting(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    int listener = listen_at(&addr, 0), fd = stream(), err = -1;
    socklen_t len = sizeof err;
    assert_int_equal(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
    expect_errno(raccept(listener, NULL, NULL), EAGAIN);
    errno = EINPROGRESS;
    assert_true(rconnect(fd, (struct sockaddr *)&addr, sizeof addr) == 0 || errno == EINPROGRESS);
    wait_for(fd, POLLOUT);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len), 0);
    assert_int_equal(err, 0);
    wait_for(listener, POLLIN);
    int child = raccept(listener, NULL, NULL);
    assert_true(child >= 0);
    assert_int_equal(rclose(child), 0);
    assert_int_equal(rclose(listener), 0);
    assert_int_equal(rclose(fd), 0);
}

static void nobody_listens(void **unused)
{
    (void)unused;
    struct sockaddr_in addr;
    char c;
    assert_int_equal(rclose(listen_at(&addr, 0)), 0);
    int fd = stream();
    expect_errno(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), ECONNREFUSED);
    expect_errno(rconnect(fd, (struct sockaddr *)&addr, sizeof addr), ENOTCONN);
    expect_errno(rrecv(fd, &c, 1, 0), ENOTCONN);
    expect_errno(rsend(fd, &c, 1, 0), ENOTCONN);
    assert_int_equal(rclose(fd), 0);
}

static void the_peer_writes_into_a_mapping(void **unused)
{
    (void)unused;
    struct ends e;
    char memory[64] = {0}, c;
    join(&e);
    assert_int_equal(riomap(e.a, memory, sizeof memory, PROT_WRITE, 0, 1000), 1000);
    assert_int_equal(rsend(e.a, "m", 1, 0), 1); /* tells of it */
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    assert_int_equal(riowrite(e.b, "there", 6, 1010, 0), 6);
    assert_int_equal(riowrite(e.b, "there", 6, 5000, 0), 0);
    assert_int_equal(rsend(e.b, "m", 1, 0), 1);
    assert_int_equal(rrecv(e.a, &c, 1, 0), 1);
    assert_string_equal(memory + 10, "there");
    assert_int_equal(riounmap(e.a, memory, sizeof memory), 0);
    expect_errno(riounmap(e.a, memory, sizeof memory), EINVAL);
    expect_errno(riomap(e.a, NULL, 1, PROT_WRITE, 0, -1), EINVAL);
    assert_true(riomap(e.a, memory, 16, PROT_WRITE, 0, -1) >= 0);
    assert_true(riomap(e.a, memory, 32, PROT_WRITE, 0, -1) >= 0);
    expect_errno(riomap(e.a, memory, 48, PROT_WRITE, 0, -1), ENOMEM);
    part(&e);
}

static void a_set_tells_of_both_kinds(void **unused)
{
    (void)unused;
    struct ends e;
    struct epoll_event event = {EPOLLIN, {.u64 = 1}}, found[4];
    int pipe_ends[2], set = repoll_create(0);
    char c;
    join(&e);
    assert_int_equal(pipe(pipe_ends), 0);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), 0);
    expect_errno(repoll_ctl(set, EPOLL_CTL_ADD, e.b, &event), EEXIST);
    event.data.u64 = 2;
    expect_errno(repoll_ctl(set, EPOLL_CTL_MOD, pipe_ends[0], &event), ENOENT);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_ADD, pipe_ends[0], &event), 0);
    assert_int_equal(repoll_wait(set, found, 4, 0), 0);
    assert_int_equal(rsend(e.a, "x", 1, 0), 1);
    assert_int_equal(repoll_wait(set, found, 4, WAIT_MS), 1);
    assert_int_equal(found[0].data.u64, 1);
    assert_int_equal(found[0].events, EPOLLIN);
    assert_int_equal(rrecv(e.b, &c, 1, 0), 1);
    assert_int_equal(write(pipe_ends[1], "y", 1), 1);
    assert_int_equal(repoll_wait(set, found, 4, WAIT_MS), 1);
    assert_int_equal(found[0].data.u64, 2);
    assert_int_equal(repoll_ctl(set, EPOLL_CTL_DEL, pipe_ends[0], NULL), 0);
    assert_int_equal(repoll_wait(set, found, 4, 0), 0);
    expect_errno(repoll_wait(set, found, 0, 0), EINVAL);
    assert_int_equal(rclose(set), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    part(&e);
}

static void *wait_and_read(void *arg)
{
    char c = 0;
    wait_for(*(int *)arg, POLLIN);
    rrecv(*(int *)arg, &c, 1, 0);
    return (void *)(intptr_t)c;
}

/* One sleeps for room, the other for data: neither takes the other's wake-up. */
static void two_threads_wait_for_one(void **unused)
{
    (void)unused;
    static char block[MUCH];
    for (int i = 0; i < 20; i++) {
        struct ends e;
        pthread_t sender, reader;
        void *result;
        join(&e);
        pthread_create(&sender, NULL, send_much, &e.a);
        pthread_create(&reader, NULL, wait_and_read, &e.a);
        assert_int_equal(rrecv(e.b, block, sizeof block, MSG_WAITALL), MUCH);
        assert_int_equal(rsend(e.b, "r", 1, 0), 1);
        pthread_join(reader, &result);
        assert_int_equal((intptr_t)result, 'r');
        pthread_join(sender, &result);
        assert_int_equal((intptr_t)result, MUCH);
        part(&e);
    }
}

static int datagrams(struct sockaddr_in *addr)
{
    socklen_t len = sizeof *addr;
    int fd = rsocket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    *addr = loopback();
    assert_int_equal(rbind(fd, (struct sockaddr *)addr, sizeof *addr), 0);
    assert_int_equal(rgetsockname(fd, (struct sockaddr *)addr, &len), 0);
    return fd;
}

/* Each is one UDP datagram with a header; what has none is not shown. */
static void datagrams_arrive(void **unused)
{
    (void)unused;
    struct sockaddr_in a, b, from;
    socklen_t len = sizeof from;
    static char much[2033];
    char text[16] = {0};
    int fa = datagrams(&a), fb = datagrams(&b), plain = socket(AF_INET, SOCK_DGRAM, 0);
    expect_errno(rrecv(fb, text, sizeof text, MSG_DONTWAIT), EAGAIN);
    assert_int_equal(sendto(plain, "stray", 5, 0, (struct sockaddr *)&b, sizeof b), 5);
    assert_int_equal(rsendto(fa, "hello", 5, 0, (struct sockaddr *)&b, sizeof b), 5);
    wait_for(fb, POLLIN);
    assert_int_equal(rrecv(fb, text, 5, MSG_PEEK), 5);
    assert_int_equal(rrecvfrom(fb, text, sizeof text, 0, (struct sockaddr *)&from, &len), 5);
    assert_string_equal(text, "hello");
    assert_int_equal(from.sin_port, a.sin_port);
    assert_int_equal(rconnect(fb, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(rsend(fb, "", 0, 0), 0);
    assert_int_equal(rsend(fb, much, 2032, 0), 2032);
    expect_errno(rsend(fb, much, 2033, 0), EMSGSIZE);
    wait_for(fa, POLLIN);
    assert_int_equal(rrecv(fa, text, sizeof text, 0), 0);
    assert_int_equal(rrecv(fa, text, 3, 0), 3);
    expect_errno(rlisten(fa, 1), EOPNOTSUPP);
    expect_errno(riomap(fa, text, 1, PROT_WRITE, 0, 0), ENOTSUP);
    assert_int_equal(rclose(fa), 0);
    expect_errno(rclose(fa), EBADF);
    assert_int_equal(rclose(fb), 0);
    close(plain);
}

/* In a child the parent's streams are nothing; its own work, and the parent's go on. */
static void a_child_makes_its_own(void **unused)
{
    (void)unused;
    struct ends e, own;
    char text[8] = {0};
    int status;
#ifdef __SANITIZE_THREAD__ /* which starts no thread in the child of a process with threads */
    skip();
#endif
    join(&e);
    pid_t child = fork();
    if (child == 0) {
        alarm(WAIT_MS / 1000);
        if (rsend(e.a, "no", 2, 0) != -1 || errno != EBADF)
            _exit(1);
        join(&own);
        if (rsend(own.a, "yes", 3, 0) != 3 || rrecv(own.b, text, 3, MSG_WAITALL) != 3)
            _exit(2);
        part(&own);
        _exit(memcmp(text, "yes", 3) ? 3 : 0);
    }
    assert_true(child > 0);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(rsend(e.a, "ping", 4, 0), 4);
        assert_int_equal(rrecv(e.b, text, 4, MSG_WAITALL), 4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    part(&e);
}

static void options_are_kept(void **unused)
{
    (void)unused;
    int fd = stream(), value = 1000;
    socklen_t len = sizeof value;
    assert_int_equal(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof value), 0);
    assert_int_equal(rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &len), 0);
    assert_int_equal(value, 2000);
    value = 0;
    expect_errno(rsetsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, sizeof value), EINVAL);
    expect_errno(rsetsockopt(fd, SOL_SOCKET, SO_PRIORITY, &value, sizeof value), ENOTSUP);
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_PRIORITY, &value, &len), ENOTSUP);
    expect_errno(rgetsockopt(fd, SOL_SOCKET, SO_ERROR, NULL, &len), EFAULT);
    assert_int_equal(rfcntl(fd, F_GETFL), O_RDWR);
    expect_errno(rfcntl(fd, F_SETOWN, 1), ENOTSUP);
    assert_int_equal(rclose(fd), 0);
}

static char folder[] = "/tmp/rsocket-test-XXXXXX", file[64];

static int make_folder(void **unused)
{
    (void)unused;
    if (!mkdtemp(folder))
        return -1;
    snprintf(file, sizeof file, "%s/rqsize_default", folder);
    FILE *f = fopen(file, "w");
    if (!f)
        return -1;
    fputs("500\n", f);
    fclose(f);
    return setenv("ANYWARP_RSOCKET_CONF", folder, 1);
}

static int remove_folder(void **unused)
{
    (void)unused;
    return unlink(file) | rmdir(folder);
}

static void defaults_come_from_files(void **unused)
{
    (void)unused;
    int fd = stream(), value;
    socklen_t len = sizeof value;
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &value, &len), 0);
    assert_int_equal(value, 500);
    assert_int_equal(rgetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &value, &len), 0);
    assert_int_equal(value, 384);
    assert_int_equal(rclose(fd), 0);
}

static void what_is_no_socket(void **unused)
{
    (void)unused;
    struct sockaddr_in addr = loopback();
    char c;
    expect_errno(rsocket(AF_INET, SOCK_RAW, 0), ENOTSUP);
    expect_errno(rsocket(AF_UNIX, SOCK_STREAM, 0), ENOTSUP);
    expect_errno(rbind(-1, (struct sockaddr *)&addr, sizeof addr), EBADF);
    expect_errno(rlisten(-1, 1), EBADF);
    expect_errno(raccept(-1, NULL, NULL), EBADF);
    expect_errno(rconnect(-1, (struct sockaddr *)&addr, sizeof addr), EBADF);
    expect_errno(rrecv(-1, &c, 1, 0), EBADF);
    expect_errno(rsend(-1, &c, 1, 0), EBADF);
    expect_errno(rshutdown(-1, SHUT_RD), EBADF);
    expect_errno(rclose(-1), EBADF);
    expect_errno(repoll_wait(-1, NULL, 1, 0), EBADF);
    expect_errno(riomap(-1, &c, 1, PROT_WRITE, 0, 0), EBADF);
    int fd = stream();
    expect_errno(rsendto(fd, &c, 1, 0, (struct sockaddr *)&addr, sizeof addr), EISCONN);
    expect_errno(rshutdown(fd, SHUT_WR), ENOTCONN);
    assert_int_equal(rclose(fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive),
        cmocka_unit_test(much_arrives_in_order),
        cmocka_unit_test(nobody_reads),
        cmocka_unit_test(an_end_is_seen),
        cmocka_unit_test(connecting_without_waiting),
        cmocka_unit_test(nobody_listens),
        cmocka_unit_test(the_peer_writes_into_a_mapping),
        cmocka_unit_test(a_set_tells_of_both_kinds),
        cmocka_unit_test(two_threads_wait_for_one),
        cmocka_unit_test(datagrams_arrive),
        cmocka_unit_test(a_child_makes_its_own),
        cmocka_unit_test(options_are_kept),
        cmocka_unit_test(defaults_come_from_files),
        cmocka_unit_test(what_is_no_socket),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
