/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may be connected, by the rules of env/access.h: asked when an address is known, and again
 * when it is known who is there. */
#include "cm/endpoint.h"

#include "common/addr.h"
#include "common/sys.h"
#include "env/access.h"
#include "env/log.h"

#include <errno.h>
#include <string.h>

static void say(const char *what, const struct iw_access_ask *ask, const char *why)
{
    char where[ADDR_TEXT_MAX];
    if (!iw_log_on(IW_LOG_WARN))
        return;
    addr_text(ask->peer, where);
    iw_log(IW_LOG_WARN, "%s: ANYWARP_ACCESS: %s: %s%s%s%s", what, why, where,
           ask->identity ? " (" : "",
           ask->identity && *ask->identity ? ask->identity
           : ask->identity                 ? "without TLS"
                                           : "",
           ask->identity ? ")" : "");
}

int iw_cm_access_to(const char *call, const struct sockaddr *dst, bool knows)
{
    char why[IW_ACCESS_WHY_MAX];
    struct sockaddr_storage peer = {0};
    memcpy(&peer, dst, addr_len(dst));
    struct iw_access_ask ask = {.to = true,
                                .peer = &peer,
                                .port = addr_port((const struct sockaddr *)&peer),
                                .identity = knows ? NULL : ""};
    if (iw_access(&ask, why) != IW_ACCESS_NO)
        return 0;
    say(call, &ask, why);
    return -EACCES;
}

static enum iw_access from(const struct sockaddr_storage *own, const struct sockaddr_storage *peer,
                           const char *identity)
{
    char why[IW_ACCESS_WHY_MAX];
    struct iw_access_ask ask = {
        .peer = peer, .port = addr_port((const struct sockaddr *)own), .identity = identity};
    enum iw_access verdict = iw_access(&ask, why);
    if (verdict == IW_ACCESS_NO)
        say("connection refused", &ask, why);
    return verdict;
}

/** Of a child. */
static enum iw_access from_fd(int fd, const char *identity)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    sys_getsockname(fd, (struct sockaddr *)&own, &own_len);
    sys_getpeername(fd, (struct sockaddr *)&peer, &peer_len);
    return from(&own, &peer, identity);
}

bool iw_cm_access_hear(const struct sockaddr_storage *own, const struct sockaddr_storage *peer)
{
    return from(own, peer, "") == IW_ACCESS_YES;
}

bool iw_cm_access_knock(int fd)
{
    return from_fd(fd, NULL) != IW_ACCESS_NO;
}

bool iw_cm_access_judge(const struct iw_cm *cm, const char *identity)
{
    char why[IW_ACCESS_WHY_MAX];
    struct iw_access_ask ask = {.to = true,
                                .peer = &cm->dst,
                                .port = addr_port((const struct sockaddr *)&cm->dst),
                                .identity = identity};
    if (!cm->dst.ss_family)
        return from_fd(cm->fd, identity) == IW_ACCESS_YES;
    if (iw_access(&ask, why) == IW_ACCESS_YES)
        return true;
    say("connection refused", &ask, why);
    return false;
}
