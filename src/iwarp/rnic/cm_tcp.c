/* SPDX-License-Identifier: BSD-2-Clause */
/* What TCP knows of the peer of a connection: whether it takes what is sent. */
#include "rnic/cm.h"

#include "common/sys.h"

#include <linux/tcp.h>
#include <netinet/in.h>

/** Whether nothing is on its way, but waits for room at the peer. */
static bool window_closed(int fd)
{
    struct tcp_info i = {0};
    socklen_t len = sizeof(i);
    if (sys_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len) < 0)
        return false;
    return i.tcpi_snd_wnd == 0 || (i.tcpi_unacked == 0 && i.tcpi_notsent_bytes > 0);
}

/* The FIN, too, is acknowledged, but that may take the peer's TCP a while. */
bool iw_cm_delivered_locked(const struct iw_cm *cm)
{
    assert_held(&cm->lock);
    return cm->fd < 0 || sys_unacked(cm->fd) <= 1;
}

enum iw_cm_delivery iw_cm_delivery_locked(struct iw_cm *cm)
{
    assert_held(&cm->lock);
    if (iw_cm_delivered_locked(cm))
        return IW_CM_DELIVERED;
    long unacked = sys_unacked(cm->fd);
    bool moves = !cm->unacked || unacked < cm->unacked;
    cm->unacked = unacked;
    return moves ? IW_CM_DELIVERS : window_closed(cm->fd) ? IW_CM_STUCK : IW_CM_SILENT;
}
