/* SPDX-License-Identifier: BSD-2-Clause */
/* The capture file, between pcap.c, whose lock is held, and the disk. */
#ifndef ANYWARP_OBSERVE_PCAP_FILE_H
#define ANYWARP_OBSERVE_PCAP_FILE_H

#include "wire/pcapng.h"

#include <stdbool.h>

/** Opens it at the first call of the process. @return whether packets can be written */
bool iw_pcap_file_open(void);

/** Writes a packet with the time of now, unless the file is full or gone. */
void iw_pcap_file_add(const struct tcp_ip *h, const uint8_t *data, uint32_t len, bool outgoing);

/** In a forked child: the file is its parent's. */
void iw_pcap_file_leave(void);

#endif
