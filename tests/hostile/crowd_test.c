/* SPDX-License-Identifier: BSD-2-Clause */
/* More connections without a Request than a listener keeps: the oldest have to go. */
#include "api/cm_kit.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define KEPT    1024
#define TOO     64 /* many */
#define CROWD   (KEPT + TOO)
#define WAIT_MS 10000

static int descriptors(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int call(const struct cm_sides *s)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(fd, errno);
    assert_return_code(connect(fd, (const struct sockaddr *)&s->addr, sizeof(struct sockaddr_in)),
                       errno);
    return fd;
}

static bool closed(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void the_oldest_make_room(void **state)
{
    static int crowd[CROWD];
    struct cm_sides s;
    struct rdma_cm_id *a, *b, *a2, *b2;
    struct rlimit files;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    if (files.rlim_max < 4096 || setrlimit(RLIMIT_NOFILE, &files))
        skip();
    cm_open(&s, NULL);
    cm_connect(&s, &a, &b);
    int before = descriptors();
    for (int i = 0; i < CROWD; i++)
        crowd[i] = call(&s);
    for (int i = 0; i < TOO; i++)
        assert_true(closed(crowd[i], WAIT_MS));
    for (int i = TOO + 1; i < CROWD; i++)
        assert_false(closed(crowd[i], 0));
    cm_connect(&s, &a2, &b2); /* that took the place of one more */
    assert_true(closed(crowd[TOO], WAIT_MS));
    cm_quiet(s.a, 0);
    cm_quiet(s.b, 0);
    cm_drop(a2);
    assert_int_equal(cm_expect(s.b, RDMA_CM_EVENT_DISCONNECTED), 0);
    cm_drop(b2);
    for (int i = 0; i < CROWD; i++)
        close(crowd[i]);
    for (int ms = 0; descriptors() > before && ms < WAIT_MS; ms += 10)
        usleep(10000);
    assert_int_equal(descriptors(), before);
    cm_drop(a);
    cm_drop(b);
    cm_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_make_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
