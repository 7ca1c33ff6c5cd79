/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child of a process with devices that take commands can do with them, and with new ones.
 */
#include "api/uverbs_kit.h"

#include <errno.h>
#include <setjmp.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Runs in a child, which no assertion may leave. @return 0, or the line that is wrong */
#define EXPECT(cond)                                                                               \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return __LINE__ % 256;                                                                 \
    } while (0)

static int refused(long result)
{
    return result == -1 && errno == EBADF;
}

/* The parent's descriptors take nothing and destroy nothing; one that is opened here works. */
static int child(const struct uv_world *w, int cm)
{
    uint64_t event;
    struct ib_uverbs_cmd_hdr hdr = {IB_USER_VERBS_CMD_DEALLOC_PD, 3, 0};
    uint32_t command[3], resp[2], in[4];
    memcpy(command, &hdr, sizeof hdr);
    command[2] = w->pd;
    EXPECT(refused(anywarp_uverbs_write(w->fd, command, sizeof command)));
    EXPECT(refused(anywarp_uverbs_write(cm, command, sizeof command)));
    EXPECT(refused(anywarp_uverbs_read(w->channel, &event, sizeof event)));
    EXPECT(anywarp_uverbs_close(w->fd) == 0);
    EXPECT(refused(anywarp_uverbs_close(w->fd)));

    int fd = anywarp_uverbs_open(NULL), channel = anywarp_ucm_open();
    EXPECT(fd >= 0 && channel >= 0);
    uint64_t address = (uintptr_t)resp;
    hdr = (struct ib_uverbs_cmd_hdr){IB_USER_VERBS_CMD_GET_CONTEXT, 4, 2};
    memcpy(in, &hdr, sizeof hdr);
    memcpy(in + 2, &address, sizeof address);
    EXPECT(anywarp_uverbs_write(fd, in, sizeof in) == sizeof in);
    EXPECT(anywarp_uverbs_close(fd) == 0 && anywarp_uverbs_close(channel) == 0);
    EXPECT(anywarp_uverbs_close(w->channel) == 0 && anywarp_uverbs_close(cm) == 0);
    return 0;
}

static int status_of(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_child_of_fork(void **state)
{
    (void)state;
    struct uv_world w = {0};
    struct ib_uverbs_wc wc;
    uv_make(&w);
    int cm = anywarp_ucm_open();
    assert_true(cm >= 0);
    assert_int_equal(uv_post_recv(&w, 5, 8), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(&w, cm));
    assert_int_equal(status_of(pid), 0);
    /* All is there still. */
    assert_int_equal(uv_modify(&w, IBV_QPS_ERR, 0), 0);
    assert_int_equal(uv_poll(&w, &wc), 1);
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(anywarp_uverbs_close(cm), 0);
    uv_unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_of_fork)};
#ifdef __SANITIZE_THREAD__
    return 77; /* it starts no thread in a child of a process with threads */
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
