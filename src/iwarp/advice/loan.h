/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes that are lent to the program until it gives them back, as the private data of CM events,
 * each time in pages of their own. Who reads them later is told so, and reads what there was.
 */
#ifndef ANYWARP_ADVICE_LOAN_H
#define ANYWARP_ADVICE_LOAN_H

#include "advice/advice.h"

#include <stddef.h>

#define IW_LOANS_KEPT 1024 /* of those that are over, the last ones */

/** @return a copy of the @p len bytes; NULL if no check is going on, or there is no memory */
void *iw_loan(const void *data, size_t len);

/** What iw_loan() gave, or NULL, is given back. */
void iw_loan_over(void *lent);

#endif
