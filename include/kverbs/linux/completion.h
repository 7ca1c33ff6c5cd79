/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_COMPLETION_H
#define KVERBS_LINUX_COMPLETION_H

#include <linux/wait.h>

struct completion {
    unsigned done;
    wait_queue_head_t wait;
};

#define COMPLETION_INITIALIZER(name)                                                               \
    {                                                                                              \
        0, __WAIT_QUEUE_HEAD_INITIALIZER((name).wait)                                              \
    }
#define DECLARE_COMPLETION(name)         struct completion name = COMPLETION_INITIALIZER(name)
#define DECLARE_COMPLETION_ONSTACK(name) DECLARE_COMPLETION(name)

void init_completion(struct completion *c);
void reinit_completion(struct completion *c);
void complete(struct completion *c);
void complete_all(struct completion *c);
bool completion_done(struct completion *c);
bool try_wait_for_completion(struct completion *c);

#define wait_for_completion(c) wait_event((c)->wait, try_wait_for_completion(c))
#define wait_for_completion_interruptible(c)                                                       \
    wait_event_interruptible((c)->wait, try_wait_for_completion(c))
#define wait_for_completion_timeout(c, timeout)                                                    \
    ({                                                                                             \
        bool kverbs_done = false;                                                                  \
        long kverbs_rest = wait_event_timeout(                                                     \
            (c)->wait, kverbs_done || (kverbs_done = try_wait_for_completion(c)), (timeout));      \
        (unsigned long)kverbs_rest;                                                                \
    })

#endif
