/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct iwc_stream_mem *pair[2];
static struct iwc_stream *a, *b;

static void make(size_t chunk, size_t window)
{
    assert_int_equal(iwc_stream_mem_pair(pair, chunk, window), 0);
    a = iwc_stream_mem_stream(pair[0]);
    b = iwc_stream_mem_stream(pair[1]);
}

static int drop(void **ctx)
{
    (void)ctx;
    iwc_stream_mem_free(pair);
    return 0;
}

static ssize_t put(struct iwc_stream *s, const char *text)
{
    struct iovec v = {.iov_base = (void *)text, .iov_len = strlen(text)};
    return s->ops->send(s, &v, 1);
}

static void expect(struct iwc_stream *s, size_t max, const char *text)
{
    char buf[64];
    ssize_t n = s->ops->recv(s, buf, max);
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buf, text, n);
}

static void both_ways(void **ctx)
{
    (void)ctx;
    char c;
    make(64, 64);
    assert_int_equal(a->ops->recv(a, &c, 1), -EAGAIN);
    assert_int_equal(put(a, "hello"), 5);
    assert_int_equal(put(b, "bye"), 3);
    expect(b, 2, "he");
    expect(b, 64, "llo");
    expect(a, 64, "bye");
    assert_int_equal(b->ops->recv(b, &c, 1), -EAGAIN);
    assert_true(a->ops->emss(a) >= 128);
}

static void gathers(void **ctx)
{
    (void)ctx;
    struct iovec v[] = {{"ab", 2}, {NULL, 0}, {"cde", 3}};
    make(64, 64);
    assert_int_equal(a->ops->send(a, v, 3), 5);
    expect(b, 64, "abcde");
}

static void chunk_limits_send_and_recv(void **ctx)
{
    (void)ctx;
    make(2, 64);
    assert_int_equal(put(a, "hello"), 2);
    iwc_stream_mem_chunk(pair[0], 64);
    assert_int_equal(put(a, "llo"), 3);
    iwc_stream_mem_chunk(pair[0], 3);
    expect(b, 64, "hel");
    expect(b, 64, "lo");
}

static void window_limits_what_is_held(void **ctx)
{
    (void)ctx;
    make(64, 3);
    for (int i = 0; i < 5; i++) { /* goes round the ring */
        assert_int_equal(put(a, "hello"), 3);
        assert_int_equal(put(a, "lo"), -EAGAIN);
        expect(b, 1, "h");
        assert_int_equal(put(a, "X"), 1);
        expect(b, 64, "elX");
    }
}

static void fin_comes_behind_data(void **ctx)
{
    (void)ctx;
    make(64, 64);
    put(a, "last");
    a->ops->shutdown(a);
    assert_int_equal(put(a, "more"), -EPIPE);
    expect(b, 2, "la");
    expect(b, 2, "st");
    expect(b, 2, "");
    assert_int_equal(put(b, "still"), 5); /* the other direction goes on */
    expect(a, 64, "still");
}

static void close_ends_both_directions(void **ctx)
{
    (void)ctx;
    make(64, 64);
    put(a, "x");
    a->ops->close(a, 0);
    expect(b, 64, "x");
    expect(b, 64, "");
    assert_int_equal(put(b, "y"), -EPIPE);
}

static void reset_drops_data(void **ctx)
{
    (void)ctx;
    char c;
    make(64, 64);
    put(a, "x");
    a->ops->close(a, 1);
    assert_int_equal(b->ops->recv(b, &c, 1), -ECONNRESET);
    assert_int_equal(put(b, "y"), -ECONNRESET);
}

static void corrupts_one_byte(void **ctx)
{
    (void)ctx;
    make(64, 64);
    put(a, "aa");
    iwc_stream_mem_corrupt(pair[0], 3, 0x20);
    put(a, "aaa");
    expect(b, 64, "aaaAa");
    iwc_stream_mem_corrupt(pair[0], 5, 0);
    put(a, "a");
    put(b, "aaaaaa");
    expect(b, 64, "a");
    expect(a, 64, "aaaaaa");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(both_ways, drop),
        cmocka_unit_test_teardown(gathers, drop),
        cmocka_unit_test_teardown(chunk_limits_send_and_recv, drop),
        cmocka_unit_test_teardown(window_limits_what_is_held, drop),
        cmocka_unit_test_teardown(fin_comes_behind_data, drop),
        cmocka_unit_test_teardown(close_ends_both_directions, drop),
        cmocka_unit_test_teardown(reset_drops_data, drop),
        cmocka_unit_test_teardown(corrupts_one_byte, drop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
