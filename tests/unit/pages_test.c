/* SPDX-License-Identifier: BSD-2-Clause */
#include "env/cgroup.h"
#include "local/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RING 65536u

static uint64_t allowed = UINT64_MAX; /* what control groups do */

uint64_t iw_cgroup_memory(const char *root)
{
    assert_string_equal(root, "");
    return allowed;
}

/** In a process of its own: it is asked for once. @return how many can be made */
static int made_with(uint64_t memory)
{
    struct iw_pages p[16] = {0};
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = 0, made = 0;
        allowed = memory;
        while (made < 16 && (fd = iw_pages_make(&p[made], RING)) >= 0) {
            close(fd);
            made++;
        }
        _exit(made == 16 || fd == -ENOSPC ? made : 100);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/** The first test: what it asks for is not known yet. */
static void an_eighth_of_a_control_groups_memory(void **state)
{
    (void)state;
    assert_int_equal(made_with(8ul * 6 * RING), 3); /* a ring each way */
    assert_int_equal(made_with(8ul * 2 * RING), 1);
    assert_int_equal(made_with(8ul * 2 * RING - 8), 0);
    assert_int_equal(made_with(0), 0);
    assert_int_equal(made_with(UINT64_MAX), 16);
}

static void both_sides_see_the_same(void **state)
{
    struct iw_pages a = {0}, b = {0};
    (void)state;
    int fd = iw_pages_make(&a, RING);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(iw_pages_open(&b, fd, RING), 0);
    close(fd);
    struct iwc_shm_rings x = iw_pages_rings(&a, true, 7), y = iw_pages_rings(&b, false, 8);
    assert_int_equal(x.bell, 7);
    assert_int_equal(x.size, RING);
    x.out[0] = 1;
    x.in[RING - 1] = 2;
    x.out[RING] = 3; /* the same byte as the first */
    assert_int_equal(y.in[0], 3);
    assert_int_equal(y.out[2 * RING - 1], 2);
    atomic_store(&x.out_ctl->head, 5);
    atomic_store(&y.out_ctl->head, 6);
    assert_int_equal(atomic_load(&y.in_ctl->head), 5);
    assert_int_equal(atomic_load(&x.in_ctl->head), 6);
    iw_pages_close(&a);
    assert_int_equal(y.in[0], 3); /* it outlives who made it */
    iw_pages_close(&b);
    iw_pages_close(&b);
}

static void nobody_can_cut_it(void **state)
{
    struct iw_pages a = {0};
    (void)state;
    int fd = iw_pages_make(&a, RING);
    assert_int_equal(ftruncate(fd, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(fd, 1 << 20), -1);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    close(fd);
    iw_pages_close(&a);
}

/** @param seals  what it is sealed with @return as iw_pages_open() */
static int open_one(unsigned flags, int seals, long size, size_t ring)
{
    struct iw_pages p = {0};
    int fd = memfd_create("another's", MFD_CLOEXEC | flags);
    if (fd < 0 || (size && ftruncate(fd, size)))
        return -ENODEV;
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    int r = iw_pages_open(&p, fd, ring);
    close(fd);
    assert_true(r == 0 || !p.base);
    iw_pages_close(&p);
    return r;
}

static void what_is_not_safe_is_not_mapped(void **state)
{
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const long size = sysconf(_SC_PAGESIZE) + 2l * RING;
    (void)state;
    assert_int_equal(open_one(MFD_ALLOW_SEALING, all, size, RING), 0);
    assert_int_equal(open_one(0, 0, size, RING), -EPERM);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, F_SEAL_GROW | F_SEAL_SEAL, size, RING), -EPERM);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_SEAL, size, RING), -EPERM);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, F_SEAL_SHRINK | F_SEAL_GROW, size, RING), -EPERM);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, all, size - 1, RING), -EINVAL);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, all, size + 1, RING), -EINVAL);
    assert_int_equal(open_one(MFD_ALLOW_SEALING, all, 0, RING), -EINVAL);
    static const size_t rings[] = {0, 1, 4095, 4097, 100000, 32u << 20, (size_t)1 << 40, SIZE_MAX};
    for (unsigned i = 0; i < sizeof(rings) / sizeof(*rings); i++)
        assert_int_equal(open_one(MFD_ALLOW_SEALING, all, size, rings[i]), -EINVAL);
    /* Huge pages can run out: where there are any, they are refused as well. */
    int r = open_one(MFD_ALLOW_SEALING | MFD_HUGETLB, all, 2l << 20, RING);
    assert_true(r == -EPERM || r == -ENODEV);
}

static void what_is_no_memory_is_not_mapped(void **state)
{
    struct iw_pages p = {0};
    int pipes[2], null = open("/dev/null", O_RDWR), file = open("/proc/self/exe", O_RDONLY);
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(iw_pages_open(&p, pipes[0], RING), -EPERM);
    assert_int_equal(iw_pages_open(&p, null, RING), -EPERM);
    assert_int_equal(iw_pages_open(&p, file, RING), -EPERM);
    assert_int_equal(iw_pages_open(&p, -1, RING), -EPERM);
    close(pipes[0]);
    close(pipes[1]);
    close(null);
    close(file);
}

static void there_is_an_end_to_it(void **state)
{
    static struct iw_pages p[64];
    int made = 0;
    (void)state;
    for (; made < 64; made++) {
        int fd = iw_pages_make(&p[made], 4u << 20);
        if (fd < 0)
            break;
        close(fd);
    }
    long eighth = sysconf(_SC_PHYS_PAGES) / 8 * sysconf(_SC_PAGESIZE);
    assert_int_equal(made, (eighth < 256l << 20 ? eighth : 256l << 20) / (8l << 20));
    assert_int_equal(iw_pages_make(&p[made], 4u << 20), -ENOSPC);
    assert_null(p[made].base);
    iw_pages_close(&p[0]);
    int fd = iw_pages_make(&p[0], 4u << 20);
    assert_true(fd >= 0);
    close(fd);
    for (int i = 0; i < made; i++)
        iw_pages_close(&p[i]);
}

/** Where files may not be as large there is no signal, and no memory. */
static void a_limit_of_files_is_kept(void **state)
{
    struct iw_pages a = {0};
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit small = {.rlim_cur = 2 * RING, .rlim_max = RLIM_INFINITY};
        setrlimit(RLIMIT_FSIZE, &small);
        _exit(iw_pages_make(&a, RING) != -EFBIG || a.base);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void a_forked_child_has_none(void **state)
{
    struct iw_pages a = {0};
    int status;
    (void)state;
    if (getenv("ANYWARP_TEST_EMULATED"))
        skip(); /* QEMU's emulation of Linux does not know MADV_DONTFORK */
    int fd = iw_pages_make(&a, RING);
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        volatile uint8_t *p = a.base;
        *p = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(status != 0); /* by the signal, or what a sanitizer makes of it */
    iw_pages_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eighth_of_a_control_groups_memory),
        cmocka_unit_test(both_sides_see_the_same),
        cmocka_unit_test(nobody_can_cut_it),
        cmocka_unit_test(what_is_not_safe_is_not_mapped),
        cmocka_unit_test(what_is_no_memory_is_not_mapped),
        cmocka_unit_test(there_is_an_end_to_it),
        cmocka_unit_test(a_limit_of_files_is_kept),
        cmocka_unit_test(a_forked_child_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
