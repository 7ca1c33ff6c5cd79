/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The flight recorder, ANYWARP_RECORD: the last calls of the verbs and of the connection manager,
 * and the last frames on the wire, in a file that is this process's memory, so that nothing needs
 * to be done when the process crashes, hangs or is killed. "anywarp record" reads it.
 *
 * Where nobody asks, the branch behind iw_record_on() is all that there is, and none is on the data
 * path: what is recorded there is in verbs/record.c, whose functions take the op slots, and in
 * observe/record_stream.c, whose operations take the stream's. With it no event waits for another,
 * and no memory is asked for.
 *
 * A forked child has a file of its own, from its first event on, if the name has a %p; else it
 * records nothing. Every function may be called with any lock held.
 */
#ifndef ANYWARP_OBSERVE_RECORD_H
#define ANYWARP_OBSERVE_RECORD_H

#include "common/lock.h"
#include "env/conf.h"
#include "observe/record_page.h"

#include <stdbool.h>

static inline bool iw_record_on(void)
{
    return __builtin_expect(iw_conf()->record[0] != '\0', 0);
}

/** The memory of the record, opened at first use. @return NULL: there is none */
struct record_page *iw_record_page(void);

/** Whether it is still that: a forked child has another, or none. */
bool iw_record_is(const struct record_page *page);

/**
 * An event with RECORD_ARGS arguments. One with @p open is a call that begins, and is told as one
 * that never returned until iw_record_finish().
 * @param text  NULL: none; what is too long is cut off
 */
struct iw_recorded iw_record_put(enum record_what what, bool open, const uint64_t *arg,
                                 const char *text);

/** The call has returned. @param first  the first argument from now on */
void iw_record_finish(struct iw_recorded r, int result, const uint64_t *first);

/** A poll of an empty CQ: one of many in a row of a thread is enough. */
void iw_record_empty(const void *cq);

/** An event of the wire at @p ns, with the first @p kept bytes of what it is about. */
void iw_record_frame(struct record_page *page, uint64_t ns, unsigned flags,
                     const struct record_frame *frame, const uint8_t *bytes, size_t kept);

/**
 * A row for a new connection, which is as @p conn but for its number and beginning.
 * @return NULL if all rows are of connections that have not ended
 */
struct record_conn *iw_record_conn_new(struct record_page *page, const struct record_conn *conn);

/** CLOCK_MONOTONIC in ns. */
uint64_t iw_record_now(void);

#define IW_RECORD_ARG(...) ((const uint64_t[RECORD_ARGS]){__VA_ARGS__})

/** A call that begins, RECORD_##what: for one of the next two at its end. */
#define iw_record(what, ...)                                                                       \
    (iw_record_on() ? iw_record_put(RECORD_##what, true, IW_RECORD_ARG(__VA_ARGS__), NULL)         \
                    : (struct iw_recorded){NULL, 0})

/** Something that happened, RECORD_##what. */
#define iw_record_note(what, ...)                                                                  \
    (iw_record_on() ? (void)iw_record_put(RECORD_##what, false, IW_RECORD_ARG(__VA_ARGS__), NULL)  \
                    : (void)0)

/** @return @p result, which is 0 or an errno */
static inline int iw_record_end(struct iw_recorded r, int result)
{
    if (__builtin_expect(r.event != NULL, 0))
        iw_record_finish(r, result, NULL);
    return result;
}

/** The same for a call that makes something, the first argument. @param error  if it is NULL */
static inline void iw_record_made(struct iw_recorded r, const void *made, uint64_t name, int error)
{
    if (__builtin_expect(r.event != NULL, 0))
        iw_record_finish(r, made ? 0 : error, made ? &name : NULL);
}

/** What the module does about fork(); see process/atfork.h. */
void iw_record_fork(enum fork_step step);

#endif
