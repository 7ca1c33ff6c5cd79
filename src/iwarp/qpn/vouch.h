/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes have vouched for their numbers. Anybody on a host can dial from its address, and
 * say that the number is another process's; so the port of the number is called back (dial.c), and
 * given a token there, which its process shows with later hellos: only who has the port knows it.
 *
 * A process is an address and a port here. IW_VOUCH_MAX of them are remembered either way, those
 * of before are called back again.
 */
#ifndef ANYWARP_QPN_VOUCH_H
#define ANYWARP_QPN_VOUCH_H

#include "common/lock.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define IW_VOUCH_MAX 1024

/** A token that nobody can guess. @return 0 if the generator fails: then there is none */
uint64_t iw_vouch_draw(void);

/** We gave it to a process, which has vouched. */
void iw_vouch_given(const struct sockaddr_storage *process, uint64_t token);
/** Whether it is what we gave that process last. */
bool iw_vouch_is_given(const struct sockaddr_storage *process, uint64_t token);

/** A process that we dial gave it to us. */
void iw_vouch_got(const struct sockaddr_storage *process, uint64_t token);
/** To be shown to that process. @return 0: it gave none */
uint64_t iw_vouch_token(const struct sockaddr_storage *process);

/** What the module does about fork(); see process/atfork.h. A child has other ports. */
void iw_vouch_fork(enum fork_step step);

#endif
