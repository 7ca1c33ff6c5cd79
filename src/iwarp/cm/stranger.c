/* SPDX-License-Identifier: BSD-2-Clause */
/* Who connects to a listener and does not speak MPA: the socket may be handed to the program. */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "conn/stream_tls.h"
#include "env/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define KEY 16 /* bytes that begin each MPA Request */

void iw_cm_take_strangers(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    cm->strangers = true;
    lock_put(&cm->lock);
}

/* That the peer has to send so much, or to hang up, before it is looked at again. */
static void wake_at(const struct iw_cm *cm, int bytes)
{
    sys_setsockopt(cm->fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

int iw_cm_is_stranger_locked(struct iw_cm *cm)
{
    uint8_t bytes[KEY];
    struct mpa_start start;
    size_t used;
    assert_held(&cm->lock);
    if (!cm->may_be_stranger)
        return 0;
    long n = sys_recv(cm->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK);
    if (n < 0)
        return n == -EINTR ? -EAGAIN : (int)n;
    bool tls = n > 0 && bytes[0] == IWC_TLS_RECORD_TYPE && iw_conf()->tls != IW_TLS_OFF;
    bool mpa = mpa_start_decode(bytes, (size_t)n, false, &start, &used) == MPA_PARSE_MORE;
    if (!tls && n > 0 && (!mpa || n == cm->peeked)) /* the same, and a FIN */
        return 1;
    if (mpa && !tls && n > 0 && n < KEY) {
        cm->peeked = (uint8_t)n;
        wake_at(cm, (int)n + 1);
        return -EAGAIN;
    }
    cm->may_be_stranger = false;
    wake_at(cm, 1);
    return 0;
}

bool iw_cm_hand_out(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    bool may = cm->may_be_stranger && iw_cm_access_judge(cm, "");
    struct iw_cm *listener = may ? cm->listener : NULL;
    long fd = -1;
    if (listener) {
        iw_cm_get(listener);
        wake_at(cm, 1);
        fd = sys_fcntl(cm->fd, F_DUPFD_CLOEXEC, 0);
    }
    lock_put(&cm->lock);
    if (fd < 0) {
        if (listener)
            iw_cm_put(listener);
        return false;
    }
    struct iw_cm_event event = {.type = IW_CM_STRANGER, .status = (int)fd};
    lock_get(&listener->lock);
    bool queued =
        listener->state == IW_CM_S_LISTEN && iw_cm_queue_locked(listener, cm, &cm->asked, &event);
    lock_put(&listener->lock);
    if (queued)
        iw_cm_deliver(listener);
    else
        sys_close((int)fd);
    iw_cm_put(listener);
    return true;
}
