/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of librdmacm that rdma-core 60 brought: a name is looked up, and a program's own event.
 */
#include "api/child.h"
#include "fails.h"

#include <rdma/rdma_cma.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 20

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

static int setup(void **unused)
{
    (void)unused;
    channel = rdma_create_event_channel();
    return channel ? rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) : -1;
}

static int teardown(void **unused)
{
    (void)unused;
    int r = rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return r;
}

/** @return its status */
static int await(enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
    assert_ptr_equal(event->id, id);
    int status = event->status;
    assert_int_equal(rdma_ack_cm_event(event), 0);
    return status;
}

static void check_loopback(struct rdma_addrinfo *found, uint16_t port)
{
    assert_non_null(found);
    assert_int_equal(found->ai_family, AF_INET);
    assert_int_equal(found->ai_qp_type, IBV_QPT_RC);
    assert_int_equal(found->ai_port_space, RDMA_PS_TCP);
    struct sockaddr_in *to = (struct sockaddr_in *)found->ai_dst_addr;
    assert_int_equal(to->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_equal(to->sin_port, htons(port));
}

static void an_address_is_found(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;
    (void)unused;
    for (unsigned dns = 0; dns < 2; dns++) {
        hints.ai_flags = RAI_NUMERICHOST | (dns ? RAI_DNS : 0);
        assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints), 0);
        hints.ai_flags = -1; /* it was looked at */
        assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
        assert_int_equal(rdma_query_addrinfo(id, &found), 0);
        check_loopback(found, 7471);
        rdma_freeaddrinfo(found);
        MINUS_1_AND(ENODATA, rdma_query_addrinfo(id, &found));
    }
    /* One that nobody asked for is freed with the id, or by the next. */
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL), 0);
        assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
    }
}

/** What was found leads to where it says. */
static void hints_have_addresses(void **unused)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct rdma_addrinfo *found, hints = {
                                     .ai_family = AF_INET,
                                     .ai_qp_type = IBV_QPT_RC,
                                     .ai_port_space = RDMA_PS_TCP,
                                     .ai_dst_addr = (struct sockaddr *)&to,
                                     .ai_dst_len = sizeof to,
                                     .ai_src_addr = (struct sockaddr *)&from,
                                     .ai_src_len = sizeof from,
                                 };
    (void)unused;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(rdma_resolve_addrinfo(id, NULL, NULL, &hints), 0);
    memset(&to, 0xff, sizeof to);
    assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
    assert_int_equal(rdma_query_addrinfo(id, &found), 0);
    check_loopback(found, 9);
    assert_int_equal(rdma_resolve_addr(id, found->ai_src_addr, found->ai_dst_addr, 1000), 0);
    assert_int_equal(await(RDMA_CM_EVENT_ADDR_RESOLVED), 0);
    rdma_freeaddrinfo(found);
    hints.ai_dst_len = 4096;
    MINUS_1_AND(EINVAL, rdma_resolve_addrinfo(id, NULL, NULL, &hints));
}

static void none_is_found(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;
    (void)unused;
    assert_int_equal(rdma_resolve_addrinfo(id, "no number", "1", &hints), 0);
    assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_ERROR), -ENOENT);
    MINUS_1_AND(ENODATA, rdma_query_addrinfo(id, &found));
}

static void lookups_refused(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_SA}, *found;
    (void)unused;
    MINUS_1_AND(EOPNOTSUPP, rdma_resolve_addrinfo(id, NULL, "0x1234", &hints));
    hints.ai_flags |= RAI_DNS;
    MINUS_1_AND(EINVAL, rdma_resolve_addrinfo(id, "127.0.0.1", "1", &hints));
    MINUS_1_AND(EINVAL, rdma_resolve_addrinfo(id, NULL, NULL, NULL));
    MINUS_1_AND(EINVAL, rdma_query_addrinfo(id, NULL));
    assert_int_equal(rdma_resolve_addrinfo(NULL, "127.0.0.1", "1", NULL), -EINVAL);
    assert_int_equal(rdma_query_addrinfo(NULL, &found), -EINVAL);
}

static bool no_threads;

__attribute__((visibility("default"))) int
pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
        dlsym(RTLD_NEXT, "pthread_create");
    return no_threads ? EAGAIN : real(thread, attr, start, arg);
}

static void no_thread_for_it(void **unused)
{
    (void)unused;
    no_threads = true;
    for (unsigned i = 0; i < 2; i++)
        MINUS_1_AND(EAGAIN, rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL));
    no_threads = false;
    assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL), 0);
    assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
}

/** An id goes while its name is being looked up; a second lookup meanwhile is refused. */
static void lookups_in_progress(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
    (void)unused;
    unsigned refused = 0;
    for (unsigned i = 0; i < 200; i++) {
        struct rdma_cm_id *gone;
        assert_int_equal(rdma_create_id(channel, &gone, NULL, RDMA_PS_TCP), 0);
        assert_int_equal(rdma_resolve_addrinfo(gone, "127.0.0.1", "1", &hints), 0);
        errno = 0;
        if (rdma_resolve_addrinfo(gone, "127.0.0.1", "1", &hints)) {
            assert_int_equal(errno, EBUSY);
            refused++;
        }
        assert_int_equal(rdma_destroy_id(gone), 0);
    }
    assert_int_not_equal(refused, 0);
    struct pollfd none = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&none, 1, 50), 0);
}

/* A resolver that takes its time. */
static atomic_bool slow;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        dlsym(RTLD_NEXT, "getaddrinfo");
    while (atomic_load(&slow))
        poll(NULL, 0, 1);
    return real(node, service, hints, found);
}

static void child(const struct rdma_addrinfo *hints)
{
    struct rdma_cm_event *event;
    struct rdma_addrinfo *found;
    alarm(LIMIT_S);
    atomic_store(&slow, false);
    CHECK(!rdma_get_cm_event(channel, &event));
    CHECK(event->id == id && event->event == RDMA_CM_EVENT_ADDRINFO_ERROR);
    CHECK(event->status == -ECANCELED);
    CHECK(!rdma_ack_cm_event(event));
    CHECK(rdma_query_addrinfo(id, &found) == -1 && errno == ENODATA);
    CHECK(!rdma_resolve_addrinfo(id, "127.0.0.1", "1", hints)); /* the id is free for another */
    child_event(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED, NULL, 0);
    CHECK(!rdma_query_addrinfo(id, &found));
    rdma_freeaddrinfo(found);
    CHECK(!rdma_destroy_id(id));
    _exit(0);
}

/** The thread of a lookup is not there in a child: the lookup ends there, and goes on here. */
static void a_fork_meanwhile(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
    int status;
    (void)unused;
#ifdef __SANITIZE_THREAD__
    skip(); /* it starts no thread in the child of a process that has some */
#endif
    atomic_store(&slow, true);
    assert_int_equal(rdma_resolve_addrinfo(id, "127.0.0.1", "1", &hints), 0);
    pid_t pid = fork();
    if (pid == 0)
        child(&hints);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    atomic_store(&slow, false);
    assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
    assert_int_equal(status, 0);
}

static void *look_up(void *arg)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST};
    assert_int_equal(rdma_resolve_addrinfo(arg, "127.0.0.1", "1", &hints), 0);
    return NULL;
}

/** So it does on an id that waits: nobody is there to be told, and the next call is not. */
static void a_fork_while_an_id_waits(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;
    struct rdma_cm_id *sync;
    pthread_t thread;
    int status;
    (void)unused;
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    assert_int_equal(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
    atomic_store(&slow, true);
    assert_int_equal(pthread_create(&thread, NULL, look_up, sync), 0);
    while (!rdma_resolve_addrinfo(id, "127.0.0.1", "1", NULL)) /* until both are at it */
        poll(NULL, 0, 20);
    assert_int_equal(errno, EBUSY);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(LIMIT_S);
        atomic_store(&slow, false);
        CHECK(!rdma_resolve_addrinfo(sync, "127.0.0.1", "1", &hints));
        CHECK(!rdma_query_addrinfo(sync, &found));
        rdma_freeaddrinfo(found);
        CHECK(!rdma_destroy_id(sync));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    atomic_store(&slow, false);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(await(RDMA_CM_EVENT_ADDRINFO_RESOLVED), 0);
    assert_int_equal(rdma_destroy_id(sync), 0);
    assert_int_equal(status, 0);
}

static void a_synchronous_id_waits(void **unused)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found;
    struct rdma_cm_id *sync;
    (void)unused;
    assert_int_equal(rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addrinfo(sync, "127.0.0.1", "7471", &hints), 0);
    assert_int_equal(rdma_query_addrinfo(sync, &found), 0);
    check_loopback(found, 7471);
    rdma_freeaddrinfo(found);
    MINUS_1_AND(ENOENT, rdma_resolve_addrinfo(sync, "no number", "1", &hints));
    MINUS_1_AND(EINVAL, rdma_write_cm_event(sync, RDMA_CM_EVENT_USER, 0, 0));
    assert_int_equal(rdma_destroy_id(sync), 0);
}

static void events_of_the_program(void **unused)
{
    struct rdma_cm_event *event;
    (void)unused;
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, -(int)i, i << 40), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(rdma_get_cm_event(channel, &event), 0);
        assert_int_equal(event->event, RDMA_CM_EVENT_USER);
        assert_ptr_equal(event->id, id);
        assert_int_equal(event->status, -(int)i);
        assert_true(event->param.arg == i << 40);
        assert_int_equal(rdma_ack_cm_event(event), 0);
    }
    for (int type = 0; type < 24; type++)
        if (type != RDMA_CM_EVENT_USER)
            MINUS_1_AND(EINVAL, rdma_write_cm_event(id, (enum rdma_cm_event_type)type, 0, 0));
    assert_int_equal(rdma_write_cm_event(NULL, RDMA_CM_EVENT_USER, 0, 0), -EINVAL);
    fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
    MINUS_1_AND(EAGAIN, rdma_get_cm_event(channel, &event));
}

static void *waiter(void *arg)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(channel, &event) == 0) {
        *(uint64_t *)arg = event->param.arg;
        rdma_ack_cm_event(event);
    }
    return NULL;
}

static void a_waiting_thread_wakes(void **unused)
{
    pthread_t thread;
    uint64_t got = 0;
    (void)unused;
    assert_int_equal(pthread_create(&thread, NULL, waiter, &got), 0);
    poll(NULL, 0, 20);
    assert_int_equal(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 42), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(got, 42);
}

/** Its events go with an id that is destroyed. */
static void nobody_reads_it(void **unused)
{
    (void)unused;
    assert_int_equal(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, 0, 1), 0);
    assert_int_equal(rdma_destroy_id(id), 0);
    struct pollfd none = {.fd = channel->fd, .events = POLLIN};
    assert_int_equal(poll(&none, 1, 0), 0);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(an_address_is_found),    TEST(hints_have_addresses),  TEST(none_is_found),
        TEST(lookups_refused),        TEST(no_thread_for_it),      TEST(lookups_in_progress),
        TEST(a_synchronous_id_waits), TEST(events_of_the_program), TEST(a_waiting_thread_wakes),
        TEST(nobody_reads_it),        TEST(a_fork_meanwhile),      TEST(a_fork_while_an_id_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
