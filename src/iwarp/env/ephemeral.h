/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Local ports for connections that this process makes.
 *
 * The kernel's own choice for a socket that is bound before it connects passes over every port that
 * a finished connection still holds in TIME-WAIT: slower with each connection, and none left after
 * 28,000 a minute. A port that is named may be shared with those, as only the whole connection must
 * be unique; so the process goes round the range on its own, from a random place.
 */
#ifndef ANYWARP_ENV_EPHEMERAL_H
#define ANYWARP_ENV_EPHEMERAL_H

#include <stdint.h>

/** @return the next port of the system's range, in host order; 0 if the range cannot be read */
uint16_t iw_ephemeral_port(void);

#endif
