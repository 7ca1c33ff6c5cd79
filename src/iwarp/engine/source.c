/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of sources. Epoll data carries {slot, generation}, never a pointer: an event that is
 * older than the removal of its source finds another generation and is dropped.
 */
#include "engine/source.h"
#include "engine/poller.h"

#include "common/patience.h"
#include "common/sys.h"
#include "engine/engine.h"
#include "engine/presence.h"
#include "engine/timer.h"
#include "env/fd.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define INPUT       (EPOLLIN | EPOLLRDHUP)
#define CHUNK_SLOTS 1024
#define CHUNKS      1024
#define WAIT_NS     100000000

/*
 * Generation << 32 | WAITED | pins. A pin is one ready() that runs; it is only taken in the
 * generation that the event names, and a source is only removed under the next one.
 */
#define PIN        1u
#define PINS       0x7fffffffu
#define WAITED     0x80000000u /* the next to unpin wakes */
#define GENERATION (1ull << 32)

struct slot {
    _Atomic uint64_t word;
    struct iw_source *source; /* constant while pinned; NULL: free */
    bool out;                 /* of the epoll set, while somebody has adopted it; under lock */
    struct iw_shard *_Atomic shard; /* whose epoll set it is; changed under lock */
    bool once;                      /* epoll tells of it once (EPOLLET); as added */
    bool quiet;                     /* iw_source_quiet(); under lock */
    uint64_t linked;                /* what it counts for in shard->linked; under lock */
    struct lock lock;               /* changes of source, and waiting for pins */
    struct lock_cond idle;          /* pins went down */
    ino_t file;                     /* in a child of fork(): what its descriptor was then */
    uint32_t next_free;
};

static struct {
    struct lock lock;
    struct slot *_Atomic chunk[CHUNKS];
    uint32_t used; /* slots ever handed out; slot 0 is never used */
    uint32_t free; /* head of the free list, 0: empty */
} table = {.lock = LOCK(LOCK_SOURCES), .used = 1};

/** The sources whose ready() this thread is inside of, innermost first. */
struct running {
    struct running *outer;
    uint32_t slot;
};
static __thread struct running *running;

static struct slot *slot_at(uint32_t i)
{
    return atomic_load_explicit(&table.chunk[i / CHUNK_SLOTS], memory_order_acquire) +
           i % CHUNK_SLOTS;
}

#define MORE (1u << 31) /* beside a QP number, which has 24 bits */

static struct {
    /* Where the engine's thread is: a count of what it took, then MORE if there is more of that,
     * and the QP; 0 in this half: nowhere. */
    _Alignas(64) _Atomic uint64_t at;
    uint32_t count, more; /* only its thread knows these two, and the next */
    bool takes;           /* it is between begin and end: what it runs counts as one */
    atomic_uint once;     /* sources that epoll tells of once (EPOLLET) */
} engine;

static atomic_uint turns;

unsigned iw_source_turns(void)
{
    return atomic_load(&turns);
}

static struct iw_shard *shard_of(const struct slot *slot)
{
    return atomic_load_explicit(&slot->shard, memory_order_relaxed);
}

/** The epoll set of a source, which changes under the slot's lock. */
static int set_of(const struct slot *slot)
{
    return shard_of(slot)->sockets;
}

static uint32_t own_pins(uint32_t slot)
{
    uint32_t n = 0;
    for (struct running *r = running; r; r = r->outer)
        n += r->slot == slot;
    return n;
}

static bool chunk_ensure_locked(uint32_t i)
{
    if (i / CHUNK_SLOTS >= CHUNKS)
        return false;
    assert_held(&table.lock);
    if (atomic_load_explicit(&table.chunk[i / CHUNK_SLOTS], memory_order_relaxed))
        return true;
    struct slot *c = calloc(CHUNK_SLOTS, sizeof(*c));
    if (!c)
        return false;
    for (int k = 0; k < CHUNK_SLOTS; k++)
        lock_init(&c[k].lock, LOCK_SOURCE);
    atomic_store_explicit(&table.chunk[i / CHUNK_SLOTS], c, memory_order_release);
    return true;
}

static uint32_t slot_take(void)
{
    uint32_t i = 0;
    lock_get(&table.lock);
    if (table.free) {
        i = table.free;
        table.free = slot_at(i)->next_free;
    } else if (chunk_ensure_locked(table.used)) {
        i = table.used++;
    }
    lock_put(&table.lock);
    return i;
}

static void slot_give(uint32_t i)
{
    lock_get(&table.lock);
    slot_at(i)->next_free = table.free;
    table.free = i;
    lock_put(&table.lock);
}

static struct epoll_event slot_event(uint32_t i, uint32_t events)
{
    return (struct epoll_event){
        .events = events,
        .data.u64 = (atomic_load(&slot_at(i)->word) & ~(GENERATION - 1)) | i,
    };
}

static void count_link_locked(struct slot *slot)
{
    uint32_t qp_num = __atomic_load_n(&slot->source->qp_num, __ATOMIC_SEQ_CST);
    assert_held(&slot->lock);
    if (!qp_num || slot->quiet)
        return;
    slot->linked = IW_LINKED(qp_num);
    atomic_fetch_add(&shard_of(slot)->linked, slot->linked);
}

static void uncount_link_locked(struct slot *slot)
{
    assert_held(&slot->lock);
    atomic_fetch_sub(&shard_of(slot)->linked, slot->linked);
    slot->linked = 0;
}

void iw_source_link(struct iw_source *s, uint32_t qp_num)
{
    __atomic_store_n(&s->qp_num, qp_num, __ATOMIC_SEQ_CST);
    uint32_t i = __atomic_load_n(&s->slot, __ATOMIC_SEQ_CST);
    if (!i)
        return;
    struct slot *slot = slot_at(i);
    lock_get(&slot->lock);
    if (slot->source == s) {
        uncount_link_locked(slot);
        count_link_locked(slot);
    }
    lock_put(&slot->lock);
}

int iw_source_add(struct iw_source *s, int fd, uint32_t events,
                  bool (*ready)(struct iw_source *, uint32_t))
{
    int r = iw_engine_start();
    if (r)
        return r;
    uint32_t i = slot_take();
    if (!i)
        return ENOSPC;
    struct slot *slot = slot_at(i);
    s->fd = fd;
    __atomic_store_n(&s->events, events, __ATOMIC_RELAXED);
    s->ready = ready;
    __atomic_store_n(&s->slot, i, __ATOMIC_SEQ_CST);
    lock_get(&slot->lock);
    slot->source = s;
    slot->quiet = false;
    atomic_store_explicit(&slot->shard, &iw_shards[0], memory_order_relaxed);
    count_link_locked(slot);
    slot->once = events & EPOLLET;
    atomic_fetch_add(&engine.once, slot->once);
    atomic_fetch_add(&slot->word, GENERATION); /* publishes it to whoever pins */
    struct epoll_event ev = slot_event(i, events);
    lock_put(&slot->lock);
    r = sys_epoll_ctl(iw_shards[0].sockets, EPOLL_CTL_ADD, fd, &ev);
    if (r < 0) {
        lock_get(&slot->lock);
        slot->source = NULL;
        uncount_link_locked(slot);
        atomic_fetch_sub(&engine.once, slot->once);
        atomic_fetch_add(&slot->word, GENERATION);
        lock_put(&slot->lock);
        __atomic_store_n(&s->slot, 0, __ATOMIC_RELEASE);
        slot_give(i);
    }
    return -r;
}

void iw_source_want(struct iw_source *s, uint32_t events)
{
    uint32_t i = __atomic_load_n(&s->slot, __ATOMIC_ACQUIRE);
    /* Changed by the same owner, under a lock of its own. */
    if (!i || __atomic_load_n(&s->events, __ATOMIC_RELAXED) == events)
        return;
    struct slot *slot = slot_at(i);
    lock_get(&slot->lock);
    bool has = slot->source == s, out = slot->out;
    if (has) {
        __atomic_store_n(&s->events, events, __ATOMIC_RELAXED);
        struct epoll_event ev = slot_event(i, events);
        if (!out)
            sys_epoll_ctl(set_of(slot), EPOLL_CTL_MOD, s->fd, &ev);
    }
    lock_put(&slot->lock);
    if (has && out)
        iw_adopted_put_back(NULL);
}

void iw_source_move(struct iw_source *s, const struct iw_home *home)
{
    struct iw_shard *to = iw_home_shard(home);
    uint32_t i = __atomic_load_n(&s->slot, __ATOMIC_ACQUIRE);
    if (!i || shard_of(slot_at(i)) == to)
        return;
    struct slot *slot = slot_at(i);
    lock_get(&slot->lock);
    if (slot->source == s && !slot->out && set_of(slot) != to->sockets) {
        struct epoll_event ev = slot_event(i, s->events);
        /* First in, then out: it is always in one. In both, it is run twice at most. */
        if (sys_epoll_ctl(to->sockets, EPOLL_CTL_ADD, s->fd, &ev) == 0) {
            sys_epoll_ctl(set_of(slot), EPOLL_CTL_DEL, s->fd, &(struct epoll_event){0});
            atomic_fetch_add(&to->linked, slot->linked);
            atomic_fetch_add(&turns, 1);
            atomic_fetch_sub(&shard_of(slot)->linked, slot->linked);
            atomic_store_explicit(&slot->shard, to, memory_order_relaxed);
        }
    }
    lock_put(&slot->lock);
}

static bool has_locked(const struct slot *slot, uint64_t key)
{
    assert_held(&slot->lock);
    return slot->source && (uint32_t)(atomic_load(&slot->word) >> 32) == (uint32_t)(key >> 32);
}

void iw_source_quiet(uint64_t key)
{
    struct slot *slot = slot_at((uint32_t)key);
    lock_get(&slot->lock);
    if (has_locked(slot, key) && !slot->quiet) {
        slot->quiet = true;
        atomic_fetch_add(&turns, 1);
        uncount_link_locked(slot);
    }
    lock_put(&slot->lock);
}

void iw_source_loud(uint64_t key)
{
    struct slot *slot = slot_at((uint32_t)key);
    lock_get(&slot->lock);
    if (has_locked(slot, key) && slot->quiet) {
        slot->quiet = false;
        count_link_locked(slot);
    }
    lock_put(&slot->lock);
}

bool iw_source_take_out(uint64_t key)
{
    struct slot *slot = slot_at((uint32_t)key);
    lock_get(&slot->lock);
    bool can = has_locked(slot, key) && slot->source->events == INPUT;
    if (can) {
        sys_epoll_ctl(set_of(slot), EPOLL_CTL_DEL, slot->source->fd, &(struct epoll_event){0});
        slot->out = true;
    }
    lock_put(&slot->lock);
    return can;
}

static int put_in_locked(struct slot *slot, uint32_t i)
{
    assert_held(&slot->lock);
    struct epoll_event ev = slot_event(i, slot->source->events);
    int r = (int)-sys_epoll_ctl(set_of(slot), EPOLL_CTL_ADD, slot->source->fd, &ev);
    slot->out = r != 0;
    return r;
}

bool iw_source_put_back(uint64_t key)
{
    struct slot *slot = slot_at((uint32_t)key);
    lock_get(&slot->lock);
    bool out = has_locked(slot, key) && slot->out && put_in_locked(slot, (uint32_t)key);
    lock_put(&slot->lock);
    return !out;
}

static void wait_unpinned(struct slot *slot, uint32_t i)
{
    assert_held(&slot->lock);
    uint32_t own = own_pins(i);
    while ((atomic_fetch_or(&slot->word, WAITED) & PINS) > own)
        lock_wait(&slot->lock, &slot->idle);
}

void iw_source_del(struct iw_source *s)
{
    uint32_t i = __atomic_exchange_n(&s->slot, 0, __ATOMIC_ACQ_REL);
    if (!i)
        return;
    struct slot *slot = slot_at(i);
    lock_get(&slot->lock);
    if (slot->out)
        iw_adopted_gone(slot_event(i, 0).data.u64);
    else
        sys_epoll_ctl(set_of(slot), EPOLL_CTL_DEL, s->fd, &(struct epoll_event){0});
    slot->out = false;
    uncount_link_locked(slot);
    atomic_fetch_sub(&engine.once, slot->once);
    atomic_fetch_add(&slot->word, GENERATION);
    wait_unpinned(slot, i);
    slot->source = NULL;
    lock_put(&slot->lock);
    slot_give(i);
}

void iw_source_wait(struct iw_source *s)
{
    uint32_t i = __atomic_load_n(&s->slot, __ATOMIC_ACQUIRE);
    if (!i)
        return;
    struct slot *slot = slot_at(i);
    lock_get(&slot->lock);
    if (slot->source == s)
        wait_unpinned(slot, i);
    lock_put(&slot->lock);
}

/** @return whether the slot still is of generation @p generation; then unpin() is due */
static bool pin(struct slot *slot, uint32_t generation)
{
    uint64_t w = atomic_load(&slot->word);
    do
        if ((uint32_t)(w >> 32) != generation)
            return false;
    while (!atomic_compare_exchange_weak(&slot->word, &w, w + PIN));
    return true;
}

static void unpin(struct slot *slot)
{
    if (!(atomic_fetch_sub(&slot->word, PIN) & WAITED))
        return;
    lock_get(&slot->lock);
    atomic_fetch_and(&slot->word, ~(uint64_t)WAITED); /* who waits on sets it again */
    lock_wake_all(&slot->idle);
    lock_put(&slot->lock);
}

/**
 * The engine's thread is at the source of QP @p qp_num, 0: at none. Who looks finds a socket empty
 * that the engine's thread has read, and then where that is: the kernel's locks at the socket are
 * between the two, on both sides. So with what epoll tells once, and the locks of its set.
 */
static void engine_at(uint32_t qp_num)
{
    if (!engine.takes)
        engine.count++;
    atomic_store(&engine.at, (uint64_t)engine.count << 32 | engine.more | qp_num);
}

void iw_source_take_begin(void)
{
    if (!iw_engine_is_thread() || !atomic_load_explicit(&engine.once, memory_order_relaxed))
        return;
    engine.more = MORE;
    engine_at(0);
    engine.takes = true;
}

void iw_source_take_last(void)
{
    if (iw_engine_is_thread())
        engine.more = 0;
}

void iw_source_take_end(void)
{
    if (!iw_engine_is_thread() || !engine.takes)
        return;
    engine.takes = false;
    engine.more = 0;
    engine_at(0);
}

/** Whether one at QP @p qp_num has to wait for what is at @p at. */
static bool is_before(uint64_t at, uint32_t qp_num)
{
    return (uint32_t)at && (uint32_t)at != qp_num;
}

/** What one may have to wait for: where the engine's thread was, and that no source begins. */
struct obstacle {
    uint64_t at;
    uint32_t qp_num;
    bool frozen;
};

static bool is_in_the_way(const struct obstacle *o)
{
    uint64_t at = atomic_load(&engine.at);
    return (at >> 32 == o->at >> 32 && is_before(at, o->qp_num)) ||
           (o->frozen && iw_engine_frozen());
}

bool iw_source_wait_engine(uint32_t qp_num)
{
    struct obstacle o = {
        .at = atomic_load(&engine.at), .qp_num = qp_num, .frozen = iw_engine_frozen()};
    if (!o.frozen && !is_before(o.at, qp_num))
        return false;
    uint64_t end = iw_now() + WAIT_NS;
    for (unsigned turn = 0; is_in_the_way(&o) && iw_now() < end; turn++)
        patience(turn);
    return true;
}

/** Runs the source of a slot that is pinned. @return as iw_source_run() */
static bool run(struct slot *slot, uint32_t i, uint32_t events, uint32_t but)
{
    /* Set before the QP uses a byte; until then nothing can be in order behind it. */
    uint32_t qp_num = __atomic_load_n(&slot->source->qp_num, __ATOMIC_RELAXED);
    bool told_once = events && slot->once;
    bool left = but && qp_num == but && !told_once, is_engine = iw_engine_is_thread();
    if (left || iw_engine_frozen()) /* it will be told of again */
        return false;
    struct running here = {.outer = running, .slot = i};
    running = &here;
    if (is_engine)
        engine_at(qp_num);
    bool moved = slot->source->ready(slot->source, events);
    if (is_engine)
        engine_at(0);
    running = here.outer;
    return moved;
}

static bool never(const struct iw_source *s)
{
    (void)s;
    return false;
}

static bool is_idle(const struct iw_source *s)
{
    return s->idle && s->idle(s);
}

static bool is_settled(const struct iw_source *s)
{
    return s->settled && s->settled(s);
}

/** As iw_source_run(), where @p needless does not say that there is no need. */
static inline bool run_unless(bool (*needless)(const struct iw_source *), uint64_t key,
                              uint32_t events, uint32_t but)
{
    uint32_t i = (uint32_t)key;
    if (!i || !pin(slot_at(i), (uint32_t)(key >> 32)))
        return false;
    bool moved = !needless(slot_at(i)->source) && run(slot_at(i), i, events, but);
    unpin(slot_at(i));
    return moved;
}

bool iw_source_run(uint64_t key, uint32_t events, uint32_t but)
{
    return run_unless(never, key, events, but);
}

bool iw_source_poll(uint64_t key)
{
    return run_unless(is_idle, key, 0, 0);
}

bool iw_source_look(uint64_t key, uint32_t but)
{
    return run_unless(is_settled, key, 0, but);
}

bool iw_source_is_of(uint64_t key, uint32_t qp_num)
{
    struct slot *slot = slot_at((uint32_t)key);
    if (!pin(slot, (uint32_t)(key >> 32)))
        return false;
    bool is = __atomic_load_n(&slot->source->qp_num, __ATOMIC_RELAXED) == qp_num;
    unpin(slot);
    return is;
}

struct iw_shard *iw_source_place(const struct iw_source *s, uint64_t *key)
{
    uint32_t i = __atomic_load_n(&s->slot, __ATOMIC_ACQUIRE);
    if (!i)
        return NULL;
    *key = slot_event(i, 0).data.u64;
    return shard_of(slot_at(i));
}

void iw_source_rest(uint64_t key)
{
    struct slot *slot = slot_at((uint32_t)key);
    if (!pin(slot, (uint32_t)(key >> 32)))
        return;
    slot->source->rest(slot->source);
    unpin(slot);
}

/* ---- fork ---- */

void iw_sources_wait(void)
{
    atomic_fetch_add(&turns, 1);
    lock_get(&table.lock);
    uint32_t used = table.used;
    lock_put(&table.lock);
    for (uint32_t i = 1; i < used; i++) {
        struct slot *slot = slot_at(i);
        lock_get(&slot->lock);
        wait_unpinned(slot, i);
        lock_put(&slot->lock);
    }
}

void iw_sources_again(void)
{
    lock_get(&table.lock);
    uint32_t used = table.used;
    lock_put(&table.lock);
    for (uint32_t i = 1; i < used; i++) {
        struct slot *slot = slot_at(i);
        lock_get(&slot->lock);
        if (slot->source && !slot->out && slot->once) {
            struct epoll_event ev = slot_event(i, slot->source->events);
            sys_epoll_ctl(set_of(slot), EPOLL_CTL_MOD, slot->source->fd, &ev);
        }
        lock_put(&slot->lock);
    }
}

void iw_sources_inherited(void)
{
    for (uint32_t i = 1; i < table.used; i++) {
        struct slot *slot = slot_at(i);
        slot->file = slot->source ? iw_fd_file(slot->source->fd) : 0;
    }
}

int iw_sources_restore(void)
{
    int r = 0;
    lock_get(&table.lock);
    for (uint32_t i = 1; i < table.used && !r; i++) {
        struct slot *slot = slot_at(i);
        lock_get(&slot->lock);
        if (slot->source && slot->file && slot->file == iw_fd_file(slot->source->fd))
            r = put_in_locked(slot, i);
        else if (slot->source)
            slot->out = true;
        lock_put(&slot->lock);
    }
    lock_put(&table.lock);
    return r;
}

void iw_source_fork(enum fork_step step)
{
    /* Slots are whole at any time, but for a source that is just being removed: there is no need to
     * stop those who are at one. */
    for (uint32_t i = 1; step == FORK_CHILD && i < table.used; i++) {
        struct slot *slot = slot_at(i);
        if (slot->source && __atomic_load_n(&slot->source->slot, __ATOMIC_RELAXED) != i)
            slot->source = NULL;
        lock_init(&slot->lock, LOCK_SOURCE);
        slot->idle = (struct lock_cond){0};
        atomic_fetch_and(&slot->word, ~(uint64_t)(WAITED | PINS));
    }
    if (step == FORK_CHILD) {
        engine.takes = false;
        engine.more = 0;
        engine_at(0);
    }
    lock_fork(&table.lock, step);
}
