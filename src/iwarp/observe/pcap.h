/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ANYWARP_PCAP: what the sockets carry, as a capture file. One packet for each frame, whatever
 * segments TCP made of it, with the connection's addresses and ports, sequence numbers that begin
 * at 0, a handshake in front and a FIN or RST behind.
 *
 * An attached stream has other operations in place of its own, so nothing is done, and not even
 * asked, where there is no capture. With it one lock is held around each send and receive: what
 * answers a packet stands behind it in the file. If both ends of a connection are in this process,
 * each packet is captured once, where it is sent.
 *
 * The file can be read by its owner only. One that was there is written over if it is a regular
 * file of this user with one name; no symbolic link is followed to it.
 *
 * The file is as large as ANYWARP_PCAP_MB at most; what does not fit is not captured. %p in the
 * name is the number of the process; without it a forked child captures nothing, and neither does a
 * second process with the same name.
 *
 * Lock: a leaf.
 */
#ifndef ANYWARP_OBSERVE_PCAP_H
#define ANYWARP_OBSERVE_PCAP_H

#include "common/lock.h"
#include "conn/stream.h"

/** Captures @p s, fresh, over the connected socket @p fd, if that is wanted and possible. */
void iw_pcap_attach(struct iwc_stream *s, int fd, bool active);

/** The socket is going to be closed. Harmless if not attached. */
void iw_pcap_detach(struct iwc_stream *s, bool reset);

/** What the module does about fork(); see process/atfork.h. */
void iw_pcap_fork(enum fork_step step);

#endif
