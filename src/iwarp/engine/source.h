/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: the descriptors that a pass looks at. */
#ifndef ANYWARP_ENGINE_SOURCE_H
#define ANYWARP_ENGINE_SOURCE_H

#include "common/lock.h"
#include "engine/shard.h"

#include <sys/epoll.h>

/** A descriptor in the epoll set of a shard, at first of the first one; embedded in its owner. */
struct iw_source {
    int fd;
    uint32_t events; /* EPOLL* bits asked for */
    uint32_t slot;   /* in the table that epoll data indexes; 0: not added */
    uint32_t qp_num; /* of its connection, once there is one: iw_source_link() */
    /**
     * Something is ready; or, with no events, may be: then only a connection looks. May run in
     * several threads at once.
     * @return whether bytes moved
     */
    bool (*ready)(struct iw_source *s, uint32_t events);
    /** Whether ready() would find nothing: at a glance, and no lock is taken. NULL: unknown. */
    bool (*idle)(const struct iw_source *s);
    /** Whether nothing is there, and no thread is at what was: it is where it belongs. NULL:
     * unknown. */
    bool (*settled)(const struct iw_source *s);
    /** The pollers that ran it without being told do so no more: its descriptor has to tell, of
     * what is there already, too. NULL: it always does. */
    void (*rest)(struct iw_source *s);
};

/** @return 0, ENOMEM, ENOSPC, or an errno of epoll or of the thread's start */
int iw_source_add(struct iw_source *s, int fd, uint32_t events,
                  bool (*ready)(struct iw_source *, uint32_t));

/** Changes the events asked for. Legal inside ready(). */
void iw_source_want(struct iw_source *s, uint32_t events);

/** Whether any of these is asked for. */
static inline bool iw_source_wants(const struct iw_source *s, uint32_t events)
{
    return __atomic_load_n(&s->events, __ATOMIC_RELAXED) & events;
}

/** The source is that of a QP's connection from now on. */
void iw_source_link(struct iw_source *s, uint32_t qp_num);

/** Moves the source to where it belongs now. Legal inside ready(). */
void iw_source_move(struct iw_source *s, const struct iw_home *home);

/**
 * Takes the source out of the set and waits until no ready() of it runs, unless the caller is
 * inside one itself: then until no other does. Afterwards no ready() begins. Harmless if not added.
 */
void iw_source_del(struct iw_source *s);

/** Waits until no ready() of it runs, but for those that the caller is inside of. */
void iw_source_wait(struct iw_source *s);

/* ---- for passes ---- */

/**
 * Runs the source that epoll names by @p key, if it is there; key 0 names none.
 * @param events  that are ready; 0: it is not known whether any is
 * @param but     leaves that of this QP alone; 0: of none
 * @return whether bytes moved
 */
bool iw_source_run(uint64_t key, uint32_t events, uint32_t but);
/** The same for a poller, which has nothing to wait for where nothing is: see idle(). */
bool iw_source_poll(uint64_t key);
/** The same for who looks at all, but that of QP @p but: see settled(). */
bool iw_source_look(uint64_t key, uint32_t but);
/**
 * Takes the source that epoll names by @p key out of the epoll set: it is left to who calls
 * iw_source_run(). A change of the events asked for puts it back.
 * @return false if it is gone, or waits for more than input
 */
bool iw_source_take_out(uint64_t key);
/** @return false if epoll has no room for it: it stays out, and left to who calls this */
bool iw_source_put_back(uint64_t key);

/**
 * No bytes have to be looked for at a descriptor from now on, or again: whoever looks at all
 * connections finds them elsewhere. Quiet begins behind what makes that true, and loud before what
 * ends it.
 */
void iw_source_quiet(uint64_t key);
void iw_source_loud(uint64_t key);
/** Changes while a source gets quiet, or comes into another shard: what looked meanwhile may have
 * missed it in both places. And with a fork(), during which nothing is found. */
unsigned iw_source_turns(void);

/** Whether that is the source of QP @p qp_num; 0: of none. */
bool iw_source_is_of(uint64_t key, uint32_t qp_num);

/** The shard of a source, and what epoll names it by. @return NULL: it is not added */
struct iw_shard *iw_source_place(const struct iw_source *s, uint64_t *key);
/** Puts a source to rest, if it is there. */
void iw_source_rest(uint64_t key);

/**
 * What the engine's thread takes between begin and end is told to nobody else:
 * iw_source_wait_engine() waits for all of it. Behind last there is one more to run at most. Other
 * threads do nothing.
 */
void iw_source_take_begin(void);
void iw_source_take_last(void);
void iw_source_take_end(void);

/** Waits, up to 100 ms, while the engine's thread is at another QP than @p qp_num, or about to be,
 * or fork() holds all progress. @return whether it was so */
bool iw_source_wait_engine(uint32_t qp_num);

/** Frozen: waits until no ready() runs. */
void iw_sources_wait(void);
/** Thawed: has those be told of again that are told of once (EPOLLET); while frozen nobody heard.
 */
void iw_sources_again(void);
/** In a child of fork(), which has no other thread yet: the sources that there are stay its own. */
void iw_sources_inherited(void);
/**
 * Puts every source into a new epoll set, but for those whose descriptors were closed since
 * iw_sources_inherited(): their numbers may be other files'.
 * @return 0 or a positive errno: then not all are in
 */
int iw_sources_restore(void);
/** What the module does about fork(); see process/atfork.h. A child has no epoll sets. */
void iw_source_fork(enum fork_step step);

#endif
