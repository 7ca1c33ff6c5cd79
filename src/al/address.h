/* SPDX-License-Identifier: BSD-2-Clause */
/* InfiniBand's names for where a service is, as addresses of IP. */
#ifndef ANYWARP_AL_ADDRESS_H
#define ANYWARP_AL_ADDRESS_H

#include <iba/ib_types.h>
#include <stdbool.h>
#include <sys/socket.h>

/** @return the TCP port of a service; 0: it has none */
uint16_t al_port_of(ib_net64_t svc_id);

/** @return whether the GID is an address: of IPv6, or of IPv4 within it */
bool al_address_of(const ib_gid_t *gid, uint16_t port, struct sockaddr_storage *addr);

void al_gid_of(const struct sockaddr *addr, ib_gid_t *gid);

#endif
