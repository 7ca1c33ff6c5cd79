/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CONNECT_REQUESTs for which a program is about to move a QP by itself. Every QP of a RoCE
 * device that is moved to RTR is looked for here. The list is short: each leaves it with DECISION.
 */
#include "cm/endpoint.h"

#include "common/addr.h"

#include <string.h>

static struct {
    struct lock lock;
    struct list list; /* struct iw_cm_move */
} moves = {LOCK(LOCK_MOVES), {&moves.list, &moves.list}};

void iw_cm_will_move(struct iw_cm *cm)
{
    struct sockaddr_storage peer;
    iw_cm_addresses(cm, NULL, &peer);
    lock_get(&cm->lock);
    if (cm->ib && cm->state == IW_CM_S_DECISION && !cm->move.listed) {
        cm->move.listed = true;
        cm->move.qpn = cm->terms.qpn;
        addr_ip6((struct sockaddr *)&peer, cm->move.peer);
        lock_get(&moves.lock);
        list_add_tail(&moves.list, &cm->move.link);
        lock_put(&moves.lock);
    }
    lock_put(&cm->lock);
}

void iw_cm_decided_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    if (!cm->move.listed)
        return;
    cm->move.listed = false;
    lock_get(&moves.lock);
    list_del(&cm->move.link);
    lock_put(&moves.lock);
}

bool iw_cm_will_accept(const struct sockaddr *peer, uint32_t qpn)
{
    uint8_t ip[16];
    bool found = false;
    addr_ip6(peer, ip);
    lock_get(&moves.lock);
    list_for_each (link, &moves.list) {
        const struct iw_cm_move *m = container_of(link, struct iw_cm_move, link);
        found = found || (m->qpn == qpn && memcmp(m->peer, ip, sizeof(ip)) == 0);
    }
    lock_put(&moves.lock);
    return found;
}

void iw_cm_move_fork(enum fork_step step)
{
    lock_fork(&moves.lock, step);
}
