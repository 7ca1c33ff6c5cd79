/* SPDX-License-Identifier: BSD-2-Clause */
/* fork(): what is done here for all of the library is told in process/atfork.h. */
#include "cma.h"

/* The parent may go on with its listeners: the child's rest until it asks for events. */
static void inherit_locked(struct cma_id *id)
{
    cma_lookup_lost_locked(id);
    if (id->pub.channel)
        cma_channel(id->pub.channel)->rests = true;
}

static void at_fork(enum fork_step step)
{
    if (step == FORK_PREPARE) {
        lock_class_fork(&cma_ids, step);
        lock_get(&cma_events);
        cma_device_fork(step);
        return;
    }
    if (step == FORK_CHILD)
        list_for_each (l, &cma_ids.locks)
            inherit_locked(container_of(container_of(l, struct lock, link), struct cma_id, lock));
    cma_device_fork(step);
    lock_put(&cma_events);
    lock_class_fork(&cma_ids, step);
}

static void __attribute__((constructor)) watch_fork(void)
{
    iw_cm_at_fork(at_fork);
}
