/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touching memory that the program has registered, and may have taken away since: unmapped,
 * protected, or the end of its file cut off. Adapters pin what is registered, so that programs get
 * away with free() before ibv_dereg_mr(); here that must cost a connection, not the process.
 *
 * A signal handler ends the touch. It is installed for SIGSEGV and SIGBUS when the first memory is
 * registered, for each of the two only if the program has left it at SIG_DFL, and never with
 * ANYWARP_FAULTS=off. A handler that the program installs, before or later, is the only one then,
 * unless it calls the one that was there before. Whatever is not the fault of a guarded touch, by
 * this thread, at an address that was given for it, is as if there were no handler: the action is
 * set back to SIG_DFL, and the fault, or the signal, comes again.
 *
 * Without a handler the guard does nothing: a fault is what it is. A thread that blocks the signal
 * dies of a fault, as the kernel has it; the engine's thread leaves both unblocked.
 */
#ifndef ANYWARP_ENV_GUARD_H
#define ANYWARP_ENV_GUARD_H

#include <stdbool.h>
#include <sys/uio.h>

/** Installs the handlers at the first call of the process. */
void iw_guard_install(void);

/**
 * Has @p crash called when the process is about to die of SIGSEGV, SIGBUS, SIGABRT, SIGFPE or
 * SIGILL, in the handler; for each of them only if the program has left it at SIG_DFL. Touches are
 * guarded then, whatever ANYWARP_FAULTS says.
 */
void iw_guard_tell(void (*crash)(int signal));

/**
 * Has @p late called, in the handler, at a fault that is no guarded touch's, with its address and
 * that of the instruction, NULL if it is not known; if that returns true the instruction is tried
 * again. @return whether the handler for SIGSEGV is this one, now
 */
bool iw_guard_watch(bool (*late)(const void *at, const void *pc));

/**
 * Calls @p touch with @p arg. If that faults on one of the @p n ranges @p v, which it reads or
 * writes, the call ends there: @p touch must leave nothing half done that matters, takes no lock
 * and does not call this function. Costs some nanoseconds.
 * @return NULL, or the address that cannot be accessed
 */
const void *iw_guarded(void (*touch)(void *), void *arg, const struct iovec *v, unsigned n);

#endif
