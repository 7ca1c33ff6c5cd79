/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A CQ that was overrun has lost a completion, so that no QP that uses it can go on. They fail one
 * by one, and their completions go to the CQs that are left. It is deferred work and not done on
 * the spot: who overran the CQ is inside a QP's progress, where waiting for another QP's could be
 * mutual.
 */
#ifndef ANYWARP_QP_OVERRUN_H
#define ANYWARP_QP_OVERRUN_H

#include "qp/qp.h"

/** Makes every QP fail that uses the CQ, whose field failing this is. */
void iw_qps_fail(struct iw_deferred *failing);
/** A new QP fails as well if one of its CQs was overrun while it was made. */
void iw_cqs_check(struct iw_qp *qp);

#endif
