/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taking memory away while a byte is on its way into it: what takes it away is over only when the
 * copy is. The peer, side a, writes to a page that userfaultfd(2) holds back, so that the thread
 * that copies stands still in the middle, for as long as the test wants.
 */
#include "hostile/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define PAGE getpagesize()
#define ACCESS                                                                                     \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)
#define LOOK_MS 100 /* for what must not come */
#define LETTER  'X' /* that the peer writes */

/* ---- a page that is held back ---- */

struct held {
    int fd;
    uint8_t *page;
    pthread_t thread;
    atomic_bool touched, free;
};

static int userfaultfd(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    return fd >= 0 ? fd : (int)syscall(SYS_userfaultfd, O_CLOEXEC);
}

static void *give(void *arg)
{
    struct held *h = arg;
    struct uffd_msg m;
    if (read(h->fd, &m, sizeof(m)) != sizeof(m))
        return NULL;
    atomic_store(&h->touched, true);
    while (!atomic_load(&h->free))
        usleep(1000);
    struct uffdio_zeropage z = {.range = {(uintptr_t)h->page, PAGE}};
    assert_int_equal(ioctl(h->fd, UFFDIO_ZEROPAGE, &z), 0);
    return NULL;
}

/** The page is registered by now. Skips the test where the kernel does not allow it. */
static void hold(struct held *h)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register r = {.range = {(uintptr_t)h->page, PAGE},
                                .mode = UFFDIO_REGISTER_MODE_MISSING};
    assert_int_equal(ioctl(h->fd, UFFDIO_API, &api), 0);
    assert_int_equal(madvise(h->page, PAGE, MADV_DONTNEED), 0);
    assert_int_equal(ioctl(h->fd, UFFDIO_REGISTER, &r), 0);
    assert_int_equal(pthread_create(&h->thread, NULL, give, h), 0);
}

/* ---- the scene ---- */

enum key { REGION, WINDOW_1, WINDOW_2 }; /* whose key the peer has */

struct scene {
    struct held held;
    struct pair p, second; /* side b of both is of one domain */
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    uint32_t rkey;
};

static int bind_window(struct scene *s, uint64_t wr_id, size_t len)
{
    struct ibv_mw_bind_info info = {0}; /* of no bytes */
    if (len)
        info = (struct ibv_mw_bind_info){.mr = s->mr,
                                         .addr = (uintptr_t)s->held.page,
                                         .length = len,
                                         .mw_access_flags =
                                             IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    if (s->mw->type == IBV_MW_TYPE_1) {
        struct ibv_mw_bind bind = {
            .wr_id = wr_id, .send_flags = IBV_SEND_SIGNALED, .bind_info = info};
        return ibv_bind_mw(s->p.b.id->qp, s->mw, &bind);
    }
    struct ibv_send_wr *bad,
        wr = {.wr_id = wr_id,
              .opcode = IBV_WR_BIND_MW,
              .send_flags = IBV_SEND_SIGNALED,
              .bind_mw = {.mw = s->mw, .rkey = ibv_inc_rkey(s->mw->rkey), .bind_info = info}};
    s->mw->rkey = wr.bind_mw.rkey;
    return ibv_post_send(s->p.b.id->qp, &wr, &bad);
}

static void expect(struct side *s, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = side_poll(s);
    if (wc.status != status)
        print_error("%s\n", ibv_wc_status_str(wc.status));
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

/** The peer's Write is in the middle of its copy. */
static void scene_open(struct scene *s, enum key key)
{
    memset(s, 0, sizeof(*s));
    s->held.fd = userfaultfd();
    if (s->held.fd < 0) {
        print_message("userfaultfd: %s\n", strerror(errno));
        skip();
    }
    pair_open(&s->p, &(struct pair_conf){0});
    pair_open(&s->second, &(struct pair_conf){.with = &s->p.b});
    s->held.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(s->held.page != MAP_FAILED);
    s->mr = ibv_reg_mr(s->p.b.pd, s->held.page, PAGE, ACCESS);
    assert_non_null(s->mr);
    s->rkey = s->mr->rkey;
    if (key != REGION) {
        s->mw = ibv_alloc_mw(s->p.b.pd, key == WINDOW_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
        assert_non_null(s->mw);
        assert_int_equal(bind_window(s, 1, PAGE), 0);
        expect(&s->p.b, 1, IBV_WC_SUCCESS);
        s->rkey = s->mw->rkey;
    }
    hold(&s->held);
    memset(s->p.a.buf, LETTER, PAGE);
    struct ibv_mr remote = {.rkey = s->rkey};
    struct side at = {.buf = s->held.page, .mr = &remote};
    assert_int_equal(side_post(&s->p.a, &at, IBV_WR_RDMA_WRITE, 2, 0, PAGE, 0, 0), 0);
    while (!atomic_load(&s->held.touched))
        usleep(1000);
}

static void let_go(struct scene *s)
{
    atomic_store(&s->held.free, true);
}

static void scene_close(struct scene *s, int connected, int second_connected)
{
    assert_int_equal(pthread_join(s->held.thread, NULL), 0);
    if (s->mw)
        assert_int_equal(ibv_dealloc_mw(s->mw), 0);
    if (s->mr)
        assert_int_equal(ibv_dereg_mr(s->mr), 0);
    pair_close(&s->second, second_connected);
    pair_close(&s->p, connected);
    assert_int_equal(munmap(s->held.page, PAGE), 0);
    assert_int_equal(close(s->held.fd), 0);
}

/** The whole Write is there: none of it comes behind the completion. */
static void is_written(const struct scene *s)
{
    for (int i = 0; i < PAGE; i++)
        assert_int_equal(((volatile uint8_t *)s->held.page)[i], LETTER);
}

/* ---- work requests ---- */

enum taking { INVALIDATE, INVALIDATE_ON_ANOTHER_QP, REBIND, UNBIND };

static int take(struct scene *s, enum taking by, uint64_t wr_id)
{
    if (by == REBIND || by == UNBIND)
        return bind_window(s, wr_id, by == REBIND ? 8 : 0);
    struct side *side = by == INVALIDATE ? &s->p.b : &s->second.b;
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
                                   .opcode = IBV_WR_LOCAL_INV,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .invalidate_rkey = s->rkey};
    return ibv_post_send(side->id->qp, &wr, &bad);
}

/**
 * Posting returns at once; the work request, and what is posted behind it, is over when the copy
 * is.
 */
static void a_work_request_waits_for_the_copy(void **state)
{
    static const struct {
        const char *name;
        enum key key;
        enum taking by;
    } rows[] = {
        {"a region is invalidated", REGION, INVALIDATE},
        {"a region is invalidated by another QP", REGION, INVALIDATE_ON_ANOTHER_QP},
        {"a window is invalidated", WINDOW_2, INVALIDATE},
        {"a window is bound again", WINDOW_1, REBIND},
        {"a window is unbound", WINDOW_1, UNBIND},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene s;
        print_message("  %s\n", rows[i].name);
        scene_open(&s, rows[i].key);
        bool other = rows[i].by == INVALIDATE_ON_ANOTHER_QP;
        struct side *a = other ? &s.second.a : &s.p.a, *b = other ? &s.second.b : &s.p.b;
        side_recv(a, 10, PAGE, 8);
        assert_int_equal(take(&s, rows[i].by, 11), 0);
        assert_int_equal(side_post(b, a, IBV_WR_SEND, 12, 0, 8, 0, 0), 0);
        side_poll_none(b, LOOK_MS);
        let_go(&s);
        expect(b, 11, IBV_WC_SUCCESS);
        is_written(&s);
        expect(b, 12, IBV_WC_SUCCESS);
        if (!other)
            expect(a, 2, IBV_WC_SUCCESS);
        expect(a, 10, IBV_WC_SUCCESS);
        scene_close(&s, 1, 1);
    }
}

/** A bind that takes nothing away, and a work request of another domain, wait for nobody. */
static void what_takes_nothing_away_does_not_wait(void **state)
{
    struct scene s;
    struct pair far;
    (void)state;
    pair_open(&far, &(struct pair_conf){0}); /* before a copy holds up the engine's thread */
    scene_open(&s, REGION);
    s.mw = ibv_alloc_mw(s.p.b.pd, IBV_MW_TYPE_2);
    assert_non_null(s.mw);
    assert_int_equal(bind_window(&s, 1, 8), 0);
    expect(&s.p.b, 1, IBV_WC_SUCCESS);
    struct ibv_mr *mr = ibv_reg_mr(far.b.pd, far.b.buf, 64, ACCESS);
    struct ibv_send_wr *bad, wr = {.wr_id = 2,
                                   .opcode = IBV_WR_LOCAL_INV,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .invalidate_rkey = mr->rkey};
    assert_int_equal(ibv_post_send(far.b.id->qp, &wr, &bad), 0);
    expect(&far.b, 2, IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    let_go(&s);
    expect(&s.p.a, 2, IBV_WC_SUCCESS);
    pair_close(&far, 1);
    scene_close(&s, 1, 1);
}

/** Somebody waits for events: nobody's poll goes on with the work request. */
static void the_completion_raises_its_event(void **state)
{
    struct scene s;
    struct ibv_cq *cq;
    void *context;
    (void)state;
    scene_open(&s, REGION);
    struct side *b = &s.second.b;
    assert_int_equal(ibv_req_notify_cq(b->cq, 0), 0);
    assert_int_equal(take(&s, INVALIDATE_ON_ANOTHER_QP, 11), 0);
    usleep(LOOK_MS * 1000);
    let_go(&s);
    assert_int_equal(ibv_get_cq_event(b->channel, &cq, &context), 0);
    ibv_ack_cq_events(cq, 1);
    is_written(&s);
    expect(b, 11, IBV_WC_SUCCESS);
    expect(&s.p.a, 2, IBV_WC_SUCCESS);
    scene_close(&s, 1, 1);
}

/** What is posted behind it goes out before the connection is closed. */
static void an_orderly_end_waits(void **state)
{
    struct scene s;
    (void)state;
    scene_open(&s, REGION);
    struct side *a = &s.second.a, *b = &s.second.b;
    side_recv(a, 10, PAGE, 8);
    assert_int_equal(take(&s, INVALIDATE_ON_ANOTHER_QP, 11), 0);
    assert_int_equal(side_post(b, a, IBV_WR_SEND, 12, 0, 8, 0, 0), 0);
    assert_int_equal(rdma_disconnect(b->id), 0);
    side_poll_none(b, LOOK_MS);
    let_go(&s);
    expect(b, 11, IBV_WC_SUCCESS);
    expect(b, 12, IBV_WC_SUCCESS);
    expect(a, 10, IBV_WC_SUCCESS);
    side_event(a, RDMA_CM_EVENT_DISCONNECTED);
    side_event(b, RDMA_CM_EVENT_DISCONNECTED);
    expect(&s.p.a, 2, IBV_WC_SUCCESS);
    scene_close(&s, 1, 0);
}

/** A QP that ends meanwhile flushes it, and is destroyed, without waiting for the copy. */
static void a_qp_may_end_meanwhile(void **state)
{
    (void)state;
    for (int destroy = 0; destroy < 2; destroy++) {
        struct scene s;
        struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
        scene_open(&s, REGION);
        struct side *b = &s.second.b;
        assert_int_equal(take(&s, INVALIDATE_ON_ANOTHER_QP, 11), 0);
        side_poll_none(b, LOOK_MS);
        if (!destroy) {
            assert_int_equal(ibv_modify_qp(b->id->qp, &error, IBV_QP_STATE), 0);
            expect(b, 11, IBV_WC_WR_FLUSH_ERR);
        }
        rdma_destroy_qp(b->id);
        assert_false(atomic_load(&s.held.free));
        let_go(&s);
        expect(&s.p.a, 2, IBV_WC_SUCCESS);
        side_event(&s.second.a, RDMA_CM_EVENT_DISCONNECTED);
        scene_close(&s, 1, 0);
    }
}

/* ---- calls ---- */

static atomic_bool returned;

static void *deregister(void *arg)
{
    struct scene *s = arg;
    assert_int_equal(ibv_dereg_mr(s->mr), 0);
    atomic_store(&returned, true);
    return NULL;
}

static void *deallocate(void *arg)
{
    struct scene *s = arg;
    assert_int_equal(ibv_dealloc_mw(s->mw), 0);
    atomic_store(&returned, true);
    return NULL;
}

static void *reregister(void *arg)
{
    struct scene *s = arg;
    assert_int_equal(ibv_rereg_mr(s->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, s->p.b.buf, 8, 0),
                     0);
    atomic_store(&returned, true);
    return NULL;
}

static void a_call_waits_for_the_copy(void **state)
{
    static const struct {
        const char *name;
        enum key key;
        void *(*call)(void *);
    } rows[] = {
        {"ibv_dereg_mr", REGION, deregister},
        {"ibv_rereg_mr", REGION, reregister},
        {"ibv_dealloc_mw, type 1", WINDOW_1, deallocate},
        {"ibv_dealloc_mw, type 2", WINDOW_2, deallocate},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene s;
        pthread_t thread;
        print_message("  %s\n", rows[i].name);
        scene_open(&s, rows[i].key);
        atomic_store(&returned, false);
        assert_int_equal(pthread_create(&thread, NULL, rows[i].call, &s), 0);
        usleep(LOOK_MS * 1000);
        assert_false(atomic_load(&returned));
        let_go(&s);
        assert_int_equal(pthread_join(thread, NULL), 0);
        is_written(&s);
        if (rows[i].call == deregister)
            s.mr = NULL;
        if (rows[i].call == deallocate)
            s.mw = NULL;
        expect(&s.p.a, 2, IBV_WC_SUCCESS);
        scene_close(&s, 1, 1);
    }
}

/* ---- the peer ---- */

static atomic_bool completed;
static struct ibv_wc completion;

static void *poll_victim(void *arg)
{
    struct peer *p = arg;
    while (ibv_poll_cq(p->victim.cq, 1, &completion) == 0)
        ;
    atomic_store(&completed, true);
    return NULL;
}

/** Fills the way to the peer, so that what comes next waits for it to read: the engine's thread
 * goes on where a post ends. */
static void stop_up(struct peer *p)
{
    struct ibv_sge sge = {(uintptr_t)p->victim.buf, SIDE_BYTES, p->victim.mr->lkey};
    struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1};
    for (int i = 0; i < 16; i++)
        assert_int_equal(ibv_post_send(p->victim.id->qp, &wr, &bad), 0);
    usleep(LOOK_MS * 1000);
}

/**
 * The answer to a Read of the peer is being copied from a window, by a thread that sends and does
 * not receive, when the peer invalidates that: the receive completes behind the copy.
 */
static void what_the_peer_takes_away_waits_for_the_copy(void **state)
{
    static struct peer p;
    static uint8_t drop[65536];
    struct held h = {.fd = userfaultfd()};
    pthread_t thread;
    uint8_t hdr[28];
    (void)state;
    if (h.fd < 0)
        skip();
    peer_open(&p, &(struct peer_conf){.small_window = true});
    h.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(h.page != MAP_FAILED);
    struct scene s = {.held = h, .p.b = p.victim};
    s.mr = ibv_reg_mr(p.victim.pd, h.page, PAGE, ACCESS);
    s.mw = ibv_alloc_mw(p.victim.pd, IBV_MW_TYPE_2);
    assert_true(s.mr && s.mw);
    assert_int_equal(bind_window(&s, 1, PAGE), 0);
    expect(&p.victim, 1, IBV_WC_SUCCESS);
    side_recv(&p.victim, 2, 0, 8);
    hold(&h);
    stop_up(&p);
    peer_read_request(hdr, 1, 0, 64, s.mw->rkey, (uintptr_t)h.page);
    struct peer_seg seg = peer_untagged(&p, PEER_READ_REQUEST, hdr, sizeof(hdr));
    peer_send_seg(&p, &seg);
    usleep(LOOK_MS * 1000); /* the request is in, and waits */
    assert_false(atomic_load(&h.touched));
    while (!atomic_load(&h.touched))
        assert_true(recv(p.fd, drop, sizeof(drop), MSG_DONTWAIT) > 0 || errno == EAGAIN);
    seg = peer_untagged(&p, PEER_SEND_INV, NULL, 0);
    seg.inval = s.mw->rkey;
    peer_send_seg(&p, &seg);
    atomic_store(&completed, false);
    assert_int_equal(pthread_create(&thread, NULL, poll_victim, &p), 0);
    usleep(LOOK_MS * 1000);
    assert_false(atomic_load(&completed));
    atomic_store(&h.free, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(completion.status, IBV_WC_SUCCESS);
    assert_int_equal(completion.wr_id, 2);
    assert_true(completion.wc_flags & IBV_WC_WITH_INV);
    assert_int_equal(pthread_join(h.thread, NULL), 0);
    peer_hang_up(&p, true);
    side_event(&p.victim, RDMA_CM_EVENT_DISCONNECTED);
    assert_int_equal(ibv_dealloc_mw(s.mw), 0);
    assert_int_equal(ibv_dereg_mr(s.mr), 0);
    peer_close(&p);
    assert_int_equal(munmap(h.page, PAGE), 0);
    assert_int_equal(close(h.fd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_work_request_waits_for_the_copy),
        cmocka_unit_test(what_takes_nothing_away_does_not_wait),
        cmocka_unit_test(the_completion_raises_its_event),
        cmocka_unit_test(an_orderly_end_waits),
        cmocka_unit_test(a_qp_may_end_meanwhile),
        cmocka_unit_test(a_call_waits_for_the_copy),
        cmocka_unit_test(what_the_peer_takes_away_waits_for_the_copy),
    };
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
