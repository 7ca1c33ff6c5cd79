/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to an RDMA listener step by step, as librdmacm does, and tells how each step went. */
#ifndef ANYWARP_TOOLS_REACH_H
#define ANYWARP_TOOLS_REACH_H

#include <stdbool.h>

struct reach_step {
    const char *name; /* "name", "tcp", "mpa" */
    bool good;
    double ms;        /* that it took */
    const char *text; /* what came of it */
    const char *todo; /* what to look at; NULL if it is good, or nothing is known */
};

typedef void reach_tell(const struct reach_step *step);

/** Whether it may be a port: 1 to 65535, or the name of a service. */
bool reach_is_port(const char *port);

/**
 * Tries the addresses of @p host in turn, until one connects; hangs up at once.
 * @param host        an IPv6 address may stand in brackets
 * @param port        reach_is_port()
 * @param timeout_ms  for each step but that of the name
 * @return whether one connects
 */
bool reach(const char *host, const char *port, unsigned timeout_ms, reach_tell *tell);

#endif
