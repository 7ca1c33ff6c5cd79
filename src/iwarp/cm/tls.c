/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connections are TLS, as the policy says, and why one is not made. */
#include "cm/endpoint.h"

#include "common/sys.h"
#include "env/conf.h"
#include "env/gather.h"
#include "env/log.h"
#include "env/tls.h"
#include "faults/stream.h"
#include "observe/pcap.h"
#include "observe/record_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool judge(void *arg, const struct tls_peer *peer, char *why, size_t size)
{
    const struct iw_cm *cm = arg;
    const char *no = cm->dst.ss_family && !iw_tls_is_for(peer, &cm->dst)
                         ? "the peer's certificate is for other addresses"
                     : iw_cm_access_judge(cm, peer->name.identity)
                         ? NULL
                         : "ANYWARP_ACCESS refuses the peer";
    if (no)
        snprintf(why, size, "%s", no);
    return !no;
}

static const struct iwc_tls_user user = {.gather = iw_gather, .judge = judge};

int iw_cm_tls_may(const char *call)
{
    const char *why;
    if (iw_conf()->tls == IW_TLS_OFF || iw_tls_context(&why))
        return 0;
    iw_log(IW_LOG_ASKED, "%s: ANYWARP_TLS: %s", call, why);
    return -EACCES;
}

int iw_cm_tls_may_connect(const char *call, const struct sockaddr *dst)
{
    int r = iw_cm_tls_may(call);
    return r ? r : iw_cm_access_to(call, dst, iw_conf()->tls == IW_TLS_REQUIRE);
}

bool iw_cm_in_the_clear(const char *call)
{
    if (iw_conf()->tls != IW_TLS_REQUIRE)
        return true;
    iw_log(IW_LOG_ASKED, "%s: ANYWARP_TLS=require: there is no TLS for this", call);
    return false;
}

/** @return 0 or a negative errno */
static int put_tls(struct iw_cm *cm, bool client)
{
    const char *why;
    struct ssl_ctx_st *ctx = iw_tls_context(&why);
    cm->tls = ctx ? iwc_stream_tls_create(ctx, &cm->tcp.base, client, &user, cm) : NULL;
    if (!cm->tls)
        return -ENOMEM;
    cm->stream = cm->tls;
    return 0;
}

int iw_cm_tls_connect(struct iw_cm *cm)
{
    lock_get(&cm->lock);
    iwc_stream_tls_free(cm->tls); /* of an attempt before */
    cm->tls = NULL;
    iwc_stream_tcp_init(&cm->tcp, cm->fd);
    iw_chaos_attach(&cm->tcp.base);
    cm->stream = &cm->tcp.base;
    int r = iw_conf()->tls == IW_TLS_REQUIRE && !cm->itself ? put_tls(cm, true) : 0;
    iw_cm_shm_begin(cm);
    if (!r) {
        iw_pcap_attach(cm->stream, cm->fd, true);
        iw_record_attach(cm->stream, cm->fd, true);
    }
    lock_put(&cm->lock);
    return r;
}

/** A peer that speaks plain MPA is told so in the words of TLS, which an anywarp understands. */
static void ask_for_tls(int fd)
{
    static const uint8_t insufficient_security[] = {21, 3, 3, 0, 2, 2, 71};
    iw_log(IW_LOG_WARN, "connection dropped: ANYWARP_TLS=require: the peer spoke plain MPA");
    sys_send(fd, insufficient_security, sizeof(insufficient_security), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int iw_cm_tls_accept_locked(struct iw_cm *cm)
{
    uint8_t first;
    int r = 0;
    enum iw_tls policy = iw_conf()->tls;
    assert_held(&cm->lock);
    if (cm->sorted)
        return 0;
    if (policy != IW_TLS_OFF) {
        long n = sys_recv(cm->fd, &first, 1, MSG_DONTWAIT | MSG_PEEK);
        if (n < 0)
            return n == -EINTR ? -EAGAIN : (int)n;
        if (n == 1 && first == IWC_TLS_RECORD_TYPE) {
            r = put_tls(cm, false);
        } else if (n == 1 && policy == IW_TLS_REQUIRE) {
            ask_for_tls(cm->fd);
            return -EACCES;
        }
    }
    if (!r && !cm->tls && !iw_cm_access_judge(cm, ""))
        return -EACCES;
    cm->sorted = !r;
    if (!r) {
        iw_cm_shm_begin(cm);
        iw_pcap_attach(cm->stream, cm->fd, false);
        iw_record_attach(cm->stream, cm->fd, false);
    }
    if (!r && cm->tls)
        cm->nego->conf.crc = iw_cm_wants_crc(cm);
    return r;
}

void iw_cm_tls_log(struct iw_cm *cm, const char *what)
{
    const char *why = cm->tls ? iwc_stream_tls_why(cm->tls) : NULL;
    if (why)
        iw_log(IW_LOG_WARN, "%s: TLS: %s", what, why);
}
