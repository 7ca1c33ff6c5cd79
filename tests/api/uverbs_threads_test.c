/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices that take commands of several threads, and are closed under their hands. */
#include "api/uverbs_kit.h"
#include "common/sanitizer.h"
#include "entries.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <sched.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECONDS = 2, SHORTLY_US = 50000 };

/* ---- Those who wait for events when the device goes ---- */

struct reader {
    pthread_t thread;
    int fd;
    ssize_t result;
};

static void *read_one(void *arg)
{
    struct reader *r = arg;
    uint64_t record[2];
    r->result = anywarp_uverbs_read(r->fd, record, sizeof record);
    return NULL;
}

static void closing_wakes_who_waits(void **state)
{
    (void)state;
    struct uv_world w = {0};
    uint32_t none[2] = {0}, resp[2];
    uv_make(&w);
    int bare = anywarp_uverbs_open(NULL);
    assert_int_equal(uv_send(bare, IB_USER_VERBS_CMD_GET_CONTEXT, none, 8, resp, 8), 0);
    struct reader readers[] = {{.fd = w.channel, .result = -2}, {.fd = (int)resp[0], .result = -2}};
    alarm(60);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i].thread, NULL, read_one, &readers[i]), 0);
    usleep(SHORTLY_US);
    assert_int_equal(anywarp_uverbs_close(w.fd), 0);
    assert_int_equal(anywarp_uverbs_close(bare), 0);
    for (int i = 0; i < 2; i++) {
        struct pollfd readable = {readers[i].fd, POLLIN, 0};
        pthread_join(readers[i].thread, NULL);
        assert_int_equal(readers[i].result, 0);
        assert_int_equal(poll(&readable, 1, 0), 1);
        read_one(&readers[i]);
        assert_int_equal(readers[i].result, 0);
        assert_int_equal(anywarp_uverbs_close(readers[i].fd), 0);
    }
    alarm(0);
}

/* ---- Those who are cancelled while they wait ---- */

static void *wait_for_event(void *arg)
{
    struct {
        struct rdma_ucm_cmd_hdr hdr;
        struct rdma_ucm_get_event get;
    } command = {.hdr = {RDMA_USER_CM_CMD_GET_EVENT, sizeof command.get,
                         sizeof(struct rdma_ucm_event_resp)}};
    struct rdma_ucm_event_resp event;
    struct reader *r = arg;
    command.get.response = (uintptr_t)&event;
    r->result = anywarp_uverbs_write(r->fd, &command, sizeof command);
    return NULL;
}

static void open_wait_and_close(bool cancel)
{
    struct uv_world w = {0};
    struct reader on_channel = {.result = -2}, on_cm = {.result = -2};
    uv_make(&w);
    on_channel.fd = w.channel;
    on_cm.fd = anywarp_ucm_open();
    if (cancel) {
        void *end;
        assert_int_equal(pthread_create(&on_channel.thread, NULL, read_one, &on_channel), 0);
        assert_int_equal(pthread_create(&on_cm.thread, NULL, wait_for_event, &on_cm), 0);
        usleep(SHORTLY_US);
        assert_int_equal(pthread_cancel(on_channel.thread), 0);
        assert_int_equal(pthread_cancel(on_cm.thread), 0);
        assert_int_equal(pthread_join(on_channel.thread, &end), 0);
        assert_ptr_equal(end, PTHREAD_CANCELED);
        assert_int_equal(pthread_join(on_cm.thread, &end), 0);
        assert_ptr_equal(end, PTHREAD_CANCELED);
    }
    assert_int_equal(anywarp_uverbs_close(on_cm.fd), 0);
    uv_unmake(&w);
}

static void the_cancelled_hold_nothing(void **state)
{
    (void)state;
#ifdef ANYWARP_TSAN /* it does not see the locks that are taken after a call was cancelled */
    skip();
#endif
    alarm(60);
    open_wait_and_close(false);
    int before = descriptors();
    open_wait_and_close(true);
    assert_int_equal(descriptors(), before);
    alarm(0);
}

/* ---- Everything at once ---- */

static struct uv_world shared;
static int passing = -1; /* a descriptor of rdma_cm commands that comes and goes */
static unsigned passed;  /* how many have come */
static bool over;
static int wrong;

static void expect(int err, int other)
{
    if (err && err != other)
        __atomic_store_n(&wrong, err, __ATOMIC_RELAXED);
}

static void makes_objects(void)
{
    uint32_t none[2] = {0}, pd;
    expect(uv_send(shared.fd, IB_USER_VERBS_CMD_ALLOC_PD, none, 8, &pd, 4), 0);
    expect(uv_send(shared.fd, IB_USER_VERBS_CMD_DEALLOC_PD, &pd, 4, NULL, 0), 0);
}

static void polls(void)
{
    struct ib_uverbs_wc wc;
    uint32_t arm[2] = {shared.cq, 0};
    uv_poll(&shared, &wc);
    expect(uv_send(shared.fd, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, arm, 8, NULL, 0), 0);
    expect(uv_post_recv(&shared, 1, 8), ENOMEM);
}

static void opens_and_closes(void)
{
    uint32_t none[2] = {0}, resp[2];
    int fd = anywarp_uverbs_open(NULL);
    expect(uv_send(fd, IB_USER_VERBS_CMD_GET_CONTEXT, none, 8, resp, 8), 0);
    expect(anywarp_uverbs_close((int)resp[0]) ? errno : 0, 0);
    expect(anywarp_uverbs_close(fd) ? errno : 0, 0);
}

static void passes_by(void)
{
    int fd = anywarp_ucm_open();
    __atomic_store_n(&passing, fd, __ATOMIC_RELAXED);
    __atomic_add_fetch(&passed, 1, __ATOMIC_RELEASE);
    expect(fd < 0 ? errno : 0, 0);
    sched_yield();
    sched_yield();
    expect(anywarp_uverbs_close(fd) ? errno : 0, 0);
}

/** @return the id, or 0 and errno */
static uint32_t make_id(int fd)
{
    struct {
        struct rdma_ucm_cmd_hdr hdr;
        struct rdma_ucm_create_id make;
    } command = {.hdr = {RDMA_USER_CM_CMD_CREATE_ID, sizeof command.make, 4}};
    uint32_t id = 0;
    command.make.response = (uintptr_t)&id;
    command.make.ps = RDMA_PS_TCP;
    return anywarp_uverbs_write(fd, &command, sizeof command) < 0 ? 0 : id;
}

/* A few of each channel; whatever its number is by now, gone, another one, or a device: no harm. */
static void makes_ids(void)
{
    enum { FEW = 10 };
    static _Thread_local unsigned last, made;
    unsigned seen = __atomic_load_n(&passed, __ATOMIC_ACQUIRE);
    made = seen == last ? made + 1 : 0;
    last = seen;
    if (made >= FEW)
        return;
    if (!make_id(__atomic_load_n(&passing, __ATOMIC_RELAXED)) && errno != EINVAL)
        expect(errno, EBADF);
}

/* Small numbers are used again, so there is still room for some if nothing has kept them. */
static void no_id_is_left(void)
{
    enum { SMALL = 32, INDEX = (1 << 20) - 1 };
    int fd = anywarp_ucm_open();
    for (int i = 1; i < SMALL; i++) {
        uint32_t id = make_id(fd) & INDEX;
        assert_true(id > 0 && id < SMALL);
    }
    assert_int_equal(anywarp_uverbs_close(fd), 0);
}

static void (*const works[])(void) = {makes_objects,    makes_objects, polls,
                                      opens_and_closes, passes_by,     makes_ids};
enum { WORKERS = sizeof works / sizeof works[0] };

static void *work(void *arg)
{
    void (*const *one)(void) = arg;
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        (*one)();
    return NULL;
}

static void all_at_once(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    uv_make(&shared);
    alarm(120);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)&works[i]), 0);
    sleep(SECONDS);
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    alarm(0);
    assert_int_equal(wrong, 0);
    uv_unmake(&shared); /* nobody needs anything */
    no_id_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_wakes_who_waits),
        cmocka_unit_test(the_cancelled_hold_nothing),
        cmocka_unit_test(all_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
