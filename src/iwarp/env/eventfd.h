/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An event descriptor (eventfd): readable exactly while its queue is not empty, one wake-up an
 * event. Used for completion channels, asynchronous events and rdma_event_channels alike. The queue
 * and its lock are the owner's.
 */
#ifndef ANYWARP_ENV_EVENTFD_H
#define ANYWARP_ENV_EVENTFD_H

#include "common/lock.h"
#include "env/export.h"

#include <stdbool.h>

/**
 * For a program, which may use select() with it: the lowest number that is free.
 * @return descriptor >= 0, close-on-exec; or a negative errno
 */
IW_CM_EXPORT int iw_eventfd_create(void);

/** The same, for ourselves: above 1023 if the limit allows. */
int iw_eventfd_create_hidden(void);
/** An event was queued. Call with the queue's lock held. */
IW_CM_EXPORT void iw_eventfd_raise(int fd);
/** The queue has become empty. Call with the queue's lock held. */
IW_CM_EXPORT void iw_eventfd_drain(int fd);
/** Whether O_NONBLOCK is set on it now. */
IW_CM_EXPORT bool iw_eventfd_nonblocking(int fd);
/**
 * Waits until it is readable; a cancellation point; call without locks. A signal ends it with
 * -EINTR unless every handler installed has SA_RESTART.
 * @return 0 or -EINTR
 */
int iw_eventfd_wait(int fd);
/** What the module does about fork(); see process/atfork.h. The child gets a descriptor of its
 * own under each number: readable if the parent's was, and with its flags. */
void iw_eventfd_fork(enum fork_step step);
/**
 * Whether a wait that a signal interrupted goes on: every handler installed, those for faults like
 * SIGSEGV apart, has SA_RESTART.
 */
IW_CM_EXPORT bool iw_eventfd_restarts(void);
/** Closes it. */
IW_CM_EXPORT void iw_eventfd_close(int fd);

#endif
