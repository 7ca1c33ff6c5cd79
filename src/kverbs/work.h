/* SPDX-License-Identifier: BSD-2-Clause */
/* What main() does with work queues when the module has ended. */
#ifndef KVERBS_WORK_H
#define KVERBS_WORK_H

/** Runs what the system's work queue still has, and ends it. */
void kv_end_system_wq(void);

#endif
