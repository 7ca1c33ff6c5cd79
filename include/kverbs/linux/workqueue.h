/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KVERBS_LINUX_WORKQUEUE_H
#define KVERBS_LINUX_WORKQUEUE_H

#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/list.h>

struct workqueue_struct;
struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

struct work_struct {
    work_func_t func;
    struct list_head entry;
    struct workqueue_struct *wq; /* where it is queued, or ran last */
    bool pending;
    unsigned cancellers; /* who wait for its end: it is not queued until then */
};

struct delayed_work {
    struct work_struct work;
    unsigned long due; /* in jiffies */
};

#define __WORK_INITIALIZER(w, f)                                                                   \
    {                                                                                              \
        (f), {NULL, NULL}, NULL, false, 0                                                          \
    }
#define DECLARE_WORK(w, f)         struct work_struct w = __WORK_INITIALIZER(w, f)
#define DECLARE_DELAYED_WORK(w, f) struct delayed_work w = {__WORK_INITIALIZER(w.work, f), 0}
#define INIT_WORK(w, f)                                                                            \
    do {                                                                                           \
        (w)->func = (f);                                                                           \
        (w)->wq = NULL;                                                                            \
        (w)->pending = false;                                                                      \
        (w)->cancellers = 0;                                                                       \
    } while (0)
#define INIT_DELAYED_WORK(w, f) INIT_WORK(&(w)->work, f)
#define to_delayed_work(w)      container_of(w, struct delayed_work, work)

#define WQ_UNBOUND     2u
#define WQ_MEM_RECLAIM 8u
#define WQ_HIGHPRI     16u

/* Each queue has one thread, which runs works one after the other, and may sleep in them. */
struct workqueue_struct *kverbs_alloc_workqueue(const char *name, ...)
    __attribute__((format(printf, 1, 2)));
#define alloc_workqueue(name, flags, active, ...) kverbs_alloc_workqueue(name, ##__VA_ARGS__)
#define alloc_ordered_workqueue(name, flags, ...) kverbs_alloc_workqueue(name, ##__VA_ARGS__)
#define create_workqueue(name)                    kverbs_alloc_workqueue("%s", name)
#define create_singlethread_workqueue(name)       kverbs_alloc_workqueue("%s", name)
void destroy_workqueue(struct workqueue_struct *wq);
void flush_workqueue(struct workqueue_struct *wq);

/** @return false: it is in a queue already */
bool queue_work(struct workqueue_struct *wq, struct work_struct *w);
bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *w, unsigned long delay);

/** Takes it out and waits until it runs nowhere, and does not queue itself meanwhile.
 * @return true: it was in a queue */
bool cancel_work_sync(struct work_struct *w);
bool cancel_delayed_work(struct delayed_work *w);
bool cancel_delayed_work_sync(struct delayed_work *w);
bool flush_work(struct work_struct *w);

/** The queue of those that have none of their own: from its first use until main() ends it. */
struct workqueue_struct *kverbs_system_wq(void);
#define system_wq                   kverbs_system_wq()
#define schedule_work(w)            queue_work(system_wq, w)
#define schedule_delayed_work(w, d) queue_delayed_work(system_wq, w, d)
#define flush_scheduled_work()      flush_workqueue(system_wq)

#endif
