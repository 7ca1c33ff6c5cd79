/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/endpoint.h"

#include "cm/udp.h"
#include "common/addr.h"
#include "common/sys.h"
#include "env/conf.h"
#include "env/fd.h"
#include "env/random.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MS     100 /* until a question is repeated; twice as long each time, up to: */
#define LONGEST_MS   2000
#define TAKEN_A_PASS 64

enum state {
    IDLE,
    BOUND,
    LISTENS,
    ASKS,
    UNDECIDED, /* a Request */
    OVER,
};

/** What was answered, in case that it is asked again. */
struct answer {
    struct iw_udp_way way; /* no family: the place is free */
    uint64_t id;
    uint8_t bytes[SIDR_BYTES];
};

struct iw_sidr {
    struct lock lock;
    atomic_uint refs; /* the program's, and those of a listener's undecided Requests */
    enum state state;
    uint16_t ps;
    iw_sidr_handler *handler;
    void *owner;

    int fd; /* -1: none */
    bool afonly;
    bool tos_set;
    uint8_t tos;
    struct iw_source source;

    /* question */
    struct sockaddr_storage peer;
    struct iw_timer timer;
    unsigned wait_ms, left_ms; /* until the next repetition, and until the end */
    uint64_t id;               /* a Request's, too */
    atomic_uint refusals;      /* a server may say that it listens a moment before it does */
    uint8_t asked[SIDR_BYTES];

    /* listener */
    struct list undecided; /* link of Requests */
    unsigned nundecided;
    struct answer *answers;
    unsigned next_answer;

    /* Request */
    struct iw_sidr *listener; /* a reference, while it is undecided */
    struct list link;         /* under listener->lock */
    struct iw_udp_way way;
};

static struct lock_class endpoints = LOCK_CLASS(endpoints, LOCK_SIDR);

static void get(struct iw_sidr *s)
{
    atomic_fetch_add(&s->refs, 1);
}

static void put(struct iw_sidr *s)
{
    if (atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    if (s->fd >= 0)
        sys_close(s->fd);
    free(s->answers);
    lock_fini(&s->lock);
    free(s);
}

int iw_sidr_create(struct iw_sidr **out, uint16_t ps, iw_sidr_handler *handler, void *owner)
{
    struct iw_sidr *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    lock_init_in(&s->lock, &endpoints);
    atomic_init(&s->refs, 1);
    list_init(&s->undecided);
    list_init(&s->link);
    s->ps = ps;
    s->fd = -1;
    s->handler = handler;
    s->owner = owner;
    *out = s;
    return 0;
}

/* ---- the socket ---- */

static int open_locked(struct iw_sidr *s, const struct sockaddr *addr, bool afonly)
{
    int fd = iw_udp_open(addr, afonly);
    assert_held(&s->lock);
    if (fd < 0)
        return fd;
    if (s->tos_set)
        iw_udp_set_tos(fd, s->tos);
    s->fd = fd;
    s->afonly = afonly;
    return 0;
}

int iw_sidr_bind(struct iw_sidr *s, const struct sockaddr *addr, bool afonly)
{
    lock_get(&s->lock);
    int r = s->state == IDLE ? open_locked(s, addr, afonly) : -EINVAL;
    if (!r)
        s->state = BOUND;
    lock_put(&s->lock);
    return r;
}

/* UDP lets no bound socket change its mind; and two cannot have the port at a time. */
static int reopen_locked(struct iw_sidr *s, bool afonly)
{
    struct sockaddr_storage local = {0};
    socklen_t len = sizeof(local);
    bool was = s->afonly;
    sys_getsockname(s->fd, (struct sockaddr *)&local, &len);
    sys_close(s->fd);
    s->fd = -1;
    int r = open_locked(s, (struct sockaddr *)&local, afonly);
    if (r && open_locked(s, (struct sockaddr *)&local, was))
        s->state = IDLE;
    return r;
}

int iw_sidr_set_afonly(struct iw_sidr *s, bool afonly)
{
    lock_get(&s->lock);
    int r = s->state != BOUND ? -EINVAL : afonly == s->afonly ? 0 : reopen_locked(s, afonly);
    lock_put(&s->lock);
    return r;
}

int iw_sidr_set_tos(struct iw_sidr *s, uint8_t tos)
{
    lock_get(&s->lock);
    s->tos = tos;
    s->tos_set = true;
    if (s->fd >= 0)
        iw_udp_set_tos(s->fd, tos);
    lock_put(&s->lock);
    return 0;
}

void iw_sidr_addresses(struct iw_sidr *s, struct sockaddr_storage *local,
                       struct sockaddr_storage *peer)
{
    socklen_t len = sizeof(struct sockaddr_storage);
    lock_get(&s->lock);
    if (local) {
        *local = s->way.local;
        if (s->fd >= 0)
            sys_getsockname(s->fd, (struct sockaddr *)local, &len);
    }
    if (peer)
        *peer = s->fd >= 0 ? s->peer : s->way.peer;
    lock_put(&s->lock);
}

/* ---- the question ---- */

/** The outcome, once: by the thread that ends the question. */
static void tell(struct iw_sidr *s, const struct iw_cm_event *event)
{
    lock_get(&s->lock);
    bool first = s->state == ASKS;
    if (first)
        s->state = OVER;
    iw_sidr_handler *handler = s->handler;
    lock_put(&s->lock);
    if (!first)
        return;
    iw_timer_unset(&s->timer);
    handler(s->owner, event);
}

static void fail(struct iw_sidr *s, int status)
{
    tell(s, &(struct iw_cm_event){.type = IW_CM_UNREACHABLE, .status = status});
}

/** What UDP says; what may pass is no failure, as the question is repeated. */
static void failed(struct iw_sidr *s, long r)
{
    if (r == -ECONNREFUSED && atomic_fetch_add(&s->refusals, 1) > 0)
        fail(s, SIDR_UNSUPPORTED);
    else if (r != -ECONNREFUSED && r != -EAGAIN && r != -ENOBUFS && r != -ENOMEM && r != -EINTR)
        fail(s, (int)r);
}

static unsigned shortest(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void repeat(struct iw_timer *t);

static void ask(struct iw_sidr *s)
{
    long r = 0;
    lock_get(&s->lock);
    bool asks = s->state == ASKS;
    if (asks) {
        r = sys_send(s->fd, s->asked, sizeof(s->asked), MSG_DONTWAIT | MSG_NOSIGNAL);
        iw_timer_set(&s->timer, s->wait_ms, repeat);
    }
    lock_put(&s->lock);
    if (asks && r < 0)
        failed(s, r);
}

static void repeat(struct iw_timer *t)
{
    struct iw_sidr *s = container_of(t, struct iw_sidr, timer);
    lock_get(&s->lock);
    s->left_ms -= s->wait_ms;
    s->wait_ms = shortest(2 * s->wait_ms, shortest(LONGEST_MS, s->left_ms));
    bool more = s->left_ms > 0;
    lock_put(&s->lock);
    if (more)
        ask(s);
    else
        fail(s, -ETIMEDOUT);
}

static void take_answer(struct iw_sidr *s, const struct sidr *said)
{
    if (!said->reply || said->id != s->id || said->ps != s->ps)
        return;
    tell(s, &(struct iw_cm_event){
                .type = said->status ? IW_CM_UNREACHABLE : IW_CM_ESTABLISHED,
                .status = (int)said->status,
                .private_data = said->data_len ? said->data : NULL,
                .private_data_len = said->data_len,
                .peer_qpn = said->qpn,
                .qkey = said->qkey,
                .initiator = true,
            });
}

/* ---- the listener ---- */

static bool same_end(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr *one = (const struct sockaddr *)a, *other = (const struct sockaddr *)b;
    uint8_t x[16], y[16];
    addr_ip6(one, x);
    addr_ip6(other, y);
    return addr_port(one) == addr_port(other) && memcmp(x, y, sizeof(x)) == 0;
}

/** Whether it is known; an answer is repeated. */
static bool asked_again_locked(struct iw_sidr *s, uint64_t id, const struct iw_udp_way *way)
{
    assert_held(&s->lock);
    list_for_each (l, &s->undecided) {
        const struct iw_sidr *r = container_of(l, struct iw_sidr, link);
        if (r->id == id && same_end(&r->way.peer, &way->peer))
            return true;
    }
    for (unsigned i = 0; i < IW_SIDR_ANSWERS && s->answers[i].way.peer.ss_family; i++) {
        const struct answer *a = &s->answers[i];
        if (a->id == id && same_end(&a->way.peer, &way->peer)) {
            iw_udp_send(s->fd, a->bytes, sizeof(a->bytes), &a->way);
            return true;
        }
    }
    return false;
}

/** A Request that is new, and undecided from now on. @return NULL: it is dropped */
static struct iw_sidr *enter(struct iw_sidr *s, const struct sidr *said,
                             const struct iw_udp_way *way)
{
    struct iw_sidr *r;
    if (iw_sidr_create(&r, s->ps, NULL, NULL))
        return NULL;
    r->state = UNDECIDED;
    r->id = said->id;
    r->way = *way;
    lock_get(&s->lock);
    bool room = s->state == LISTENS && s->nundecided < IW_SIDR_UNDECIDED &&
                !asked_again_locked(s, said->id, way);
    if (room) {
        get(s);
        r->listener = s;
        list_add_tail(&s->undecided, &r->link);
        s->nundecided++;
    }
    lock_put(&s->lock);
    if (room)
        return r;
    put(r);
    return NULL;
}

static bool may_ask(const struct iw_udp_way *way)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    bool clear = iw_conf()->tls == IW_TLS_REQUIRE && !iw_cm_same_address(&way->local, &way->peer);
    if (clear && !atomic_flag_test_and_set(&told))
        iw_log(IW_LOG_WARN, "datagram dropped: ANYWARP_TLS=require: there is no TLS for datagrams");
    return !clear && iw_cm_access_hear(&way->local, &way->peer);
}

static void drop(struct iw_sidr *r);

static void take_request(struct iw_sidr *s, const struct sidr *said, const struct iw_udp_way *way)
{
    lock_get(&s->lock);
    bool known = s->state == LISTENS && asked_again_locked(s, said->id, way);
    lock_put(&s->lock);
    if (known || said->reply || said->ps != s->ps || !may_ask(way))
        return;
    struct iw_sidr *r = enter(s, said, way);
    if (!r)
        return;
    struct iw_cm_event event = {
        .type = IW_CM_CONNECT_REQUEST,
        .private_data = said->data_len ? said->data : NULL,
        .private_data_len = said->data_len,
        .ib = said->ib,
        .datagrams = r,
    };
    if (s->handler(s->owner, &event))
        drop(r);
}

static bool ready(struct iw_source *source, uint32_t events)
{
    struct iw_sidr *s = container_of(source, struct iw_sidr, source);
    struct iw_udp_way way;
    uint8_t bytes[SIDR_BYTES];
    struct sidr said;
    if (!events)
        return false;
    for (int i = 0; i < TAKEN_A_PASS; i++) {
        long n = iw_udp_recv(s->fd, bytes, sizeof(bytes), &way);
        if (n == -EAGAIN)
            break;
        if (n < 0 && !s->answers)
            failed(s, n);
        if (n < 0 || !sidr_decode(bytes, (size_t)n, &said))
            continue;
        if (s->answers)
            take_request(s, &said, &way);
        else
            take_answer(s, &said);
    }
    return false;
}

int iw_sidr_listen(struct iw_sidr *s)
{
    struct answer *answers = calloc(IW_SIDR_ANSWERS, sizeof(*answers));
    if (!answers)
        return -ENOMEM;
    lock_get(&s->lock);
    bool may = s->state == BOUND;
    if (may) {
        s->answers = answers;
        s->state = LISTENS;
    }
    lock_put(&s->lock);
    if (may)
        return -iw_source_add(&s->source, s->fd, EPOLLIN, ready);
    free(answers);
    return -EINVAL;
}

/* ---- calls of the program ---- */

static int fill(struct sidr *to, const void *private_data, size_t len, size_t max)
{
    if (len > max)
        return -EINVAL;
    to->data_len = (uint8_t)len;
    if (len)
        memcpy(to->data, private_data, len);
    return 0;
}

static int draw(uint64_t *id)
{
    uint32_t high, low;
    if (iw_random32(&high) || iw_random32(&low))
        return -EIO;
    *id = (uint64_t)high << 32 | low;
    return 0;
}

/** Whom the socket may ask, which is connected to it then. */
static int connect_locked(struct iw_sidr *s, const struct sockaddr *dst)
{
    const char *call = "rdma_connect";
    int r = iw_cm_access_to(call, dst, false);
    if (!r)
        r = (int)sys_connect(s->fd, dst, addr_len(dst));
    if (!r && iw_conf()->tls == IW_TLS_REQUIRE && !iw_cm_same_host(s->fd) &&
        !iw_cm_in_the_clear(call))
        r = -EACCES;
    return r;
}

static int begin_locked(struct iw_sidr *s, const struct sockaddr *dst,
                        const struct iw_sidr_param *param)
{
    struct sidr said = {.ib = param->ib, .ps = s->ps};
    if (s->state != BOUND || !addr_len(dst))
        return -EINVAL;
    int r = fill(&said, param->private_data, param->private_data_len, SIDR_REQUEST_DATA);
    if (!r)
        r = draw(&s->id);
    if (!r)
        r = connect_locked(s, dst);
    if (r)
        return r;
    said.id = s->id;
    sidr_encode(s->asked, &said);
    memcpy(&s->peer, dst, addr_len(dst));
    s->left_ms = iw_conf()->connect_ms;
    s->wait_ms = shortest(FIRST_MS, s->left_ms);
    s->state = ASKS;
    return 0;
}

int iw_sidr_ask(struct iw_sidr *s, const struct sockaddr *dst, const struct iw_sidr_param *param)
{
    lock_get(&s->lock);
    int r = begin_locked(s, dst, param);
    lock_put(&s->lock);
    if (!r && (r = -iw_source_add(&s->source, s->fd, EPOLLIN, ready)))
        s->state = BOUND;
    if (!r)
        ask(s);
    return r;
}

/**
 * Takes a Request off its listener, which is the caller's to put().
 * @param bytes  the answer; NULL: there is none
 * @return NULL: it is decided already
 */
static struct iw_sidr *decide(struct iw_sidr *r, const uint8_t *bytes, int *sent)
{
    lock_get(&r->lock);
    struct iw_sidr *s = r->state == UNDECIDED ? r->listener : NULL;
    if (s)
        r->state = OVER;
    r->listener = NULL;
    lock_put(&r->lock);
    if (!s)
        return NULL;
    lock_get(&s->lock);
    list_del(&r->link);
    s->nundecided--;
    if (bytes && s->fd >= 0) {
        struct answer *a = &s->answers[s->next_answer++ % IW_SIDR_ANSWERS];
        *a = (struct answer){.way = r->way, .id = r->id};
        memcpy(a->bytes, bytes, sizeof(a->bytes));
        *sent = iw_udp_send(s->fd, bytes, sizeof(a->bytes), &r->way);
    }
    lock_put(&s->lock);
    return s;
}

static int answer(struct iw_sidr *r, const struct sidr *said)
{
    uint8_t bytes[SIDR_BYTES];
    int sent = 0;
    sidr_encode(bytes, said);
    struct iw_sidr *listener = decide(r, bytes, &sent);
    if (!listener)
        return -EINVAL;
    put(listener);
    return sent == -EAGAIN || sent == -ENOBUFS ? 0 : sent; /* it is asked again */
}

int iw_sidr_accept(struct iw_sidr *r, const struct iw_sidr_param *param)
{
    struct sidr said = {
        .reply = true, .ps = r->ps, .id = r->id, .qpn = param->qpn, .qkey = param->qkey};
    int err = fill(&said, param->private_data, param->private_data_len, SIDR_REPLY_DATA);
    return err ? err : answer(r, &said);
}

int iw_sidr_reject(struct iw_sidr *r, const void *private_data, uint8_t len)
{
    struct sidr said = {.reply = true, .ps = r->ps, .id = r->id, .status = SIDR_REJECT};
    int err = fill(&said, private_data, len, SIDR_REPLY_DATA);
    return err ? err : answer(r, &said);
}

/** As if it had never come: it may be asked again. */
static void drop(struct iw_sidr *r)
{
    struct iw_sidr *listener = decide(r, NULL, NULL);
    if (listener)
        put(listener);
    put(r);
}

void iw_sidr_destroy(struct iw_sidr *s)
{
    iw_sidr_reject(s, NULL, 0); /* harmless for others than a Request */
    lock_get(&s->lock);
    s->state = OVER;
    lock_put(&s->lock);
    iw_source_del(&s->source);
    iw_timer_cancel(&s->timer);
    put(s);
}

void iw_sidr_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        list_for_each (l, &endpoints.locks) {
            struct iw_sidr *s =
                container_of(container_of(l, struct lock, link), struct iw_sidr, lock);
            iw_source_del(&s->source);
            iw_timer_cancel(&s->timer);
            iw_fd_leave_socket(s->fd);
            s->fd = -1;
        }
    lock_class_fork(&endpoints, step);
}
