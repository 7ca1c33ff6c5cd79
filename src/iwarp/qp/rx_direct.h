/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct placement: of a large segment of which a part is staged, the bytes that are still to come
 * go from the stream to where they belong, without a copy in staging. No CRC covers it then, as
 * nothing may be placed before that is checked.
 *
 * What is staged becomes the FPDU of a shorter segment: its header, with what goes past it counted
 * in, and its last bytes. Nothing else is staged until the direct bytes are in. So the checks and
 * upcalls of conn/rx.h come when the whole segment is there, and the last byte lands behind all
 * others, as in iw_place(). Until then each call checks the key anew. rx.lock.
 */
#ifndef ANYWARP_QP_RX_DIRECT_H
#define ANYWARP_QP_RX_DIRECT_H

#include "qp/qp.h"

/** Bytes that are still to come of a segment that is large: for fewer the copy costs less than what
 * it takes to leave it out. Tests lower it. */
extern uint32_t iw_direct_least;

/** Plans rx.direct, which has nothing left, for what is staged. @return whether it is large enough,
 * and may be placed */
bool iw_direct_plan(struct iw_qp *qp);

/**
 * Receives what is left, and what is behind it into staging: a little, and what the stream wants
 * read ahead.
 * @param err  [out] what ends the stream, explained; IW_OK: nothing does
 * @return as recv of the stream
 */
ssize_t iw_direct_recv(struct iw_qp *qp, enum iw_err *err);

/** Decodes the segment at the start of what is staged, which has its header. @return as
 * ddp_decode() */
enum iw_err iw_direct_decode(const struct iw_qp_rx *rx, struct ddp_seg *seg);

/** The entry of a list in which all @p len bytes from the @p at-th on are. @return false: none */
bool iw_direct_entry(const struct ibv_sge *sge, uint32_t nsge, uint64_t at, uint64_t len,
                     struct iw_direct *d);

#endif
