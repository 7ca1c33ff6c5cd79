/* SPDX-License-Identifier: BSD-2-Clause */
/* A captured stream does what its own operations do, every one of them, and the capture tells it.
 */
#include "observe/pcap.h"

#include "wire/pcapng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOTS (sizeof(struct iwc_stream_ops) / sizeof(void (*)(void)))

static char path[] = "/tmp/anywarp-pcap-XXXXXX";

/* ---- a stream that notes which operation was asked for ---- */

enum slot { RECV, SEND, SHUTDOWN, CLOSE, ERROR, EMSS };

static unsigned asked[SLOTS];
static ssize_t answer; /* of recv, send, error and emss */
static bool with_reset;

static ssize_t own_recv(struct iwc_stream *s, void *buf, size_t len)
{
    (void)s, (void)buf, (void)len;
    asked[RECV]++;
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

struct captured {
    struct iwc_stream stream;
    int listener, near, far;
};

static void attach(struct captured *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    c->listener = socket(AF_INET, SOCK_STREAM, 0);
    c->near = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(c->listener, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(c->listener, 1), 0);
    assert_int_equal(getsockname(c->listener, (struct sockaddr *)&a, &len), 0);
    assert_int_equal(connect(c->near, (struct sockaddr *)&a, sizeof(a)), 0);
    c->far = accept(c->listener, NULL, NULL);
    assert_true(c->far >= 0);
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
        for (size_t k = 0; k < SLOTS; k++)
            assert_int_equal(asked[k], k == i);
        detach(&c);
    }
}

/** How many packets with this flag came in on @p c, by the capture. */
static unsigned came_in(const struct captured *c, uint8_t flag)
{
    static uint8_t bytes[65536];
    struct sockaddr_in a;
    socklen_t len = sizeof(a);
    uint32_t block[2];
    unsigned n = 0;
    assert_int_equal(getsockname(c->near, (struct sockaddr *)&a, &len), 0);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t size = fread(bytes, 1, sizeof(bytes), f);
    fclose(f);
    for (size_t at = 0; at < size; at += block[1]) {
        const uint8_t *tcp = bytes + at + PCAPNG_HEAD + 20;
        memcpy(block, bytes + at, sizeof(block)); /* type and length */
        n += block[0] == 6 && !memcmp(tcp + 2, &a.sin_port, 2) && (tcp[13] & flag);
    }
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
    };
    return cmocka_run_group_tests(tests, capture, discard);
}
