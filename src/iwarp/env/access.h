/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may connect to this process, and to whom it may connect: the rules of ANYWARP_ACCESS, a file
 * that is read at each decision, so that a change of it counts at once. The first line that fits
 * decides; what none fits is refused, and so is everything if the file cannot be used.
 *
 *     allow from 10.0.0.0/8 port 7471 identity CN=worker*
 *     deny  to any
 */
#ifndef ANYWARP_ENV_ACCESS_H
#define ANYWARP_ENV_ACCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define IW_ACCESS_WHY_MAX 384

enum iw_access {
    IW_ACCESS_NO,
    IW_ACCESS_YES,
    IW_ACCESS_DEPENDS, /* on who the peer is */
};

struct iw_access_ask {
    bool to;                             /* it is we who connect */
    const struct sockaddr_storage *peer; /* its address */
    uint16_t port;                       /* that is connected to, host order */
    const char *identity;                /* of the peer; "": it has none, NULL: not known yet */
};

/**
 * Without ANYWARP_ACCESS: yes.
 * @param why  set if no: which line it was, or what is wrong with the file
 */
enum iw_access iw_access(const struct iw_access_ask *ask, char why[IW_ACCESS_WHY_MAX]);

/** Whether the file can be used. @param why  set if not */
bool iw_access_usable(const char *path, char why[IW_ACCESS_WHY_MAX]);

#endif
