/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What has a handle: how it is found, what keeps it, how it goes.
 *
 * Objects form a tree, from the layer to its adapters to what was made in them. Each has a count of
 * references: one for its handle, one for each child and dependent, one for each call and callback
 * that is under way. Who destroys an object takes its handle away, and those of all below it; the
 * last reference has the object released, children before parents. Most are released on the thread
 * of callbacks, so that no callback of an object begins or runs then.
 *
 * Locks: the tree's, then the table's, both in object.c; no callback runs with either.
 */
#ifndef ANYWARP_AL_OBJECT_H
#define ANYWARP_AL_OBJECT_H

#include "common/list.h"

#include <iba/ib_al.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum al_type {
    AL_LAYER = 1,
    AL_CA,
    AL_PD,
    AL_AV,
    AL_CQ,
    AL_SRQ,
    AL_QP,
    AL_MR,
    AL_MW,
    AL_LISTEN,
    AL_CONNECTION,
    AL_WAITOBJ
};

struct al_object;

struct al_kind {
    enum al_type type;
    ib_api_status_t invalid; /* what a call says that does not find one */
    bool anywhere;           /* released by whoever drops the last reference, not by the thread */
    void (*release)(struct al_object *); /* all but the struct al_object, which begins the memory */
};

enum { AL_HOLDS = 3 };

struct al_object {
    const struct al_kind *kind;
    void *handle;
    const void *context; /* the program's */
    struct al_object *parent;
    struct list children, sibling;     /* the tree's lock */
    struct al_object *holds[AL_HOLDS]; /* whom it depends on, and keeps; the tree's lock */
    void *origin;                      /* one of its kind that it uses, and does not keep */
    unsigned users;                    /* open objects that hold or use it; the tree's lock */
    atomic_bool open;                  /* the handle is good */
    atomic_uint refs;
    ib_pfn_destroy_cb_t destroy_cb; /* NULL: nobody is told */
    bool *gone;                     /* who waits is told so; or NULL */
    struct al_object *next;         /* among those that are to be released */
};

/**
 * Gives a zeroed object its handle and its place.
 * @return IB_SUCCESS: two references, the handle's and the caller's; what the parent's kind says if
 * it is being destroyed; IB_INSUFFICIENT_MEMORY. Without success the memory is freed.
 */
ib_api_status_t al_add(struct al_object *o, const struct al_kind *kind, struct al_object *parent,
                       const void *context);

/** What al_add() has added failed to come to life; drops both references. */
void al_fail(struct al_object *o);

/** @return the object, with a reference; NULL: the handle is none of this kind's */
void *al_get(const struct al_kind *kind, const void *handle);

/** Whether there is one; for calls that need no more of it. */
bool al_is(const struct al_kind *kind, const void *handle);

/** As al_get(), for the 32 bits that al_number() told. */
void *al_get_number(const struct al_kind *kind, uint32_t number);
uint32_t al_number(const struct al_object *o);

/** The open ones of a kind, one a call, with a reference; NULL: no more. @param position first 0 */
void *al_next(const struct al_kind *kind, uint32_t *position);

/** One more reference, for who has one, and for the thread of callbacks. */
void al_hold(struct al_object *o);
void al_put(struct al_object *o);

/**
 * Dependence on another object, to which the caller has a reference, in one of the holds; instead
 * of the one that was there. @param on NULL: on none
 * @return false: the other is being destroyed, and nothing has changed
 */
bool al_depend(struct al_object *o, int which, struct al_object *on);

/** Would it be IB_RESOURCE_BUSY to destroy it? */
bool al_has_users(struct al_object *o);

/**
 * One more user of an object of the same kind, until this one is destroyed; if the other goes
 * first, with its parent, this one stays.
 * @return false: one of them is being destroyed
 */
bool al_share(struct al_object *o, struct al_object *origin);

/** Makes an object a child of another one. @return false: one of them is being destroyed */
bool al_adopt(struct al_object *o, struct al_object *parent);

/** A child of this kind, any, with a reference; NULL: there is none that is open. */
void *al_child(struct al_object *o, const struct al_kind *kind);

/**
 * Destroys an object and all below it, as the program asked for by its handle.
 * @param cb as ib_pfn_destroy_cb_t, NULL and ib_sync_destroy included; for kinds that are released
 * anywhere it is ib_sync_destroy
 * @return IB_SUCCESS; IB_RESOURCE_BUSY: it has users; what its kind says
 */
ib_api_status_t al_destroy(const struct al_kind *kind, const void *handle, ib_pfn_destroy_cb_t cb);

/** The same for an object to which the caller has a reference, whether or not it is open still. */
void al_end(struct al_object *o);

#endif
