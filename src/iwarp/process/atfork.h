/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork() and exit().
 *
 * Before fork() the engine is frozen: no source, timer or deferred work runs anywhere, so no step
 * of a connection is half done and no descriptor is between two hands. Then the forking thread
 * gets every lock of the library, module by module in the order of locks (the table in atfork.c;
 * common/lock.h: how), and has them in parent and child; threads of the program that are inside a
 * verb finish what they do under a lock first. So the child finds every object whole and no lock
 * taken. It goes on with what was opened; see iw_engine_fork(), iw_eventfd_fork(), iw_qp_fork(),
 * iw_cm_fork() and iw_cm_disown() for what it does not share with its parent. Its engine starts
 * when something needs it.
 *
 * Not held are the locks that the program itself holds between two calls: a QP's build_lock and a
 * CQ's poll_lock. If another thread was between ibv_wr_start() and ibv_wr_complete(), or between
 * ibv_start_poll() and ibv_end_poll(), the child cannot use that view.
 *
 * A child that is made without the handlers of fork(), as by posix_spawn(), system() and popen(),
 * must only exec: every descriptor is close-on-exec.
 *
 * At exit() what was posted goes to the peers: the connections are closed by the engine, which
 * holds none of the locks that the exiting thread may hold (it may have been interrupted by a
 * signal anywhere), and at most 1 s is waited for. That long it takes if a peer takes nothing, or
 * if the exiting thread was interrupted inside a QP.
 *
 * A new lock of the library gets its module's step into the table; a new descriptor that is not the
 * child's business is replaced or closed in such a step.
 */
#ifndef ANYWARP_PROCESS_ATFORK_H
#define ANYWARP_PROCESS_ATFORK_H

/* The only function is librdmacm's door: iw_cm_at_fork() in cm/port.h. */

#endif
