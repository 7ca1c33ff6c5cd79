/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that need no device, result by result against the installed rdma-core: conversions of
 * kernel structures, files of sysfs, address handle attributes, fork, ibv_inc_rkey().
 */
#include "real_verbs.h"
#include "verbs/legacy.h"
#include "verbs/sysfs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

static void *real;

static int open_real(void **state)
{
    (void)state;
    real = real_verbs_open();
    return 0;
}

static int close_real(void **state)
{
    (void)state;
    return real ? dlclose(real) : 0;
}

static void *theirs(const char *name)
{
    if (!real)
        skip();
    void *f = dlsym(real, name);
    assert_non_null(f);
    return f;
}

/* ---- structures: every byte of the source counts, and differs ---- */

static void fill(void *p, size_t size, unsigned seed)
{
    uint8_t *b = p;
    for (size_t i = 0; i < size; i++)
        b[i] = (uint8_t)(seed + i * 37 + (i >> 4));
}

/** Converts @p size bytes both ways of doing it; what comes out must be the same. */
static void compare(const char *name, void (*ours)(void *dst, void *src), size_t dst_size,
                    size_t src_size)
{
    uint8_t src[512], a[512], b[512];
    void (*convert)(void *, void *) = (void (*)(void *, void *))theirs(name);
    assert_true(src_size <= sizeof(src) && dst_size <= sizeof(a));
    for (unsigned seed = 0; seed < 256; seed += 51) {
        fill(src, src_size, seed);
        memset(a, 0xee, sizeof(a));
        memset(b, 0xee, sizeof(b));
        ours(a, src);
        convert(b, src);
        for (size_t i = 0; i < sizeof(a); i++)
            if (a[i] != b[i])
                fail_msg("%s: byte %zu is %02x, not %02x", name, i, a[i], b[i]);
    }
}

static void ah_attr(void *dst, void *src)
{
    ibv_copy_ah_attr_from_kern(dst, src);
}

static void qp_attr(void *dst, void *src)
{
    ibv_copy_qp_attr_from_kern(dst, src);
}

static void path_from(void *dst, void *src)
{
    ibv_copy_path_rec_from_kern(dst, src);
}

static void path_to(void *dst, void *src)
{
    ibv_copy_path_rec_to_kern(dst, src);
}

static void test_structures(void **state)
{
    (void)state;
    compare("ibv_copy_ah_attr_from_kern", ah_attr, sizeof(struct ibv_ah_attr),
            sizeof(struct ib_uverbs_ah_attr));
    compare("ibv_copy_qp_attr_from_kern", qp_attr, sizeof(struct ibv_qp_attr),
            sizeof(struct ib_uverbs_qp_attr));
    compare("ibv_copy_path_rec_from_kern", path_from, sizeof(struct ibv_sa_path_rec),
            sizeof(struct ib_user_path_rec));
    compare("ibv_copy_path_rec_to_kern", path_to, sizeof(struct ib_user_path_rec),
            sizeof(struct ibv_sa_path_rec));
}

/* ---- sysfs ---- */

static void test_files(void **state)
{
    static const struct {
        const char *file, *content;
    } files[] = {
        {"line", "4: ACTIVE\n"}, {"two", "a\nb\n"},         {"bare", "no newline"},
        {"empty", ""},           {"newline", "\n"},         {"seven", "1234567"},
        {"eight", "12345678"},   {"eight-nl", "1234567\n"},
    };
    int (*read_file)(const char *, const char *, char *, size_t) =
        (int (*)(const char *, const char *, char *, size_t))theirs("ibv_read_sysfs_file");
    char dir[] = "test-dir-XXXXXX", path[128];
    (void)state;
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i].file);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(files[i].content, f);
        fclose(f);
        for (size_t size = 1; size < 16; size++) {
            char a[32], b[32];
            memset(a, '#', sizeof(a));
            memset(b, '#', sizeof(b));
            int n = ibv_read_sysfs_file(dir, files[i].file, a, size);
            if (n != read_file(dir, files[i].file, b, size) || memcmp(a, b, sizeof(a)) != 0)
                fail_msg("file \"%s\", %zu bytes: %d", files[i].file, size, n);
        }
        unlink(path);
    }
    assert_int_equal(ibv_read_sysfs_file(dir, "none", path, sizeof(path)),
                     read_file(dir, "none", path, sizeof(path)));
    rmdir(dir);
}

/* ---- address handles ---- */

/** Without a GRH neither looks into the context. */
static void test_ah_from_wc(void **state)
{
    struct ibv_context ctx = {0};
    struct ibv_wc wc = {.slid = 0x4321, .sl = 7, .dlid_path_bits = 5, .src_qp = 99};
    struct ibv_grh grh = {0};
    struct ibv_ah_attr a, b;
    int (*init)(struct ibv_context *, uint8_t, struct ibv_wc *, struct ibv_grh *,
                struct ibv_ah_attr *) =
        (int (*)(struct ibv_context *, uint8_t, struct ibv_wc *, struct ibv_grh *,
                 struct ibv_ah_attr *))theirs("ibv_init_ah_from_wc");
    (void)state;
    memset(&a, 0xee, sizeof(a));
    memset(&b, 0xee, sizeof(b));
    assert_int_equal(ibv_init_ah_from_wc(&ctx, 1, &wc, &grh, &a), init(&ctx, 1, &wc, &grh, &b));
    assert_int_equal(a.dlid, b.dlid);
    assert_int_equal(a.sl, b.sl);
    assert_int_equal(a.src_path_bits, b.src_path_bits);
    assert_int_equal(a.static_rate, b.static_rate);
    assert_int_equal(a.is_global, b.is_global);
    assert_int_equal(a.port_num, b.port_num);
    assert_memory_equal(&a.grh.dgid, &b.grh.dgid, sizeof(a.grh.dgid));
}

/* ---- fork ---- */

/** The real one may have to protect memory from now on, ours never has; neither is unprotected. */
static void test_fork_init(void **state)
{
    int (*init)(void) = (int (*)(void))theirs("ibv_fork_init");
    enum ibv_fork_status (*status)(void) =
        (enum ibv_fork_status(*)(void))theirs("ibv_is_fork_initialized");
    (void)state;
    enum ibv_fork_status before = status();
    assert_true(before == IBV_FORK_DISABLED || before == IBV_FORK_UNNEEDED);
    assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_fork_init(), init());
        assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
        assert_int_not_equal(status(), IBV_FORK_DISABLED);
    }
}

/* ---- keys: an inline of the header, compiled into programs ---- */

static void test_inc_rkey(void **state)
{
    (void)state;
    for (uint32_t low = 0; low < 256; low++)
        for (uint32_t high = 0; high < 0x1000000; high += 0xabcde)
            assert_int_equal(ibv_inc_rkey(high << 8 | low), high << 8 | (low + 1) % 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structures), cmocka_unit_test(test_files),
        cmocka_unit_test(test_ah_from_wc), cmocka_unit_test(test_fork_init),
        cmocka_unit_test(test_inc_rkey),
    };
    unsetenv("RDMAV_FORK_SAFE");
    unsetenv("IBV_FORK_SAFE");
    return cmocka_run_group_tests(tests, open_real, close_real);
}
