/* SPDX-License-Identifier: BSD-2-Clause */
#include "device/context.h"

#include "common/sys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

static struct iw_device dev = {.pub = {.name = "test0"}};

/** Marks every slot, and what is no slot too. */
static void fill(struct verbs_context *v)
{
    memset(v, 0x5a, sizeof(*v));
}

static bool marked(const void *p, size_t size)
{
    const unsigned char *b = p;
    for (size_t i = 0; i < size; i++)
        if (b[i] != 0x5a)
            return false;
    return true;
}

static void test_open(void **state)
{
    (void)state;
    struct iw_context *ctx = iw_context_open(&dev, fill);
    assert_non_null(ctx);
    struct ibv_context *c = &ctx->vctx.context;
    assert_ptr_equal(iw_context(c), ctx);
    assert_ptr_equal(c->device, &dev.pub);
    assert_ptr_equal(verbs_get_ctx(c), &ctx->vctx);
    assert_int_equal(ctx->vctx.sz, sizeof(struct verbs_context));
    assert_true(marked(&c->ops, sizeof(c->ops)));
    assert_true(marked(&ctx->vctx, offsetof(struct verbs_context, sz)));
    assert_in_range(c->num_comp_vectors, 1, 65536);
    assert_true(c->cmd_fd >= 0);
    assert_true(list_empty(&ctx->async));
    assert_int_equal(pthread_mutex_lock(&c->mutex), 0);
    assert_int_equal(pthread_mutex_unlock(&c->mutex), 0);

    int fd = c->async_fd;
    assert_true(sys_fcntl(fd, F_GETFD, 0) & FD_CLOEXEC);
    assert_int_equal(sys_wait_fd(fd, 0), 0);
    iw_context_close(ctx);
    assert_int_equal(sys_fcntl(fd, F_GETFD, 0), -EBADF);
}

/** The hard limit, in a child: it cannot be raised again. */
static void test_no_descriptor(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        errno = 0;
        bool failed = setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0 &&
                      !iw_context_open(&dev, fill) && errno == EMFILE;
        _exit(!failed);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/** What still refers to a context finds it. */
static void test_close_in_use(void **state)
{
    (void)state;
    struct iw_context *ctx = iw_context_open(&dev, fill);
    atomic_fetch_add(&ctx->users, 1);
    iw_context_close(ctx);
    assert_true(sys_fcntl(ctx->vctx.context.async_fd, F_GETFD, 0) >= 0);
    int fd = ctx->vctx.context.async_fd;
    iw_context_put(ctx);
    assert_int_equal(sys_fcntl(fd, F_GETFD, 0), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_no_descriptor),
        cmocka_unit_test(test_close_in_use),
    };
    setenv("VERBS_LOG_LEVEL", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
