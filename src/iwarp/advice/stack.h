/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a call came from: the return addresses of its stack. Each distinct one is kept once and
 * never freed, so that a pointer stands for it. Taking one costs some microseconds.
 */
#ifndef ANYWARP_ADVICE_STACK_H
#define ANYWARP_ADVICE_STACK_H

#include "common/lock.h"

#include <stddef.h>

#define IW_STACK_DEPTH 24

struct iw_stack {
    struct iw_stack *next;
    unsigned n;
    void *pc[IW_STACK_DEPTH];
};

/** The stack of the caller; any lock may be held. @return NULL if there is no memory */
const struct iw_stack *iw_stack_here(void);

/** In the handler of a fault: that of the instruction at @p pc, as far as it is known. */
const struct iw_stack *iw_stack_of_fault(const void *pc);

/**
 * Writes the frames of @p stack that are not of this library, as advice/finding.h has them; if all
 * are, as in a program that has it inside, all. What does not fit is left away.
 */
void iw_stack_print(const struct iw_stack *stack, char *buf, size_t size);

/** What the module does about fork(); see process/atfork.h. */
void iw_stack_fork(enum fork_step step);

#endif
