/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/reason.h"

#include "env/error_text.h"
#include "wire/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define SHOWN_MAX 16 /* first bytes of what is not iWARP */

int iw_cm_reason_status(const struct mpa_nego *n)
{
    if (n->state == MPA_NEGO_REJECTED)
        return -ECONNREFUSED;
    switch (n->error) {
    case IW_ERR_IRD_SHORT:
    case IW_ERR_NO_RTR:
        return -EINVAL;
    case IW_ERR_LLP_CLOSED:
        return -ECONNRESET;
    default:
        return -EPROTO;
    }
}

/** The first bytes of what the peer sent, as text where they are. */
static void show_bytes(const struct mpa_nego *n, char text[SHOWN_MAX + 1])
{
    uint32_t len = n->in_len < SHOWN_MAX ? n->in_len : SHOWN_MAX;
    for (uint32_t i = 0; i < len; i++)
        text[i] = isprint(n->in[i]) ? (char)n->in[i] : '.';
    text[len] = 0;
}

static void say_foreign(const struct mpa_nego *n, char reason[IW_CM_REASON_MAX])
{
    char bytes[SHOWN_MAX + 1];
    show_bytes(n, bytes);
    snprintf(reason, IW_CM_REASON_MAX, "it does not speak iWARP: %s, \"%s\"",
             iw_err_info(n->error)->text, bytes);
}

static void say_tcp(int status, unsigned ms, char reason[IW_CM_REASON_MAX])
{
    char text[IW_ERROR_TEXT_MAX];
    iw_error_text(-status, text);
    if (status == -ECONNREFUSED)
        snprintf(reason, IW_CM_REASON_MAX, "nobody listens there: TCP refused it");
    else if (status == -ETIMEDOUT)
        snprintf(reason, IW_CM_REASON_MAX, "nobody answered TCP in %u ms", ms);
    else if (status == -EHOSTUNREACH)
        snprintf(reason, IW_CM_REASON_MAX, "no host has this address, or no route leads there: %s",
                 text);
    else
        snprintf(reason, IW_CM_REASON_MAX, "%s", text);
}

/** Whether the peer answered by an alert of TLS. */
static bool wants_tls(const struct mpa_nego *n)
{
    return n->in_len >= 2 && n->in[0] == 21 && n->in[1] == 3;
}

/** Once the Request had gone. Of a time-out another thread may still be at the negotiation. */
static void say_handshake(const struct mpa_nego *n, int status, unsigned ms,
                          char reason[IW_CM_REASON_MAX])
{
    if (status == -ETIMEDOUT)
        snprintf(reason, IW_CM_REASON_MAX,
                 "TCP is connected, but nobody answered the MPA Request in %u ms", ms);
    else if (wants_tls(n))
        snprintf(reason, IW_CM_REASON_MAX,
                 "it wants TLS (ANYWARP_TLS=require), this end spoke plain MPA");
    else if (status == -ECONNRESET)
        snprintf(reason, IW_CM_REASON_MAX, "it closed the connection before it answered");
    else if (status == -EPROTO)
        say_foreign(n, reason);
    else if (status == -EPROTONOSUPPORT)
        snprintf(reason, IW_CM_REASON_MAX,
                 "it accepted as an iWARP device does, this end has a RoCE device");
    else if (n->state == MPA_NEGO_REJECTED && n->result.full)
        snprintf(reason, IW_CM_REASON_MAX, "its backlog is full: its program takes no requests");
    else if (n->state == MPA_NEGO_REJECTED)
        snprintf(reason, IW_CM_REASON_MAX, "its program rejected it, with %u bytes of private data",
                 n->peer.pd_len);
    else if (n->state == MPA_NEGO_FAILED && n->error != IW_ERR_LLP_CLOSED)
        snprintf(reason, IW_CM_REASON_MAX, "%s", iw_err_info(n->error)->text);
    else
        say_tcp(status, ms, reason);
}

void iw_cm_reason(const struct mpa_nego *nego, int status, unsigned ms, char text[IW_CM_REASON_MAX])
{
    if (nego)
        say_handshake(nego, status, ms, text);
    else
        say_tcp(status, ms, text);
}
