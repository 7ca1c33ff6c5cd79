/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of a library whose interface calls back: it waits for descriptors, and runs what is to
 * be done later. Each library that links this has one, by reference count. It blocks all signals,
 * and holds no lock while it calls.
 *
 * After fork() the child has neither thread nor sources; its first event_thread_get() starts anew.
 * A callback that forks may return in the child, too: there that ends the thread it is on.
 */
#ifndef ANYWARP_COMPAT_EVENTS_H
#define ANYWARP_COMPAT_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct event_source {
    int fd;                               /* readable: something to do; level-triggered */
    void (*ready)(struct event_source *); /* leaves it unreadable, or forgets it */
    uint32_t number;                      /* of this file; 0: not watched */
};

struct event_task {
    void (*run)(struct event_task *); /* the task may be freed, or given again, in here */
    struct event_task *next;          /* of this file */
};

/**
 * One more user of the thread, which starts with the first.
 * @param name of the thread, as ps shows it
 * @return 0, or errno
 */
int event_thread_get(const char *name);

/**
 * One user less; the last waits until the thread has run the tasks that it was given, and is gone.
 * Called on the thread, it does not wait: the thread ends after what it is doing.
 */
void event_thread_put(void);

/** Is the caller the thread? */
bool event_thread_is_me(void);

/** Calls ready() whenever there is something, until event_thread_forget(). @return 0, or errno */
int event_thread_watch(struct event_source *s);

/**
 * No ready() of this source begins after this, and none is running, unless the caller is in it. One
 * that is not watched is no error.
 */
void event_thread_forget(struct event_source *s);

/** Runs a task once, after those that were given before. Wants a user, or to be called on the
 * thread. */
void event_thread_run(struct event_task *t);

#endif
