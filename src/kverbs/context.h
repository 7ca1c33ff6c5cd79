/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread may do where it is: the library calls a program in an interrupt's place, and who
 * holds a spinlock may not sleep. Nothing is forbidden; what the kernel would complain of is said.
 */
#ifndef KVERBS_CONTEXT_H
#define KVERBS_CONTEXT_H

/** Between these the caller's thread is in an interrupt, on behalf of an object. */
void kv_interrupt_begin(const void *object);
void kv_interrupt_end(void);

/** The object of the interrupt that the caller is in; NULL: none. */
const void *kv_interrupted_for(void);

/** A spinlock was taken (1) or given (-1). */
void kv_spin(int by);

#endif
