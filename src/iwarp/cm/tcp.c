/* SPDX-License-Identifier: BSD-2-Clause */
/* What TCP knows of the peer of a connection: whether it takes what is sent, and whether it lives.
 */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "env/conf.h"

#include <linux/tcp.h>
#include <netinet/in.h>

#define LOOKS     6 /* in the time that a peer may be silent, and one before */
#define ASKED_MIN 2 /* one question may get lost */

static struct tcp_info info(int fd)
{
    struct tcp_info i = {0};
    socklen_t len = sizeof(i);
    sys_getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &len);
    return i;
}

/** Whether nothing is on its way, but waits for room at the peer. */
static bool window_closed(int fd)
{
    struct tcp_info i = info(fd);
    return i.tcpi_notsent_bytes > 0 && (i.tcpi_unacked == 0 || i.tcpi_snd_wnd == 0);
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
    bool moves = !cm->end.unacked || unacked < cm->end.unacked;
    cm->end.unacked = unacked;
    return moves ? IW_CM_DELIVERS : window_closed(cm->fd) ? IW_CM_STUCK : IW_CM_SILENT;
}

unsigned iw_cm_watch_ms(const struct iw_cm *cm)
{
    unsigned ms = iw_conf()->silence_s * 1000, own = cm ? atomic_load(&cm->silence_ms) : 0;
    return (own && own < ms ? own : ms) / LOOKS;
}

void iw_cm_set_silence(struct iw_cm *cm, unsigned ms)
{
    atomic_store(&cm->silence_ms, ms);
}

/**
 * Whether what was sent last has no answer. Behind a closed window these are probes, which become
 * rare: between them there is nothing to answer.
 */
static bool unanswered(const struct tcp_info *i)
{
    return i->tcpi_unacked ? i->tcpi_last_ack_recv > i->tcpi_last_data_sent : i->tcpi_probes > 0;
}

/*
 * TCP_USER_TIMEOUT is not for this: it ends a connection whose peer is there and answers each
 * probe, but has its window closed for so long.
 */
enum iw_cm_answer iw_cm_answer_locked(struct iw_cm *cm)
{
    struct iw_cm_silence *s = &cm->silence;
    struct tcp_info i = info(cm->fd);
    assert_held(&cm->lock);
    if (!i.tcpi_unacked && !i.tcpi_notsent_bytes) {
        s->looks = 0;
        return IW_CM_NONE_DUE;
    }
    if (i.tcpi_segs_in != s->segs_in || !unanswered(&i)) {
        *s = (struct iw_cm_silence){.segs_in = i.tcpi_segs_in, .retrans = i.tcpi_total_retrans};
        return IW_CM_DUE;
    }
    uint32_t asked = i.tcpi_probes + i.tcpi_total_retrans - s->retrans;
    if (asked < i.tcpi_retransmits) /* in vain, as there is no way out of this host */
        asked = i.tcpi_retransmits;
    return ++s->looks > LOOKS && asked >= ASKED_MIN ? IW_CM_DEAD : IW_CM_DUE;
}
