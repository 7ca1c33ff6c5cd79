/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice/life.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUCKETS 1024
#define REGION  "memory region"

struct life {
    struct life *next; /* of the bucket */
    const void *object;
    const char *kind;
    uint64_t number; /* among all */
    const struct iw_stack *made;
    pid_t by;
    bool over;
};

static struct {
    struct lock lock;
    uint64_t born, ended;
    unsigned regions; /* of memory, not destroyed */
    bool fork_safe;
    void *kept[IW_LIFE_KEPT]; /* objects that are over, a ring */
    struct life *bucket[BUCKETS];
} lives = {.lock = LOCK(LOCK_LIVES)};

static struct life **find_locked(const void *object)
{
    struct life **p = &lives.bucket[((uintptr_t)object >> 4) % BUCKETS];
    assert_held(&lives.lock);
    while (*p && (*p)->object != object)
        p = &(*p)->next;
    return p;
}

void iw_life_note(const void *object, const char *kind)
{
    const struct iw_stack *made = iw_stack_here();
    struct life *l = malloc(sizeof(*l));
    lock_get_leaf(&lives.lock);
    struct life **p = find_locked(object);
    if (*p) { /* made while nobody knew of its end */
        free(l);
        l = *p;
        *p = l->next;
    }
    if (l) {
        lives.regions += !strcmp(kind, REGION);
        *l = (struct life){NULL, object, kind, ++lives.born, made, getpid(), false};
        struct life **bucket = &lives.bucket[((uintptr_t)object >> 4) % BUCKETS];
        l->next = *bucket;
        *bucket = l;
    }
    lock_put(&lives.lock);
}

/** The oldest one that is over goes, @p object takes its place. @return what is to be freed */
static void *keep_locked(void *object)
{
    void **place = &lives.kept[lives.ended++ % IW_LIFE_KEPT], *oldest = *place;
    assert_held(&lives.lock);
    *place = object;
    struct life **p = oldest ? find_locked(oldest) : NULL;
    struct life *l = p ? *p : NULL;
    if (l) {
        *p = l->next;
        free(l);
    }
    return oldest;
}

void iw_life_end(void *object)
{
    if (iw_advice_on()) {
        lock_get_leaf(&lives.lock);
        struct life *l = *find_locked(object);
        if (l) {
            l->over = true;
            lives.regions -= !strcmp(l->kind, REGION);
            object = keep_locked(object);
        }
        lock_put(&lives.lock);
    }
    free(object);
}

int iw_life_look(const void *object, const char *call)
{
    char name[64];
    struct life found = {.over = false};
    lock_get_leaf(&lives.lock);
    const struct life *l = *find_locked(object);
    if (l)
        found = *l;
    lock_put(&lives.lock);
    if (!found.over)
        return 0;
    snprintf(name, sizeof(name), "%s no. %" PRIu64, found.kind, found.number);
    iw_advise(IW_FINDING_DESTROYED_OBJECT, name, iw_stack_here(),
              "%s() is called when the %s is destroyed", call, found.kind);
    return EINVAL;
}

/** Domains and channels may be librdmacm's own, and cost little. */
static bool is_told(const char *kind)
{
    return !strcmp(kind, "QP") || !strcmp(kind, "CQ") || !strcmp(kind, "SRQ") ||
           !strcmp(kind, REGION);
}

/* One finding for each place where such objects are made: iw_advise() sees to it. */
void iw_life_tell_left(void)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (const struct life *l = lives.bucket[i]; l; l = l->next)
            if (!l->over && l->by == getpid() && is_told(l->kind))
                iw_advise(IW_FINDING_LEFT_OPEN, l->kind, l->made,
                          "a %s that was made here is not destroyed", l->kind);
}

void iw_life_fork_safe(void)
{
    lock_get_leaf(&lives.lock);
    lives.fork_safe = true;
    lock_put(&lives.lock);
}

static void tell_fork(void)
{
    lock_get_leaf(&lives.lock);
    unsigned regions = lives.fork_safe ? 0 : lives.regions;
    lock_put(&lives.lock);
    if (regions)
        iw_advise(IW_FINDING_FORK_REGISTERED, "", iw_stack_here(),
                  "fork() is called, and %u memory regions are registered", regions);
}

void iw_life_fork(enum fork_step step)
{
    if (step == FORK_PREPARE)
        tell_fork();
    lock_fork(&lives.lock, step);
}
