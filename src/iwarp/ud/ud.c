/* SPDX-License-Identifier: BSD-2-Clause */
#include "ud/ud.h"

#include "common/sys.h"
#include "ud/access.h"
#include "ud/group.h"
#include "ud/receive.h"
#include "ud/send.h"
#include "ud/socket.h"

#include <errno.h>
#include <stdlib.h>

#define TRIES 64 /* numbers whose names others have */

static struct lock lock = LOCK(LOCK_UDS);
static struct list all = {&all, &all};

static void close_one(int *fd)
{
    if (*fd >= 0)
        sys_close(*fd);
    *fd = -1;
}

static void close_all(struct iw_ud *ud)
{
    for (unsigned way = 0; way < IW_UD_WAYS; way++)
        close_one(&ud->in[way].fd);
    close_one(&ud->out);
}

static int open_once(struct iw_ud *ud)
{
    int r = iw_number_take_alone(&ud->number, &ud->in[IW_UD_NET].fd);
    if (r)
        return r;
    iw_ud_tune(ud->in[IW_UD_NET].fd, true);
    ud->ipv4 = iw_ud_is_ipv4(ud->in[IW_UD_NET].fd);
    ud->in[IW_UD_LOCAL].fd = iw_ud_open_local(ud->number.qpn);
    return ud->in[IW_UD_LOCAL].fd < 0 ? ud->in[IW_UD_LOCAL].fd : 0;
}

/** Anybody on this host may have the name of a number, so another number is tried. */
static int open_all(struct iw_ud *ud)
{
    int r = open_once(ud);
    for (unsigned i = 1; i < TRIES && r == -EADDRINUSE && ud->number.port; i++) {
        close_all(ud);
        iw_number_give(&ud->number);
        r = open_once(ud);
    }
    return r;
}

struct iw_ud *iw_ud_new(uint32_t max)
{
    struct iw_ud *ud = calloc(1, sizeof(*ud));
    if (!ud) {
        errno = ENOMEM;
        return NULL;
    }
    ud->datagrams =
        (struct iw_datagrams){.transmit = iw_ud_transmit, .resume = iw_ud_resume, .max = max};
    ud->out = -1;
    list_init(&ud->groups);
    list_init(&ud->link);
    for (unsigned way = 0; way < IW_UD_WAYS; way++)
        ud->in[way] = (struct iw_ud_socket){.ud = ud, .way = way, .fd = -1, .burst = 1};
    int r = open_all(ud);
    if (r) {
        iw_ud_free(ud);
        errno = -r;
        return NULL;
    }
    lock_get(&lock);
    list_add_tail(&all, &ud->link);
    lock_put(&lock);
    return ud;
}

void iw_ud_attach(struct iw_ud *ud, struct iw_qp *qp)
{
    ud->qp = qp;
}

int iw_ud_moved(struct iw_ud *ud)
{
    lock_get(&ud->qp->rx.lock);
    iw_ud_resume(ud->qp);
    lock_put(&ud->qp->rx.lock);
    lock_get(&ud->qp->tx.lock);
    bool due = !ud->watched && ud->qp->tx.state != IBV_QPS_RESET;
    ud->watched |= due;
    lock_put(&ud->qp->tx.lock);
    int r = 0;
    for (unsigned way = IW_UD_NET; due && !r && way <= IW_UD_LOCAL; way++) {
        struct iw_ud_socket *s = &ud->in[way];
        if (way == IW_UD_NET && iw_ud_stays_here())
            continue;
        r = iw_source_add(&s->source, s->fd, IW_UD_INPUT, iw_ud_ready);
    }
    return r;
}

void iw_ud_stop(struct iw_ud *ud)
{
    if (!ud)
        return;
    lock_get(&ud->qp->tx.lock);
    ud->stopping = true;
    lock_put(&ud->qp->tx.lock);
    for (unsigned way = 0; way < IW_UD_WAYS; way++)
        iw_source_del(&ud->in[way].source);
    iw_timer_cancel(&ud->again);
    iw_timer_cancel(&ud->over);
}

void iw_ud_free(struct iw_ud *ud)
{
    if (!ud)
        return;
    lock_get(&lock);
    list_del(&ud->link);
    lock_put(&lock);
    iw_ud_groups_forget(ud);
    iw_ud_forget(ud);
    close_all(ud);
    iw_number_give(&ud->number);
    free(ud);
}

void iw_ud_fork(enum fork_step step)
{
    lock_fork(&lock, step);
}

void iw_ud_disown(void)
{
    list_for_each (it, &all) { /* the child has one thread */
        struct iw_ud *ud = container_of(it, struct iw_ud, link);
        for (unsigned way = 0; way < IW_UD_WAYS; way++)
            iw_source_del(&ud->in[way].source);
        close_all(ud);
    }
}
