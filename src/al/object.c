/* SPDX-License-Identifier: BSD-2-Clause */
#include "al/object.h"

#include "compat/events.h"
#include "compat/handle.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t tree = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct handle_table table;
static uint32_t serial; /* the table's lock */

/* What waits to be released; who waits for that. */
static pthread_mutex_t dead_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t buried = PTHREAD_COND_INITIALIZER;
static struct al_object *dead, **dead_end = &dead;
static bool bury_is_due;

/* ---- handles ---- */

/* Above the number there is one that no other handle has had, where a pointer has the room. */
static void *handle_of(uint32_t number)
{
    uint64_t bits = (uint64_t)++serial << 32 | number;
    return (void *)(uintptr_t)bits;
}

static bool enter(struct al_object *o)
{
    pthread_rwlock_wrlock(&table_lock);
    uint32_t number = handle_add(&table, o->kind->type, o);
    if (number)
        o->handle = handle_of(number);
    pthread_rwlock_unlock(&table_lock);
    return number;
}

static void leave(struct al_object *o)
{
    pthread_rwlock_wrlock(&table_lock);
    handle_remove(&table, al_number(o));
    pthread_rwlock_unlock(&table_lock);
}

uint32_t al_number(const struct al_object *o)
{
    return (uint32_t)(uintptr_t)o->handle;
}

void *al_get(const struct al_kind *kind, const void *handle)
{
    pthread_rwlock_rdlock(&table_lock);
    struct al_object *o = handle_get(&table, kind->type, (uint32_t)(uintptr_t)handle);
    if (o && o->handle != handle)
        o = NULL;
    if (o)
        al_hold(o);
    pthread_rwlock_unlock(&table_lock);
    return o;
}

bool al_is(const struct al_kind *kind, const void *handle)
{
    struct al_object *o = al_get(kind, handle);
    if (o)
        al_put(o);
    return o;
}

void *al_get_number(const struct al_kind *kind, uint32_t number)
{
    pthread_rwlock_rdlock(&table_lock);
    struct al_object *o = handle_get(&table, kind->type, number);
    if (o)
        al_hold(o);
    pthread_rwlock_unlock(&table_lock);
    return o;
}

void *al_next(const struct al_kind *kind, uint32_t *position)
{
    struct al_object *o = NULL;
    pthread_rwlock_rdlock(&table_lock);
    for (; *position < table.count && !o; ++*position) {
        if (table.entries[*position].type == kind->type)
            o = table.entries[*position].object;
    }
    if (o)
        al_hold(o);
    pthread_rwlock_unlock(&table_lock);
    return o;
}

/* ---- the end ---- */

static void finish(struct al_object *o)
{
    o->kind->release(o);
    pthread_mutex_lock(&tree);
    list_del(&o->sibling);
    pthread_mutex_unlock(&tree);
    for (int i = 0; i < AL_HOLDS; i++) {
        if (o->holds[i])
            al_put(o->holds[i]);
    }
    if (o->destroy_cb)
        o->destroy_cb((void *)(uintptr_t)o->context);
    if (o->parent)
        al_put(o->parent);
    pthread_mutex_lock(&dead_lock);
    if (o->gone)
        *o->gone = true;
    pthread_cond_broadcast(&buried);
    pthread_mutex_unlock(&dead_lock);
    free(o);
}

static void bury_all(void)
{
    pthread_mutex_lock(&dead_lock);
    struct al_object *o;
    while ((o = dead)) {
        dead = o->next;
        if (!dead)
            dead_end = &dead;
        pthread_mutex_unlock(&dead_lock);
        finish(o);
        pthread_mutex_lock(&dead_lock);
    }
    pthread_mutex_unlock(&dead_lock);
}

static void bury(struct event_task *task)
{
    (void)task;
    pthread_mutex_lock(&dead_lock);
    bury_is_due = false;
    pthread_mutex_unlock(&dead_lock);
    bury_all();
}

void al_hold(struct al_object *o)
{
    atomic_fetch_add(&o->refs, 1);
}

void al_put(struct al_object *o)
{
    static struct event_task task = {.run = bury};
    if (atomic_fetch_sub(&o->refs, 1) != 1)
        return;
    if (o->kind->anywhere) {
        finish(o);
        return;
    }
    pthread_mutex_lock(&dead_lock);
    o->next = NULL;
    *dead_end = o;
    dead_end = &o->next;
    bool first = !bury_is_due;
    bury_is_due = true;
    pthread_mutex_unlock(&dead_lock);
    if (first)
        event_thread_run(&task);
}

/* ---- the tree ---- */

static void in_child(void)
{
    /* What the parent had is the parent's; here its handles are those of things that are gone. */
    table = (struct handle_table){0};
    dead = NULL;
    dead_end = &dead;
    bury_is_due = false;
    pthread_mutex_init(&tree, NULL);
    pthread_rwlock_init(&table_lock, NULL);
    pthread_mutex_init(&dead_lock, NULL);
    pthread_cond_init(&buried, NULL);
}

static void before_fork(void)
{
    pthread_mutex_lock(&tree);
    pthread_rwlock_wrlock(&table_lock);
    pthread_mutex_lock(&dead_lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&dead_lock);
    pthread_rwlock_unlock(&table_lock);
    pthread_mutex_unlock(&tree);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, in_parent, in_child);
}

ib_api_status_t al_add(struct al_object *o, const struct al_kind *kind, struct al_object *parent,
                       const void *context)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    if (!o)
        return IB_INSUFFICIENT_MEMORY;
    o->kind = kind;
    o->context = context;
    list_init(&o->children);
    list_init(&o->sibling);
    atomic_init(&o->refs, 2);
    atomic_init(&o->open, true);
    pthread_mutex_lock(&tree);
    ib_api_status_t status = parent && !parent->open ? parent->kind->invalid
                             : enter(o)              ? IB_SUCCESS
                                                     : IB_INSUFFICIENT_MEMORY;
    if (status == IB_SUCCESS && parent) {
        o->parent = parent;
        al_hold(parent);
        list_add_tail(&parent->children, &o->sibling);
    }
    pthread_mutex_unlock(&tree);
    if (status != IB_SUCCESS)
        free(o);
    return status;
}

/* Takes the handle away, once. */
static bool close_locked(struct al_object *o)
{
    if (!o->open)
        return false;
    o->open = false;
    leave(o);
    for (int i = 0; i < AL_HOLDS; i++) {
        if (o->holds[i])
            o->holds[i]->users--;
    }
    struct al_object *origin = o->origin ? al_get(o->kind, o->origin) : NULL;
    if (origin) {
        origin->users--;
        al_put(origin); /* which is not the last: it is open, and the tree locked */
    }
    return true;
}

/* All that is open from here down, children first, into a list. */
static void close_all_locked(struct al_object *o, struct al_object ***end)
{
    list_for_each (it, &o->children)
        close_all_locked(container_of(it, struct al_object, sibling), end);
    if (!close_locked(o))
        return;
    o->next = NULL;
    **end = o;
    *end = &o->next;
}

static void put_all(struct al_object *o)
{
    while (o) {
        struct al_object *next = o->next;
        al_put(o);
        o = next;
    }
}

/*
 * The thread of callbacks waits for nobody: it releases what can be released. What is left then, it
 * keeps itself, by the callback that it is in, or a call of another thread does, for a moment.
 */
static void await(struct al_object *o, const bool *gone, bool thread)
{
    if (thread)
        bury_all();
    pthread_mutex_lock(&dead_lock);
    while (!*gone && !thread)
        pthread_cond_wait(&buried, &dead_lock);
    if (!*gone)
        o->gone = NULL;
    pthread_mutex_unlock(&dead_lock);
}

/* The caller's reference is gone afterwards. */
static ib_api_status_t destroy(struct al_object *o, ib_pfn_destroy_cb_t cb)
{
    bool gone = false, wait = cb == ib_sync_destroy;
    bool thread = !o->kind->anywhere && event_thread_is_me();
    struct al_object *closed = NULL, **end = &closed;
    pthread_mutex_lock(&tree);
    ib_api_status_t status = !o->open ? o->kind->invalid : o->users ? IB_RESOURCE_BUSY : IB_SUCCESS;
    if (status == IB_SUCCESS) {
        close_all_locked(o, &end);
        o->destroy_cb = wait ? NULL : cb;
        o->gone = wait ? &gone : NULL;
    }
    pthread_mutex_unlock(&tree);
    put_all(closed);
    al_put(o);
    if (status == IB_SUCCESS && wait)
        await(o, &gone, thread);
    return status;
}

ib_api_status_t al_destroy(const struct al_kind *kind, const void *handle, ib_pfn_destroy_cb_t cb)
{
    struct al_object *o = al_get(kind, handle);
    return o ? destroy(o, cb) : kind->invalid;
}

void al_end(struct al_object *o)
{
    al_hold(o);
    destroy(o, NULL);
}

void al_fail(struct al_object *o)
{
    destroy(o, NULL);
}

bool al_depend(struct al_object *o, int which, struct al_object *on)
{
    pthread_mutex_lock(&tree);
    bool ok = o->open && (!on || on->open);
    struct al_object *before = NULL;
    if (ok) {
        before = o->holds[which];
        if (before)
            before->users--;
        o->holds[which] = on;
        if (on) {
            on->users++;
            al_hold(on);
        }
    }
    pthread_mutex_unlock(&tree);
    if (before)
        al_put(before);
    return ok;
}

bool al_has_users(struct al_object *o)
{
    pthread_mutex_lock(&tree);
    bool has = o->users;
    pthread_mutex_unlock(&tree);
    return has;
}

bool al_share(struct al_object *o, struct al_object *origin)
{
    pthread_mutex_lock(&tree);
    bool ok = o->open && origin->open;
    if (ok) {
        o->origin = origin->handle;
        origin->users++;
    }
    pthread_mutex_unlock(&tree);
    return ok;
}

bool al_adopt(struct al_object *o, struct al_object *parent)
{
    pthread_mutex_lock(&tree);
    bool ok = o->open && parent->open;
    struct al_object *before = o->parent;
    if (ok) {
        al_hold(parent);
        list_del(&o->sibling);
        list_add_tail(&parent->children, &o->sibling);
        o->parent = parent;
    }
    pthread_mutex_unlock(&tree);
    if (ok)
        al_put(before);
    return ok;
}

void *al_child(struct al_object *o, const struct al_kind *kind)
{
    void *found = NULL;
    pthread_mutex_lock(&tree);
    list_for_each (it, &o->children) {
        struct al_object *child = container_of(it, struct al_object, sibling);
        if (child->kind != kind || !child->open)
            continue;
        al_hold(child);
        found = child;
        break;
    }
    pthread_mutex_unlock(&tree);
    return found;
}
