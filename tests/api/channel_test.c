/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events through the public API: when an event comes, how the
 * descriptors behave, what waits for acknowledgements, what is busy.
 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_MS 5000

static bool readable(int fd, int ms)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ms) == 1;
}

/** Its completion is there when it returns: the response to a Read comes behind it. */
static void send_one(struct pair *p, unsigned flags)
{
    side_recv(&p->b, 1, 0, 64);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_SEND, 1, 0, 64, 0, flags), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
    assert_int_equal(side_post(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 64, 1, 64, 0), 0);
    assert_int_equal(side_poll(&p->a).status, IBV_WC_SUCCESS);
}

static void arm(struct ibv_cq *cq, int solicited_only)
{
    assert_int_equal(ibv_req_notify_cq(cq, solicited_only), 0);
}

static struct ibv_cq *get(struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq = NULL;
    void *context;
    assert_int_equal(ibv_get_cq_event(channel, &cq, &context), 0);
    assert_ptr_equal(context, cq->cq_context);
    return cq;
}

/* ---- when an event comes ---- */

/*
 * Steps: p a plain message, s a solicited one, both polled; P S the same, left in the CQ; a o arm
 * for all, for solicited ones; ! an event is there and is taken, . none is; 1 poll one
 */
static const struct {
    const char *what, *script;
} scripts[] = {
    {"nobody asked", "ps."},
    {"one event an arm", "aP!.1p."},
    {"two arms are one", "aap!p."},
    {"but not if each has its completion", "aPaPaP!!!.111."},
    {"be it that all are polled before", "apapap!!!."},
    {"or one arm is for solicited ones", "aPoSP!!."},
    {"events that were not read hold back no other", "apap!ap!!."},
    {"solicited only", "op.p.s!s."},
    {"a full arm covers a solicited one", "aop!"},
    {"and strengthens it", "oap!"},
    {"what lies there raises it at once", "Pa!1p."},
    {"but a plain one no solicited arm", "Po.1s!"},
    {"one completion an event", "aPPP!a1!a1!a1.p!"},
};

static void step(struct pair *p, char c, const char *what)
{
    struct ibv_cq *cq = p->b.cq;
    switch (c) {
    case 'p':
    case 's':
    case 'P':
    case 'S':
        send_one(p, c == 's' || c == 'S' ? IBV_SEND_SOLICITED : 0);
        if (c == 'P' || c == 'S')
            break;
        __attribute__((fallthrough));
    case '1':
        assert_int_equal(side_poll(&p->b).status, IBV_WC_SUCCESS);
        break;
    case 'a':
    case 'o':
        arm(cq, c == 'o');
        break;
    default:
        if (readable(p->b.channel->fd, c == '!' ? LONG_MS : 5) != (c == '!'))
            fail_msg("%s: %c", what, c);
        if (c == '!')
            ibv_ack_cq_events(get(p->b.channel), 1);
    }
}

static void events_come_once_an_arm(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        struct pair p;
        pair_open(&p, &(struct pair_conf){0});
        for (const char *s = scripts[i].script; *s; s++)
            step(&p, *s, scripts[i].what);
        pair_close(&p, 1);
    }
}

/** A failed completion wakes who waits for solicited ones. */
static void failures_count_as_solicited(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    side_recv(&p.b, 1, 0, 64);
    arm(p.b.cq, 1);
    assert_int_equal(rdma_disconnect(p.a.id), 0);
    ibv_ack_cq_events(get(p.b.channel), 1);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_WR_FLUSH_ERR);
    side_event(&p.a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(&p.b, RDMA_CM_EVENT_DISCONNECTED);
    pair_close(&p, 0);
}

/* ---- the descriptors ---- */

static void an_epoll_set_sees_events(void **state)
{
    struct pair p;
    struct epoll_event ev;
    (void)state;
    for (int edge = 0; edge < 2; edge++) {
        pair_open(&p, &(struct pair_conf){0});
        int set = epoll_create1(EPOLL_CLOEXEC);
        ev = (struct epoll_event){.events = EPOLLIN | (edge ? (uint32_t)EPOLLET : 0)};
        assert_int_equal(epoll_ctl(set, EPOLL_CTL_ADD, p.b.channel->fd, &ev), 0);
        assert_int_equal(epoll_wait(set, &ev, 1, 0), 0);
        for (int round = 0; round < 3; round++) {
            arm(p.b.cq, 0);
            send_one(&p, 0);
            assert_int_equal(epoll_wait(set, &ev, 1, LONG_MS), 1);
            assert_int_equal(epoll_wait(set, &ev, 1, 0), edge ? 0 : 1);
            ibv_ack_cq_events(get(p.b.channel), 1);
            assert_int_equal(epoll_wait(set, &ev, 1, 0), 0);
            side_poll(&p.b);
        }
        close(set);
        pair_close(&p, 1);
    }
}

/** Of a program that has few descriptors itself. */
static void select_takes_every_descriptor(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_context *ctx = p.b.pd->context;
    struct rdma_event_channel *cm = rdma_create_event_channel();
    assert_non_null(cm);
    assert_true(ctx->async_fd < FD_SETSIZE);
    assert_true(cm->fd < FD_SETSIZE);
    assert_true(p.b.channel->fd < FD_SETSIZE);
    for (int round = 0; round < 2; round++) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(ctx->async_fd, &set);
        FD_SET(cm->fd, &set);
        FD_SET(p.b.channel->fd, &set);
        assert_int_equal(select(FD_SETSIZE, &set, NULL, NULL, &(struct timeval){0}), round);
        assert_int_equal(FD_ISSET(p.b.channel->fd, &set) ? 1 : 0, round);
        if (round == 0) {
            arm(p.b.cq, 0);
            send_one(&p, 0);
            assert_true(readable(p.b.channel->fd, LONG_MS));
        }
    }
    ibv_ack_cq_events(get(p.b.channel), 1);
    side_poll(&p.b);
    rdma_destroy_event_channel(cm);
    pair_close(&p, 1);
}

static void set_nonblocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
}

static void set_blocking(int fd)
{
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

static void nonblocking_descriptors_do_not_wait(void **state)
{
    struct pair p;
    struct ibv_cq *cq;
    struct ibv_async_event ev;
    void *context;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    int async = p.b.id->verbs->async_fd;
    set_nonblocking(p.b.channel->fd);
    set_nonblocking(async);
    for (int round = 0; round < 2; round++) {
        errno = 0;
        assert_int_equal(ibv_get_cq_event(p.b.channel, &cq, &context), -1);
        assert_int_equal(errno, EAGAIN);
        errno = 0;
        assert_int_equal(ibv_get_async_event(p.b.id->verbs, &ev), -1);
        assert_int_equal(errno, EAGAIN);
        arm(p.b.cq, 0);
        send_one(&p, 0);
        /* Without poll(): the getter looks for itself, or the engine has the message. */
        time_t end = time(NULL) + LONG_MS / 1000;
        while (ibv_get_cq_event(p.b.channel, &cq, &context))
            assert_true(errno == EAGAIN && time(NULL) < end);
        ibv_ack_cq_events(cq, 1);
        side_poll(&p.b);
    }
    set_blocking(async);
    pair_close(&p, 1);
}

/* ---- threads in the getters ---- */

enum getter { CQ_EVENT, ASYNC_EVENT };

struct wait {
    struct pair *p;
    enum getter getter;
    atomic_bool begun;
    int result, error;
};

static void *wait_thread(void *arg)
{
    struct wait *w = arg;
    struct ibv_cq *cq;
    struct ibv_async_event ev;
    void *context;
    atomic_store(&w->begun, true);
    w->result = w->getter == CQ_EVENT ? ibv_get_cq_event(w->p->b.channel, &cq, &context)
                                      : ibv_get_async_event(w->p->b.id->verbs, &ev);
    w->error = errno;
    if (w->result == 0 && w->getter == CQ_EVENT)
        ibv_ack_cq_events(cq, 1);
    return w;
}

static pthread_t start(struct wait *w)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, wait_thread, w), 0);
    while (!atomic_load(&w->begun))
        sched_yield();
    return t;
}

static bool ends_within(pthread_t t, int ms)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += ms % 1000 * 1000000L;
    ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000;
    ts.tv_nsec %= 1000000000;
    return pthread_timedjoin_np(t, NULL, &ts) == 0;
}

/*
 * There with ThreadSanitizer, which sees no lock that a thread takes after it was cancelled in a
 * wait, as the getter of CQ events does.
 */
void __tsan_init(void) __attribute__((weak));

/** What a cancelled thread leaves behind is whole: others get events, everything can go. */
static void getters_can_be_cancelled(void **state)
{
    (void)state;
    for (enum getter g = __tsan_init ? ASYNC_EVENT : CQ_EVENT; g <= ASYNC_EVENT; g++)
        for (int i = 0; i < 20; i++) {
            struct pair p;
            pair_open(&p, &(struct pair_conf){0});
            struct wait w = {.p = &p, .getter = g};
            void *result;
            pthread_t t = start(&w);
            if (i % 2)
                nanosleep(&(struct timespec){.tv_nsec = 100000L * i}, NULL);
            assert_int_equal(pthread_cancel(t), 0);
            assert_int_equal(pthread_join(t, &result), 0);
            assert_ptr_equal(result, PTHREAD_CANCELED);
            arm(p.b.cq, 0);
            send_one(&p, 0);
            ibv_ack_cq_events(get(p.b.channel), 1);
            side_poll(&p.b);
            pair_close(&p, 1);
        }
}

static atomic_uint signals;

static void on_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&signals, 1);
}

static void handle(int flags)
{
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};
    assert_int_equal(sigaction(SIGUSR1, &sa, NULL), 0);
}

/** As read(): a handler without SA_RESTART ends the wait, one with it does not. */
static void signals_interrupt_as_they_do_read(void **state)
{
    struct pair p;
    (void)state;
    for (enum getter g = CQ_EVENT; g <= ASYNC_EVENT; g++) {
        pair_open(&p, &(struct pair_conf){0});
        struct wait w = {.p = &p, .getter = g};
        handle(0);
        pthread_t t = start(&w);
        for (int i = 0; !ends_within(t, 10); i++) {
            assert_true(i < LONG_MS / 10);
            pthread_kill(t, SIGUSR1); /* again: it may not have been in its wait */
        }
        assert_int_equal(w.result, -1);
        assert_int_equal(w.error, EINTR);

        handle(SA_RESTART);
        w = (struct wait){.p = &p, .getter = CQ_EVENT};
        t = start(&w);
        for (int i = 0; i < 5; i++) {
            unsigned n = atomic_load(&signals);
            time_t end = time(NULL) + LONG_MS / 1000;
            while (atomic_load(&signals) == n) { /* sanitizers may put a signal off to the next */
                assert_true(time(NULL) < end);
                pthread_kill(t, SIGUSR1);
                nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            }
            assert_false(ends_within(t, 2));
        }
        arm(p.b.cq, 0);
        send_one(&p, 0);
        assert_true(ends_within(t, LONG_MS));
        assert_int_equal(w.result, 0);
        side_poll(&p.b);
        pair_close(&p, 1);
    }
    assert_int_equal(signal(SIGUSR1, SIG_DFL) == SIG_ERR, 0);
}

/* ---- acknowledgements ---- */

static void *destroy_thread(void *arg)
{
    return (void *)(intptr_t)ibv_destroy_cq(arg);
}

static void destroy_waits_for_read_events_only(void **state)
{
    struct pair keep, p;
    pthread_t t;
    (void)state;
    pair_open(&keep, &(struct pair_conf){0});
    struct ibv_comp_channel *channel = ibv_create_comp_channel(keep.b.id->verbs);
    struct ibv_cq *cq = ibv_create_cq(keep.b.id->verbs, 8, &p, channel, 0);
    pair_open(&p, &(struct pair_conf){.recv_cq = cq});
    for (int i = 0; i < 3; i++) {
        struct ibv_wc wc;
        arm(cq, 0);
        send_one(&p, 0);
        assert_true(readable(channel->fd, LONG_MS));
        if (i < 2)
            assert_ptr_equal(get(channel), cq);
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    }
    pair_close(&p, 1);
    assert_int_equal(pthread_create(&t, NULL, destroy_thread, cq), 0);
    assert_false(ends_within(t, 20));
    ibv_ack_cq_events(cq, 1);
    assert_false(ends_within(t, 20));
    ibv_ack_cq_events(cq, 1);
    assert_true(ends_within(t, LONG_MS));
    assert_false(readable(channel->fd, 0)); /* the third went with the CQ */
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    pair_close(&keep, 1);
}

/* ---- what is busy ---- */

static void objects_in_use_are_busy(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){.srq_wr = 8});
    for (int i = 0; i < 2; i++) { /* nothing is half destroyed */
        assert_int_equal(ibv_destroy_cq(p.b.cq), EBUSY);
        assert_int_equal(ibv_destroy_srq(p.b.srq), EBUSY);
        assert_int_equal(ibv_destroy_comp_channel(p.b.channel), EBUSY);
        assert_int_equal(ibv_dealloc_pd(p.b.pd), EBUSY);
    }
    send_one(&p, 0);
    assert_int_equal(side_poll(&p.b).status, IBV_WC_SUCCESS);
    pair_close(&p, 1);
}

static void each_object_keeps_its_pd_busy(void **state)
{
    struct pair p;
    (void)state;
    pair_open(&p, &(struct pair_conf){0});
    struct ibv_pd *pd = ibv_alloc_pd(p.b.id->verbs);
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_qp_init_attr qp_attr = {.send_cq = p.b.cq,
                                       .recv_cq = p.b.cq,
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    struct ibv_mr *mr = ibv_reg_mr(pd, p.b.buf, 64, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
    assert_non_null(srq);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    struct ibv_qp *qp = ibv_create_qp(pd, &qp_attr);
    assert_non_null(qp);
    assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    pair_close(&p, 1);
}

/** Closing never fails; what still hangs on the context can be destroyed afterwards. */
static void a_context_closes_before_its_objects(void **state)
{
    int n;
    (void)state;
    struct ibv_device **list = ibv_get_device_list(&n);
    assert_true(n > 0);
    struct ibv_context *ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
    struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0);
    assert_non_null(cq);
    assert_int_equal(ibv_close_device(ctx), 0);
    arm(cq, 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/** The stack of a cancelled thread stays poisoned; the sanitizer would trip over it at its end. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "use_sigaltstack=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_once_an_arm),
        cmocka_unit_test(failures_count_as_solicited),
        cmocka_unit_test(an_epoll_set_sees_events),
        cmocka_unit_test(select_takes_every_descriptor),
        cmocka_unit_test(nonblocking_descriptors_do_not_wait),
        cmocka_unit_test(getters_can_be_cancelled),
        cmocka_unit_test(signals_interrupt_as_they_do_read),
        cmocka_unit_test(destroy_waits_for_read_events_only),
        cmocka_unit_test(objects_in_use_are_busy),
        cmocka_unit_test(each_object_keeps_its_pd_busy),
        cmocka_unit_test(a_context_closes_before_its_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
