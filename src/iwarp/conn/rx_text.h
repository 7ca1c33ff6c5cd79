/* SPDX-License-Identifier: BSD-2-Clause */
/* What reception refused, in words. */
#ifndef ANYWARP_CONN_RX_TEXT_H
#define ANYWARP_CONN_RX_TEXT_H

#include "conn/rx.h"

/**
 * The fields of what iwc_rx_input() refused with @p err, in words, and what was due instead. The
 * bytes given to it must still be there.
 */
void iwc_rx_describe(const struct iwc_rx *rx, enum iw_err err, char *buf, size_t size);

#endif
