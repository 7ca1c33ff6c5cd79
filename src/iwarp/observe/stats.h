/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process's statistics: objects, connections, traffic and errors, for "anywarp stat" and for
 * whoever looks into a crash.
 *
 * They always exist, in memory of this library. When the first CQ, QP or listener is made, that
 * memory becomes a file's (stats_page.h, stats_file.h), unless ANYWARP_STATS=off, or there is no
 * place for one: then nobody sees it, and all else is the same. Counting is a store to a row that
 * the object has a pointer to; there is always such a row, though beyond the table a CQ counts in
 * memory of its own, and QPs and listeners share a row each, which nobody is shown. Rows are used
 * again.
 *
 * exit() removes the file unless a QP failed; that of a process that failed so, or was killed,
 * stays, and can be read. After fork()
 * the child has a copy of its own, which gets a file when the child makes the next such object.
 *
 * The file is opened only to be made longer, as no descriptor of a library is safe in a program
 * that closes all it does not know. Space is allocated before it is used: a full file system ends
 * the growth, not the process.
 *
 * Lock: a leaf, taken by all functions but those marked; no data path is among these.
 */
#ifndef ANYWARP_OBSERVE_STATS_H
#define ANYWARP_OBSERVE_STATS_H

#include "common/lock.h"
#include "observe/stats_page.h"

#include <stdbool.h>

/** A value that one thread at a time changes. No lock. */
#define iw_stats_set(place, value) __atomic_store_n(place, value, __ATOMIC_RELAXED)

/** Makes the file if there is none and never was a try. */
void iw_stats_publish(void);

/** Takes the lock only as long as there may be a file to come. */
void iw_stats_gauge(enum stats_gauge g, int64_t by);
/** No lock. */
int64_t iw_stats_gauge_of(enum stats_gauge g);

/** @param own  of the CQ, zeros: what is returned if the table is full */
struct stats_cq *iw_stats_cq_take(struct stats_cq *own, uint32_t cqe);
void iw_stats_cq_resized(struct stats_cq *row, uint32_t cqe);
void iw_stats_cq_release(struct stats_cq *row);

/** @param send_cq, recv_cq  rows, or NULL */
struct stats_qp *iw_stats_qp_take(uint32_t qp_num, const struct stats_cq *send_cq,
                                  const struct stats_cq *recv_cq);
/** Its traffic stays counted in the head. */
void iw_stats_qp_release(struct stats_qp *row);

struct sockaddr;

/** @param local  IPv4 or IPv6 */
struct stats_listener *iw_stats_listener_take(const struct sockaddr *local, uint32_t backlog);
void iw_stats_listener_release(struct stats_listener *row);

/** What is known of a QP's connection. */
struct iw_stats_link {
    const struct sockaddr *local, *peer; /* IPv4 or IPv6; NULL: unknown */
    uint8_t flags;                       /* enum stats_flags */
    uint8_t rev;
    uint16_t ird, ord;
    const struct tls_peer_name *tls; /* NULL: no TLS */
};
void iw_stats_qp_link(struct stats_qp *row, const struct iw_stats_link *l);

/** Why a QP failed, in English. Those of the parent's that end in a forked child are no failures.
 */
void iw_stats_error(const struct stats_qp *row, uint32_t qp_num, const char *text);

/** What the module does about fork(); see process/atfork.h. */
void iw_stats_fork(enum fork_step step);

#endif
