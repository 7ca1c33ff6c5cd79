/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids, channels and events: order, acknowledgement, readiness, threads. */
#include "unit/cma_mock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct rdma_event_channel *channel;

static int setup(void **unused)
{
    (void)unused;
    mock_reset();
    channel = rdma_create_event_channel();
    return channel ? 0 : -1;
}

/* Every test gives back all it took. */
static int teardown(void **unused)
{
    (void)unused;
    rdma_destroy_event_channel(channel);
    return mock.cms | mock.pds | mock.qps | mock.cqs | mock.channels | mock.srqs;
}

static struct rdma_cm_id *new_id(void)
{
    struct rdma_cm_id *id;
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    return id;
}

static struct sockaddr *loopback(uint16_t port)
{
    static struct sockaddr_in sin;
    sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return (struct sockaddr *)&sin;
}

/* A new event must be there, of this type and id. */
static struct rdma_cm_event *take(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_string_equal(rdma_event_str(event->event), rdma_event_str(type));
    assert_ptr_equal(event->id, id);
    return event;
}

static void expect(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event = take(id, type);
    assert_int_equal(event->status, 0);
    assert_int_equal(rdma_ack_cm_event(event), 0);
}

static bool readable(const struct rdma_event_channel *ch)
{
    struct pollfd p = {.fd = ch->fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void expect_error(int result, int err)
{
    assert_int_equal(result, -1);
    assert_int_equal(errno, err);
}

/* An id that is connecting, all earlier events taken. */
static struct rdma_cm_id *connecting(void)
{
    struct rdma_cm_id *id = new_id();
    struct rdma_conn_param conn = {.qp_num = 9};
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 100), 0);
    expect(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 100), 0);
    expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(rdma_connect(id, &conn), 0);
    return id;
}

static struct rdma_cm_id *listening(int backlog)
{
    struct rdma_cm_id *id = new_id();
    assert_int_equal(rdma_listen(id, backlog), 0);
    return id;
}

static void no_device(void **unused)
{
    struct rdma_cm_id *id;
    int n = 7;
    (void)unused;
    mock.device = false;
    errno = 0;
    assert_null(rdma_create_event_channel());
    assert_int_equal(errno, ENODEV);
    expect_error(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), ENODEV);
    assert_null(rdma_get_devices(&n));
    assert_int_equal(n, 0);
}

static void a_connection_in_order(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = connecting();
    struct iw_cm_event up = {
        .type = IW_CM_ESTABLISHED, .initiator_depth = 3, .responder_resources = 4};
    mock_event_with(id, &up, "welcome");
    mock_event(id, IW_CM_DISCONNECTED, 0);

    struct rdma_cm_event *event = take(id, RDMA_CM_EVENT_ESTABLISHED);
    assert_null(event->listen_id);
    assert_int_equal(event->param.conn.initiator_depth, 3);
    assert_int_equal(event->param.conn.responder_resources, 4);
    assert_int_equal(event->param.conn.private_data_len, 7);
    assert_memory_equal(event->param.conn.private_data, "welcome", 7);
    rdma_ack_cm_event(event);

    event = take(id, RDMA_CM_EVENT_DISCONNECTED);
    assert_null(event->param.conn.private_data);
    rdma_ack_cm_event(event);
    assert_false(readable(channel));
    assert_int_equal(rdma_disconnect(id), 0);
    assert_int_equal(mock_cm(id)->disconnects, 0);
    assert_int_equal(rdma_destroy_id(id), 0);
}

static void private_data_is_cut_to_what_a_length_can_say(void **unused)
{
    (void)unused;
    char data[513] = {0};
    memset(data, 'x', sizeof data - 1);
    struct rdma_cm_id *id = connecting();
    struct iw_cm_event up = {.type = IW_CM_ESTABLISHED};
    mock_event_with(id, &up, data);
    struct rdma_cm_event *event = take(id, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(event->param.conn.private_data_len, 255);
    rdma_ack_cm_event(event);
    rdma_destroy_id(id);
}

static void events_are_fifo_across_ids(void **unused)
{
    (void)unused;
    struct rdma_cm_id *a = connecting(), *b = connecting();
    mock_event(b, IW_CM_ESTABLISHED, 0);
    mock_event(a, IW_CM_ESTABLISHED, 0);
    mock_event(b, IW_CM_DISCONNECTED, 0);
    mock_event(a, IW_CM_DISCONNECTED, 0);
    expect(b, RDMA_CM_EVENT_ESTABLISHED);
    expect(a, RDMA_CM_EVENT_ESTABLISHED);
    expect(b, RDMA_CM_EVENT_DISCONNECTED);
    expect(a, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_id(a);
    rdma_destroy_id(b);
}

static void failures_are_events(void **unused)
{
    (void)unused;
    static const struct {
        enum iw_cm_event_type told;
        int status;
        enum rdma_cm_event_type event;
    } cases[] = {
        {IW_CM_REJECTED, -ECONNREFUSED, RDMA_CM_EVENT_REJECTED},
        {IW_CM_UNREACHABLE, -ETIMEDOUT, RDMA_CM_EVENT_UNREACHABLE},
        {IW_CM_CONNECT_ERROR, -EPROTO, RDMA_CM_EVENT_CONNECT_ERROR},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rdma_cm_id *id = connecting();
        struct ibv_qp *destroyed = malloc(sizeof(*destroyed));
        id->qp = destroyed;
        free(destroyed); /* behind the id's back: nobody may look at it any more */
        mock_event(id, cases[i].told, cases[i].status);
        struct rdma_cm_event *event = take(id, cases[i].event);
        assert_int_equal(event->status, cases[i].status);
        rdma_ack_cm_event(event);
        expect_error(rdma_connect(id, NULL), EINVAL);
        assert_int_equal(rdma_disconnect(id), 0);
        id->qp = NULL;
        rdma_destroy_id(id);
    }
}

static void fields_change_when_the_event_is_taken(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = new_id();
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 0), 0);
    assert_null(id->verbs);
    assert_int_equal(rdma_get_local_addr(id)->sa_family, AF_UNSPEC);
    expect(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_non_null(id->verbs);
    assert_non_null(id->pd);
    assert_int_equal(id->port_num, 1);
    assert_int_not_equal(rdma_get_src_port(id), 0);
    assert_int_equal(rdma_get_dst_port(id), htons(7000));
    rdma_destroy_id(id);
}

static void a_pd_that_cannot_be_had_is_an_address_error(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = new_id();
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 0), 0);
    mock.fail = ENOMEM;
    struct rdma_cm_event *event = take(id, RDMA_CM_EVENT_ADDR_ERROR);
    assert_int_equal(event->status, -ENOMEM);
    rdma_ack_cm_event(event);
    assert_null(id->verbs);
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 0), 0);
    expect(id, RDMA_CM_EVENT_ADDR_RESOLVED);
    rdma_destroy_id(id);
}

static void ids_share_a_pd(void **unused)
{
    (void)unused;
    struct rdma_cm_id *a = connecting(), *b = connecting();
    assert_ptr_equal(a->pd, b->pd);
    assert_ptr_equal(a->verbs, b->verbs);
    assert_int_equal(mock.pds, 1);
    rdma_destroy_id(a);
    assert_int_equal(mock.pds, 1);
    rdma_destroy_id(b);
    assert_int_equal(mock.pds, 0);
}

/* ---- requests ---- */

static void a_request_brings_an_id(void **unused)
{
    (void)unused;
    struct rdma_cm_id *listener = listening(0);
    listener->context = &listener;
    assert_int_equal(mock_request(listener, "hello"), 0);

    struct rdma_cm_event *event;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    assert_ptr_equal(event->listen_id, listener);
    assert_memory_equal(event->param.conn.private_data, "hello", 5);
    assert_int_equal(event->param.conn.initiator_depth, 5);
    assert_int_equal(event->param.conn.responder_resources, 6);

    struct rdma_cm_id *child = event->id;
    assert_ptr_not_equal(child, listener);
    assert_ptr_equal(child->context, &listener);
    assert_ptr_equal(child->channel, channel);
    assert_non_null(child->verbs);
    assert_non_null(child->pd);
    assert_null(listener->verbs);
    /* An IPv4 peer of a dual-stack listener is an IPv4 peer. */
    assert_int_equal(rdma_get_local_addr(child)->sa_family, AF_INET);
    assert_int_equal(rdma_get_src_port(child), htons(7000));
    assert_int_equal(rdma_get_peer_addr(child)->sa_family, AF_INET6);
    assert_int_equal(rdma_get_dst_port(child), htons(40001));

    /* Before it is accepted the program hears nothing of it. */
    mock_event(child, IW_CM_DISCONNECTED, 0);
    assert_false(readable(channel));

    /* Depths of 255 mean: what the peer offers. */
    struct rdma_conn_param conn = {.initiator_depth = 255, .responder_resources = 255, .qp_num = 3};
    assert_int_equal(rdma_accept(child, &conn), 0);
    assert_int_equal(mock_cm(child)->param.initiator_depth, 5);
    assert_int_equal(mock_cm(child)->param.responder_resources, 6);
    expect_error(rdma_accept(child, &conn), EINVAL);
    expect_error(rdma_reject(child, NULL, 0), EINVAL);
    mock_event(child, IW_CM_ESTABLISHED, 0);
    rdma_ack_cm_event(event);
    expect(child, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(rdma_destroy_id(listener), 0);
    assert_int_equal(rdma_destroy_id(child), 0);
}

static void requests_over_the_backlog_are_refused(void **unused)
{
    (void)unused;
    struct rdma_cm_id *listener = listening(2);
    struct rdma_cm_event *event;
    assert_int_equal(mock_cm(listener)->backlog, 2);
    assert_int_equal(mock_request(listener, NULL), 0);
    assert_int_equal(mock_request(listener, NULL), 0);
    assert_int_not_equal(mock_request(listener, NULL), 0);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(mock_request(listener, NULL), 0);
    assert_int_not_equal(mock_request(listener, NULL), 0);
    rdma_destroy_id(event->id);
    rdma_ack_cm_event(event);
    rdma_destroy_id(listener);
    assert_false(readable(channel));
}

static void requests_nobody_took_die_with_the_listener(void **unused)
{
    (void)unused;
    struct rdma_cm_id *listener = listening(0);
    assert_int_equal(mock_request(listener, "a"), 0);
    assert_int_equal(mock_request(listener, "b"), 0);
    assert_int_equal(mock.cms, 3);
    assert_true(readable(channel));
    rdma_destroy_id(listener);
    assert_int_equal(mock.cms, 0);
    assert_false(readable(channel));
}

static void a_request_without_a_pd_is_dropped(void **unused)
{
    (void)unused;
    struct rdma_cm_id *listener = listening(0);
    struct rdma_cm_event *event;
    mock_request(listener, "a");
    mock_request(listener, "b");
    mock.fail = ENOMEM;
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_memory_equal(event->param.conn.private_data, "b", 1);
    assert_int_equal(mock.cms, 2);
    rdma_destroy_id(event->id);
    rdma_ack_cm_event(event);
    rdma_destroy_id(listener);
}

/* ---- acknowledgement ---- */

static void *destroy(void *id)
{
    assert_int_equal(rdma_destroy_id(id), 0);
    return NULL;
}

/* Whether a thread ends within a moment; it is joined then. */
static bool ends_soon(pthread_t thread)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

static void destroy_waits_for_the_acknowledgement(void **unused)
{
    (void)unused;
    pthread_t thread;
    struct rdma_cm_id *id = connecting();
    mock_event(id, IW_CM_ESTABLISHED, 0);
    mock_event(id, IW_CM_DISCONNECTED, 0);
    struct rdma_cm_event *first = take(id, RDMA_CM_EVENT_ESTABLISHED);
    struct rdma_cm_event *second = take(id, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(pthread_create(&thread, NULL, destroy, id), 0);
    assert_false(ends_soon(thread));
    rdma_ack_cm_event(second);
    assert_false(ends_soon(thread));
    rdma_ack_cm_event(first);
    pthread_join(thread, NULL);
}

static void a_request_counts_for_its_listener(void **unused)
{
    (void)unused;
    pthread_t thread;
    struct rdma_cm_id *listener = listening(0);
    struct rdma_cm_event *event;
    mock_request(listener, NULL);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    assert_int_equal(rdma_destroy_id(event->id), 0);
    assert_int_equal(pthread_create(&thread, NULL, destroy, listener), 0);
    assert_false(ends_soon(thread));
    rdma_ack_cm_event(event);
    pthread_join(thread, NULL);
}

static void waiting_events_vanish_with_their_id(void **unused)
{
    (void)unused;
    struct rdma_cm_id *a = connecting(), *b = connecting();
    mock_event(a, IW_CM_ESTABLISHED, 0);
    mock_event(b, IW_CM_ESTABLISHED, 0);
    mock_event(a, IW_CM_DISCONNECTED, 0);
    rdma_destroy_id(a);
    assert_true(readable(channel));
    expect(b, RDMA_CM_EVENT_ESTABLISHED);
    assert_false(readable(channel));
    mock_event(b, IW_CM_DISCONNECTED, 0);
    assert_true(readable(channel));
    rdma_destroy_id(b);
    assert_false(readable(channel));
}

/* ---- migration ---- */

static void events_move_with_their_id(void **unused)
{
    (void)unused;
    struct rdma_event_channel *old = channel, *fresh = rdma_create_event_channel();
    struct rdma_cm_id *a = connecting(), *b = connecting();
    mock_event(a, IW_CM_ESTABLISHED, 0);
    mock_event(b, IW_CM_ESTABLISHED, 0);
    mock_event(a, IW_CM_DISCONNECTED, 0);
    assert_int_equal(rdma_migrate_id(a, fresh), 0);
    assert_ptr_equal(a->channel, fresh);
    expect(b, RDMA_CM_EVENT_ESTABLISHED);
    assert_false(readable(old));
    channel = fresh;
    assert_true(readable(fresh));
    expect(a, RDMA_CM_EVENT_ESTABLISHED);
    expect(a, RDMA_CM_EVENT_DISCONNECTED);
    assert_false(readable(fresh));
    rdma_destroy_id(a);
    rdma_destroy_id(b);
    channel = old;
    rdma_destroy_event_channel(fresh);
}

struct migration {
    struct rdma_cm_id *id;
    struct rdma_event_channel *to;
};

static void *migrate(void *arg)
{
    struct migration *m = arg;
    assert_int_equal(rdma_migrate_id(m->id, m->to), 0);
    return NULL;
}

static void migration_waits_for_the_acknowledgement(void **unused)
{
    (void)unused;
    pthread_t thread;
    struct migration m = {connecting(), rdma_create_event_channel()};
    mock_event(m.id, IW_CM_ESTABLISHED, 0);
    struct rdma_cm_event *event = take(m.id, RDMA_CM_EVENT_ESTABLISHED);
    assert_int_equal(pthread_create(&thread, NULL, migrate, &m), 0);
    assert_false(ends_soon(thread));
    rdma_ack_cm_event(event);
    pthread_join(thread, NULL);
    rdma_destroy_id(m.id);
    rdma_destroy_event_channel(m.to);
}

static void to_synchronous_and_back(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = new_id();
    assert_int_equal(rdma_migrate_id(id, NULL), 0);
    assert_ptr_not_equal(id->channel, channel);
    expect_error(rdma_migrate_id(id, NULL), EINVAL);
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 10), 0);
    assert_int_equal(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_migrate_id(id, channel), 0);
    assert_null(id->event);
    assert_int_equal(rdma_resolve_route(id, 10), 0);
    expect(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
    rdma_destroy_id(id);
}

static void a_channel_closed_too_early(void **unused)
{
    (void)unused;
    struct rdma_event_channel *early = rdma_create_event_channel();
    struct rdma_cm_id *id = connecting(), *listener = listening(0);
    assert_int_equal(rdma_migrate_id(id, early), 0);
    assert_int_equal(rdma_migrate_id(listener, early), 0);
    mock_event(id, IW_CM_ESTABLISHED, 0);
    mock_request(listener, NULL);
    rdma_destroy_event_channel(early);
    mock_event(id, IW_CM_DISCONNECTED, 0);
    assert_int_not_equal(mock_request(listener, NULL), 0);
    rdma_destroy_id(id);
    rdma_destroy_id(listener);
}

/* ---- waiting ---- */

static void o_nonblock_counts_at_the_call(void **unused)
{
    (void)unused;
    struct rdma_cm_event *event;
    struct rdma_cm_id *id = connecting();
    int flags = fcntl(channel->fd, F_GETFL);
    fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK);
    expect_error(rdma_get_cm_event(channel, &event), EAGAIN);
    mock_event(id, IW_CM_ESTABLISHED, 0);
    expect(id, RDMA_CM_EVENT_ESTABLISHED);
    expect_error(rdma_get_cm_event(channel, &event), EAGAIN);
    fcntl(channel->fd, F_SETFL, flags);
    rdma_destroy_id(id);
}

#define READERS     4
#define CONNECTIONS 100

static atomic_int got[2 * CONNECTIONS];
static atomic_int total;

static void *reader(void *unused)
{
    (void)unused;
    struct rdma_cm_event *event;
    while (rdma_get_cm_event(channel, &event) == 0) {
        size_t n = 2 * (size_t)(uintptr_t)event->id->context;
        atomic_fetch_add(&got[n + (event->event == RDMA_CM_EVENT_DISCONNECTED)], 1);
        rdma_ack_cm_event(event);
        atomic_fetch_add(&total, 1);
    }
    return NULL;
}

static void each_event_goes_to_one_reader(void **unused)
{
    (void)unused;
    pthread_t threads[READERS];
    struct rdma_cm_id *ids[CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS; i++) {
        ids[i] = connecting();
        ids[i]->context = (void *)i;
    }
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, NULL), 0);
    for (int i = 0; i < CONNECTIONS; i++)
        mock_event(ids[i], IW_CM_ESTABLISHED, 0);
    for (int i = 0; i < CONNECTIONS; i++)
        mock_event(ids[i], IW_CM_DISCONNECTED, 0);
    for (int ms = 0; atomic_load(&total) < 2 * CONNECTIONS && ms < 5000; ms++)
        usleep(1000);
    for (int i = 0; i < READERS; i++) {
        pthread_cancel(threads[i]);
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < 2 * CONNECTIONS; i++)
        assert_int_equal(atomic_load(&got[i]), 1);
    for (int i = 0; i < CONNECTIONS; i++)
        rdma_destroy_id(ids[i]);
}

static void *blocked(void *unused)
{
    struct rdma_cm_event *event;
    (void)unused;
    rdma_get_cm_event(channel, &event);
    return NULL;
}

static void a_cancelled_reader_leaves_nothing_behind(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = connecting();
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, blocked, NULL), 0);
    usleep(20000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    mock_event(id, IW_CM_ESTABLISHED, 0);
    expect(id, RDMA_CM_EVENT_ESTABLISHED);
    rdma_destroy_id(id);
}

static void *taker(void *event)
{
    rdma_get_cm_event(channel, event);
    return NULL;
}

static void an_event_is_not_lost_to_cancellation(void **unused)
{
    (void)unused;
    struct rdma_cm_id *id = new_id();
    struct rdma_cm_event *event = NULL;
    pthread_t thread;
    void *result;
    assert_int_equal(rdma_resolve_addr(id, NULL, loopback(7000), 10), 0);
    mock.cancel = true;
    assert_int_equal(pthread_create(&thread, NULL, taker, &event), 0);
    pthread_join(thread, &result);
    mock.cancel = false;
    assert_null(result);
    assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
    rdma_ack_cm_event(event);
    rdma_destroy_id(id);
}

/* Programs that end do this, and must not fall over it. */
static void a_reader_of_a_destroyed_channel_sleeps(void **unused)
{
    (void)unused;
    struct rdma_event_channel *test = channel;
    pthread_t before, after;
    channel = rdma_create_event_channel();
    assert_int_equal(pthread_create(&before, NULL, blocked, NULL), 0);
    usleep(20000);
    rdma_destroy_event_channel(channel);
    assert_int_equal(pthread_create(&after, NULL, blocked, NULL), 0);
    assert_false(ends_soon(before));
    assert_false(ends_soon(after));
    pthread_cancel(before);
    pthread_cancel(after);
    pthread_join(before, NULL);
    pthread_join(after, NULL);
    channel = test;
}

static void on_signal(int sig)
{
    (void)sig;
}

static void *interrupter(void *victim)
{
    usleep(30000);
    pthread_kill(*(pthread_t *)victim, SIGUSR1);
    return NULL;
}

static void a_signal_ends_the_wait(void **unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = on_signal}, before;
    struct rdma_cm_event *event;
    pthread_t self = pthread_self(), thread;
    sigaction(SIGUSR1, &action, &before);
    assert_int_equal(pthread_create(&thread, NULL, interrupter, &self), 0);
    expect_error(rdma_get_cm_event(channel, &event), EINTR);
    pthread_join(thread, NULL);
    sigaction(SIGUSR1, &before, NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(no_device),
        TEST(a_connection_in_order),
        TEST(private_data_is_cut_to_what_a_length_can_say),
        TEST(events_are_fifo_across_ids),
        TEST(failures_are_events),
        TEST(fields_change_when_the_event_is_taken),
        TEST(a_pd_that_cannot_be_had_is_an_address_error),
        TEST(ids_share_a_pd),
        TEST(a_request_brings_an_id),
        TEST(requests_over_the_backlog_are_refused),
        TEST(requests_nobody_took_die_with_the_listener),
        TEST(a_request_without_a_pd_is_dropped),
        TEST(destroy_waits_for_the_acknowledgement),
        TEST(a_request_counts_for_its_listener),
        TEST(waiting_events_vanish_with_their_id),
        TEST(events_move_with_their_id),
        TEST(migration_waits_for_the_acknowledgement),
        TEST(to_synchronous_and_back),
        TEST(a_channel_closed_too_early),
        TEST(o_nonblock_counts_at_the_call),
        TEST(each_event_goes_to_one_reader),
        TEST(a_cancelled_reader_leaves_nothing_behind),
        TEST(an_event_is_not_lost_to_cancellation),
        TEST(a_reader_of_a_destroyed_channel_sleeps),
        TEST(a_signal_ends_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
