/* SPDX-License-Identifier: BSD-2-Clause */
/* A captured stream does what its own operations do, every one of them, and the capture tells it.
 */
#include "observe/pcap.h"

#include "env/guard.h"
#include "wire/pcapng.h"

#include "vectors.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* All but recvv: the tap has to see what comes in in one piece. */
#define SLOTS (sizeof(struct iwc_stream_ops) / sizeof(void (*)(void)) - 1)

static char path[] = "/tmp/anywarp-pcap-XXXXXX";

/* ---- a stream that notes which operation was asked for ---- */

enum slot { RECV, SEND, SHUTDOWN, CLOSE, ERROR, EMSS };

static unsigned asked[SLOTS];
static ssize_t answer; /* of recv, send, error and emss */
static bool with_reset;

static const uint8_t *incoming; /* what recv brings, if anything */

static ssize_t own_recv(struct iwc_stream *s, void *buf, size_t len)
{
    (void)s, (void)len;
    asked[RECV]++;
    if (buf && incoming && answer > 0)
        memcpy(buf, incoming, (size_t)answer);
    return answer;
}

static ssize_t own_send(struct iwc_stream *s, const struct iovec *iov, unsigned n)
{
    (void)s, (void)iov, (void)n;
    asked[SEND]++;
    return answer;
}

static void own_shutdown(struct iwc_stream *s)
{
    (void)s;
    asked[SHUTDOWN]++;
}

static void own_close(struct iwc_stream *s, int reset)
{
    (void)s;
    asked[CLOSE]++;
    with_reset = reset;
}

static int own_error(struct iwc_stream *s)
{
    (void)s;
    asked[ERROR]++;
    return (int)answer;
}

static uint32_t own_emss(struct iwc_stream *s)
{
    (void)s;
    asked[EMSS]++;
    return (uint32_t)answer;
}

static const struct iwc_stream_ops own = {.recv = own_recv,
                                          .send = own_send,
                                          .shutdown = own_shutdown,
                                          .close = own_close,
                                          .error = own_error,
                                          .emss = own_emss};

/* ---- each operation through the stream ---- */

static bool call_recv(struct iwc_stream *s)
{
    char c;
    return s->ops->recv(s, &c, 1) == answer;
}

static bool call_send(struct iwc_stream *s)
{
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    return s->ops->send(s, &iov, 1) == answer;
}

static bool call_shutdown(struct iwc_stream *s)
{
    s->ops->shutdown(s);
    return true;
}

static bool call_close(struct iwc_stream *s)
{
    s->ops->close(s, 1);
    return with_reset;
}

static bool call_error(struct iwc_stream *s)
{
    return s->ops->error(s) == answer;
}

static bool call_emss(struct iwc_stream *s)
{
    return s->ops->emss(s) == (uint32_t)answer;
}

static const struct {
    const char *name;
    size_t offset;
    bool (*call)(struct iwc_stream *s);
    ssize_t answer;
} slots[] = {
#define ROW(name, answer)                                                                          \
    {                                                                                              \
#name, offsetof(struct iwc_stream_ops, name), call_##name, answer                          \
    }
    [RECV] = ROW(recv, -EAGAIN), [SEND] = ROW(send, -EAGAIN),       [SHUTDOWN] = ROW(shutdown, 0),
    [CLOSE] = ROW(close, 0),     [ERROR] = ROW(error, -ECONNRESET), [EMSS] = ROW(emss, 1460),
#undef ROW
};

/* ---- a captured one ---- */

static int family = AF_INET;

struct captured {
    struct iwc_stream stream;
    int listener, near, far;
};

/** Two sockets that are connected over loopback. */
static void connect_pair(struct captured *c)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    struct sockaddr_storage a = {0};
    socklen_t len = family == AF_INET ? sizeof(in) : sizeof(in6);
    memcpy(&a, family == AF_INET ? (void *)&in : (void *)&in6, len);
    c->listener = socket(family, SOCK_STREAM, 0);
    c->near = socket(family, SOCK_STREAM, 0);
    assert_int_equal(bind(c->listener, (struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(c->listener, 1), 0);
    assert_int_equal(getsockname(c->listener, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(connect(c->near, (struct sockaddr *)&a, len), 0);
    c->far = accept(c->listener, NULL, NULL);
    assert_true(c->far >= 0);
}

static void attach(struct captured *c)
{
    connect_pair(c);
    c->stream = (struct iwc_stream){.ops = &own};
    iw_pcap_attach(&c->stream, c->near, true);
    assert_ptr_not_equal(c->stream.ops, &own);
}

static void detach(struct captured *c)
{
    iw_pcap_detach(&c->stream, false);
    assert_ptr_equal(c->stream.ops, &own);
    close(c->near);
    close(c->far);
    close(c->listener);
}

static void forwards_every_operation(void **state)
{
    (void)state;
    assert_int_equal(sizeof(slots) / sizeof(slots[0]), SLOTS); /* a new one needs a row */
    for (size_t i = 0; i < SLOTS; i++) {
        struct captured c;
        attach(&c);
        memset(asked, 0, sizeof(asked));
        answer = slots[i].answer;
        void *own_call, *call;
        memcpy(&own_call, (const char *)&own + slots[i].offset, sizeof(own_call));
        memcpy(&call, (const char *)c.stream.ops + slots[i].offset, sizeof(call));
        print_message("%s\n", slots[i].name);
        assert_non_null(own_call);
        assert_non_null(call);
        assert_true(slots[i].call(&c.stream));
        assert_null(c.stream.ops->recvv);
        for (size_t k = 0; k < SLOTS; k++)
            assert_int_equal(asked[k], k == i);
        detach(&c);
    }
}

struct packet {
    bool incoming;
    uint8_t flags;
    size_t len;
    const uint8_t *data;
};

static bool is_from(const uint8_t *tcp, in_port_t source, in_port_t destination)
{
    return !memcmp(tcp, &source, 2) && !memcmp(tcp + 2, &destination, 2);
}

/** The packets of @p c in the capture, in order. @return how many, at most @p max */
static unsigned packets_of(const struct captured *c, struct packet *packet, unsigned max)
{
    static uint8_t bytes[262144];
    struct sockaddr_in a, b; /* their port is where that of IPv6 is */
    socklen_t len = sizeof(a);
    uint32_t block[2];
    unsigned n = 0;
    size_t ip = family == AF_INET ? 20 : 40;
    assert_int_equal(getsockname(c->near, (struct sockaddr *)&a, &len), 0);
    len = sizeof(b);
    assert_int_equal(getsockname(c->far, (struct sockaddr *)&b, &len), 0);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t size = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    assert_true(size < sizeof(bytes));
    for (size_t at = 0; at < size; at += block[1]) {
        const uint8_t *start = bytes + at + PCAPNG_HEAD, *tcp = start + ip;
        memcpy(block, bytes + at, sizeof(block)); /* type and length */
        if (block[0] != 6 || start[0] >> 4 != (family == AF_INET ? 4 : 6))
            continue;
        /* Both ports: the kernel may have given one of them to a connection before. */
        bool incoming = is_from(tcp, b.sin_port, a.sin_port);
        if (!incoming && !is_from(tcp, a.sin_port, b.sin_port))
            continue;
        uint32_t captured_len;
        memcpy(&captured_len, bytes + at + 20, sizeof(captured_len));
        assert_true(n < max);
        packet[n++] = (struct packet){.incoming = incoming,
                                      .flags = tcp[13],
                                      .len = captured_len - ip - (size_t)(tcp[12] >> 4) * 4,
                                      .data = tcp + (size_t)(tcp[12] >> 4) * 4};
    }
    return n;
}

/** How many packets with this flag came in on @p c, by the capture. */
static unsigned came_in(const struct captured *c, uint8_t flag)
{
    struct packet p[16];
    unsigned n = 0;
    for (unsigned i = packets_of(c, p, 16); i-- > 0;)
        n += p[i].incoming && (p[i].flags & flag);
    return n;
}

static void a_reset_is_in_the_capture(void **state)
{
    (void)state;
    struct captured c;
    attach(&c);
    answer = 0; /* nobody knows why */
    assert_int_equal(c.stream.ops->error(&c.stream), 0);
    assert_int_equal(came_in(&c, TCP_FLAG_RST), 0);
    answer = -ECONNRESET;
    assert_int_equal(c.stream.ops->error(&c.stream), -ECONNRESET);
    assert_int_equal(came_in(&c, TCP_FLAG_RST), 1);
    assert_int_equal(c.stream.ops->recv(&c.stream, NULL, 0), -ECONNRESET);
    assert_int_equal(came_in(&c, TCP_FLAG_RST), 1);
    detach(&c);
}

static void receive(struct iwc_stream *s, const uint8_t *p, size_t len)
{
    uint8_t buf[256];
    incoming = p;
    answer = (ssize_t)len;
    assert_int_equal(s->ops->recv(s, buf, sizeof(buf)), len);
    assert_memory_equal(buf, p, len);
}

static void transmit(struct iwc_stream *s, const struct iovec *iov, unsigned n, size_t len)
{
    answer = (ssize_t)len;
    assert_int_equal(s->ops->send(s, iov, n), len);
}

static void expect_packet(const struct packet *p, bool is_incoming, uint8_t flags,
                          const uint8_t *data, size_t len)
{
    assert_int_equal(p->incoming, is_incoming);
    assert_int_equal(p->flags, flags);
    assert_int_equal(p->len, len);
    assert_memory_equal(p->data, data, len);
}

/* A frame is a packet, in however many pieces it comes and goes; a FIN stands once at the end. */
static void frames_are_packets(void **state)
{
    enum { SYN = TCP_FLAG_SYN, ACK = TCP_FLAG_ACK, FIN = TCP_FLAG_FIN };
    struct captured c;
    struct packet p[16];
    const struct iovec iov[] = {{.iov_base = (void *)V1, .iov_len = 10},
                                {.iov_base = (void *)(V1 + 10), .iov_len = sizeof(V1) - 10}};
    const struct iovec rest = {.iov_base = (void *)(V1 + 15), .iov_len = sizeof(V1) - 15};
    family = *state ? AF_INET6 : AF_INET;
    attach(&c);
    transmit(&c.stream, iov, 2, 15); /* TCP takes a part */
    receive(&c.stream, V2, 3);
    transmit(&c.stream, &rest, 1, rest.iov_len);
    receive(&c.stream, V2 + 3, sizeof(V2) - 3);
    receive(&c.stream, V2, 7); /* less than an FPDU when the peer ends */
    answer = 0;
    assert_int_equal(c.stream.ops->recv(&c.stream, NULL, 0), 0);
    assert_int_equal(c.stream.ops->recv(&c.stream, NULL, 0), 0);
    c.stream.ops->shutdown(&c.stream);
    unsigned n = packets_of(&c, p, 16);
    assert_int_equal(n, 8);
    expect_packet(&p[0], false, SYN, NULL, 0);
    expect_packet(&p[1], true, SYN | ACK, NULL, 0);
    expect_packet(&p[2], false, ACK, NULL, 0);
    expect_packet(&p[3], false, ACK, V1, sizeof(V1));
    expect_packet(&p[4], true, ACK, V2, sizeof(V2));
    expect_packet(&p[5], true, ACK, V2, 7);
    expect_packet(&p[6], true, FIN | ACK, NULL, 0);
    expect_packet(&p[7], false, FIN | ACK, NULL, 0);
    detach(&c);
    assert_int_equal(family == AF_INET, !*state);
    family = AF_INET;
}

/* What both ends of a connection in one process have, once: where it is sent. */
static void a_connection_within_is_captured_once(void **state)
{
    (void)state;
    struct captured c;
    struct packet p[16];
    struct iwc_stream other = {.ops = &own};
    const struct iovec out = {.iov_base = (void *)V1, .iov_len = sizeof(V1)},
                       back = {.iov_base = (void *)V2, .iov_len = sizeof(V2)};
    attach(&c);
    iw_pcap_attach(&other, c.far, false);
    transmit(&c.stream, &out, 1, sizeof(V1));
    receive(&other, V1, sizeof(V1));
    transmit(&other, &back, 1, sizeof(V2));
    receive(&c.stream, V2, sizeof(V2));
    unsigned n = packets_of(&c, p, 16);
    assert_int_equal(n, 5); /* one handshake, two frames */
    expect_packet(&p[3], false, TCP_FLAG_ACK, V1, sizeof(V1));
    expect_packet(&p[4], true, TCP_FLAG_ACK, V2, sizeof(V2));
    other.ops->close(&other, 1);
    assert_ptr_equal(other.ops, &own);
    assert_int_equal(packets_of(&c, p, 16), 6);
    assert_int_equal(p[5].flags, TCP_FLAG_RST | TCP_FLAG_ACK);
    detach(&c);
}

/* The program unmaps what it has posted: the stream goes on, its capture in that direction ends. */
static void memory_that_is_gone(void **state)
{
    (void)state;
    struct captured c;
    struct packet p[16];
    int status;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *gone = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct iovec from = {.iov_base = gone, .iov_len = 8},
                       there = {.iov_base = (void *)V1, .iov_len = sizeof(V1)};
    assert_true(gone != MAP_FAILED);
    assert_int_equal(munmap(gone, page), 0);
    attach(&c);
    pid_t pid = fork();
    if (pid == 0) { /* where cmocka's handler of faults is not in the way */
        signal(SIGSEGV, SIG_DFL);
        iw_guard_install();
        answer = 8;
        bool sent = c.stream.ops->send(&c.stream, &from, 1) == answer;
        answer = sizeof(V1);
        _exit(!sent || c.stream.ops->send(&c.stream, &there, 1) != answer);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(packets_of(&c, p, 16), 3);
    detach(&c);
}

/* The child of fork() does not write into its parent's capture. */
static void a_child_captures_nothing(void **state)
{
    (void)state;
    struct captured c;
    struct packet p[16];
    int status;
    const struct iovec out = {.iov_base = (void *)V1, .iov_len = sizeof(V1)};
    attach(&c);
    iw_pcap_fork(FORK_PREPARE);
    pid_t pid = fork();
    iw_pcap_fork(pid ? FORK_PARENT : FORK_CHILD);
    if (pid == 0) {
        answer = sizeof(V1);
        c.stream.ops->send(&c.stream, &out, 1);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(packets_of(&c, p, 16), 3);
    transmit(&c.stream, &out, 1, sizeof(V1));
    assert_int_equal(packets_of(&c, p, 16), 4);
    detach(&c);
}

static void no_socket_no_capture(void **state)
{
    (void)state;
    int fds[2];
    struct iwc_stream s = {.ops = &own};
    assert_int_equal(pipe(fds), 0);
    iw_pcap_attach(&s, fds[0], true);
    assert_ptr_equal(s.ops, &own);
    iw_pcap_detach(&s, false);
    close(fds[0]);
    close(fds[1]);
}

static int capture(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) || setenv("ANYWARP_PCAP", path, 1);
}

static int discard(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwards_every_operation),
        cmocka_unit_test(a_reset_is_in_the_capture),
        cmocka_unit_test(frames_are_packets),
        cmocka_unit_test_prestate(frames_are_packets, "IPv6"),
        cmocka_unit_test(a_connection_within_is_captured_once),
        cmocka_unit_test(memory_that_is_gone),
        cmocka_unit_test(a_child_captures_nothing),
        cmocka_unit_test(no_socket_no_capture),
    };
    return cmocka_run_group_tests(tests, capture, discard);
}
