/* SPDX-License-Identifier: BSD-2-Clause */
/* What providers of rdma-core find behind their names: a log, and refusals. */
#include "verbs/private.h"

#include "device/context.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/anywarp-private-XXXXXX";

/* At level 2: higher ones say too much, 0 is none. */
static void their_log_is_ours(void **state)
{
    char text[256];
    (void)state;
    for (uint32_t level = 0; level < 8; level++)
        private_log(NULL, level, "level %u of %s", (unsigned)level, "mlx5");
    private_log(NULL, UINT32_MAX, "no level");
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    unsigned lines = 0;
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    assert_int_equal(lines, 2);
    assert_non_null(strstr(text, "level 1 of mlx5\n"));
    assert_non_null(strstr(text, "level 2 of mlx5\n"));
}

static void the_type_of_a_gid(void **state)
{
    (void)state;
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_non_null(list);
    assert_true(n > 0);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    assert_non_null(ctx);
    unsigned type = 7;
    assert_int_equal(private_query_gid_type(ctx, 1, 0, &type), 0);
    assert_int_equal(type, 0);
    assert_int_equal(private_query_gid_type(ctx, 1, 1, &type), 0);
    assert_int_equal(type, 1); /* RoCE v2 */
    const struct {
        struct ibv_context *ctx;
        uint8_t port;
        unsigned index;
        unsigned *type;
    } wrong[] = {
        {NULL, 1, 0, &type}, {ctx, 1, 0, NULL},        {ctx, 0, 0, &type},
        {ctx, 2, 0, &type},  {ctx, 1, 1 << 20, &type},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        errno = 0;
        assert_int_equal(
            private_query_gid_type(wrong[i].ctx, wrong[i].port, wrong[i].index, wrong[i].type), -1);
        assert_int_equal(errno, EINVAL);
    }
    assert_int_equal(ibv_close_device(ctx), 0);
    ibv_free_device_list(list);
}

static void refusals(void **state)
{
    (void)state;
    errno = 0;
    assert_null(private_null());
    assert_int_equal(errno, EOPNOTSUPP);
    errno = 0;
    assert_int_equal(private_minus_one(), -1);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(private_refuse(), EOPNOTSUPP);
    errno = 0;
    private_nothing();
    assert_int_equal(errno, 0);
}

static void attributes(void **state)
{
    (void)state;
    assert_int_equal(private_num_attrs(5, NULL), 5);
    assert_int_equal(private_num_attrs(0, NULL), 0);
}

void ibv_register_driver(const char *name, void *(*init)(const char *, int));

static void *must_not_run(const char *path_, int version)
{
    (void)path_, (void)version;
    fail_msg("a provider was asked for a device");
    return NULL;
}

/* It finds no device: none of the kernel's is asked for. */
static void a_driver_of_old(void **state)
{
    (void)state;
    ibv_register_driver("old", must_not_run);
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_non_null(list);
    ibv_free_device_list(list);
}

static int log_to_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 || close(fd) || setenv("VERBS_LOG_LEVEL", "2", 1) ||
           setenv("VERBS_LOG_FILE", path, 1);
}

static int discard(void **state)
{
    (void)state;
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_log_is_ours), cmocka_unit_test(the_type_of_a_gid),
        cmocka_unit_test(refusals),          cmocka_unit_test(attributes),
        cmocka_unit_test(a_driver_of_old),
    };
    return cmocka_run_group_tests(tests, log_to_file, discard);
}
