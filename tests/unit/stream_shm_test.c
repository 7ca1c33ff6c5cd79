/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/stream_shm.h"

#include "conn/stream_mem.h"
#include "env/gather.h"
#include "local/pages.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define RING 65536u

/* Two ends over a memory stream, which stands in for TCP. */
static struct iwc_stream_mem *tcp[2];
static struct iwc_stream_shm ends[2];
static struct iw_pages pages[2];
static int bells[2];
static struct asked {
    unsigned again;
} asked[2];

static void again(void *arg)
{
    ((struct asked *)arg)->again++;
}

static bool is_there;

static bool place(uint8_t *to, const uint8_t *from, size_t len)
{
    if (is_there)
        memcpy(to, from, len);
    return is_there;
}

static const struct iwc_shm_user user = {.gather = iw_gather, .place = place, .again = again};

static int setup(void **ctx)
{
    (void)ctx;
    memset(asked, 0, sizeof(asked));
    is_there = true;
    if (iwc_stream_mem_pair(tcp, 1 << 20, 1 << 20) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, bells))
        return -1;
    int fd = iw_pages_make(&pages[0], RING);
    if (fd < 0 || iw_pages_open(&pages[1], fd, RING))
        return -1;
    close(fd);
    for (int i = 0; i < 2; i++) {
        iwc_stream_shm_init(&ends[i], iwc_stream_mem_stream(tcp[i]), &user, &asked[i]);
        iwc_stream_shm_begin(&ends[i], 0, i == 1);
    }
    return 0;
}

static int teardown(void **ctx)
{
    (void)ctx;
    for (int i = 0; i < 2; i++) {
        iw_pages_close(&pages[i]);
        close(bells[i]);
    }
    iwc_stream_mem_free(tcp);
    return 0;
}

static ssize_t put(int end, const char *text)
{
    struct iovec v = {(void *)text, strlen(text)};
    return ends[end].base.ops->send(&ends[end].base, &v, 1);
}

static void got(int end, const char *text)
{
    char buf[128];
    ssize_t n = ends[end].base.ops->recv(&ends[end].base, buf, sizeof(buf));
    assert_int_equal(n, strlen(text));
    assert_memory_equal(buf, text, (size_t)n);
}

static ssize_t get(int end)
{
    char buf[256];
    return ends[end].base.ops->recv(&ends[end].base, buf, sizeof(buf));
}

static bool is_rung(int end)
{
    struct pollfd p = {.fd = bells[end], .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void attach(void)
{
    for (int i = 0; i < 2; i++) {
        struct iwc_shm_rings r = iw_pages_rings(&pages[i], i == 0, bells[i]);
        iwc_stream_shm_attach(&ends[i], &r);
    }
}

/** Both directions are in rings; @p n bytes went over TCP in each. */
static void switch_both(void)
{
    attach();
    for (int i = 0; i < 2; i++) {
        iwc_stream_shm_switch_out(&ends[i], 0);
        assert_true(iwc_stream_shm_switch_in(&ends[i], ends[i].received));
    }
}

static void is_tcp_at_first(void **ctx)
{
    (void)ctx;
    assert_int_equal(get(1), -EAGAIN);
    assert_int_equal(put(0, "hello"), 5);
    got(1, "hello");
    attach(); /* that alone changes nothing */
    assert_int_equal(put(0, "again"), 5);
    assert_int_equal(ends[1].base.ops->recv(&ends[1].base, (char[8]){0}, 8), 5);
    ends[0].base.ops->shutdown(&ends[0].base);
    assert_int_equal(get(1), 0);
}

static void is_due_once_and_at_one_end(void **ctx)
{
    (void)ctx;
    for (int i = 0; i < 63; i++) {
        put(0, "x");
        get(1);
    }
    assert_false(iwc_stream_shm_due(&ends[1]));
    put(0, "x");
    get(1);
    assert_true(iwc_stream_shm_due(&ends[1]));
    for (int i = 0; i < 200; i++) {
        put(0, "x");
        get(1);
    }
    assert_false(iwc_stream_shm_due(&ends[1]));
    assert_false(iwc_stream_shm_due(&ends[0]));
}

static void bytes_make_it_due(void **ctx)
{
    static char much[65536];
    struct iovec v = {much, sizeof(much)};
    (void)ctx;
    assert_int_equal(ends[1].base.ops->send(&ends[1].base, &v, 1), sizeof(much));
    assert_true(iwc_stream_shm_due(&ends[1]));
}

/** What is sent in one call is split where the switch is. */
static void switches_in_the_middle(void **ctx)
{
    struct iovec v[] = {{"one ", 4}, {"two ", 4}, {"three", 5}};
    (void)ctx;
    attach();
    iwc_stream_shm_switch_out(&ends[0], 6);
    assert_int_equal(ends[0].base.ops->send(&ends[0].base, v, 3), 4);
    assert_int_equal(ends[0].base.ops->send(&ends[0].base, v + 1, 2), 2);
    v[1] = (struct iovec){"o ", 2};
    assert_int_equal(ends[0].base.ops->send(&ends[0].base, v + 1, 2), 7);
    got(1, "one tw");
    assert_int_equal(get(1), -EAGAIN);
    assert_false(iwc_stream_shm_switch_in(&ends[1], 5)); /* more has come */
    assert_true(iwc_stream_shm_switch_in(&ends[1], 6));
    assert_false(iwc_stream_shm_switch_in(&ends[1], 6)); /* once */
    got(1, "o three");
}

static void no_switch_without_rings(void **ctx)
{
    (void)ctx;
    assert_false(iwc_stream_shm_switch_in(&ends[1], 0));
}

static void carries_more_than_the_ring_holds(void **ctx)
{
    static uint8_t out[5 * RING + 17], in[sizeof(out)];
    size_t sent = 0, taken = 0;
    (void)ctx;
    switch_both();
    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (uint8_t)(i * 7 + i / 251);
    while (taken < sizeof(in)) {
        struct iovec v[2] = {{out + sent, (sizeof(out) - sent) / 2}};
        v[1] = (struct iovec){out + sent + v[0].iov_len, sizeof(out) - sent - v[0].iov_len};
        ssize_t n = sent < sizeof(out) ? ends[0].base.ops->send(&ends[0].base, v, 2) : 0;
        assert_true(n >= 0 || n == -EAGAIN);
        sent += n > 0 ? (size_t)n : 0;
        size_t room = sizeof(in) - taken < 50000 ? sizeof(in) - taken : 50000;
        n = ends[1].base.ops->recv(&ends[1].base, in + taken, room);
        assert_true(n > 0 || n == -EAGAIN);
        taken += n > 0 ? (size_t)n : 0;
    }
    assert_memory_equal(in, out, sizeof(in));
}

/** Receives into two pieces, of 3 bytes and of 8. */
static void got_pieces(const char *first, const char *second)
{
    char a[4] = "", b[9] = "";
    struct iovec v[] = {{a, 3}, {b, 8}};
    ssize_t n = ends[1].base.ops->recvv(&ends[1].base, v, 2);
    assert_int_equal(n, strlen(first) + strlen(second));
    assert_string_equal(a, first);
    assert_string_equal(b, second);
}

static void goes_into_pieces(void **ctx)
{
    (void)ctx;
    put(0, "by tcp");
    got_pieces("by ", "tcp");
    put(0, "2");
    got_pieces("2", "");
    assert_int_equal(ends[1].received, 7);
    switch_both();
    put(0, "by");
    got_pieces("by", "");
    put(0, "by ring, and more");
    got_pieces("by ", "ring, an");
    got_pieces("d m", "ore");
}

/** A part that is not taken stays in the ring; the connection ends. */
static void pieces_that_are_gone(void **ctx)
{
    char a[8];
    struct iovec v[] = {{a, 4}, {a + 4, 4}};
    (void)ctx;
    switch_both();
    put(0, "12345678");
    is_there = false;
    assert_int_equal(ends[1].base.ops->recvv(&ends[1].base, v, 2), -EFAULT);
    got(1, "12345678"); /* that is memory of the caller's own */
}

static void rings_who_sleeps(void **ctx)
{
    (void)ctx;
    switch_both();
    put(0, "a");
    assert_true(is_rung(1));
    assert_true(iwc_stream_shm_hear(&ends[1], true));
    assert_false(is_rung(1));
    put(0, "b");
    assert_false(is_rung(1));
    iwc_stream_shm_arm(&ends[1]);
    assert_int_equal(asked[1].again, 1); /* it is there already */
    got(1, "ab");
    iwc_stream_shm_arm(&ends[1]);
    assert_int_equal(asked[1].again, 1);
    put(0, "c");
    assert_true(is_rung(1));
}

static void is_idle_at_a_glance(void **ctx)
{
    (void)ctx;
    attach();
    assert_true(iwc_stream_shm_idle(&ends[1])); /* what TCP has, its descriptor tells */
    switch_both();
    assert_true(iwc_stream_shm_idle(&ends[1]));
    put(0, "a");
    assert_false(iwc_stream_shm_idle(&ends[1]));
    got(1, "a");
    assert_true(iwc_stream_shm_idle(&ends[1]));
    iwc_stream_shm_look(&ends[1]);
    assert_false(iwc_stream_shm_idle(&ends[1]));
    assert_int_equal(get(1), -EAGAIN);
    assert_true(iwc_stream_shm_idle(&ends[1]));
}

static void who_waits_for_room_is_not_idle(void **ctx)
{
    static uint8_t much[RING];
    struct iovec v = {much, sizeof(much)};
    (void)ctx;
    switch_both();
    assert_int_equal(ends[0].base.ops->send(&ends[0].base, &v, 1), RING);
    assert_true(iwc_stream_shm_idle(&ends[0]));
    assert_int_equal(iwc_stream_shm_want(&ends[0]), IWC_SHM_BELL);
    assert_false(iwc_stream_shm_idle(&ends[0]));
}

static void rings_when_there_is_room(void **ctx)
{
    static uint8_t much[RING];
    struct iovec v = {much, sizeof(much)};
    (void)ctx;
    assert_int_equal(iwc_stream_shm_want(&ends[0]), IWC_SHM_TCP);
    switch_both();
    assert_int_equal(ends[0].base.ops->send(&ends[0].base, &v, 1), RING);
    assert_int_equal(put(0, "x"), -EAGAIN);
    assert_int_equal(iwc_stream_shm_want(&ends[0]), IWC_SHM_BELL);
    assert_false(is_rung(0));
    assert_int_equal(ends[1].base.ops->recv(&ends[1].base, much, RING), RING);
    assert_true(is_rung(0));
    assert_true(iwc_stream_shm_asked(&ends[0]));
    assert_false(iwc_stream_shm_asked(&ends[0]));
    assert_int_equal(iwc_stream_shm_want(&ends[0]), IWC_SHM_NOW);
}

static void the_end_comes_behind_what_was_published(void **ctx)
{
    (void)ctx;
    switch_both();
    put(0, "last");
    ends[0].base.ops->shutdown(&ends[0].base);
    iwc_stream_shm_look(&ends[1]);
    got(1, "last");
    iwc_stream_shm_look(&ends[1]); /* epoll goes on to tell */
    assert_int_equal(get(1), 0);
    assert_int_equal(get(1), 0);
}

static void so_does_a_reset(void **ctx)
{
    (void)ctx;
    switch_both();
    put(0, "last");
    ends[0].base.ops->close(&ends[0].base, 1);
    iwc_stream_shm_look(&ends[1]);
    got(1, "last");
    iwc_stream_shm_look(&ends[1]);
    assert_int_equal(get(1), -ECONNRESET);
}

/** The peer is gone, and what it sent is there: that is received before a send fails. */
static void a_send_does_not_overtake_the_end(void **ctx)
{
    (void)ctx;
    attach();
    put(0, "last");
    iwc_stream_mem_stream(tcp[0])->ops->close(iwc_stream_mem_stream(tcp[0]), 0);
    assert_int_equal(put(1, "x"), -EAGAIN);
    got(1, "last");
    assert_int_equal(put(1, "x"), -EAGAIN);
    assert_int_equal(get(1), 0);
    assert_int_equal(put(1, "x"), -EPIPE);
}

/** The peer's switch was received and not used yet when its end came. */
static void the_end_waits_for_the_switch(void **ctx)
{
    (void)ctx;
    attach();
    iwc_stream_shm_switch_out(&ends[0], 3);
    put(0, "tcp");
    put(0, "ring");
    ends[0].base.ops->shutdown(&ends[0].base);
    got(1, "tcp");
    assert_int_equal(get(1), -EAGAIN);
    assert_true(iwc_stream_shm_switch_in(&ends[1], 3));
    got(1, "ring");
    assert_int_equal(get(1), 0);
}

static void bytes_by_tcp_behind_the_switch_are_an_error(void **ctx)
{
    struct iovec v = {"x", 1};
    struct iwc_stream *under = iwc_stream_mem_stream(tcp[0]);
    (void)ctx;
    switch_both();
    put(0, "good");
    assert_int_equal(under->ops->send(under, &v, 1), 1);
    iwc_stream_shm_look(&ends[1]);
    got(1, "good");
    iwc_stream_shm_look(&ends[1]);
    assert_int_equal(get(1), -EPROTO);
}

static void lies_are_an_error(void **ctx)
{
    (void)ctx;
    switch_both();
    atomic_store(&ends[1].in.ctl->head, RING + 1);
    assert_int_equal(get(1), -EPROTO);
    atomic_store(&ends[1].out.ctl->tail, 1ull << 40);
    assert_int_equal(put(1, "x"), 1); /* it was not looked at */
    static uint8_t much[RING];
    struct iovec v = {much, sizeof(much)};
    assert_int_equal(ends[1].base.ops->send(&ends[1].base, &v, 1), -EPROTO);
}

/** Of the ring that @p end sends through. */
static unsigned resident_pages(int end)
{
    unsigned char in[RING / 4096];
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned n = 0;
    assert_int_equal(mincore(ends[end].out.data, RING, in), 0);
    for (size_t i = 0; i < RING / page; i++)
        n += in[i] & 1;
    return n;
}

/** The test ends here in QEMU's emulation of Linux, which does not know MADV_REMOVE. */
static void need_pages_that_go(void)
{
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip();
}

static void a_ring_that_rests_has_no_pages(void **ctx)
{
    (void)ctx;
    need_pages_that_go();
    switch_both();
    assert_false(iwc_stream_shm_rest(&ends[0])); /* it has none yet */
    for (int i = 0; i < 3; i++) {
        put(0, "used");
        assert_true(iwc_stream_shm_due(&ends[0]));
        assert_true(resident_pages(0) > 0);
        assert_true(iwc_stream_shm_rest(&ends[0])); /* just now */
        got(1, "used");
        assert_false(iwc_stream_shm_rest(&ends[0]));
        assert_int_equal(resident_pages(0), 0);
        assert_false(iwc_stream_shm_rest(&ends[0]));
        assert_false(iwc_stream_shm_due(&ends[0]));
    }
}

/** A peer that is stopped: what it has not taken stays, and nobody asks again and again. */
static void a_ring_that_is_not_emptied_rests_later(void **ctx)
{
    (void)ctx;
    need_pages_that_go();
    switch_both();
    put(0, "one");
    assert_true(iwc_stream_shm_due(&ends[0]));
    assert_true(iwc_stream_shm_rest(&ends[0]));
    assert_false(iwc_stream_shm_rest(&ends[0]));
    assert_true(resident_pages(0) > 0);
    put(0, " two");
    assert_true(iwc_stream_shm_due(&ends[0]));
    got(1, "one two");
    assert_true(iwc_stream_shm_rest(&ends[0]));
    assert_false(iwc_stream_shm_rest(&ends[0]));
    assert_int_equal(resident_pages(0), 0);
}

static void a_ring_with_lies_does_not_rest(void **ctx)
{
    (void)ctx;
    switch_both();
    put(0, "x");
    atomic_store(&ends[0].out.ctl->tail, 1ull << 40);
    assert_false(iwc_stream_shm_rest(&ends[0]));
    assert_true(resident_pages(0) > 0);
    iwc_stream_shm_kill(&ends[0]);
    assert_false(iwc_stream_shm_rest(&ends[0]));
}

static void a_dead_one_touches_nothing(void **ctx)
{
    (void)ctx;
    switch_both();
    for (int i = 0; i < 2; i++) {
        iwc_stream_shm_kill(&ends[i]);
        iw_pages_close(&pages[i]);
    }
    assert_int_equal(put(0, "x"), -ECONNRESET);
    assert_int_equal(get(0), -ECONNRESET);
    iwc_stream_shm_arm(&ends[0]);
    assert_int_equal(iwc_stream_shm_want(&ends[0]), IWC_SHM_NOW);
}

/** Nobody has mapped anything at the other end. */
static void a_bell_that_never_rang(void **ctx)
{
    (void)ctx;
    switch_both();
    close(bells[0]);
    assert_false(iwc_stream_shm_hear(&ends[1], false));
    bells[0] = dup(bells[1]);
}

static void a_bell_that_was_hung_up(void **ctx)
{
    (void)ctx;
    switch_both();
    assert_true(iwc_stream_shm_hear(&ends[1], true));
    close(bells[0]);
    assert_false(iwc_stream_shm_hear(&ends[1], true));
    assert_int_equal(put(1, "x"), 1); /* nobody to ring for: no signal, no error */
    bells[0] = dup(bells[1]);
}

/** Rings are read when there may be many: the descriptor tells of each anyway. */
static void rings_are_heard_now_and_then(void **ctx)
{
    unsigned heard = 0;
    (void)ctx;
    switch_both();
    for (int i = 0; i < 100; i++) {
        put(0, "x");
        assert_true(is_rung(1));
        got(1, "x");
        assert_true(iwc_stream_shm_hear(&ends[1], false));
        heard += !is_rung(1);
        iwc_stream_shm_arm(&ends[1]);
    }
    assert_in_range(heard, 3, 50);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(is_tcp_at_first),
        TEST(is_due_once_and_at_one_end),
        TEST(bytes_make_it_due),
        TEST(switches_in_the_middle),
        TEST(no_switch_without_rings),
        TEST(carries_more_than_the_ring_holds),
        TEST(goes_into_pieces),
        TEST(pieces_that_are_gone),
        TEST(rings_who_sleeps),
        TEST(is_idle_at_a_glance),
        TEST(who_waits_for_room_is_not_idle),
        TEST(rings_when_there_is_room),
        TEST(the_end_comes_behind_what_was_published),
        TEST(so_does_a_reset),
        TEST(a_send_does_not_overtake_the_end),
        TEST(the_end_waits_for_the_switch),
        TEST(bytes_by_tcp_behind_the_switch_are_an_error),
        TEST(lies_are_an_error),
        TEST(a_ring_that_rests_has_no_pages),
        TEST(a_ring_that_is_not_emptied_rests_later),
        TEST(a_ring_with_lies_does_not_rest),
        TEST(a_dead_one_touches_nothing),
        TEST(a_bell_that_never_rang),
        TEST(a_bell_that_was_hung_up),
        TEST(rings_are_heard_now_and_then),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
