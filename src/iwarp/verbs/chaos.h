/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of posting, polling and arming: other functions in the op slots of a context. */
#ifndef ANYWARP_VERBS_CHAOS_H
#define ANYWARP_VERBS_CHAOS_H

#include <infiniband/verbs.h>

/** Puts them in place of those that @p v has, if there are to be faults. */
void verbs_chaos_fill_ops(struct verbs_context *v);

#endif
