/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sockets become rsockets: the file preload_config of /etc/rdma/rsocket. */
#ifndef ANYWARP_PRELOAD_RS_RULES_H
#define ANYWARP_PRELOAD_RS_RULES_H

#include <stdbool.h>

/**
 * Without a rule all TCP sockets do. With RDMAV_FORK_SAFE none does, as a child of fork() could not
 * use them.
 * @param type  without SOCK_NONBLOCK and SOCK_CLOEXEC
 */
bool pre_wanted(int domain, int type, int protocol);

/** Whether what could be an rsocket may be none after all: not where TLS is required. */
bool pre_may_be_plain(void);

#endif
