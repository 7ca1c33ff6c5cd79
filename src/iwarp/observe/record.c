/* SPDX-License-Identifier: BSD-2-Clause */
#include "observe/record.h"

#include "common/sys.h"
#include "env/log.h"
#include "observe/own_file.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static struct {
    struct lock lock;
    atomic_bool tried;
    struct record_page *_Atomic page;
    struct iw_own_file file;
} record = {.lock = LOCK(LOCK_RECORD), .file.fd = -1};

static const uint8_t rings[RECORD_WHATS] = {
#define X(name, ring, call, arguments) [RECORD_##name] = RECORD_##ring,
    RECORD_LIST(X)
#undef X
};

static __thread uint32_t thread;         /* its number, 0: not asked for yet */
static __thread const void *found_empty; /* a CQ; nothing else was recorded since */

static uint64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t iw_record_now(void)
{
    return now(CLOCK_MONOTONIC);
}

/* ---- the file ---- */

static void describe(struct record_head *h)
{
    memcpy(h->magic, RECORD_MAGIC, sizeof(h->magic));
    h->version = RECORD_VERSION;
    h->pid = (uint32_t)getpid();
    h->monotonic = iw_record_now();
    h->realtime = now(CLOCK_REALTIME);
    snprintf(h->release, sizeof(h->release), "%s", PACKAGE_VERSION);
    snprintf(h->command, sizeof(h->command), "%s", program_invocation_short_name);
}

/** Writes every byte: a page that the disk has no room for would end the program later. */
static const char *fill(int fd)
{
    static const uint8_t zeros[16384];
    if (iw_own_file_limit(sizeof(struct record_page)) < sizeof(struct record_page))
        return strerror(EFBIG);
    for (size_t done = 0; done < sizeof(struct record_page);) {
        size_t left = sizeof(struct record_page) - done;
        long n = sys_write(fd, zeros, left < sizeof(zeros) ? left : sizeof(zeros));
        if (n <= 0)
            return strerror(n ? (int)-n : EIO);
        done += (size_t)n;
    }
    return NULL;
}

/** @return NULL, or why not */
static const char *open_locked(void)
{
    assert_held(&record.lock);
    const char *why = iw_own_file_open(&record.file, iw_conf()->record);
    if (!why)
        why = fill(record.file.fd);
    if (why)
        return why;
    struct record_page *page =
        mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, record.file.fd, 0);
    if (page == MAP_FAILED)
        return strerror(errno);
    describe(&page->head);
    atomic_store_explicit(&record.page, page, memory_order_release);
    return NULL;
}

static void open_once(void)
{
    int state, saved = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    lock_get_leaf(&record.lock);
    if (!atomic_load(&record.tried) && iw_record_on() && !getauxval(AT_SECURE)) {
        const char *why = open_locked();
        if (why) {
            iw_log(IW_LOG_ASKED, "%s: %s: nothing is recorded", record.file.path, why);
            iw_own_file_close(&record.file);
        }
    }
    atomic_store(&record.tried, true);
    lock_put(&record.lock);
    pthread_setcancelstate(state, &state);
    errno = saved;
}

struct record_page *iw_record_page(void)
{
    struct record_page *page = atomic_load_explicit(&record.page, memory_order_acquire);
    if (page || atomic_load(&record.tried))
        return page;
    open_once();
    return atomic_load_explicit(&record.page, memory_order_acquire);
}

bool iw_record_is(const struct record_page *page)
{
    return page == atomic_load_explicit(&record.page, memory_order_acquire);
}

/* In a child: the thread has another number there, and may be in the middle of an event, if it
 * forks in a signal handler: there stays memory, which is nobody's record. */
static void leave(void)
{
    struct record_page *page = atomic_load(&record.page);
    thread = 0;
    found_empty = NULL;
    if (page && mmap(page, sizeof(*page), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        abort(); /* or it would write into its parent's */
    iw_own_file_close(&record.file);
    atomic_store(&record.page, NULL);
    if (atomic_load(&record.tried)) /* else the child may be the first to open it */
        atomic_store(&record.tried, !strstr(iw_conf()->record, "%p"));
}

void iw_record_fork(enum fork_step step)
{
    if (step == FORK_CHILD)
        leave();
    lock_fork(&record.lock, step);
}

/** At exit(), which may be called by a signal handler: no lock. */
static void __attribute__((destructor)) tell_exit(void)
{
    struct record_page *page = atomic_load(&record.page);
    if (page)
        __atomic_store_n(&page->head.exited, 1, __ATOMIC_RELAXED);
}

/* ---- events ---- */

/**
 * Takes the place of the next event. Who was interrupted in the middle of an event has its place
 * until he is done: what falls there meanwhile is lost.
 */
static struct iw_recorded claim(struct record_page *page, enum record_ring_of ring, uint64_t ns)
{
    struct record_ring *r = &page->ring[ring];
    uint64_t n = __atomic_fetch_add(&r->next, 1, __ATOMIC_RELAXED), seq = 2 * n + 2;
    struct record_event *e = &page->events[ring][n % RECORD_EVENTS];
    uint64_t old = __atomic_load_n(&e->seq, __ATOMIC_RELAXED);
    /* Acquire, with the release of commit(): nothing of this event stands before the last one. */
    if (old % 2 || old >= seq ||
        !__atomic_compare_exchange_n(&e->seq, &old, seq - 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        __atomic_fetch_add(&r->lost, 1, __ATOMIC_RELAXED);
        return (struct iw_recorded){NULL, 0};
    }
    if (!thread)
        thread = (uint32_t)syscall(SYS_gettid);
    found_empty = NULL;
    e->ns = ns;
    e->thread = thread;
    return (struct iw_recorded){e, seq};
}

static void commit(struct iw_recorded r)
{
    __atomic_store_n(&r.event->seq, r.seq, __ATOMIC_RELEASE);
}

struct iw_recorded iw_record_put(enum record_what what, bool open, const uint64_t *arg,
                                 const char *text)
{
    struct record_page *page = iw_record_page();
    struct iw_recorded r = {NULL, 0};
    if (page)
        r = claim(page, rings[what], iw_record_now());
    if (!r.event)
        return r;
    r.event->what = (uint16_t)what;
    r.event->flags = open ? RECORD_OPEN : 0;
    r.event->result = 0;
    memcpy(r.event->arg, arg, sizeof(r.event->arg));
    memset(r.event->text, 0, sizeof(r.event->text));
    if (text)
        memcpy(r.event->text, text, strnlen(text, sizeof(r.event->text)));
    commit(r);
    return r;
}

void iw_record_finish(struct iw_recorded r, int result, const uint64_t *first)
{
    uint64_t seq = r.seq;
    if (!r.event || !__atomic_compare_exchange_n(&r.event->seq, &seq, r.seq - 1, false,
                                                 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    r.event->flags &= (uint16_t)~RECORD_OPEN;
    r.event->result = result;
    if (first)
        r.event->arg[0] = *first;
    commit(r);
}

void iw_record_empty(const void *cq)
{
    if (found_empty == cq)
        return;
    iw_record_put(RECORD_POLL_EMPTY, false, IW_RECORD_ARG((uintptr_t)cq), NULL);
    found_empty = cq;
}

/* ---- the wire ---- */

void iw_record_frame(struct record_page *page, uint64_t ns, unsigned flags,
                     const struct record_frame *frame, const uint8_t *bytes, size_t kept)
{
    struct iw_recorded r = claim(page, RECORD_WIRE, ns);
    if (!r.event)
        return;
    r.event->what = RECORD_FRAME;
    r.event->flags = (uint16_t)flags;
    r.event->result = 0;
    r.event->frame = *frame;
    if (kept)
        memcpy(r.event->frame.bytes, bytes, kept);
    commit(r);
}

struct record_conn *iw_record_conn_new(struct record_page *page, const struct record_conn *conn)
{
    struct record_conn *best = NULL;
    lock_get_leaf(&record.lock);
    for (struct record_conn *c = page->conn; c < page->conn + RECORD_CONNS; c++) {
        uint64_t ended = __atomic_load_n(&c->ended, __ATOMIC_RELAXED);
        if ((!c->id || ended) && (!best || ended < best->ended))
            best = c;
    }
    if (best) {
        uint32_t id = ++page->head.conns;
        *best = *conn;
        best->ended = 0;
        best->began = iw_record_now();
        __atomic_store_n(&best->id, id, __ATOMIC_RELEASE);
    }
    lock_put(&record.lock);
    return best;
}
