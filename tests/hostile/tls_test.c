/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listener that wants TLS, and peers that speak none, break it off, are slow, or are many. Each
 * is dropped in time, the program hears of none, and connections of others are made meanwhile.
 */
#include "api/cm_kit.h"
#include "common/sanitizer.h"
#include "entries.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 10000
#define CROWD   1250 /* more than a listener keeps */
#define ROUNDS  8    /* 10,000 in all */
#define KEPT    1024 /* at most, by a listener */
#define EACH_KB 32   /* of memory for one of them, at most */
#define CPU_MS  20   /* for one of them, at most, with a sanitizer, too */

#if defined(ANYWARP_ASAN) || defined(__SANITIZE_THREAD__)
#define KEEPS_FREED true /* memory is not used again soon, or has a shadow that stays */
#else
#define KEEPS_FREED false
#endif

#define BYTES(text) text, sizeof(text) - 1

/* A ClientHello's record and message header; the message would have 512 bytes. */
#define HELLO "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

static const struct {
    const char *what, *bytes;
    size_t len;
} rows[] = {
    {"a Request in the clear", BYTES("MPA ID Req Frame\0\1\0\0")},
    {"HTTP", BYTES("GET / HTTP/1.1\r\n\r\n")},
    {"the first byte alone", BYTES("\x16")},
    {"a record without a message", BYTES("\x16\x03\x01\x00\x00")},
    {"a hello that breaks off", BYTES(HELLO)},
    {"a hello in an older version's record", BYTES("\x16\x03\x00\x00\x05\x01\x00\x00\x01\x00")},
    {"SSL 2", BYTES("\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10")},
    {"a record of 16641 bytes", BYTES("\x16\x03\x03\x41\x01\x01\x00\x01\xfc")},
    {"a record of 65535 bytes", BYTES("\x16\x03\x01\xff\xff\x01\x00\x01\xfc")},
    {"a message of 16 MB", BYTES("\x16\x03\x01\x00\x04\x01\xff\xff\xff")},
    {"SSL 3", BYTES("\x16\x03\x00\x00\x04\x01\x00\x00\x00")},
    {"an alert", BYTES("\x15\x03\x03\x00\x02\x02\x28")},
    {"data before the handshake", BYTES("\x16\x03\x01\x00\x01\x01\x17\x03\x03\x00\x02xx")},
    {"a key update at first", BYTES("\x16\x03\x03\x00\x05\x18\x00\x00\x01\x00")},
    {"a certificate at first", BYTES("\x16\x03\x03\x00\x04\x0b\x00\x00\x00")},
    {"a Finished at first", BYTES("\x16\x03\x03\x00\x04\x14\x00\x00\x00")},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static char key[] = "/tmp/tls_test.XXXXXX";

static int call(const struct cm_sides *s)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_return_code(connect(fd, (const struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)),
                       errno);
    return fd;
}

/** Whether the listener ends the connection; what it says before does not matter. */
static bool ends(int fd)
{
    char drop[4096];
    for (struct pollfd p = {.fd = fd, .events = POLLIN}; poll(&p, 1, WAIT_MS) == 1;)
        if (recv(fd, drop, sizeof(drop), MSG_DONTWAIT) <= 0)
            return true;
    return false;
}

static void others_go_on(struct cm_sides *s)
{
    struct rdma_cm_id *a, *b;
    cm_connect(s, &a, &b);
    cm_drop(a);
    assert_int_equal(cm_expect(s->b, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_drop(b);
    cm_quiet(s->a, 0);
    cm_quiet(s->b, 0);
}

static void expect_descriptors(int n)
{
    for (int ms = 0; descriptors() > n && ms < WAIT_MS; ms += 10)
        usleep(10000);
    assert_in_range(descriptors(), 1, n);
}

static void no_tls(void **state)
{
    struct cm_sides s;
    (void)state;
    cm_open(&s, NULL);
    others_go_on(&s);
    int before = descriptors();
    for (size_t i = 0; i < ROWS; i++) {
        int fd = call(&s);
        assert_int_equal(send(fd, rows[i].bytes, rows[i].len, MSG_NOSIGNAL), rows[i].len);
        if (!ends(fd))
            fail_msg("%s: the connection stays", rows[i].what);
        close(fd);
        others_go_on(&s);
    }
    expect_descriptors(before);
    cm_close(&s);
}

/** Byte after byte does not make the time longer. */
static void slow(void **state)
{
    struct cm_sides s;
    bool over = false;
    (void)state;
    cm_open(&s, NULL);
    int fd = call(&s);
    for (size_t i = 0; !over && i < WAIT_MS / 50; i++) {
        char byte = i < sizeof(HELLO) - 1 ? HELLO[i] : 0;
        over = send(fd, &byte, 1, MSG_NOSIGNAL) != 1;
        struct pollfd p = {.fd = fd, .events = POLLIN};
        over = over || poll(&p, 1, 50) == 1;
    }
    assert_true(over);
    close(fd);
    others_go_on(&s);
    cm_close(&s);
}

static long resident_kb(void)
{
    long pages[2];
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &pages[0], &pages[1]), 2);
    fclose(f);
    return pages[1] * (sysconf(_SC_PAGESIZE) / 1024);
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/** 10,000 that begin a handshake, and leave it at that. */
static void many(void **state)
{
    static int crowd[CROWD];
    struct cm_sides s;
    struct linger reset = {.l_onoff = 1}; /* the ports are for others, too */
    (void)state;
    cm_open(&s, NULL);
    others_go_on(&s);
    int before = descriptors();
    long memory = resident_kb();
    double began = cpu_ms();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CROWD; i++) {
            crowd[i] = call(&s);
            setsockopt(crowd[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
            assert_int_equal(send(crowd[i], HELLO, sizeof(HELLO) - 1, MSG_NOSIGNAL),
                             sizeof(HELLO) - 1);
        }
        others_go_on(&s);
        assert_in_range(descriptors(), before, before + CROWD + KEPT + 8);
        assert_true(KEEPS_FREED || resident_kb() - memory < KEPT * EACH_KB);
        for (int i = 0; i < CROWD; i++)
            close(crowd[i]);
    }
    assert_true(cpu_ms() - began < (double)CROWD * ROUNDS * CPU_MS);
    expect_descriptors(before);
    cm_close(&s);
}

static int make_key(void **state)
{
    (void)state;
    int fd = mkstemp(key);
    assert_return_code(fd, errno);
    assert_int_equal(dprintf(fd, "test:000102030405060708090a0b0c0d0e0f\n"), 38);
    close(fd);
    struct rlimit files = {.rlim_cur = 8192, .rlim_max = 8192};
    setrlimit(RLIMIT_NOFILE, &files);
    setenv("ANYWARP_TLS", "require", 1);
    setenv("ANYWARP_TLS_PSK", key, 1);
    setenv("ANYWARP_CONNECT_MS", "2000", 1); /* less than WAIT_MS; others have it, too */
    return 0;
}

static int drop_key(void **state)
{
    (void)state;
    return unlink(key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_tls),
        cmocka_unit_test(slow),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, make_key, drop_key);
}
