/* SPDX-License-Identifier: BSD-2-Clause */
/* All endpoints of the process at once: what fork() leaves a child of them, and exit(). */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "engine/engine.h"
#include "env/fd.h"
#include "env/log.h"
#include "qp/link.h"

#include <string.h>

#define for_each_cm(cm, link)                                                                      \
    list_for_each (link, &iw_cm_locks.locks)                                                       \
        for (struct iw_cm *cm = of(link); cm; cm = NULL)

static struct iw_cm *of(struct list *link)
{
    return container_of(container_of(link, struct lock, link), struct iw_cm, lock);
}

/** Puts it on a list with a reference, unless the last one is gone. The class's mutex is held. */
static void choose(struct iw_cm **list, struct iw_cm *cm)
{
    unsigned refs = atomic_load(&cm->refs);
    while (refs && !atomic_compare_exchange_weak(&cm->refs, &refs, refs + 1))
        ;
    if (!refs)
        return;
    cm->next_chosen = *list;
    *list = cm;
}

static struct iw_cm *choose_all(void)
{
    struct iw_cm *all = NULL;
    pthread_mutex_lock(&iw_cm_locks.mutex);
    for_each_cm(cm, link) choose(&all, cm);
    pthread_mutex_unlock(&iw_cm_locks.mutex);
    return all;
}

static struct iw_cm *take(struct iw_cm **list)
{
    struct iw_cm *cm = *list;
    if (cm)
        *list = cm->next_chosen;
    return cm;
}

/* ---- fork ---- */

/* In a child: the parent's connections, and what tells that it has ended. */
static struct iw_cm *lost;
static bool any_listener;
static pid_t parent_pid;
static atomic_int parent_fd = -1;
static struct iw_source parent;

/* Before Linux 5.3 nothing tells of a parent: it is looked for again and again. */
#define PARENT_LOOK_MS 50
static struct iw_timer parent_look;
static pid_t parent_looked_for;

/** @return whether the caller is the one to do that */
static bool stop_watching_parent(void)
{
    int fd = atomic_exchange(&parent_fd, -1);
    if (fd < 0)
        return false;
    iw_source_del(&parent);
    sys_close(fd);
    return true;
}

static void close_unnoticed(struct iw_cm *cm)
{
    iw_fd_leave_socket(cm->fd);
    cm->fd = cm->tcp.fd = -1;
}

static void forget_parent_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    cm->idle = (struct lock_cond){0};
    cm->delivering = false;
    cm->reserved = NULL;
    if (cm->state == IW_CM_S_LISTEN) {
        any_listener = true;
        iw_timer_cancel(&cm->timer);
        iw_source_want(&cm->source, 0);
    } else if (iw_cm_may_locked(cm, IW_CM_EV_FORKED)) {
        iw_cm_shm_forget(cm);
        if (cm->fd >= 0)
            close_unnoticed(cm);
        choose(&lost, cm);
    }
}

void iw_cm_fork(enum fork_step step)
{
    if (step == FORK_PREPARE)
        parent_pid = getpid();
    if (step == FORK_CHILD) {
        stop_watching_parent();
        iw_timer_cancel(&parent_look);
        any_listener = false;
        for_each_cm(cm, link) forget_parent_locked(cm);
    }
    lock_class_fork(&iw_cm_locks, step);
}

void iw_cm_resume(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    bool listens = cm->state == IW_CM_S_LISTEN;
    lock_put(&cm->lock);
    if (!listens)
        return;
    iw_cm_go_on(cm);
    int r = iw_engine_start();
    if (r)
        iw_log(IW_LOG_ERR, "a listener does not go on after fork(): %s", strerror(r));
}

static void resume_all(void)
{
    struct iw_cm *all = choose_all(), *cm;
    while ((cm = take(&all))) {
        iw_cm_resume(cm);
        iw_cm_put(cm);
    }
}

static bool parent_ended(struct iw_source *s, uint32_t events)
{
    (void)s, (void)events;
    if (stop_watching_parent())
        resume_all();
    return false;
}

static void look_for_parent(struct iw_timer *t)
{
    if (getppid() == parent_looked_for)
        iw_timer_set(t, PARENT_LOOK_MS, look_for_parent);
    else
        resume_all();
}

static void watch_parent(void)
{
    int fd = (int)sys_pidfd_open(parent_pid);
    pid_t now = getppid(); /* 0: in a namespace that we do not see */
    if (fd >= 0)
        fd = iw_fd_high(fd);
    if (now != 0 && now != parent_pid)
        resume_all();
    else if (fd >= 0 && now == parent_pid && !iw_source_add(&parent, fd, EPOLLIN, parent_ended)) {
        atomic_store(&parent_fd, fd);
        return;
    } else if (now == parent_pid && iw_engine_start() == 0) {
        parent_looked_for = now;
        look_for_parent(&parent_look);
    }
    if (fd >= 0)
        sys_close(fd);
}

void iw_cm_disown(void)
{
    struct iw_cm *cm;
    while ((cm = take(&lost))) {
        iw_cm_step(cm, IW_CM_EV_FORKED);
        iw_cm_step(cm, IW_CM_EV_FORKED); /* once the QP has told of the end */
        iw_cm_put(cm);
    }
    if (any_listener)
        watch_parent();
}

/* ---- exit ---- */

void iw_cm_disconnect_all(void)
{
    struct iw_cm *all = choose_all(), *cm;
    while ((cm = take(&all))) {
        iw_cm_disconnect(cm);
        iw_cm_put(cm);
    }
}

static bool delivered_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    return !iw_cm_answered(cm->state) ||
           ((!cm->qp || iw_qp_try_sent(cm->qp)) && iw_cm_delivered_locked(cm));
}

/** Calls @p each with the lock of every endpoint held. @return whether all said yes, none was busy
 */
static bool all(bool (*each)(struct iw_cm *))
{
    bool yes = true;
    if (pthread_mutex_trylock(&iw_cm_locks.mutex) != 0)
        return false;
    for_each_cm(cm, link)
    {
        bool one = lock_try(&cm->lock);
        if (one) {
            one = each(cm);
            lock_put(&cm->lock);
        }
        yes = yes && one;
    }
    pthread_mutex_unlock(&iw_cm_locks.mutex);
    return yes;
}

bool iw_cm_all_delivered(void)
{
    return all(delivered_locked);
}

static bool reset_stuck_locked(struct iw_cm *cm)
{
    struct linger now = {.l_onoff = 1};
    if (!delivered_locked(cm) && iw_cm_delivery_locked(cm) == IW_CM_STUCK)
        sys_setsockopt(cm->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return true;
}

void iw_cm_reset_stuck(void)
{
    all(reset_stuck_locked);
}
