/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_KTHREAD_H
#define KVERBS_LINUX_KTHREAD_H

#include <linux/err.h>
#include <linux/sched.h>

/** A thread that waits for wake_up_process(). @return ERR_PTR() if there can be none */
struct task_struct *kthread_create(int (*fn)(void *data), void *data, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
int wake_up_process(struct task_struct *t);

/** Tells it to stop, wakes it, waits. @return what its function returned; -EINTR: it never ran */
int kthread_stop(struct task_struct *t);
bool kthread_should_stop(void);

#define kthread_run(fn, data, ...)                                                                 \
    ({                                                                                             \
        struct task_struct *kverbs_task = kthread_create((fn), (data), __VA_ARGS__);               \
        if (!IS_ERR(kverbs_task))                                                                  \
            wake_up_process(kverbs_task);                                                          \
        kverbs_task;                                                                               \
    })

#endif
