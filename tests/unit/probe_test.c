/* SPDX-License-Identifier: BSD-2-Clause */
#include "mem/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/*
 * A letter a block: r readable, w readable and writable, n mapped without rights, - not mapped.
 * Blocks of one page make ranges that are populated, large ones make ranges that are looked up.
 */
static const struct {
    const char *blocks;
    unsigned first, count; /* the range asked for */
    int read, write;
} rows[] = {
    {"w", 0, 1, 0, 0},
    {"r", 0, 1, 0, EFAULT},
    {"n", 0, 1, EFAULT, EFAULT},
    {"-", 0, 1, EFAULT, EFAULT},
    {"www", 0, 3, 0, 0},
    {"wrw", 0, 3, 0, EFAULT},
    {"wrw", 0, 1, 0, 0},
    {"wrw", 2, 1, 0, 0},
    {"rwr", 1, 1, 0, 0},
    {"wnw", 0, 3, EFAULT, EFAULT},
    {"w-w", 0, 3, EFAULT, EFAULT},
    {"w-w", 0, 2, EFAULT, EFAULT},
    {"-ww", 0, 2, EFAULT, EFAULT},
    {"-w-", 1, 1, 0, 0},
    {"rwrw", 0, 4, 0, EFAULT},
    {"wwr-", 0, 3, 0, EFAULT},
};

static const size_t block_pages[] = {1, 17, 768};

static void shape(uint8_t *p, size_t block, const char *letters)
{
    for (size_t i = 0; letters[i]; i++) {
        if (letters[i] == '-')
            munmap(p + i * block, block);
        else if (letters[i] != 'w')
            mprotect(p + i * block, block, letters[i] == 'r' ? PROT_READ : PROT_NONE);
    }
}

typedef int probe(const void *addr, size_t len, bool write);

static void check_row(size_t i, size_t block, probe *probe)
{
    size_t size = (strlen(rows[i].blocks) + 2) * block;
    uint8_t *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    size_t inner = size - 2 * block;
    assert_int_equal(mprotect(p + block, inner, PROT_READ | PROT_WRITE), 0);
    shape(p + block, block, rows[i].blocks);
    uint8_t *at = p + block + rows[i].first * block;
    size_t len = rows[i].count * block;
    errno = EXDEV;
    /* whole blocks; cut short by a byte at each end; one byte more, which has no rights, if last */
    int got[] = {
        probe(at, len, false),
        probe(at, len, true),
        probe(at + 1, len - 2, false),
        probe(at + 1, len - 2, true),
    };
    bool last = rows[i].first + rows[i].count == strlen(rows[i].blocks);
    int beyond = probe(at, len + 1, false);
    assert_int_equal(errno, EXDEV);
    munmap(p, size);
    if (got[0] != rows[i].read || got[2] != rows[i].read || got[1] != rows[i].write ||
        got[3] != rows[i].write || (last && beyond != EFAULT))
        fail_msg("row %zu, block %zu: %d %d %d %d %d", i, block, got[0], got[1], got[2], got[3],
                 beyond);
}

static void mappings(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t b = 0; b < sizeof(block_pages) / sizeof(block_pages[0]); b++)
            check_row(i, block_pages[b] * (size_t)getpagesize(), iw_probe);
}

/* What stands in for a kernel may take any advice, and do nothing. */
static bool idle;

int madvise(void *addr, size_t len, int advice)
{
    return idle ? 0 : (int)syscall(SYS_madvise, addr, len, advice);
}

static void gone_and_there(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(p != MAP_FAILED);
    assert_false(iw_probe_gone(p));
    assert_false(iw_probe_hole(p + page - 1, 1));
    assert_int_equal(mprotect(p, page, PROT_NONE), 0);
    assert_false(iw_probe_hole(p, page)); /* mapped all the same */
    assert_int_equal(mprotect(p, page, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(iw_prefetch(p, page, true), 0);
    munmap(p, page);
    assert_true(iw_probe_gone(p));
    assert_true(iw_probe_hole(p + page - 1, 1));
    assert_int_equal(iw_prefetch(p, page, true), EFAULT);
}

/** In a child, as it is found out once. */
static void advice_that_does_nothing(void **state)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mappings),
        cmocka_unit_test(gone_and_there),
    };
    int status;
    pid_t pid = fork();
    (void)state;
    if (pid == 0) {
        idle = true;
        _exit(cmocka_run_group_tests(tests, NULL, NULL));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/** Blocks are so few that each has a place that is tried. */
static void mappings_by_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (size_t b = 0; b < sizeof(block_pages) / sizeof(block_pages[0]); b++)
            check_row(i, block_pages[b] * (size_t)getpagesize(), iw_probe_places);
}

static void top_of_the_address_space(void **state)
{
    (void)state;
    assert_int_equal(iw_probe_places((void *)UINTPTR_MAX, 1, false), EFAULT);
    assert_int_equal(iw_probe_places((void *)(UINTPTR_MAX - (1 << 20)), 1 << 20, true), EFAULT);
    assert_int_equal(iw_probe_places(NULL, 1, false), EFAULT);
    assert_int_equal(iw_probe_places(NULL, SIZE_MAX, false), EFAULT);
    assert_int_equal(iw_probe((void *)UINTPTR_MAX, 1, false), EFAULT);
    assert_int_equal(iw_probe((void *)(UINTPTR_MAX - (1 << 20)), 1 << 20, true), EFAULT);
    assert_int_equal(iw_probe(NULL, 1, false), EFAULT);
    assert_int_equal(iw_probe(NULL, SIZE_MAX, false), EFAULT);
}

static void content_stays(void **state)
{
    static const size_t sizes[] = {4096, 1 << 20};
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint8_t *p = malloc(sizes[i]);
        memset(p, 0xa5, sizes[i]);
        assert_int_equal(iw_probe(p, sizes[i], true), 0);
        assert_int_equal(iw_probe_places(p, sizes[i], true), 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(p[k], 0xa5);
        free(p);
    }
}

/** Whether the kernel has PROCMAP_QUERY. */
static bool looks_up(const void *addr)
{
    uint64_t query[13] = {sizeof(query), 0, (uintptr_t)addr};
    int fd = open("/proc/self/maps", O_RDONLY);
    bool has = fd >= 0 && ioctl(fd, _IOWR('f', 17, query), query) == 0;
    close(fd);
    return has;
}

/** A large range stays as untouched as it was. */
static void nothing_is_populated(void **state)
{
    size_t len = 64 << 20;
    uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char present[16384] = {0};
    (void)state;
    if (!looks_up(p)) {
        munmap(p, len);
        print_message("no PROCMAP_QUERY: a few places are touched\n");
        skip();
    }
    assert_int_equal(iw_probe(p, len, true), 0);
    assert_int_equal(mincore(p, len, present), 0);
    for (size_t i = 0; i < sizeof(present); i++)
        assert_int_equal(present[i] & 1, 0);
    munmap(p, len);
}

/** No descriptor is left: holes are still found. */
static int child(void)
{
    size_t len = 3 << 20;
    uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) || iw_probe(p, len, true) != 0)
        return 1;
    munmap(p + (1 << 20), (size_t)getpagesize());
    return iw_probe(p, len, true) != EFAULT;
}

static void without_a_descriptor(void **state)
{
    int status;
    pid_t pid = fork();
    (void)state;
    if (pid == 0)
        _exit(child());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_that_does_nothing), /* before any that asks the kernel */
        cmocka_unit_test(mappings),
        cmocka_unit_test(gone_and_there),
        cmocka_unit_test(mappings_by_places),
        cmocka_unit_test(top_of_the_address_space),
        cmocka_unit_test(content_stays),
        cmocka_unit_test(nothing_is_populated),
        cmocka_unit_test(without_a_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
