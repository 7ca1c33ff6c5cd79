/* SPDX-License-Identifier: BSD-2-Clause */
/* A recorded stream does what its own operations do, and its frames are in the record. */
#include "observe/record_stream.h"

#include "env/guard.h"
#include "observe/record.h"
#include "tools/recording.h"
#include "wire/bytes.h"
#include "wire/ddp.h"
#include "wire/fpdu.h"
#include "wire/mpa.h"
#include "wire/rdmap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/anywarp-record-XXXXXX";

/* ---- a stream that does as it is told ---- */

enum slot { RECV, SEND, SHUTDOWN, CLOSE, ERROR, EMSS, SLOTS };

static unsigned asked[SLOTS];
static ssize_t answer;
static const uint8_t *incoming;

static ssize_t own_recv(struct iwc_stream *s, void *buf, size_t len)
{
    (void)s, (void)len;
    asked[RECV]++;
    if (incoming && answer > 0)
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
    (void)s, (void)reset;
    asked[CLOSE]++;
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
_Static_assert(sizeof(own) == (SLOTS + 1) * sizeof(void (*)(void)),
               "a new operation needs a row; recvv is none");

static int listener, near, far;
static struct iwc_stream stream;
static struct sockaddr_in address = {.sin_family = AF_INET};

static int attach(void **state)
{
    socklen_t len = sizeof(address);
    (void)state;
    address.sin_port = 0;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    near = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, len) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &len) ||
        connect(near, (struct sockaddr *)&address, len))
        return -1;
    far = accept(listener, NULL, NULL);
    memset(asked, 0, sizeof(asked));
    stream = (struct iwc_stream){.ops = &own};
    iw_record_attach(&stream, near, true);
    iw_record_link(&stream, 0x1234);
    return stream.ops == &own;
}

static int detach(void **state)
{
    (void)state;
    iw_record_detach(&stream, false);
    close(near);
    close(far);
    close(listener);
    return stream.ops != &own;
}

/* ---- the operations ---- */

static void every_operation_is_forwarded(void **state)
{
    char c;
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    (void)state;
    assert_null(stream.ops->recvv); /* what is recorded is seen in one piece */
    incoming = (const uint8_t *)"y";
    answer = 1;
    assert_int_equal(stream.ops->recv(&stream, &c, 1), 1);
    assert_int_equal(stream.ops->send(&stream, &iov, 1), 1);
    answer = -EAGAIN;
    assert_int_equal(stream.ops->recv(&stream, &c, 1), -EAGAIN);
    assert_int_equal(stream.ops->send(&stream, &iov, 1), -EAGAIN);
    answer = 1448;
    assert_int_equal(stream.ops->emss(&stream), 1448);
    answer = -ECONNRESET;
    assert_int_equal(stream.ops->error(&stream), -ECONNRESET);
    assert_int_equal(stream.ops->recv(&stream, &c, 1), -ECONNRESET);
    stream.ops->shutdown(&stream);
    stream.ops->close(&stream, 1);
    static const unsigned wanted[SLOTS] = {3, 2, 1, 1, 1, 1};
    assert_memory_equal(asked, wanted, sizeof(asked));
    assert_ptr_equal(stream.ops, &own);
}

/* ---- frames ---- */

static struct recording read_it(void)
{
    static char wrong[256];
    struct recording r;
    if (!recording_read(&r, path, wrong, sizeof(wrong)))
        fail_msg("%s", wrong);
    assert_true(r.running);
    return r;
}

/** The frames of the connection that was attached last. */
static size_t frames_of(const struct recording *r, const struct record_event **out, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->events[i]->what == RECORD_FRAME && r->events[i]->frame.conn == r->page->head.conns) {
            assert_true(n < max);
            out[n++] = r->events[i];
        }
    return n;
}

static void feed(const uint8_t *p, size_t len, size_t chunk)
{
    static uint8_t buf[FPDU_MAX];
    for (size_t at = 0; at < len; at += chunk) {
        incoming = p + at;
        answer = (ssize_t)(len - at < chunk ? len - at : chunk);
        assert_int_equal(stream.ops->recv(&stream, buf, sizeof(buf)), answer);
    }
}

static void put(const uint8_t *p, size_t len, size_t chunk)
{
    for (size_t at = 0; at < len; at += chunk) {
        size_t n = len - at < chunk ? len - at : chunk;
        struct iovec iov[] = {{.iov_base = (void *)(p + at), .iov_len = n / 2},
                              {.iov_base = (void *)(p + at + n / 2), .iov_len = n - n / 2}};
        answer = (ssize_t)n;
        assert_int_equal(stream.ops->send(&stream, iov, 2), answer);
    }
}

static size_t start_frame(uint8_t *to, bool reply)
{
    static const uint8_t pd[300] = {9, 8, 7};
    struct mpa_start m = {
        .reply = reply, .rev = 1, .flags = MPA_FLAG_C, .pd = pd, .pd_len = sizeof(pd)};
    return mpa_start_encode(to, &m);
}

/** A Write of @p len bytes. @return its size on the wire */
static size_t write_fpdu(uint8_t *to, uint32_t len)
{
    memset(to, 0xab, fpdu_size(DDP_TAGGED_HDR + len));
    put_be16(to, (uint16_t)(DDP_TAGGED_HDR + len));
    ddp_encode_tagged(to + FPDU_LEN_FIELD, RDMAP_WRITE, true, 0xcafe, 0x7000);
    return fpdu_size(DDP_TAGGED_HDR + len);
}

static void frames(void **state)
{
    static uint8_t request[MPA_START_MAX], reply[MPA_START_MAX], small[FPDU_MAX], large[FPDU_MAX];
    const struct record_event *e[16];
    size_t req = start_frame(request, false), rep = start_frame(reply, true);
    size_t s = write_fpdu(small, 8), l = write_fpdu(large, 60000);
    static const size_t chunks[] = {1, 3, 1000, FPDU_MAX};
    (void)state;
    size_t chunk = chunks[*(size_t *)*state];
    put(request, req, chunk);
    feed(reply, rep, chunk);
    put(small, s, chunk);
    put(large, l, chunk);
    feed(large, l, chunk);
    put(small, s - 1, chunk); /* not all of it */
    answer = 0;
    assert_int_equal(stream.ops->recv(&stream, small, 1), 0);
    stream.ops->shutdown(&stream);

    struct recording r = read_it();
    const struct {
        unsigned flags;
        size_t position, len;
    } wanted[] = {
        {RECORD_OUT | RECORD_START, 0, req},
        {RECORD_START, 0, rep},
        {RECORD_OUT, req, s},
        {RECORD_OUT, req + s, l},
        {0, rep, l},
        {RECORD_FIN, rep + l, 0},
        {RECORD_OUT | RECORD_OTHER, req + s + l, s - 1},
        {RECORD_OUT | RECORD_FIN, req + s + l + s - 1, 0},
    };
    size_t n = sizeof(wanted) / sizeof(wanted[0]);
    assert_int_equal(frames_of(&r, e, 16), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(e[i]->flags, wanted[i].flags);
        assert_int_equal(e[i]->frame.position, wanted[i].position);
        assert_int_equal(e[i]->frame.len, wanted[i].len);
        assert_int_equal(e[i]->frame.qp_num, 0x1234);
    }
    assert_memory_equal(e[3]->frame.bytes, large, RECORD_BYTES);
    assert_memory_equal(e[2]->frame.bytes, small, s);

    const struct record_conn *c = recording_conn(&r, r.page->head.conns);
    assert_non_null(c);
    assert_int_equal(c->start[1].len, req);
    assert_memory_equal(c->start[1].bytes, request, req);
    assert_int_equal(c->start[0].len, rep);
    assert_memory_equal(c->start[0].bytes, reply, rep);
    assert_int_equal(c->peer_port, ntohs(address.sin_port));
    assert_int_equal(c->active, 1);

    char *text;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    recording_print(f, &r);
    fclose(f);
    assert_non_null(
        strstr(text, "QP 0x001234 RDMA Write STag 0x0000cafe TO 0x7000 length 60000 last\n"));
    assert_non_null(strstr(text, "MPA Req, private data 300\n"));
    assert_non_null(strstr(text, "connected QP 0x001234 127.0.0.1:"));
    free(text);
    recording_free(&r);
}

/** In a child, where cmocka has no handlers: 0 if nothing is recorded of what is not there. */
static int send_what_is_gone(void)
{
    const struct record_event *e[16];
    struct recording r;
    char wrong[64];
    void *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec iov = {.iov_base = gone, .iov_len = 100};
    signal(SIGSEGV, SIG_DFL);
    iw_guard_install();
    answer = 100;
    for (int i = 0; i < 2; i++)
        if (gone == MAP_FAILED || stream.ops->send(&stream, &iov, 1) != 100)
            return 1;
    if (!recording_read(&r, path, wrong, sizeof(wrong)))
        return 2;
    size_t n = frames_of(&r, e, 16);
    recording_free(&r);
    return n ? 3 : 0;
}

/** The program may have unmapped what it sent before anybody looks. */
static void memory_that_is_gone(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(send_what_is_gone());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/** More connections than there are rows: the later ones have none until others have ended. */
static void more_than_there_are_rows(void **state)
{
    static struct iwc_stream s[RECORD_CONNS + 1];
    (void)state;
    for (size_t i = 0; i < RECORD_CONNS + 1; i++) {
        s[i].ops = &own;
        iw_record_attach(&s[i], near, true);
    }
    struct recording r = read_it();
    uint32_t before = r.page->head.conns;
    for (uint32_t i = 0; i < RECORD_CONNS; i++)
        assert_true(r.page->conn[i].id && !r.page->conn[i].ended);
    recording_free(&r);
    for (size_t i = 0; i < RECORD_CONNS + 1; i++)
        iw_record_detach(&s[i], true);
    iw_record_attach(&s[0], near, true);
    r = read_it();
    assert_int_equal(r.page->head.conns, before + 1);
    assert_non_null(recording_conn(&r, before + 1));
    recording_free(&r);
    iw_record_detach(&s[0], true);
}

static int setup(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    setenv("ANYWARP_RECORD", path, 1);
    return fd < 0 || close(fd);
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    static size_t which[] = {0, 1, 2, 3};
#define FRAMES(i) cmocka_unit_test_prestate_setup_teardown(frames, attach, detach, &which[i])
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_operation_is_forwarded, attach, detach),
        FRAMES(0),
        FRAMES(1),
        FRAMES(2),
        FRAMES(3),
        cmocka_unit_test_setup_teardown(memory_that_is_gone, attach, detach),
        cmocka_unit_test_setup_teardown(more_than_there_are_rows, attach, detach),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
