/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/failure.h"

#include "env/conf.h"
#include "env/error_text.h"
#include "env/log.h"
#include "wire/error.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WHERE_MAX  (INET6_ADDRSTRLEN + 8)
#define REASON_MAX 256
#define SHOWN_MAX  16 /* first bytes of what is not iWARP */

static void name_peer(const struct sockaddr_storage *dst, char text[WHERE_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "?";
    const struct sockaddr_in *four = (const struct sockaddr_in *)dst;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)dst;
    bool is_six = dst->ss_family == AF_INET6;
    inet_ntop(dst->ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, ip,
              sizeof(ip));
    snprintf(text, WHERE_MAX, is_six ? "[%s]:%u" : "%s:%u", ip, ntohs(four->sin_port));
}

/** The first bytes of what the peer sent, as text where they are. */
static void show_bytes(const struct mpa_nego *n, char text[SHOWN_MAX + 1])
{
    uint32_t len = n->in_len < SHOWN_MAX ? n->in_len : SHOWN_MAX;
    for (uint32_t i = 0; i < len; i++)
        text[i] = isprint(n->in[i]) ? (char)n->in[i] : '.';
    text[len] = 0;
}

static void say_foreign(const struct mpa_nego *n, char reason[REASON_MAX])
{
    char bytes[SHOWN_MAX + 1];
    show_bytes(n, bytes);
    snprintf(reason, REASON_MAX, "it does not speak iWARP: %s, \"%s\"", iw_err_info(n->error)->text,
             bytes);
}

static void say_tcp(int status, char reason[REASON_MAX])
{
    char text[IW_ERROR_TEXT_MAX];
    iw_error_text(-status, text);
    if (status == -ECONNREFUSED)
        snprintf(reason, REASON_MAX, "nobody listens there: TCP refused it");
    else if (status == -ETIMEDOUT)
        snprintf(reason, REASON_MAX, "nobody answered TCP in %u ms", iw_conf()->connect_ms);
    else
        snprintf(reason, REASON_MAX, "%s", text);
}

/** Once the Request had gone. Of a time-out another thread may still be at the negotiation. */
static void say_handshake(const struct mpa_nego *n, int status, char reason[REASON_MAX])
{
    if (status == -ETIMEDOUT)
        snprintf(reason, REASON_MAX,
                 "TCP is connected, but nobody answered the MPA Request in %u ms",
                 iw_conf()->connect_ms);
    else if (status == -ECONNRESET)
        snprintf(reason, REASON_MAX, "it closed the connection before it answered");
    else if (status == -EPROTO)
        say_foreign(n, reason);
    else if (n->state == MPA_NEGO_REJECTED && n->result.full)
        snprintf(reason, REASON_MAX, "its backlog is full: its program takes no requests");
    else if (n->state == MPA_NEGO_REJECTED)
        snprintf(reason, REASON_MAX, "its program rejected it, with %u bytes of private data",
                 n->peer.pd_len);
    else if (n->state == MPA_NEGO_FAILED && n->error != IW_ERR_LLP_CLOSED)
        snprintf(reason, REASON_MAX, "%s", iw_err_info(n->error)->text);
    else
        say_tcp(status, reason);
}

void iw_cm_log_failure(const struct iw_cm *cm, int status, uint32_t qp_num)
{
    char where[WHERE_MAX], reason[REASON_MAX];
    if (!iw_log_on(IW_LOG_WARN))
        return;
    name_peer(&cm->dst, where);
    if (atomic_load(&cm->requested))
        say_handshake(cm->nego, status, reason);
    else
        say_tcp(status, reason);
    iw_log(IW_LOG_WARN, "rdma_connect: QP 0x%06x, %s: %s", qp_num, where, reason);
}
