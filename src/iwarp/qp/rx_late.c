/* SPDX-License-Identifier: BSD-2-Clause */
#include "qp/rx_late.h"

#include "engine/timer.h"
#include "faults/chaos.h"
#include "qp/rx_scatter.h"
#include "qp/rx_stream.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORD      8u /* bytes that land together */
#define WORDS_MAX 32 /* of a piece */
#define PIECES    64 /* of a segment, about */
#define BYTES_MAX (1u << 20)
#define TICK_US   400
/* So many Writes of a QP land more slowly: somebody sees pieces on a busy machine, too. */
#define SLOW      16
#define SLOW_US   2000
#define PART      4 /* of what is there lands with each tick */

struct piece {
    struct piece *next;
    uint32_t stag, len;
    uint64_t to;
    uint8_t bytes[];
};

struct iw_late {
    struct iw_timer timer;
    struct iw_qp *qp;
    struct piece *first;
    unsigned n;
    size_t bytes;
    uint64_t writes; /* so far */
    uint64_t hit;    /* of the one that comes in; 0: it lands as it comes */
    bool open;       /* one comes in */
    uint64_t chance;
};

static atomic_uint pending; /* QPs that have pieces */

void iw_late_init(struct iw_qp *qp)
{
    qp->rx.late = calloc(1, sizeof(*qp->rx.late));
    if (qp->rx.late)
        qp->rx.late->qp = qp;
}

bool iw_late_has(const struct iw_qp *qp)
{
    return qp->rx.late->n;
}

static unsigned tick_us(const struct iw_late *l)
{
    return l->writes <= SLOW ? SLOW_US : TICK_US;
}

static struct piece *take(struct iw_late *l, struct piece **at)
{
    struct piece *p = *at;
    *at = p->next;
    l->bytes -= p->len;
    if (!--l->n)
        atomic_fetch_sub(&pending, 1);
    return p;
}

static void place(struct iw_late *l, uint32_t stag, uint64_t to, const uint8_t *bytes, uint32_t len)
{
    uint8_t *p;
    iw_copy_begin(l->qp->pd);
    if (!iw_region_check(stag, &l->qp->accessor, IW_USE_WRITE, to, len, &p))
        iw_place(p, bytes, len);
    iw_copy_end();
}

static void land(struct iw_late *l, struct piece **at)
{
    struct piece *p = take(l, at);
    place(l, p->stag, p->to, p->bytes, p->len);
    free(p);
}

/** One, whichever; of every other Write that which came last, as programs look at the last byte. */
static void land_some(struct iw_late *l)
{
    if (l->hit >> 40 & 1) {
        land(l, &l->first);
        return;
    }
    l->chance = l->chance * 6364136223846793005u + 1442695040888963407u; /* Knuth's */
    unsigned skip = (unsigned)(l->chance >> 33) % l->n;
    struct piece **at = &l->first;
    while (skip--)
        at = &(*at)->next;
    land(l, at);
}

static void land_part(struct iw_late *l)
{
    for (unsigned i = (l->n + PART - 1) / PART; i; i--)
        land_some(l);
}

/** A lock is held: this must be no cancellation point. */
static void pause_for(unsigned us)
{
    struct timespec t = {.tv_nsec = us * 1000};
    int saved = errno;
    syscall(SYS_nanosleep, &t, NULL);
    errno = saved;
}

/* Whoever looks at the memory has the time to see some of it. */
void iw_late_land_now(struct iw_qp *qp)
{
    struct iw_late *l = qp->rx.late;
    while (l->n) {
        land_part(l);
        if (l->n)
            pause_for(tick_us(l));
    }
}

static void tick(struct iw_timer *t)
{
    struct iw_late *l = container_of(t, struct iw_late, timer);
    if (!lock_try(&l->qp->rx.lock)) {
        iw_timer_set_us(t, TICK_US, tick);
        return;
    }
    land_part(l);
    if (l->n)
        iw_timer_set_us(t, tick_us(l), tick);
    iw_rx_leave(l->qp);
}

void iw_late_fini(struct iw_qp *qp)
{
    struct iw_late *l = qp->rx.late;
    if (!l)
        return;
    iw_timer_cancel(&l->timer);
    while (l->n)
        free(take(l, &l->first));
    free(l);
    qp->rx.late = NULL;
}

/** Of two pieces for the same bytes the later one has to land later. */
static void land_below(struct iw_late *l, const struct ddp_seg *seg)
{
    for (struct piece **at = &l->first; *at;) {
        struct piece *p = *at;
        bool same = p->stag == seg->stag && p->to < seg->to + seg->len && seg->to < p->to + p->len;
        if (same)
            land(l, at);
        else
            at = &p->next;
    }
}

static void keep(struct iw_late *l, const struct ddp_seg *seg, uint32_t at, uint32_t len)
{
    struct piece *p = malloc(sizeof(*p) + len);
    if (!p) {
        place(l, seg->stag, seg->to + at, seg->payload + at, len);
        return;
    }
    *p = (struct piece){.next = l->first, .stag = seg->stag, .len = len, .to = seg->to + at};
    memcpy(p->bytes, seg->payload + at, len);
    l->first = p;
    l->bytes += len;
    if (!l->n++)
        atomic_fetch_add(&pending, 1);
}

/** Cuts it behind whole words of memory, where @p to is. */
static void keep_all(struct iw_late *l, const struct ddp_seg *seg, uintptr_t to)
{
    uint32_t words = 1 + (uint32_t)(l->hit >> 16) % WORDS_MAX, least = seg->len / PIECES / WORD + 1;
    uint32_t unit = (words > least ? words : least) * WORD;
    for (uint32_t at = 0, len; at < seg->len; at += len) {
        len = (uint32_t)(((to + at + unit) & ~(uintptr_t)(WORD - 1)) - (to + at));
        if (len > seg->len - at)
            len = seg->len - at;
        keep(l, seg, at, len);
    }
}

bool iw_late_begin(struct iw_qp *qp, const struct ddp_seg *seg)
{
    struct iw_late *l = qp->rx.late;
    assert_held(&qp->rx.lock);
    if (!l->open && seg->len) {
        l->hit = iw_chaos_hit_at(IW_FAULT_PLACEMENT, &qp->pub, ++l->writes);
        l->chance ^= l->hit;
    }
    l->open = !seg->last;
    land_below(l, seg);
    return l->hit && seg->len;
}

void iw_late_keep(struct iw_qp *qp, const struct ddp_seg *seg, const uint8_t *to)
{
    struct iw_late *l = qp->rx.late;
    assert_held(&qp->rx.lock);
    keep_all(l, seg, (uintptr_t)to);
    if (l->bytes > BYTES_MAX)
        iw_late_land(qp);
    else
        iw_timer_start_us(&l->timer, tick_us(l), tick);
}

static void visit(struct iw_qp *qp, void *arg)
{
    bool *busy = arg;
    if (!qp->rx.late)
        return;
    if (!lock_try(&qp->rx.lock)) {
        *busy = true;
        return;
    }
    while (qp->rx.late->n)
        land_some(qp->rx.late);
    lock_put(&qp->rx.lock);
}

void iw_late_land_all(void)
{
    for (bool busy = true; busy && atomic_load(&pending);) {
        busy = false;
        iw_qps_visit(visit, &busy);
        if (busy)
            sched_yield();
    }
}
