/* SPDX-License-Identifier: BSD-2-Clause */
/* How many objects a module has of each kind: what keeps main() waiting, and what it reports as
 * left. */
#ifndef KVERBS_CENSUS_H
#define KVERBS_CENSUS_H

enum kv_kind {
    KV_PD,
    KV_MR,
    KV_AH,
    KV_CQ,
    KV_SRQ,
    KV_QP,
    KV_ID,
    KV_MAPPING,
    KV_PROC,
    KV_THREAD,
    KV_KINDS
};

void kv_count(enum kv_kind kind, int by);

/** Waits until there are no threads, CQs, QPs and CM ids any more, or for kv_give_up(). */
void kv_wait_idle(void);
void kv_give_up(void);

/** One line for each kind that is left, but for threads; @return how many objects */
int kv_report_left(void);

#endif
